// Vercel AI SDK (`ai` 6 and 7): each tool with `execute` goes through toolgate.
//
//   await generateText(guarded({ model, prompt, tools, stopWhen: stepCountIs(20) }, gate.session("chat-7")))
//
// The result has the options' own type, for generateText, streamText and ToolLoopAgent. Each step's calls are one step
// of toolgate, each run is one turn whose goal is the user's last message.
import {
  asSchema, InvalidToolInputError, jsonSchema, NoSuchToolError, type ModelMessage, type PrepareStepFunction,
  type ToolCallRepairFunction, type ToolSet,
} from "ai";
import { Halt, stoppedBy, ToolgateError } from "./errors.js";
import { InvalidArguments, type Definition } from "./guard.js";
import { EXACT, isObject, STRICT_KEY, type JsonObject } from "./protocol.js";
import { failureOf, hasBlocks } from "./results.js";
import type { Session } from "./session.js";
import type { Checked, Outcome } from "./verdict.js";

/** What guarded reads and replaces of the options of generateText, streamText and ToolLoopAgent. */
export interface GuardedOptions<Tools extends ToolSet> {
  tools?: Tools | undefined;
  prepareStep?: PrepareStepFunction<NoInfer<Tools>> | undefined;
  experimental_repairToolCall?: ToolCallRepairFunction<NoInfer<Tools>> | undefined;
  repairToolCall?: ToolCallRepairFunction<NoInfer<Tools>> | undefined;
  // Only their types: so that literals in place keep theirs.
  prompt?: string | ModelMessage[] | undefined;
  messages?: ModelMessage[] | undefined;
  toolChoice?: "auto" | "none" | "required" | { type: "tool"; toolName: Extract<keyof NoInfer<Tools>, string> } | undefined;
  activeTools?: Array<keyof NoInfer<Tools>> | undefined;
}

interface Callbacks {
  onEnd?: ((event: never) => unknown) | undefined;
  onFinish?: ((event: never) => unknown) | undefined;
}

export interface GuardSettings {
  /** Tools without `execute`, which run elsewhere, so toolgate cannot check them. Each must be named. */
  readonly unchecked?: readonly string[];
  /** What policies read as `call.context`. */
  readonly context?: JsonObject;
}

// The parts of both versions' types that this adapter uses.
interface AnyTool {
  type?: string;
  description?: unknown;
  strict?: boolean;
  inputSchema: Parameters<typeof asSchema>[0];
  execute?: (input: unknown, options: ExecuteOptions) => unknown;
  needsApproval?: unknown;
  toModelOutput?: (options: { toolCallId: string; input: unknown; output: unknown }) => unknown;
}

interface ExecuteOptions {
  toolCallId: string;
  messages: ModelMessage[];
  abortSignal?: AbortSignal;
}

interface StepOptions {
  stepNumber: number;
  messages: ModelMessage[];
}

interface RepairOptions {
  toolCall: { toolCallId: string; toolName: string; input: string };
  error: unknown;
}

type Repair = (options: RepairOptions) => Promise<unknown>;
type PrepareStep = (options: StepOptions) => unknown;

/** The options with every tool behind toolgate. Call it once for each conversation. */
export function guarded<Tools extends ToolSet, Options extends object>(
  options: Options & GuardedOptions<Tools>, session: Session, settings: GuardSettings = {},
): NoInfer<Options> {
  const run = new GuardedRun(session, options as GuardedOptions<ToolSet>, settings);
  const { onEnd, onFinish } = options as Callbacks, ended = onEnd ?? onFinish;
  return {
    ...options,
    [onEnd ? "onEnd" : "onFinish"]: (event: never) => { session.endRun(); return ended?.(event); },
    tools: run.tools,
    prepareStep: (step: StepOptions) => run.prepareStep(step),
    experimental_repairToolCall: (call: RepairOptions) => run.repairToolCall(call),
    repairToolCall: undefined, // version 7 takes the other name if this one is not given
  };
}

class GuardedRun {
  readonly tools: ToolSet = {};
  private readonly userPrepareStep: PrepareStep | undefined;
  private readonly userRepair: Repair | undefined;
  private readonly originals = new Map<string, AnyTool>();
  private readonly notes = new Map<string, readonly string[]>(); // by the id of the call: what the model reads beside it
  private described: Promise<Definition[]> | undefined;
  private turn = 0;
  private step = 0;
  private halt: { error: Halt; step: number } | undefined;
  private readonly activeTools: readonly string[] | undefined;

