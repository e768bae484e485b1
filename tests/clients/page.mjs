// The page of the metrics endpoint in headless Chromium: it renders, names stay text, and no other page can use it.
// Arguments: port, token and socket of a daemon on TCP; the page's Unix socket and the socket of a second daemon; the page of a
// replay's report.
import { chromium } from "playwright-core";
import http from "node:http";
import net from "node:net";

const [port, token, gate, pageSocket, manyGate, reportFile] = process.argv.slice(2);
const EVIL = "<img src=x onerror=window.hacked=1>";
const base = `http://localhost:${port}/`;
let number = 0;

async function test(name, body) {
  number++;
  try {
    await body();
    console.log(`ok ${number} - ${name}`);
  } catch (why) {
    console.log(`not ok ${number} - ${name}: ${String(why.message).split("\n").slice(0, 4).join(" / ")}`);
  }
}

function assert(condition, what) {
  if (!condition) throw new Error(what);
}

// One connection to a daemon; the reply of each call in its order.
function agent(path) {
  const socket = net.connect(path), waiting = [];
  let text = "", id = 0;
  socket.on("data", (bytes) => {
    text += bytes;
    for (let end; (end = text.indexOf("\n")) >= 0; text = text.slice(end + 1)) waiting.shift()(JSON.parse(text.slice(0, end)));
  });
  const call = (name, args, session) => new Promise((resolve) => {
    waiting.push(resolve);
    socket.write(JSON.stringify({ jsonrpc: "2.0", id: ++id, method: "tools/call",
      params: { name, arguments: args, _meta: { "dev.toolgate/session": session } } }) + "\n");
  });
  return { call, end: () => socket.end() };
}

// Pages with everything that a browser complains of, and a flag that injected code would set.
async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 820 }, ...options });
  const page = await context.newPage(), complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !message.text().includes("401")) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => { complaints.push("dialog"); dialog.dismiss(); });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.error("CSP: " + event.violatedDirective));
  });
  return { context, page, complaints };
}

async function enter(page) {
  await page.goto(base);
  await page.fill("input[type=password]", token);
  await page.click("button.first");
  await page.waitForSelector("tr.pick");
}

async function clean({ page, complaints }) {
  assert(!(await page.evaluate(() => window.hacked)), "injected code ran");
  assert(!(await page.locator("main img, header img").count()), "a name became an element");
  assert(!complaints.length, complaints.join("; "));
}

async function fits(page, what) {
  const [wide, cut] = await page.evaluate(() => [document.documentElement.scrollWidth - innerWidth,
    [...document.querySelectorAll("td")].filter((cell) => cell.offsetParent && cell.innerText.length > 12 && cell.clientWidth < 60).length]);
  assert(wide <= 0, `${what}: ${wide} px too wide`);
  assert(!cut, `${what}: ${cut} cells of a few letters a line`);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1"],
});

// What `ssh -L` does: a port of this host leads to the Unix socket.
const forwarder = net.createServer((from) => {
  const to = net.connect(pageSocket);
  from.pipe(to).pipe(from);
  for (const end of [from, to]) end.on("error", () => { from.destroy(); to.destroy(); });
}).listen(0, "127.0.0.1");
await new Promise((resolve) => forwarder.once("listening", resolve));
const forwarded = `http://localhost:${forwarder.address().port}/`;

const client = agent(gate);
await client.call("echo", { text: EVIL }, EVIL);
await client.call("echo", { [EVIL]: EVIL }, EVIL);
await client.call(EVIL, { a: 1 }, EVIL);
await client.call("outcome", { how: "throws" }, "chat-1");
for (let i = 0; i < 5; i++) await client.call("echo", { text: "same" }, "loop " + EVIL);

for (const scheme of ["light", "dark"]) {
  await test(`shows decisions, tools, sessions and health, ${scheme}`, async () => {
    const opened = await open(browser, { colorScheme: scheme }), { page } = opened;
    await enter(page);
    await page.locator("tr.pick", { hasText: "img src" }).first().click();
    assert((await page.locator(".detail").innerText()).includes(EVIL), "the name is not shown as text");
    for (const row of await page.locator("tr.pick").all()) await row.click();
    await page.click('nav a[href="#tools"]');
    await page.locator("tr.pick", { hasText: /^echo/ }).waitFor();
    await page.click('nav a[href="#sessions"]');
    await page.locator("td", { hasText: "loop " + EVIL }).first().waitFor();
    await page.click('nav a[href="#health"]');
    await page.locator("h2", { hasText: "Generation" }).waitFor();
    const [ground, ink] = await page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]
      .map((colour) => colour.match(/\d+/g).map(Number).reduce((a, b) => a + b)));
    assert(scheme === "dark" ? ground < ink : ground > ink, "the colours are not " + scheme);
    await clean(opened);
    await opened.context.close();
  });
}

