// The pages' code runs and prints what they show; a model's name stands for the framework's own test model.
// usage: pages.test.ts DOCS TOOLGATE
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Gate } from "toolgate-client";
import { run, socket as docs, test } from "./tap.ts";

const exec = promisify(execFile), toolgate = process.argv[3] ?? "";
const client = join(import.meta.dirname, "..");
const SOCKET = "/run/toolgate/toolgate.sock"; // as the pages have it

interface Fence { kind: string; code: string }

async function fencesOf(page: string): Promise<Fence[]> {
  const text = await readFile(join(docs, "clients", page), "utf8");
  return [...text.matchAll(/\n```(\w+)\n(.*?)\n```/gs)].map(([, kind, code]) => ({ kind: kind ?? "", code: code ?? "" }));
}

/** A line of … stands for any lines. */
function shows(shown: string, said: string): void {
  let at = 0;
  for (const line of shown.split("\n").filter((one) => one !== "…")) {
    at = said.indexOf(line, at);
    assert.ok(at >= 0, `the page shows ${JSON.stringify(line)}; what came is:\n${said}`);
    at += line.length;
  }
}

/** A daemon with the page's policies. */
async function withDaemon(fences: readonly Fence[], body: (socket: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-page-")), socket = join(folder, "t.sock");
  await mkdir(join(folder, "policies"));
  for (const { kind, code } of fences) {
    const name = kind === "lua" && /return tool "(\w+)"/.exec(code)?.[1];
    if (name) await writeFile(join(folder, "policies", `${name}.lua`), code);
  }
  const daemon = spawn(toolgate, ["serve", "--socket", socket, "--policies", join(folder, "policies")], { stdio: "ignore" });
  const exited = new Promise((resolve) => daemon.once("exit", resolve));
  try {
    await new Gate(socket, { waitMs: 10_000 }).request("toolgate/status");
    await body(socket);
  } finally {
    daemon.kill();
    await exited;
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs a program inside the package, where `toolgate` is the package itself. */
async function output(name: string, source: string): Promise<string> {
  const file = join(client, name);
  await writeFile(file, source);
  try {
    const { stdout } = await exec(process.execPath, ["--disable-warning=ExperimentalWarning", file], { cwd: client });
    return stdout;
  } finally {
    await rm(file);
  }
}

/** The blocks of a page in their order, as one program, and what the page shows of its output; then the programs to save. */
async function page(name: string, before = "", after = "", model = ""): Promise<string> {
  const fences = await fencesOf(name);
  let printed = "";
  await withDaemon(fences, async (socket) => {
    const source = (code: string): string => code.replaceAll(SOCKET, socket).replaceAll(model || "\0", "TEST_MODEL");
    const blocks = fences.filter((one) => one.kind === "ts").map((one) => source(one.code)).join("\n");
    printed = await output("page.mts", `${before}\n${blocks}\n${after}`);
    for (const [i, { kind, code }] of fences.entries()) {
      const next = fences[i + 1];
      if (next?.kind !== "text") continue;
      if (kind === "ts") shows(next.code, printed);
      if (kind === "js") shows(next.code, await output("try.mjs", source(code)));
    }
  });
  return printed;
}

test("pages: docs/clients/typescript.md", async () => {
  assert.match(await page("typescript.md"), /grey/);
});

test("pages: docs/clients/vercel-ai.md, with MockLanguageModelV4", async () => {
  const printed = await page("vercel-ai.md", `
    import { MockLanguageModelV4 } from "ai/test";
    const usage: any = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const TEST_MODEL = new MockLanguageModelV4({ doGenerate: async ({ prompt }): Promise<any> => prompt.at(-1)?.role === "tool"
      ? { content: [{ type: "text", text: "12" }], finishReason: { unified: "stop" }, usage, warnings: [] }
      : { content: [{ type: "tool-call", toolCallId: "1", toolName: "getStock", input: '{"warehouse":"Bern","article":4711}' }],
          finishReason: { unified: "tool-calls" }, usage, warnings: [] } });`,
  "console.log(result.text, JSON.stringify(result.steps[0]?.toolResults[0]?.output));", '"openai/gpt-5"');
  assert.equal(printed.trim(), '12 {"article":4711,"pieces":12}');
});

test("pages: docs/clients/openai-agents-js.md, with a fake Model", async () => {
  const printed = await page("openai-agents-js.md", `
    import { setTracingDisabled, Usage } from "@openai/agents";
    setTracingDisabled(true);
    const TEST_MODEL: any = { getResponse: async ({ input }: any) => ({ usage: new Usage(), output: [
      input.at(-1).type === "function_call_result"
        ? { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: input.at(-1).output.text }] }
        : { type: "function_call", callId: "1", name: "get_stock", status: "completed", arguments: '{"warehouse":"Bern","article":4711}' }] }) };`,
  "console.log(result.finalOutput);", '"gpt-5"');
  assert.match(printed, /"pieces":12/);
});

await run();
