// The core against a real daemon, and against sockets that lie. usage: core.test.ts SOCKET TOOLGATE
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  Ask, Gate, guard, Halt, InvalidArguments, ProtocolError, Repair, RetryError, stoppedBy, ToolgateError, Unavailable,
} from "toolgate-client";
import * as v from "valibot";
import { z } from "zod";
import { eventually, fresh, overheard, run, socket, test } from "./tap.ts";

const toolgate = process.argv[3] ?? "";
const folder = await mkdtemp(join(tmpdir(), "toolgate-ts-"));
process.removeAllListeners("warning"); // onUnavailable warns

const forecast = guard({
  name: "forecast", description: "The weather in a city.", effects: "read",
  parameters: z.object({ city: z.string(), days: z.int().default(1) }),
  execute: ({ city, days }) => ({ city, sky: "grey", days }),
});
const fails = guard({
  name: "fails", description: "Fails as told.", parameters: z.object({ how: z.string() }),
  execute: ({ how }): string => { throw how === "retry" ? new RetryError("say it in other words") : new Error(how); },
});
const gate = new Gate(socket, { tools: [forecast, fails] });

// ---- check and report ----

test("core: check repairs, report passes the result and its notes on", async () => {
  const session = gate.session(fresh());
  const checked = await session.check("forecast", { city: "Brno", days: "2" });
  assert.equal(checked.verdict.kind, "pass");
  assert.deepEqual(checked.arguments, { city: "Brno", days: 2 });
  assert.match(checked.advice, /read as 2/);
  const reported = await session.report(checked, { sky: "clear" });
  assert.equal(reported.verdict.kind, "pass");
  assert.match(reported.text, /clear/);
});

test("core: a verdict is typed, and an error where one is wanted", async () => {
  const { verdict, passed, text } = await gate.session(fresh()).check("forecast", { town: "Brno" });
  assert.equal(passed, false);
  assert.equal(verdict.kind, "repair");
  assert.equal(verdict.errorClass, "invalid_arguments");
  assert.ok(verdict.problems.some((one) => one.path.includes("city")), JSON.stringify(verdict.problems));
  assert.equal(typeof verdict.attemptsLeft, "number");
  assert.ok(stoppedBy(verdict, text) instanceof Repair);
});

test("core: call checks, runs and reports; the function gets what its schema makes of the arguments", async () => {
  const outcome = await gate.session(fresh()).call(forecast, '{"city": "Bern"}');
  assert.deepEqual(outcome.value, { city: "Bern", sky: "grey", days: 1 });
  assert.equal(outcome.unchanged, true);
  assert.equal((await gate.session(fresh()).call("forecast", { city: "Bern" })).ran, true);
});

test("core: an exception is the tool's error; RetryError asks the model for other arguments", async () => {
  const session = gate.session(fresh());
  const failed = await session.call(fails, { how: "no such table" });
  assert.equal(failed.verdict.errorClass, "tool_error");
  assert.match(failed.text, /no such table/);
  const retried = await session.call(fails, { how: "retry" });
  assert.equal(retried.verdict.kind, "repair");
  assert.match(retried.text, /say it in other words/);
});

test("core: a session's own tools, their retries, and what only the program hands to them", async () => {
  const mine = guard({
    name: "mine", description: "Mine.", retries: 3, parameters: z.object({ n: z.int() }),
    execute: ({ n }, { deps, context }) => `${n} ${String(deps)} ${String(context?.["role"])}`,
  });
  const session = gate.session(fresh()), other = gate.session(fresh());
  session.declare([mine]);
  const outcome = await session.call("mine", { n: 1 }, { deps: "Ann", context: { role: "clerk" } });
  assert.equal(outcome.text, "1 Ann clerk");
  assert.equal((await session.call(mine, { m: 1 })).verdict.attemptsLeft, 3);
  assert.equal((await other.check("mine", { n: 1 })).verdict.errorClass, "unknown_tool");
  assert.equal(gate.session(session.name), session);
  assert.ok((await session.definitions())?.has("mine") && !(await other.definitions())?.has("mine"));
});

