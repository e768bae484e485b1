// The adapter for the Vercel AI SDK with its own mock model. usage: ai.test.ts SOCKET
import assert from "node:assert/strict";
import { generateText, stepCountIs, streamText, tool, ToolLoopAgent, type ModelMessage } from "ai";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { Gate, Halt, type Session } from "toolgate-client";
import { guarded } from "toolgate-client/ai";
import { z } from "zod";
import { attemptsRunOut, eventually, fresh, gaveUp, overheard, run, socket, test, WRONG } from "./tap.ts";

type Call = readonly [name: string, input: unknown];
type Generated = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;
type Streamed = Awaited<ReturnType<MockLanguageModelV4["doStream"]>>;
type StreamPart = Streamed["stream"] extends ReadableStream<infer Part> ? Part : never;

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that makes the calls of each step, then answers; `heard` is what it read of each call. */
class Playing {
  readonly heard: unknown[] = [];
  readonly choices: unknown[] = [];
  readonly model: MockLanguageModelV4;
  private done = 0;
  private readonly steps: readonly (readonly Call[])[];
  private readonly obeys: boolean;

  constructor(steps: readonly (readonly Call[])[], obeys = true) {
    this.steps = steps;
    this.obeys = obeys;
    this.model = new MockLanguageModelV4({
      doGenerate: async (options) => this.answer(options),
      doStream: async (options) => {
        const { content, finishReason } = this.answer(options);
        const chunks = content.flatMap((part): StreamPart[] => part.type === "tool-call" ? [part] : part.type === "text"
          ? [{ type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: part.text }, { type: "text-end", id: "1" }]
          : []);
        return { stream: simulateReadableStream<StreamPart>({ chunks: [...chunks, { type: "finish", finishReason, usage }] }) };
      },
    });
  }

  private answer(options: MockLanguageModelV4["doGenerateCalls"][number]): Generated {
    this.choices.push(options.toolChoice?.type);
    const last = options.prompt.at(-1);
    if (last?.role === "tool") {
      for (const part of last.content) if (part.type === "tool-result") this.heard.push(part.output);
    }
    const calls = this.steps[this.done++];
    if (!calls || (this.obeys && options.toolChoice?.type === "none")) {
      return { content: [{ type: "text", text: "my best answer" }], finishReason: { unified: "stop", raw: undefined }, usage, warnings: [] };
    }
    return {
      content: calls.map(([toolName, input]) => ({
        type: "tool-call", toolCallId: fresh(), toolName, input: typeof input === "string" ? input : JSON.stringify(input),
      })),
      finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings: [],
    };
  }
}

const ran: unknown[] = [];
const tools = {
  forecast: tool({
    description: "The weather in a city.",
    inputSchema: z.object({ city: z.string(), days: z.number().int().optional() }),
    execute: async ({ city, days }) => { ran.push([city, days]); return { sky: "grey", days: days ?? 1 }; },
  }),
  picky: tool({
    description: "Returns a date that it likes.",
    inputSchema: z.object({ day: z.string().refine((day) => day.startsWith("2026"), "must be in 2026") }),
    execute: async ({ day }) => `chosen: ${day}`,
  }),
  breaks: tool({
    description: "Always fails.", inputSchema: z.object({ how: z.string() }),
    execute: async ({ how }): Promise<string> => { throw new Error(`no such table: ${how}`); },
  }),
};

function text(heard: unknown): string {
  const { value } = heard as { value: unknown };
  return typeof value === "string" ? value : JSON.stringify(value);
}

async function play(playing: Playing, session: Session): Promise<string> {
  ran.length = 0;
  const options = guarded({ model: playing.model, tools, prompt: "will it rain?", stopWhen: stepCountIs(30) }, session);
  return (await generateText(options)).text;
}

const gate = new Gate(socket);

test("AI SDK: a good call runs, and its result reaches the model unchanged", async () => {
  const playing = new Playing([[["forecast", { city: "Bern" }]]]);
  assert.equal(await play(playing, gate.session(fresh())), "my best answer");
  assert.deepEqual(playing.heard, [{ type: "json", value: { sky: "grey", days: 1 } }]);
  assert.deepEqual(ran, [["Bern", undefined]]);
});

