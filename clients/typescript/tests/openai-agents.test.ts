// The adapter for the OpenAI Agents SDK with a fake Model: no network. usage: openai-agents.test.ts SOCKET
import assert from "node:assert/strict";
import {
  Agent, handoff, run as runAgent, setTracingDisabled, tool, Usage,
  type MCPServer, type Model, type ModelRequest, type ModelResponse, type StreamEvent,
} from "@openai/agents";
import { Gate, Halt, type Session } from "toolgate-client";
import { guarded } from "toolgate-client/openai-agents";
import { z } from "zod";
import { attemptsRunOut, eventually, fresh, gaveUp, overheard, run, socket, test, WRONG } from "./tap.ts";

setTracingDisabled(true);

type Call = readonly [name: string, input: unknown];

type Done = Extract<StreamEvent, { type: "response_done" }>;

/** A model that makes the calls of each step, then answers; `heard` is what it read of each call. */
class Playing implements Model {
  readonly heard: string[] = [];
  readonly offered: string[][] = [];
  private done = 0;
  private readonly steps: readonly (readonly Call[])[];
  private readonly obeys: boolean;

  constructor(steps: readonly (readonly Call[])[], obeys = true) {
    this.steps = steps;
    this.obeys = obeys;
  }

  async getResponse(request: ModelRequest): Promise<ModelResponse> {
    this.offered.push(request.tools.map((one) => one.name));
    const input = Array.isArray(request.input) ? request.input : [];
    const from = input.findLastIndex((item) => item.type === "function_call");
    for (const item of input.slice(from + 1)) {
      if (item.type === "function_call_result") this.heard.push(typeof item.output === "string" ? item.output : JSON.stringify(item.output));
    }
    const calls = this.steps[this.done++];
    if (!calls || (this.obeys && request.tools.length === 0 && request.handoffs.length === 0)) {
      const content = [{ type: "output_text" as const, text: "my best answer" }];
      return { usage: new Usage(), output: [{ type: "message", role: "assistant", status: "completed", content }] };
    }
    return {
      usage: new Usage(),
      output: calls.map(([name, args]) => ({
        type: "function_call", callId: fresh(), name, status: "completed",
        arguments: typeof args === "string" ? args : JSON.stringify(args),
      })),
    };
  }

  async *getStreamedResponse(request: ModelRequest): AsyncIterable<StreamEvent> {
    const output = (await this.getResponse(request)).output as Done["response"]["output"];
    yield { type: "response_done", response: { id: "r", output, usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } } };
  }
}

const ran: unknown[] = [];
const forecast = tool({
  name: "forecast", description: "The weather in a city.",
  parameters: z.object({ city: z.string(), days: z.number().int().nullable() }),
  execute: async ({ city, days }) => { ran.push([city, days]); return { sky: "grey", days: days ?? 1 }; },
});
const picky = tool({
  name: "picky", description: "Returns a date that it likes.", errorFunction: null,
  parameters: z.object({ day: z.string().refine((day) => day.startsWith("2026"), "must be in 2026") }),
  execute: async ({ day }) => `chosen: ${day}`,
});
const breaks = tool({
  name: "breaks", description: "Always fails.", errorFunction: null, parameters: z.object({ how: z.string() }),
  execute: async ({ how }): Promise<string> => { throw new Error(`no such table: ${how}`); },
});
const swallows = tool({
  name: "swallows", description: "Always fails.", parameters: z.object({ how: z.string() }),
  execute: async (): Promise<string> => { throw new Error("no such table"); },
});

function agentOf(playing: Playing, session: Session): Agent {
  return guarded(new Agent({ name: "assistant", model: playing, tools: [forecast, picky, breaks, swallows] }), session);
}

async function play(playing: Playing, session: Session): Promise<unknown> {
  ran.length = 0;
  return (await runAgent(agentOf(playing, session), "will it rain?", { maxTurns: 30 })).finalOutput;
}

async function history(session: Session): Promise<{ class: string; step: unknown }[]> {
  return (await gate.request("toolgate/session", { session: session.name }))["history"] as { class: string; step: unknown }[];
}

const gate = new Gate(socket);
const BERN: Call = ["forecast", { city: "Bern", days: null }];