  constructor(
    private readonly session: Session, options: GuardedOptions<ToolSet>, private readonly settings: GuardSettings,
  ) {
    this.activeTools = options.activeTools as string[] | undefined;
    this.userPrepareStep = options.prepareStep as PrepareStep | undefined;
    this.userRepair = (options.repairToolCall ?? options.experimental_repairToolCall) as Repair | undefined;
    const unchecked = new Set(settings.unchecked);
    for (const [name, tool] of Object.entries(options.tools ?? {}) as [string, AnyTool][]) {
      if (!tool.execute && !unchecked.has(name)) {
        throw new ToolgateError(`toolgate cannot check ${name}: it has no execute, so it runs elsewhere; `
          + `if that is meant, name it: guarded(options, session, { unchecked: ["${name}"] })`);
      }
      if (tool.execute) this.originals.set(name, tool);
      this.tools[name] = (tool.execute ? this.wrap(name, tool) : tool) as ToolSet[string];
    }
  }

  /** Before each message of the model. After a halt it may only answer; one that calls nevertheless ends the run. */
  async prepareStep(options: StepOptions): Promise<unknown> {
    if (options.stepNumber === 0) await this.beginRun(options.messages);
    this.step = options.stepNumber;
    if (this.halt && this.step > this.halt.step + 1) throw this.halt.error;
    const prepared = await this.userPrepareStep?.(options);
    if (this.halt) return { ...(isObject(prepared) ? prepared : {}), toolChoice: "none" };
    const hidden = await this.show();
    if (hidden.size === 0) return prepared;
    const given = isObject(prepared) ? prepared : {};
    const active = (given["activeTools"] ?? this.activeTools ?? Object.keys(this.tools)) as readonly string[];
    return { ...given, activeTools: active.filter((name) => !hidden.has(name)) };
  }

  /** Gives the tools the words that policies have for them now; returns the names of those that policies hide. */
  private async show(): Promise<Set<string>> {
    const hidden = new Set<string>();
    const shown = await this.session.definitions({ ...this.place(), tools: await this.definitions() });
    for (const [name, original] of shown ? this.originals : []) {
      const definition = shown?.get(name), tool = this.tools[name] as AnyTool;
      if (!definition) {
        hidden.add(name);
        continue;
      }
      // A description that is a function stays one, unless a policy has words for the tool.
      tool.description = typeof original.description === "string" ? definition.description
        : definition.description ?? original.description;
      tool.inputSchema = acceptAll(original.inputSchema, definition.inputSchema);
      const strict = definition._meta?.[STRICT_KEY];
      if (typeof strict === "boolean") tool.strict = strict;
    }
    return hidden;
  }

  private place(): { step: string; context: JsonObject | undefined } {
    return { step: `${this.turn}/${this.step}`, context: this.settings.context };
  }

  private async beginRun(messages: ModelMessage[]): Promise<void> {
    this.halt = undefined;
    this.turn++;
    this.notes.clear();
    await this.session.beginRun(goalOf(messages));
  }

  /** The schemas may be promises. */
  private definitions(): Promise<Definition[]> {
    this.described ??= Promise.all([...this.originals].map(async ([name, tool]) => {
      const inputSchema = await asSchema(tool.inputSchema).jsonSchema as JsonObject;
      return { name, inputSchema, _meta: EXACT, ...(typeof tool.description === "string" && { description: tool.description }) };
    }));
    return this.described;
  }

  // ---- one tool ----

  private wrap(name: string, tool: AnyTool): AnyTool {
    const { needsApproval } = tool;
    return {
      ...tool,
      inputSchema: acceptAll(tool.inputSchema), // toolgate reads the arguments as the model wrote them
      execute: (input, options) => this.execute(name, tool, input, options),
      toModelOutput: (options) => this.toModelOutput(tool, options),
      ...(typeof needsApproval === "function" && {
        needsApproval: async (input: unknown, options: unknown): Promise<unknown> => {
          const valid = await validate(tool, input); // arguments that will be refused need nobody's approval
          return valid.success ? await (needsApproval as (...all: unknown[]) => unknown)(valid.value, options) : false;
        },
      }),
    };
  }

  private async execute(name: string, tool: AnyTool, input: unknown, options: ExecuteOptions): Promise<unknown> {
    if (this.halt && this.step > this.halt.step) throw this.halt.error;
    const signal = options.abortSignal;
    const checked = await this.check(name, input, options.toolCallId, signal);
    const outcome = await this.session.run(checked, async () => {
      const valid = await validate(tool, checked.arguments);
      if (!valid.success) throw new InvalidArguments(valid.error.message); // what no JSON Schema says
      return lastOf(await tool.execute?.(valid.value, options));
    }, { signal, failure: failureOf });
    return this.told(outcome, options.toolCallId);
  }