test("AI SDK: what is wrong with the arguments reaches the model, and the loop goes on", async () => {
  const playing = new Playing([[["forecast", { town: "Bern" }]], [["forecast", '{"city": "Ber']],
    [["forecast", { city: "Bern", days: "2" }]]]);
  assert.equal(await play(playing, gate.session(fresh())), "my best answer");
  assert.match(text(playing.heard[0]), /^forecast was not run: .*'city' is missing/s);
  assert.match(text(playing.heard[1]), /cut off/);
  assert.match(text(playing.heard[2]), /'days' was read as 2/);
  assert.match(text(playing.heard[2]), /grey/);
  assert.deepEqual(ran, [["Bern", 2]]);
});

test("AI SDK: attempts run out though each call has an id of its own, and a right call still passes", async () => {
  const playing = new Playing([...WRONG.map((wrong): Call[] => [["forecast", wrong]]), [["forecast", { city: "Bern" }]]]);
  assert.equal(await play(playing, gate.session(fresh())), "my best answer");
  attemptsRunOut(playing.heard.map(text));
  assert.deepEqual(ran, [["Bern", undefined]]);
});

test("AI SDK: the program sees the tool's own output beside a note for the model", async () => {
  const playing = new Playing([[["forecast", { city: "Bern", days: "2" }]]]);
  const result = await generateText(guarded({ model: playing.model, tools, prompt: "rain?",
    stopWhen: stepCountIs(5) }, gate.session(fresh())));
  const [first] = result.steps[0]?.toolResults ?? [];
  assert.deepEqual(first?.output, { sky: "grey", days: 2 });
});

test("AI SDK: what no JSON Schema says, and an unknown tool, reach the model", async () => {
  const playing = new Playing([[["picky", { day: "1999-01-01" }]], [["forecst", { city: "Bern" }]]]);
  await play(playing, gate.session(fresh()));
  assert.match(text(playing.heard[0]), /must be in 2026/);
  assert.match(text(playing.heard[1]), /forecast/);
  assert.deepEqual(ran, []);
});

test("AI SDK: a tool's error is reported, and reaches the model", async () => {
  const playing = new Playing([[["breaks", { how: "orders" }]]]), session = gate.session(fresh());
  await play(playing, session);
  assert.match(text(playing.heard[0]), /no such table: orders/);
  const { history } = await gate.request("toolgate/session", { session: session.name });
  assert.equal((history as { class: string }[])[0]?.class, "tool_error");
});

for (const [how, make] of [
  ["generateText", async (playing: Playing, session: Session) => play(playing, session)],
  ["streamText", async (playing: Playing, session: Session) => {
    ran.length = 0;
    const result = streamText(guarded({ model: playing.model, tools, prompt: "rain?", stopWhen: stepCountIs(30) }, session));
    return await result.text;
  }],
  ["ToolLoopAgent", async (playing: Playing, session: Session) => {
    ran.length = 0;
    const agent = new ToolLoopAgent(guarded({ model: playing.model, tools, stopWhen: stepCountIs(30) }, session));
    return (await agent.generate({ prompt: "rain?" })).text;
  }],
] as const) {
  test(`AI SDK, ${how}: a halt ends the loop after the model's best answer`, async () => {
    const playing = new Playing(Array.from({ length: 20 }, () => [["forecast", { city: "Bern" }] as const]));
    assert.equal(await make(playing, gate.session(fresh())), "my best answer");
    assert.equal(ran.length, 2);
    assert.match(text(playing.heard.at(-1)), /^Stop\./);
    assert.equal(playing.choices.at(-1), "none");
    assert.ok(playing.heard.length < 10, String(playing.heard.length));
  });
}

test("AI SDK: a model that calls on after a halt ends the run", async () => {
  const playing = new Playing(Array.from({ length: 20 }, () => [["forecast", { city: "Bern" }] as const]), false);
  await assert.rejects(play(playing, gate.session(fresh())), (error) => error instanceof Halt
    || (error instanceof Error && error.name === "AI_ToolChoiceViolationError")); // the AI SDK's own, from version 7 on
  assert.equal(ran.length, 2);
});