test("core: a call that a tool makes of its own session is a nested agent's, and a judge's question reaches the model", async () => {
  const session = gate.session(fresh());
  const outer = guard({ name: "outer", description: "Calls.", parameters: z.object({}),
    execute: async () => (await session.call(forecast, { city: "Bern" })).text });
  const made = await overheard(gate, async () => { await session.call(outer, {}); await session.check("forecast", { city: "Brno" }); });
  assert.deepEqual(made.agents, [undefined, "outer", undefined]);
  const checked = await session.check("forecast", { city: "Basel" });
  const reported = await session.report(checked, "grey", { coverage: "NEED_USER_INPUT", question: "Which day?" });
  assert.match(reported.text, /^grey\n.*Ask the user: Which day\?/s);
});

test("core: more sessions than a connection keeps still have their own tools", async () => {
  const sessions = Array.from({ length: 300 }, () => gate.session(fresh()));
  const own = { name: "own", description: "Own.", inputSchema: { type: "object", properties: { n: { type: "integer" } } } };
  for (const session of [...sessions, ...sessions]) {
    session.declare([own]);
    assert.ok((await session.check("own", { n: 1 })).passed);
  }
});

test("core: the same call over and over is a halt", async () => {
  const session = gate.session(fresh());
  let kind = "pass";
  for (let i = 0; i < 10 && kind !== "halt"; i++) kind = (await session.call(forecast, { city: "Bern" })).verdict.kind;
  assert.equal(kind, "halt");
  const { verdict, text } = await session.check("forecast", { city: "Bern" });
  assert.ok(verdict.halted && stoppedBy(verdict, text) instanceof Halt);
});

test("core: a result that is no JSON is an error that names it, and gives the call back", async () => {
  const session = gate.session(fresh());
  const checked = await session.check("forecast", { city: "Bern" });
  await assert.rejects(session.report(checked, { callback: () => 1 }), /'callback' is a function/);
  await eventually("it is released", async () => {
    const { history } = await gate.request("toolgate/session", { session: session.name });
    return (history as { class: string }[])[0]?.class === "cancelled";
  });
});

test("core: reporting what did not pass, and an empty session, are errors", async () => {
  const session = gate.session(fresh());
  await assert.rejects(session.report(await session.check("forecast", {}), 1), ToolgateError);
  assert.throws(() => gate.session(""), TypeError);
  await assert.rejects(gate.request("toolgate/chekc"), ProtocolError);
});

test("core: a function that this program does not have is an error in words", async () => {
  const other = new Gate(socket, { tools: [{ name: "elsewhere", inputSchema: { type: "object" } }] });
  await assert.rejects(other.session(fresh()).call("elsewhere", {}), /has no function elsewhere/);
});

test("core: conversations with different tools of one name are each checked by their own, also at once", async () => {
  const properties = (city: string): object => ({ city: { type: "string", enum: [city] } });
  const cities = ["Bern", "Brno", "Basel"];
  await Promise.all(Array.from({ length: 90 }, async (_, i) => {
    const city = cities[i % 3] ?? "", session = gate.session(fresh());
    const tools = [{ name: "visit", inputSchema: { type: "object", properties: properties(city), required: ["city"] } }];
    for (let n = 0; n < 2; n++) {
      const checked = await session.check("visit", { city }, { tools, step: String(n) });
      assert.ok(checked.passed, checked.text);
      session.release(checked);
    }
    assert.equal((await session.check("visit", { city: cities[(i + 1) % 3] }, { tools })).passed, false);
  }));
});

// ---- turns ----

test("core: a turn has a goal, and an id of the program's own; its end gives back what nobody reported", async () => {
  const session = gate.session(fresh());
  const seen = (): Promise<{ [key: string]: unknown }> => gate.request("toolgate/session", { session: session.name });
  for (const turn of ["6f1c-a", "6f1c-b"]) {
    await session.turn({ goal: "will it rain?", turn }, async () => {
      assert.match((await session.check("recall", {})).text, /the goal is will it rain\?/);
      assert.ok((await session.check("forecast", { city: "Bern" })).passed);
    });
  }
  assert.equal((await seen())["turn"], 2);
  await eventually("both are released", async () => {
    const { history } = await seen();
    return (history as { class: string }[]).filter((one) => one.class === "cancelled").length === 2;
  });
});

test("core: a user may write more than a goal may have, and half a character", async () => {
  for (const [n, goal] of ["ä".repeat(9000), "rain? \ud83d", "x".repeat(8191) + "ä"].entries()) {
    assert.equal(await gate.session(fresh()).beginTurn({ goal }), 1, String(n));
  }
});