await test("shows a new decision by itself", async () => {
  const opened = await open(browser);
  await enter(opened.page);
  await client.call("echo", { text: "fresh" }, "fresh session");
  await opened.page.locator("tr.pick", { hasText: "fresh session" }).waitFor();
  await clean(opened);
  await opened.context.close();
});

await test("says of a call in shadow what would have become of it, and counts its loop", async () => {
  const opened = await open(browser), { page } = opened;
  for (let i = 0; i < 5; i++) await client.call("shadowed", { how: "never" }, "in shadow");
  await enter(page);
  const row = page.locator("tr.shadow", { hasText: "forbidden never here" }).first();
  await row.click();
  assert((await row.locator(".verdict").allInnerTexts()).join() === "pass,refuse", "the badges are " + await row.innerText());
  assert((await page.locator(".detail").innerText()).includes("Not enforced"), "the detail does not say that it ran");
  await page.locator("tr.shadow", { hasText: "loop" }).first().waitFor();
  await page.locator(".figure", { hasText: /more in shadow/ }).waitFor();
  await page.selectOption('select[aria-label="Verdict"]', "shadow");
  assert(!(await page.locator("tr.pick:not(.shadow)").count()), "the filter lets enforced calls through");
  await page.click('nav a[href="#sessions"]');
  await page.locator("td", { hasText: "let run in shadow: loop" }).first().waitFor();
  await clean(opened);
  await opened.context.close();
});

await test("on a phone the figures are one line, the navigation is one row, and nothing is wider than the screen", async () => {
  const opened = await open(browser, { viewport: { width: 360, height: 780 } }), { page } = opened;
  await enter(page);
  const line = page.locator(".fold > .line");
  await page.locator(".fold > .line", { hasText: "not passed" }).waitFor();
  assert((await line.boundingBox()).height < 50, "the figures take more than a line");
  assert(!(await page.locator(".figure").first().isVisible()), "the cards are not folded");
  await line.click();
  assert(await page.locator(".figure").last().isVisible(), "a tap does not unfold them");
  for (const view of ["live", "tools", "sessions", "health", "playground"]) {
    await page.click(`nav a[href="#${view}"]`);
    await page.locator("main .panel").first().waitFor();
    const rows = await page.evaluate(() => new Set([...document.querySelectorAll("nav a")].map((link) => link.offsetTop)).size);
    assert(rows === 1, `${view}: ${rows} rows of navigation`);
    await fits(page, view);
  }
  await clean(opened);
  await opened.context.close();
});

await test("the report of a replay is readable on a phone and on a desk", async () => {
  for (const width of [360, 1200]) {
    const opened = await open(browser, { viewport: { width, height: 780 } });
    await opened.page.goto("file://" + reportFile);
    await opened.page.locator("h2", { hasText: "Differences" }).waitFor();
    await fits(opened.page, `${width} px`);
    await opened.context.close();
  }
});

await test("the playground shows each stage and what the model reads", async () => {
  const opened = await open(browser), { page } = opened;
  await enter(page);
  await page.click('nav a[href="#playground"]');
  await page.fill("input[list]", "echo");
  await page.locator("summary", { hasText: "Input schema" }).waitFor();
  assert(JSON.parse(await page.inputValue("textarea")).text !== undefined, "no sample arguments");
  await page.fill("textarea", JSON.stringify({ [EVIL]: EVIL }));
  await page.click("button.first");
  await page.locator("ol.stages li.decided").first().waitFor();
  assert((await page.locator("main").innerText()).includes("echo was not run"), "no feedback");
  await page.fill("textarea", "{");
  await page.click("button.first");
  await page.locator("h2", { hasText: "No verdict" }).waitFor();
  await clean(opened);
  await opened.context.close();
});