test("AI SDK: the calls of one message are one step of one turn, and the prompt is its goal", async () => {
  const session = gate.session(fresh());
  const playing = new Playing([["Bern", "Brno", "Basel"].map((city) => ["forecast", { city }] as const), [["forecast", { city: "Bonn" }]]]);
  await play(playing, session);
  const seen = await gate.request("toolgate/session", { session: session.name });
  const steps = (seen["history"] as { step: unknown }[]).map((one) => one.step);
  assert.equal(seen["turn"], 1);
  const recall = tool({ description: "Recalls.", inputSchema: z.object({}), execute: async () => null });
  const asked = new Playing([[["recall", {}]]]);
  await generateText(guarded({ model: asked.model, tools: { recall }, prompt: "will it rain?", stopWhen: stepCountIs(5) }, session));
  assert.match(text(asked.heard[0]), /the goal is will it rain\?/);
  assert.equal(steps.length, 4);
  assert.equal(new Set(steps).size, 2, JSON.stringify(steps));
});

test("AI SDK: an aborted run gives back what its check reserved", async () => {
  const session = gate.session(fresh()), stop = new AbortController();
  let begun = false;
  const sleeps = tool({
    description: "Never ends.", inputSchema: z.object({ city: z.string() }),
    execute: async () => { begun = true; return new Promise<string>(() => {}); },
  });
  const playing = new Playing([[["sleeps", { city: "Bern" }]]]);
  const running = generateText(guarded({ model: playing.model, tools: { sleeps }, prompt: "rain?",
    stopWhen: stepCountIs(5), abortSignal: stop.signal }, session));
  await eventually("the tool runs", async () => begun);
  stop.abort();
  await assert.rejects(running);
  await eventually("the call is released", async () => {
    const { history } = await gate.request("toolgate/session", { session: session.name });
    return (history as { class: string }[])[0]?.class === "cancelled";
  });
});

test("AI SDK: what a policy redacts is in no output", async () => {
  const customer = tool({ description: "Looks up.", inputSchema: z.object({ id: z.number() }),
    execute: async ({ id }) => ({ id, name: "Chloe", email: "chloe@example.org" }) });
  const playing = new Playing([[["customer", { id: 7 }]]]);
  const result = await generateText(guarded({ model: playing.model, tools: { customer }, prompt: "who is 7?",
    stopWhen: stepCountIs(5) }, gate.session(fresh())));
  const seen = JSON.stringify([playing.heard, result.steps.map((step) => step.content), result.response.messages]);
  assert.match(seen, /Chloe/);
  assert.doesNotMatch(seen, /example\.org/);
});

test("AI SDK: a tool that needs approval is checked when it runs", async () => {
  let paid = 0;
  const pay = tool({ description: "Pays.", inputSchema: z.object({ amount: z.number() }), needsApproval: true,
    execute: async ({ amount }) => { paid += amount; return `paid ${amount}`; } });
  const playing = new Playing([[["pay", { amount: "12" }]]]), session = gate.session(fresh());
  const options = { model: playing.model, tools: { pay }, stopWhen: stepCountIs(5) };
  const messages: ModelMessage[] = [{ role: "user", content: "pay 12" }];
  const asked = await generateText(guarded({ ...options, messages }, session));
  const request = asked.content.find((part) => part.type === "tool-approval-request");
  assert.equal(paid, 0);
  messages.push(...asked.response.messages, { role: "tool",
    content: [{ type: "tool-approval-response", approvalId: request?.approvalId ?? "", approved: true }] });
  await generateText(guarded({ ...options, messages }, session));
  assert.equal(paid, 12); // as toolgate read it, not "12"
  assert.match(JSON.stringify(playing.heard), /paid 12/);
});

test("AI SDK: a tool that runs elsewhere must be named", async () => {
  const elsewhere = tool({ description: "Asks the user.", inputSchema: z.object({}), outputSchema: z.string() });
  const options = { model: new Playing([]).model, tools: { elsewhere }, prompt: "?" };
  assert.throws(() => guarded(options, gate.session(fresh())), /unchecked: \["elsewhere"\]/);
  guarded(options, gate.session(fresh()), { unchecked: ["elsewhere"] });
});

const simple = (description: string, execute: (city: string) => unknown = (city) => city) => tool({
  description, inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => execute(city),
});