test("core: a page of items under content is a result as any other", async () => {
  for (const page of [{ content: [{ id: 1 }], total: 3 }, { content: [null, "a"] }, { content: [{ type: "text", text: "x" }], page: 1 }]) {
    const tool = guard({ name: "page", parameters: { type: "object", properties: {} }, execute: () => page });
    const outcome = await gate.session(fresh()).call(tool, {});
    assert.equal(outcome.text, JSON.stringify(page));
    assert.ok(outcome.unchanged);
  }
});

// ---- asking the user ----

test("core: onAsk answers a policy's question, and without it the model reads the question", async () => {
  await mkdir(join(folder, "policies"));
  await writeFile(join(folder, "policies", "pay.lua"), `-- pay: pays. Writes.
return tool "pay" {
  description = "Pay an amount.", effects = "write",
  schema = json [[{"type":"object","properties":{"amount":{"type":"integer"}},"required":["amount"]}]],
  check = function(args) if args.amount > 100 then return ask("Pay " .. args.amount .. "?", { "pay", "keep" }) end end,
}
`);
  const daemon = await start(join(folder, "ask.sock"), join(folder, "policies"));
  const pay = guard({ name: "pay", parameters: z.object({ amount: z.int() }), execute: ({ amount }) => `paid ${amount}` });
  const asked: [string, readonly string[]][] = [];
  const options = { tools: [pay] };
  const asking = new Gate(daemon.path, { ...options, onAsk: (question, choices) => {
    asked.push([question, choices]);
    return question.includes("200") ? "pay" : undefined;
  } });
  assert.equal((await asking.session(fresh()).call("pay", { amount: 200 })).value, "paid 200");
  const declined = await asking.session(fresh()).call("pay", { amount: 300 });
  assert.equal(declined.verdict.code, "declined");
  assert.deepEqual(asked[0]?.[1], ["pay", "keep"]);
  const text = await new Gate(daemon.path, options).session(fresh()).check("pay", { amount: 200 });
  assert.ok(stoppedBy(text.verdict, text.text) instanceof Ask);
  assert.match(text.text, /Pay 200\?/);
  await daemon.stop();
});

// ---- what does not work ----

interface Daemon { path: string; child: ChildProcess; stop(signal?: NodeJS.Signals): Promise<void> }

async function start(path: string, policies?: string): Promise<Daemon> {
  const argv = ["serve", "--socket", path, ...(policies ? ["--policies", policies] : ["--policies", folder])];
  const child = spawn(toolgate, argv, { stdio: "ignore" });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await new Gate(path, { waitMs: 10_000 }).request("toolgate/status");
  return { path, child, stop: async (signal = "SIGTERM") => { child.kill(signal); await exited; } };
}

test("core: the session goes on when the daemon is killed and started again", async () => {
  const path = join(folder, "killed.sock"), other = new Gate(path, { tools: [forecast], waitMs: 10_000 });
  const first = await start(path), session = other.session(fresh());
  assert.ok((await session.check("forecast", { city: "Bern" })).passed);
  await first.stop("SIGKILL");
  const [checked, second] = await Promise.all([session.check("forecast", { city: "Brno", days: "3" }), start(path)]);
  assert.deepEqual(checked.arguments, { city: "Brno", days: 3 }); // the tool was declared again
  await second.stop();
});

test("core: without a daemon onUnavailable decides", async () => {
  const path = join(folder, "nobody.sock");
  await assert.rejects(new Gate(path, { waitMs: 0 }).session("s").check("forecast", {}),
    (error) => error instanceof Unavailable && error.message.includes("toolgate serve --socket"));
  const allowed = await new Gate(path, { waitMs: 0, onUnavailable: "allow", tools: [forecast] }).session("s").call("forecast", { city: "Bern" });
  assert.deepEqual(allowed.value, { city: "Bern", sky: "grey", days: 1 });
  assert.equal(allowed.unchanged, true);
  const refused = await new Gate(path, { waitMs: 0, onUnavailable: "refuse", tools: [forecast] }).session("s").call("forecast", { city: "Bern" });
  assert.equal(refused.ran, false);
  assert.equal(refused.verdict.errorClass, "unavailable");
  assert.throws(() => new Gate(path, { onUnavailable: "deny" as "allow" }), /"raise", "allow" or "refuse"/);
});