test("OpenAI Agents: a good call runs, and its result reaches the model unchanged", async () => {
  const playing = new Playing([[BERN]]);
  assert.equal(await play(playing, gate.session(fresh())), "my best answer");
  assert.match(playing.heard[0] ?? "", /grey/);
  assert.doesNotMatch(playing.heard[0] ?? "", /Note/);
  assert.deepEqual(ran, [["Bern", null]]);
});

test("OpenAI Agents: what is wrong with the arguments reaches the model, and the run goes on", async () => {
  const playing = new Playing([[["forecast", { town: "Bern", days: 1 }]], [["forecast", '{"city": "Ber']],
    [["forecast", { city: "Bern", days: "2" }]]]);
  assert.equal(await play(playing, gate.session(fresh())), "my best answer");
  assert.match(playing.heard[0] ?? "", /'city' is missing/);
  assert.match(playing.heard[1] ?? "", /valid JSON/); // the SDK's own words: it does not ask the tool
  assert.match(playing.heard[2] ?? "", /'days' was read as 2/);
  assert.match(playing.heard[2] ?? "", /grey/);
  assert.deepEqual(ran, [["Bern", 2]]);
});

test("OpenAI Agents: attempts run out though each call has an id of its own, and a right call still passes", async () => {
  const playing = new Playing([...WRONG.map((wrong): Call[] => [["forecast", wrong]]), [BERN]]);
  assert.equal(await play(playing, gate.session(fresh())), "my best answer");
  attemptsRunOut(playing.heard);
  assert.equal(ran.length, 1);
});

test("OpenAI Agents: what no JSON Schema says, and a tool's error, reach the model", async () => {
  const playing = new Playing([[["picky", { day: "1999-01-01" }]], [["breaks", { how: "orders" }]], [["swallows", { how: "x" }]]]);
  const session = gate.session(fresh());
  await play(playing, session);
  assert.match(playing.heard[0] ?? "", /its own schema does not accept/);
  assert.match(playing.heard[1] ?? "", /no such table: orders/);
  assert.deepEqual((await history(session)).map((one) => one.class).sort(), ["invalid_arguments", "tool_error", "tool_error"]);
});

test("OpenAI Agents: a halt takes the tools away, and the model gives its best answer", async () => {
  const playing = new Playing(Array.from({ length: 20 }, () => [BERN]));
  assert.equal(await play(playing, gate.session(fresh())), "my best answer");
  assert.equal(ran.length, 2);
  assert.match(playing.heard.at(-1) ?? "", /Stop\./);
  assert.deepEqual(playing.offered.at(-1), []);
  assert.ok(playing.heard.length < 10, String(playing.heard.length));
});

test("OpenAI Agents: the same in a streamed run", async () => {
  ran.length = 0;
  const playing = new Playing(Array.from({ length: 20 }, () => [BERN]));
  const result = await runAgent(agentOf(playing, gate.session(fresh())), "rain?", { stream: true, maxTurns: 30 });
  for await (const event of result) void event;
  assert.equal(result.finalOutput, "my best answer");
  assert.equal(ran.length, 2);
});

test("OpenAI Agents: a model that calls on after a halt ends the run", async () => {
  const playing = new Playing(Array.from({ length: 20 }, () => [BERN]), false);
  ran.length = 0;
  const agent = agentOf(playing, gate.session(fresh()));
  await assert.rejects(runAgent(agent, "rain?", { maxTurns: 30, toolNotFoundBehavior: "return_error_to_model" }),
    (error) => error instanceof Halt && error.verdict.kind === "halt");
  assert.equal(ran.length, 2);
});

test("OpenAI Agents: the calls of one response are one step of one turn, and the input is its goal", async () => {
  const session = gate.session(fresh());
  const cities = ["Bern", "Brno", "Basel"].map((city): Call => ["forecast", { city, days: 1 }]);
  await play(new Playing([cities, [["forecast", { city: "Bonn", days: 1 }]]]), session);
  const steps = (await history(session)).map((one) => one.step);
  assert.equal((await gate.request("toolgate/session", { session: session.name }))["turn"], 1);
  const recall = tool({ name: "recall", description: "Recalls.", parameters: z.object({}), execute: async () => null });
  const asked = new Playing([[["recall", {}]]]);
  await runAgent(guarded(new Agent({ name: "a", model: asked, tools: [recall] }), session), "will it rain?");
  assert.match(asked.heard[0] ?? "", /the goal is will it rain\?/);
  assert.equal(steps.length, 4);
  assert.equal(new Set(steps).size, 2, JSON.stringify(steps));
});