/** What the model saw of the tools, message by message. */
function offered(playing: Playing): Record<string, string | undefined>[] {
  return playing.model.doGenerateCalls.map(({ tools: seen }) => Object.fromEntries((seen ?? []).map((one) =>
    [one.name, one.type === "function" ? one.description : undefined])));
}

test("AI SDK: the model reads a policy's words, and sees at each step what prepare shows", async () => {
  for (const role of ["boss", "clerk"]) {
    const worded = simple("The weather."), hush = simple("A secret."), later = simple("Later.");
    const playing = new Playing([[["worded", { city: "Bern" }]], [["later", { city: "Bern" }]]]);
    await generateText(guarded({ model: playing.model, tools: { worded, hush, later }, prompt: "?", stopWhen: stepCountIs(9) },
      gate.session(fresh()), { context: { role } }));
    const [first, second] = offered(playing);
    assert.deepEqual(Object.keys(first ?? {}).sort(), role === "boss" ? ["hush", "worded"] : ["worded"]);
    assert.equal(first?.["worded"], "The weather.\nUse it when the user asks for the weather.");
    assert.ok(second && "later" in second);
    assert.equal(text(playing.heard[1]), "Bern");
  }
});

test("AI SDK: a page of items under content reaches the model and the program as the tool returned it", async () => {
  const page = { content: [{ id: 1 }], total: 3 };
  const search = tool({ description: "Search.", inputSchema: z.object({ q: z.string() }), execute: async () => page });
  const playing = new Playing([[["search", { q: "x" }]]]);
  const result = await generateText(guarded({ model: playing.model, tools: { search }, prompt: "?", stopWhen: stepCountIs(5) },
    gate.session(fresh())));
  assert.deepEqual(playing.heard[0], { type: "json", value: page });
  assert.deepEqual(result.steps[0]?.toolResults[0]?.output, page);
});

test("AI SDK: two agents of one Gate have their own tools, also of one name", async () => {
  const sessions = [gate.session(fresh()), gate.session(fresh())] as const;
  const weather = tool({ description: "Another.", inputSchema: z.object({ place: z.string() }), execute: async ({ place }) => place });
  const first = new Playing([[["forecast", { city: "Bern" }]]]), second = new Playing([[["forecast", { place: "Bern" }]]]);
  const prompt = "?", stopWhen = stepCountIs(5);
  await Promise.all([
    generateText(guarded({ model: first.model, tools: { forecast: tools.forecast, mine: simple("Mine.") }, prompt, stopWhen }, sessions[0])),
    generateText(guarded({ model: second.model, tools: { forecast: weather, theirs: simple("Theirs.") }, prompt, stopWhen }, sessions[1])),
  ]);
  assert.match(text(first.heard[0]), /grey/);
  assert.equal(text(second.heard[0]), "Bern");
  for (const [session, own, other] of [[sessions[0], "mine", "theirs"], [sessions[1], "theirs", "mine"]] as const) {
    const shown = await session.definitions();
    assert.ok(shown?.has(own) && !shown.has(other));
  }
});

test("AI SDK: an agent that a tool runs is named by that tool; the outermost run has no name, and begins the turn", async () => {
  const session = gate.session(fresh()), inner = new Playing([[["forecast", { city: "Bern" }]]]);
  const askHelper = simple("Ask a helper.", async () => (await generateText(guarded(
    { model: inner.model, tools, prompt: "rain?", stopWhen: stepCountIs(5) }, session))).text);
  const outer = new Playing([[["askHelper", { city: "?" }]], [["forecast", { city: "Bern" }]]]);
  const made = await overheard(gate, async () => {
    await generateText(guarded({ model: outer.model, tools: { ...tools, askHelper }, prompt: "rain?", stopWhen: stepCountIs(5) }, session));
  });
  assert.deepEqual(made.agents, [undefined, "askHelper", undefined]);
  assert.equal(made.turns, 1);
});

test("AI SDK: what the model has not repaired when the run ends, it has given up", async () => {
  const before = await gaveUp(gate);
  await play(new Playing([[["forecast", { town: "Bern" }]]]), gate.session(fresh()));
  assert.equal(await gaveUp(gate), before + 1);
});

await run();