/** A server that is no toolgate. */
async function lying(name: string, serve: (peer: Socket, line: string) => void): Promise<{ path: string; server: Server }> {
  const path = join(folder, name), peers: Socket[] = [];
  const server = createServer((peer) => {
    peers.push(peer);
    peer.on("error", () => {});
    peer.on("data", (chunk) => { for (const line of chunk.toString().split("\n").filter(Boolean)) serve(peer, line); });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  server.unref();
  return { path, server };
}

test("core: a daemon that never answers, answers garbage or an endless line is Unavailable", async () => {
  const silent = await lying("silent.sock", () => {});
  await assert.rejects(new Gate(silent.path, { timeoutMs: 50 }).session("s").check("f", {}), /has not answered toolgate\/check within/);
  const garbage = await lying("garbage.sock", (peer) => { peer.write("HTTP/1.1 400 Bad Request\r\n\r\n"); });
  await assert.rejects(new Gate(garbage.path).session("s").check("f", {}), Unavailable);
  const endless = await lying("endless.sock", (peer) => { peer.write("x".repeat(17 * 1024 * 1024)); });
  await assert.rejects(new Gate(endless.path).session("s").check("f", {}), /more than 16777216 bytes/);
  const deaf = await lying("deaf.sock", (peer) => { peer.pause(); });
  const long = new Gate(deaf.path, { timeoutMs: 50 }), { connection } = long;
  await assert.rejects(long.session("s").check("f", { text: "x".repeat(4_000_000) }), /has not answered toolgate\/check within/);
  assert.ok((connection as unknown as { greeted: { link: { lost?: Error } } }).greeted.link.lost, "what it has not read is dropped");
  const closing = await lying("closing.sock", (peer) => { peer.end(); });
  await assert.rejects(new Gate(closing.path).session("s").check("f", {}), Unavailable);
});

test("core: a turn says that a person began it where the program says so, and never by itself", async () => {
  const said: unknown[] = [];
  const { path } = await lying("turns.sock", (peer, line) => {
    const { id, method, params } = JSON.parse(line) as { id: unknown; method: string; params: { by?: unknown } };
    if (method === "toolgate/turn") said.push(params.by);
    peer.write(JSON.stringify({ jsonrpc: "2.0", id, result: { turn: 1 } }) + "\n");
  });
  const session = new Gate(path).session("s");
  await session.beginTurn({ by: "person" });
  await session.beginRun("rain?");
  await session.turn({ goal: "rain?", by: "person" }, async () => session.beginRun("an adapter's"));
  assert.deepEqual(said, ["person", undefined, "person"]);
});

test("core: a verdict that this version does not know lets nothing run", async () => {
  const odd = await lying("odd.sock", (peer, line) => {
    const { id } = JSON.parse(line) as { id: unknown };
    peer.write(JSON.stringify({ jsonrpc: "2.0", id, result: { verdict: "perhaps", callId: "c" } }) + "\n");
  });
  const checked = await new Gate(odd.path).session("s").check("f", {});
  assert.equal(checked.passed, false);
  assert.equal(checked.verdict.kind, "refuse");
});

test("core: an aborted check is cancelled, and released if it passes nevertheless", async () => {
  const lines: { method: string; params: { callId?: string } }[] = [], stop = new AbortController();
  const slow = await lying("slow.sock", (peer, line) => {
    const message = JSON.parse(line) as { id?: unknown; method: string; params: { callId?: string } };
    lines.push(message);
    if (message.method === "notifications/cancelled") {
      peer.write(JSON.stringify({ jsonrpc: "2.0", id: 1, result: { verdict: "pass", callId: "c-1" } }) + "\n");
    }
  });
  const checking = new Gate(slow.path).session("s").check("f", {}, { signal: stop.signal });
  await eventually("the check is sent", async () => lines.length === 1);
  stop.abort(new Error("the user left"));
  await assert.rejects(checking, /the user left/);
  await eventually("the late pass is given back", async () => lines.find((one) => one.params.callId === "c-1"));
});

test("core: a request is aborted at once while there is no daemon", async () => {
  const stop = new AbortController(), absent = new Gate(join(folder, "absent.sock"), { waitMs: 3_600_000, timeoutMs: 3_600_000 });
  const checking = absent.session("s").check("f", {}, { signal: stop.signal });
  stop.abort(new Error("the user left"));
  await assert.rejects(checking, /the user left/);
  absent.close();
});

test("core: a check that cannot be sent while its definition is refused is one error, and none that nobody handles", async () => {
  const unhandled: unknown[] = [], note = (error: unknown): void => { unhandled.push(error); };
  process.on("unhandledRejection", note);
  const wrong = new Gate(socket, { tools: [{ name: "wrong", inputSchema: { type: "objet" } }] });
  await assert.rejects(wrong.session(fresh()).check("wrong", { callback: () => 1 }), /'callback' is a function/);
  await wrong.request("toolgate/status"); // the refusal has come before
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", note);
  assert.deepEqual(unhandled, []);
});

test("core: a message that is too long is for the model to repair", async () => {
  const session = gate.session(fresh());
  const checked = await session.check("forecast", { city: "x".repeat(9 * 1024 * 1024) });
  assert.equal(checked.verdict.errorClass, "invalid_arguments");
  const passed = await session.check("forecast", { city: "Bern" });
  const reported = await session.report(passed, "x".repeat(9 * 1024 * 1024));
  assert.match(reported.text, /Ask for less/);
});

test("core: replies that come in another order, and characters of many bytes, find their requests", async () => {
  const session = gate.session(fresh());
  const cities = Array.from({ length: 200 }, (_, i) => `Zürich 🗻 ${i}`);
  const checks = await Promise.all(cities.map((city) => session.check("forecast", { city }, { step: "1" })));
  assert.deepEqual(checks.map((one) => (one.arguments as { city: string }).city), cities);
  for (const checked of checks) session.release(checked);
});

// ---- guard ----

test("guard: a zod schema, a plain JSON Schema, and valibot with its JSON Schema", async () => {
  assert.deepEqual(forecast.definition.annotations, { readOnlyHint: true });
  assert.equal((forecast.definition.inputSchema["properties"] as { city: { type: string } }).city.type, "string");
  assert.deepEqual(forecast.definition.inputSchema["required"], ["city"]); // the input's, not the output's
  const plain = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
  const twice = guard({ name: "twice", parameters: plain, execute: ({ n }: { n: number }) => 2 * n });
  assert.equal(await twice.run({ n: 2 }), 4);
  const checked = guard({ name: "v", parameters: v.object({ n: v.pipe(v.number(), v.minValue(3)) }), jsonSchema: plain, execute: ({ n }) => n });
  await assert.rejects(checked.run({ n: 2 }), InvalidArguments);
});

test("guard: what no JSON Schema describes is an error, never a string", async () => {
  const execute = (): null => null;
  assert.throws(() => guard({ name: "f", parameters: z.object({ at: z.date() }), execute }), /f: no JSON Schema describes its parameters/);
  assert.throws(() => guard({ name: "f", parameters: z.object({ what: z.any() }), execute }), /'what' fits any value/);
  assert.throws(() => guard({ name: "f", parameters: z.object({ cb: z.custom<() => void>() }), execute }), TypeError);
  assert.throws(() => guard({ name: "f", parameters: z.string() as never, execute }), /type "object"/);
  assert.throws(() => guard({ name: "f", parameters: v.object({ n: v.number() }), execute }), /give guard the JSON Schema, too/);
  assert.throws(() => guard({ name: "f", parameters: { type: "object", properties: { x: {} } }, execute }), /'x' fits any value/);
  assert.throws(() => guard({ name: "f", parameters: { type: "object" }, effects: "reads" as "read", execute }), /effects must be/);
  for (const retries of [-1, 1.5, 1001]) {
    assert.throws(() => guard({ name: "f", parameters: { type: "object" }, retries, execute }), /retries must be a whole number/);
  }
});

test("guard: a definition that the daemon does not take is an error that says why", async () => {
  const wrong = new Gate(socket, { tools: [{ name: "wrong", inputSchema: { type: "objet" } }] });
  await assert.rejects(wrong.session(fresh()).check("wrong", {}), /wrong/);
});

await run(() => rm(folder, { recursive: true, force: true }));