test("OpenAI Agents: an agent that gets the run by a handoff is behind toolgate, too, in the same turn", async () => {
  for (const wayTo of [(agent: Agent) => agent, (agent: Agent) => handoff(agent)]) {
    const session = gate.session(fresh()), playing = new Playing([[["forecast", { town: "Bern", days: 1 }]], [BERN]]);
    const expert = new Agent({ name: "expert", model: playing, tools: [forecast] });
    const first = new Playing([[BERN], [["transfer_to_expert", {}]]]);
    const triage = new Agent({ name: "triage", model: first, tools: [forecast], handoffs: [wayTo(expert)] });
    await runAgent(guarded(triage, session), "rain?");
    assert.match(playing.heard.join("\n"), /'city' is missing/);
    assert.equal((await gate.request("toolgate/session", { session: session.name }))["turn"], 1);
    assert.equal((await history(session)).length, 2); // the repaired call is one entry
  }
});

test("OpenAI Agents: a copy of a guarded agent is behind toolgate, too", async () => {
  const playing = new Playing([[["forecast", { town: "Bern", days: 1 }]]]);
  await runAgent(agentOf(playing, gate.session(fresh())).clone({ name: "copy" }), "rain?");
  assert.match(playing.heard[0] ?? "", /'city' is missing/);
});

test("OpenAI Agents: the tools of an agent's MCP servers are behind toolgate, too", async () => {
  const called: unknown[] = [], nothing = async (): Promise<void> => {};
  const server: MCPServer = {
    name: "weather", cacheToolsList: false, connect: nothing, close: nothing, invalidateToolsCache: nothing,
    listTools: async () => [{ name: "wind", description: "The wind in a city.", inputSchema: {
      type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false } }],
    callTool: async (_name, args) => { called.push(args); return [{ type: "text", text: "calm" }]; },
  };
  const playing = new Playing([[["wind", { town: "Bern" }]], [["wind", { city: "Bern" }]]]);
  await runAgent(guarded(new Agent({ name: "a", model: playing, mcpServers: [server] }), gate.session(fresh())), "wind?");
  assert.match(playing.heard[0] ?? "", /'city' is missing/);
  assert.match(playing.heard[1] ?? "", /calm/);
  assert.deepEqual(called, [{ city: "Bern" }]);
});

test("OpenAI Agents: the session may depend on the run's context", async () => {
  const name = fresh(), playing = new Playing([[BERN]]);
  const agent = guarded(new Agent<{ chat: string }>({ name: "a", model: playing, tools: [forecast] }),
    (context: { chat: string }) => gate.session(context.chat));
  await runAgent(agent, "rain?", { context: { chat: name } });
  assert.equal((await history(gate.session(name))).length, 1);
});

test("OpenAI Agents: what policies read as the context may depend on the run's", async () => {
  for (const context of [{ role: "boss" }, (given: { user: string }) => ({ role: given.user })]) {
    const playing = new Playing([[["hush", { city: "Bern" }]]]);
    const agent = guarded(new Agent<{ user: string }>({ name: "a", model: playing, tools: [simple("hush", "A secret.")] }),
      gate.session(fresh()), { context });
    await runAgent(agent, "?", { context: { user: "boss" } });
    assert.deepEqual(playing.offered[0], ["hush"]);
    assert.match(playing.heard[0] ?? "", /Bern/);
  }
});

test("OpenAI Agents: an approved call is checked when it runs", async () => {
  const pay = tool({ name: "pay", description: "Pays.", parameters: z.object({ amount: z.number() }), needsApproval: true,
    execute: async ({ amount }) => `paid ${amount}` });
  const playing = new Playing([[["pay", { amount: "12" }]]]), session = gate.session(fresh());
  const agent = guarded(new Agent({ name: "payer", model: playing, tools: [pay] }), session);
  const asked = await runAgent(agent, "pay 12");
  assert.equal(asked.interruptions.length, 1);
  for (const one of asked.interruptions) asked.state.approve(one);
  assert.equal((await runAgent(agent, asked.state)).finalOutput, "my best answer");
  assert.match(playing.heard[0] ?? "", /paid 12/);
});