  /** The outcome as the AI SDK says it to the model: an error's message is what it reads. */
  private told(outcome: Outcome, toolCallId: string): unknown {
    const { verdict, text } = outcome;
    if (verdict.halted) this.halt = { error: new Halt(text, verdict), step: this.step };
    if (verdict.kind !== "pass") throw stoppedBy(verdict, text);
    if (!outcome.unchanged) return withContent(outcome);
    if (outcome.notes.length > 0) this.notes.set(toolCallId, outcome.notes);
    return outcome.value;
  }

  /** Notes reach the model beside the output; the program sees the tool's own output. */
  private async toModelOutput(tool: AnyTool, options: { toolCallId: string; input: unknown; output: unknown }): Promise<unknown> {
    const { output } = options, notes = this.notes.get(options.toolCallId);
    const plain = tool.toModelOutput ? await tool.toModelOutput(options)
      : typeof output === "string" ? { type: "text", value: output } : { type: "json", value: output ?? null };
    if (!notes || !isObject(plain)) return plain;
    const texts = notes.map((text) => ({ type: "text", text }));
    if (plain["type"] === "content" && Array.isArray(plain["value"])) return { ...plain, value: [...plain["value"], ...texts] };
    const value = typeof plain["value"] === "string" ? plain["value"] : JSON.stringify(plain["value"]);
    return { ...plain, type: "content", value: [{ type: "text", text: value }, ...texts] };
  }

  private async check(name: string, input: unknown, call: string, signal?: AbortSignal): Promise<Checked> {
    const tools = await this.definitions();
    return this.session.check(name, input, { ...this.place(), call, signal, tools });
  }

  // ---- calls that the AI SDK cannot parse ----

  /** Arguments that are no JSON go to the tool as text, which toolgate reads; an unknown tool gets toolgate's words. */
  async repairToolCall(options: RepairOptions): Promise<unknown> {
    const { toolCall, error } = options;
    if (InvalidToolInputError.isInstance(error) && this.originals.has(toolCall.toolName)) {
      return { ...toolCall, input: JSON.stringify(toolCall.input) };
    }
    const repaired = await this.userRepair?.(options);
    if (repaired || !NoSuchToolError.isInstance(error)) return repaired ?? null;
    const checked = await this.check(toolCall.toolName, asArguments(toolCall.input), toolCall.toolCallId);
    this.session.release(checked);
    if (checked.passed) return this.originals.has(checked.name) ? { ...toolCall, toolName: checked.name } : null;
    if (checked.verdict.halted) this.halt = { error: new Halt(checked.text, checked.verdict), step: this.step };
    throw stoppedBy(checked.verdict, checked.text);
  }
}

function asArguments(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}

/** Reads arguments as the model wrote them; `shown`: the schema that the model sees instead of its own. */
function acceptAll(schema: AnyTool["inputSchema"], shown?: JsonObject): AnyTool["inputSchema"] {
  return jsonSchema(() => shown ?? asSchema(schema).jsonSchema, { validate: (value) => ({ success: true, value }) });
}

type Validated = { success: true; value: unknown } | { success: false; error: Error };

async function validate(tool: AnyTool, input: unknown): Promise<Validated> {
  return await asSchema(tool.inputSchema).validate?.(input) ?? { success: true, value: input };
}

/** A tool that streams its output is judged by the last. */
async function lastOf(output: unknown): Promise<unknown> {
  if (typeof output !== "object" || output === null || !(Symbol.asyncIterator in output)) return output;
  let last: unknown;
  for await (const part of output as AsyncIterable<unknown>) last = part;
  return last;
}

/** What toolgate made of the result: MCP blocks if the tool returned such, else text. */
function withContent(outcome: Outcome): unknown {
  const { value, content, text } = outcome;
  return hasBlocks(value) ? { ...value, content } : text;
}

/** The user's last message, in words. */
function goalOf(messages: readonly ModelMessage[]): string | undefined {
  const content = messages.findLast((message) => message.role === "user")?.content;
  if (!Array.isArray(content)) return content === undefined ? undefined : String(content);
  return content.map((part) => part.type === "text" ? part.text : "").filter(Boolean).join("\n") || undefined;
}