await test("asks for the token, refuses a wrong one, and keeps none after the tab", async () => {
  const opened = await open(browser), { page } = opened;
  await page.goto(base);
  await page.fill("input[type=password]", "not the token");
  await page.click("button.first");
  await page.locator("p", { hasText: "does not accept" }).waitFor();
  await page.fill("input[type=password]", token);
  await page.click("button.first");
  await page.waitForSelector("tr.pick");
  assert(!(await opened.context.cookies()).length, "a cookie was set");
  const other = await opened.context.newPage();
  await other.goto(base);
  await other.waitForSelector("input[type=password]");
  await clean(opened);
  await opened.context.close();
});

// What a page of another origin can do: read by fetch, script, frame; send a form.
await test("a page of another origin reads nothing and checks nothing", async () => {
  const evil = http.createServer((_, reply) => reply.writeHead(200, { "Content-Type": "text/html" }).end("<p>evil</p>")).listen(0, "127.0.0.1");
  await new Promise((resolve) => evil.once("listening", resolve));
  for (const target of [base, forwarded]) {
    const { page, context } = await open(browser);
    await page.goto(`http://127.0.0.1:${evil.address().port}/`);
    const got = await page.evaluate(async ([to, secret]) => {
      const tried = {}, json = JSON.stringify({ tool: "echo", arguments: {} });
      const read = (name, options) => fetch(to + name, options).then((reply) => reply.text()).catch(() => "");
      tried.plain = await read("api/decisions.json", {});
      tried.token = await read("api/decisions.json", { headers: { Authorization: "Bearer " + secret } });
      tried.opaque = await read("api/decisions.json", { mode: "no-cors", credentials: "include" });
      tried.metrics = await read("metrics", {});
      tried.post = await read("api/check.json", { method: "POST", mode: "no-cors", body: json, headers: { "Content-Type": "text/plain" } });
      tried.json = await read("api/check.json", { method: "POST", body: json, headers: { "Content-Type": "application/json" } });
      const frame = document.createElement("iframe");
      frame.src = to;
      document.body.append(frame);
      await new Promise((resolve) => { frame.onload = resolve; setTimeout(resolve, 3000); });
      try { tried.frame = frame.contentDocument ? frame.contentDocument.body.innerText : ""; } catch { tried.frame = ""; }
      return tried;
    }, [target, token]);
    for (const [how, text] of Object.entries(got)) assert(text === "", `${how}: ${text.slice(0, 60)}`);
    const [reply] = await Promise.all([
      page.waitForResponse((one) => one.url().endsWith("check.json")),
      page.evaluate((to) => {
        const form = document.createElement("form");
        form.method = "POST"; form.enctype = "text/plain"; form.action = to + "api/check.json";
        form.innerHTML = `<input name='{"tool":"echo","x":"' value='"}'>`;
        document.body.append(form);
        form.submit();
      }, target),
    ]);
    assert(reply.status() === 403, "the form was answered with " + reply.status());
    await context.close();
  }
  evil.close();
});

await test("a name that DNS points at this host shows nothing", async () => {
  for (const target of [base, forwarded]) {
    const { page, context } = await open(browser);
    const reply = await page.goto(target.replace("localhost", "evil.example"));
    assert(reply.status() === 403, "status " + reply.status());
    const text = await page.evaluate(() => fetch("api/status.json").then((one) => one.status));
    assert(text === 403, "status.json " + text);
    await context.close();
  }
});

await test("10,000 tools behind a Unix socket, as through ssh -L", async () => {
  const opened = await open(browser), { page } = opened, other = agent(manyGate);
  await other.call("echo", { text: "a" }, "chat-1");
  await page.goto(forwarded + "#tools");
  await page.locator("span", { hasText: "of 10,0" }).waitFor();
  assert((await page.locator("tr.pick").count()) <= 100, "more rows than a page has");
  await page.click("text=Next");
  await page.locator("span", { hasText: "101–200" }).waitFor();
  await page.fill("input[type=search]", "09999");
  await page.locator("tr.pick", { hasText: "tool_09999" }).waitFor();
  await page.fill("input[type=search]", "<img");
  await page.locator("tr.pick", { hasText: EVIL }).click();
  await page.locator("p", { hasText: EVIL }).waitFor();
  await clean(opened);
  other.end();
  await opened.context.close();
});

client.end();
await browser.close();
forwarder.close();