test("OpenAI Agents: an aborted run gives back what its check reserved", async () => {
  const session = gate.session(fresh()), stop = new AbortController();
  let begun = false;
  const sleeps = tool({ name: "sleeps", description: "Never ends.", parameters: z.object({ city: z.string() }),
    execute: async () => { begun = true; return new Promise<string>(() => {}); } });
  const agent = guarded(new Agent({ name: "a", model: new Playing([[["sleeps", { city: "Bern" }]]]), tools: [sleeps] }), session);
  const running = runAgent(agent, "rain?", { signal: stop.signal });
  await eventually("the tool runs", async () => begun);
  stop.abort();
  await assert.rejects(running);
  await eventually("the call is released", async () => (await history(session))[0]?.class === "cancelled");
});

const simple = (name: string, description: string) => tool({
  name, description, parameters: z.object({ city: z.string() }), execute: async ({ city }) => city,
});

test("OpenAI Agents: the model reads a policy's words, and sees at each step what prepare shows", async () => {
  const described: Record<string, string>[] = [];
  class Described extends Playing {
    override async getResponse(request: ModelRequest): Promise<ModelResponse> {
      described.push(Object.fromEntries(request.tools.map((one) => [one.name, one.type === "function" ? one.description : ""])));
      return super.getResponse(request);
    }
  }
  const playing = new Described([[["worded", { city: "Bern" }]], [["later", { city: "Bern" }]]]);
  const tools = [simple("worded", "The weather."), simple("hush", "A secret."), simple("later", "Later.")];
  await runAgent(guarded(new Agent({ name: "a", model: playing, tools }), gate.session(fresh())), "rain?");
  assert.deepEqual(described[0], { worded: "The weather.\nUse it when the user asks for the weather." });
  assert.deepEqual(Object.keys(described[1] ?? {}).sort(), ["later", "worded"]);
  assert.match(playing.heard[1] ?? "", /Bern/);
});

test("OpenAI Agents: two agents of one Gate have their own tools, also of one name", async () => {
  const sessions = [gate.session(fresh()), gate.session(fresh())] as const;
  const weather = tool({ name: "forecast", description: "Another.", parameters: z.object({ place: z.string() }),
    execute: async ({ place }) => place });
  const first = new Playing([[["forecast", { city: "Bern", days: null }]]]), second = new Playing([[["forecast", { place: "Bern" }]]]);
  await Promise.all([
    runAgent(guarded(new Agent({ name: "a", model: first, tools: [forecast, simple("mine", "Mine.")] }), sessions[0]), "?"),
    runAgent(guarded(new Agent({ name: "b", model: second, tools: [weather, simple("theirs", "Theirs.")] }), sessions[1]), "?"),
  ]);
  assert.match(first.heard[0] ?? "", /grey/);
  assert.match(second.heard[0] ?? "", /Bern/);
  for (const [session, own, other] of [[sessions[0], "mine", "theirs"], [sessions[1], "theirs", "mine"]] as const) {
    const shown = await session.definitions();
    assert.ok(shown?.has(own) && !shown.has(other));
  }
});

test("OpenAI Agents: agents that are tools, or got the run by a handoff, are named; the outermost is not", async () => {
  const session = gate.session(fresh()), bern: Call[] = [["forecast", { city: "Bern", days: 1 }]];
  const helper = guarded(new Agent({ name: "helper", model: new Playing([bern]), tools: [forecast] }), session);
  const writer = new Agent({ name: "writer", model: new Playing([[["forecast", { city: "Brno", days: 1 }]]]), tools: [forecast] });
  const model = new Playing([[["ask_helper", { input: "rain?" }]], bern, [["transfer_to_writer", {}]]]);
  const tools = [forecast, helper.asTool({ toolName: "ask_helper", toolDescription: "Ask a helper." })];
  const outer = guarded(new Agent({ name: "outer", model, tools, handoffs: [writer] }), session);
  const made = await overheard(gate, async () => { await runAgent(outer, "rain?"); });
  assert.deepEqual(made.agents, [undefined, "ask_helper", undefined, "writer"]);
  assert.equal(made.turns, 1);
});

test("OpenAI Agents: what the model has not repaired when the run ends, it has given up", async () => {
  const before = await gaveUp(gate);
  const playing = new Playing([[["forecast", { town: "Bern", days: 1 }]]]);
  await runAgent(guarded(new Agent({ name: "a", model: playing, tools: [forecast] }), gate.session(fresh())), "rain?");
  assert.equal(await gaveUp(gate), before + 1);
});

await run();
