// The tarball, installed into an empty folder and used there. usage: package.test.ts SOCKET FOLDER (with package.json)
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { fresh, run, socket, test } from "./tap.ts";

const exec = promisify(execFile), here = process.argv[3] ?? ".";
const folder = await mkdtemp(join(tmpdir(), "toolgate-npm-"));
const QUIET = ["--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"];

async function npm(where: string, ...argv: string[]): Promise<string> {
  return (await exec("npm", argv, { cwd: where })).stdout;
}

/** The Node of the host, which may be older than the one that runs this test. */
async function node(source: string): Promise<string> {
  await writeFile(join(folder, "program.mjs"), source);
  return (await exec("node", ["program.mjs"], { cwd: folder })).stdout;
}

test("package: the tarball has the compiled files and their types, and no tests", async () => {
  const [packed] = JSON.parse(await npm(here, "pack", "--json", "--ignore-scripts", "--pack-destination", folder)) as
    [{ filename: string; files: { path: string }[] }];
  const paths = packed.files.map((one) => one.path);
  for (const wanted of ["package.json", "README.md", "dist/index.js", "dist/index.d.ts", "dist/ai.js", "dist/openai-agents.d.ts"]) {
    assert.ok(paths.includes(wanted), `${wanted} in ${paths.join(" ")}`);
  }
  assert.ok(paths.every((path) => /^(dist\/|package\.json$|README\.md$)/.test(path)), paths.join(" "));
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  await npm(folder, "install", ...QUIET, `./${packed.filename}`);
  const { dependencies } = JSON.parse(await readFile(join(folder, "node_modules/toolgate-client/package.json"), "utf8")) as { dependencies?: object };
  assert.equal(dependencies, undefined);
  assert.deepEqual((await exec("ls", [join(folder, "node_modules")])).stdout.trim(), "toolgate-client");
});

test("package: an empty folder's program makes a call, and ends by itself", async () => {
  const out = await node(`
    import { Gate, guard } from "toolgate-client";
    const add = guard({ name: "add", description: "Adds.", execute: ({ a, b }) => a + b,
      parameters: { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } }, required: ["a", "b"] } });
    const outcome = await new Gate(${JSON.stringify(socket)}, { tools: [add] }).session(${JSON.stringify(fresh())}).call("add", { a: "1", b: 2 });
    console.log(outcome.value, outcome.notes.join());`);
  assert.match(out, /^3 .*'a' was read as 1/);
});

test("package: an adapter without its framework is an error that names the framework", async () => {
  await assert.rejects(node('import "toolgate-client/ai";'), /Cannot find package 'ai'/);
});

test("package: version 6 of the AI SDK, which the host's Node may run: a repaired call and a halt", async () => {
  await npm(folder, "install", ...QUIET, "ai@6.0.326", "zod@4.6.7");
  await cp(join(here, "tests/ai_types.ts"), join(folder, "ai_types.ts"));
  const strict = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--lib", "es2022,dom", "--module", "nodenext"];
  await exec(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), ...strict, "ai_types.ts"], { cwd: folder })
    .catch((error: { stdout?: string }) => assert.fail(error.stdout));
  const out = await node(`
    import { generateText, stepCountIs, tool } from "ai";
    import { MockLanguageModelV3 } from "ai/test";
    import { Gate } from "toolgate-client";
    import { guarded } from "toolgate-client/ai";
    import { z } from "zod";
    const usage = { inputTokens: {}, outputTokens: {} };
    const calls = ['{"town":"Bern"}', '{"city":"Ber', '{"city":"Bern","days":"2"}', ...Array(20).fill('{"city":"Bern","days":2}')];
    const model = (obeys) => { let i = 0; return new MockLanguageModelV3({ doGenerate: async ({ prompt, toolChoice }) => {
      if (prompt.at(-1).role === "tool") console.log(JSON.stringify(prompt.at(-1).content[0].output));
      const done = toolChoice?.type === "none" && obeys;
      return { usage, warnings: [], finishReason: { unified: done ? "stop" : "tool-calls" }, content: done ? [{ type: "text", text: "best" }]
        : [{ type: "tool-call", toolCallId: String(i), toolName: "forecast", input: calls[i++] }] };
    } }); };
    const forecast = tool({ description: "The weather.", inputSchema: z.object({ city: z.string(), days: z.number().optional() }),
      execute: async () => ({ sky: "grey" }) });
    const gate = new Gate(${JSON.stringify(socket)});
    const play = (obeys) => generateText(guarded({ model: model(obeys), tools: { forecast },
      prompt: "rain?", stopWhen: stepCountIs(40) }, gate.session(crypto.randomUUID())));
    console.log("answer:", (await play(true)).text);
    await play(false).catch((error) => console.log("stopped:", error.name));`);
  assert.match(out, /'city' is missing/);
  assert.match(out, /cut off/);
  assert.match(out, /'days' was read as 2/);
  assert.match(out, /answer: best\n/);
  assert.match(out, /stopped: (Halt|AI_ToolChoiceViolationError)/);
});

await run(() => rm(folder, { recursive: true, force: true }));
