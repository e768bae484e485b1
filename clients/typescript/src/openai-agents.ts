// OpenAI Agents SDK (`@openai/agents`): each function tool of an agent goes through toolgate, those of its MCP servers
// and of the agents that it hands off to included.
//
//   const agent = guarded(new Agent({ name: "assistant", tools }), gate.session("chat-7"))
//
// The calls of one model response are one step of toolgate, each run is one turn whose goal is the user's last message.
import {
  Agent, Handoff, ModelBehaviorError, type AgentInputItem, type FunctionTool, type RunContext, type Tool,
} from "@openai/agents";
import { Halt } from "./errors.js";
import { issuesText, type Definition, type StandardIssue } from "./guard.js";
import { EXACT, isObject, STRICT_KEY, type JsonObject } from "./protocol.js";
import { failureOf, type Failure } from "./results.js";
import type { Session } from "./session.js";
import type { Outcome } from "./verdict.js";

// An agent of any context and output: the SDK's own types differ in both.
type AnyAgent = Agent<any, any>;

/** The session of a run, or how to find it: `(context) => gate.session(context.chat)`. */
export type SessionOf<Context = any> = Session | ((context: Context) => Session);

/** What the SDK tells the model of a tool's exception, unless the tool has another `errorFunction`. */
const DEFAULT_ERROR = "An error occurred while running the tool.";

export interface GuardSettings<Context = any> {
  /** What policies read as `call.context`, or how to find it: `(context) => ({ role: context.role })`. */
  readonly context?: JsonObject | ((context: Context) => JsonObject);
}

/** A copy of the agent with every function tool behind toolgate. */
export function guarded<Guarded extends AnyAgent>(agent: Guarded, session: SessionOf, settings: GuardSettings = {}): Guarded {
  return new Guarding(session, settings).agent(agent) as Guarded;
}

/** One run of an agent, through all its handoffs. */
class Run {
  step = 0; // of the model's messages; a model may not count its requests in `usage`
  private current: string; // the agent that has the run: not the first one after a handoff
  halt: { error: Halt; step: number } | undefined;
  private begun: Promise<void> | undefined;
  private static last = 0;
  private readonly number = ++Run.last;

  /** `first`: the agent that it began with; the others got it by a handoff. */
  constructor(readonly session: Session, private readonly goal: string | undefined, private readonly first: string) {
    this.current = first;
  }

  isWith(agent: string): void {
    this.current = agent;
    this.step++;
  }

  get agent(): string | undefined {
    return this.current === this.first ? undefined : this.current;
  }

  begin(): Promise<void> {
    this.begun ??= this.session.beginRun(this.goal);
    return this.begun;
  }

  get stepId(): string {
    return `${this.number}/${this.step}`;
  }
}

class Guarding {
  private readonly agents = new Map<AnyAgent, AnyAgent>(); // handoffs may form a cycle
  private readonly tools = new WeakMap<FunctionTool, FunctionTool>();
  private readonly runs = new WeakMap<RunContext, Run>();

  constructor(private readonly session: SessionOf, private readonly settings: GuardSettings) {}

  agent(original: AnyAgent): AnyAgent {
    const known = this.agents.get(original);
    if (known) return known;
    const copy = original.clone({ tools: original.tools.map((tool: Tool) => this.tool(tool)) });
    this.agents.set(original, copy);
    this.agents.set(copy, copy);
    copy.handoffs = original.handoffs.map((one: unknown) => this.handoff(one));
    copy.on("agent_start", (context: RunContext, _agent: unknown, input?: AgentInputItem[]) => this.begin(context, copy, input));
    copy.on("agent_end", (context: RunContext) => this.run(context, copy.name).session.endRun());
    const allTools = copy.getAllTools.bind(copy);
    copy.getAllTools = async (context, ...more) => this.offered(context, copy.name, await allTools(context, ...more));
    copy.clone = ((config: Parameters<AnyAgent["clone"]>[0]) =>
      this.agent(Agent.prototype.clone.call(copy, config) as AnyAgent)) as AnyAgent["clone"];
    return copy;
  }

  private handoff(one: unknown): AnyAgent["handoffs"][number] {
    if (!(one instanceof Handoff)) return this.agent(one as AnyAgent);
    const copy = Object.assign(Object.create(Object.getPrototypeOf(one) as object) as typeof one, one);
    copy.agent = this.agent(one.agent);
    copy.onInvokeHandoff = async (...invoked) => this.agent(await one.onInvokeHandoff(...invoked));
    return copy;
  }

  // ---- runs ----

  /** An agent that starts after a handoff continues the run: then the user has not spoken last. */
  private begin(context: RunContext, agent: AnyAgent, input: AgentInputItem[] | undefined): void {
    const last = input?.at(-1);
    if (!this.runs.has(context) || (last && "role" in last && last.role === "user")) {
      this.runs.set(context, new Run(this.sessionOf(context), goalOf(input ?? []), agent.name));
    }
  }

  private run(context: RunContext, agent: string): Run {
    let run = this.runs.get(context);
    if (!run) this.runs.set(context, run = new Run(this.sessionOf(context), undefined, agent)); // it resumes one
    return run;
  }

  private sessionOf(context: RunContext): Session {
    return typeof this.session === "function" ? this.session(context.context) : this.session;
  }

  private place(context: RunContext, run: Run): { step: string; agent: string | undefined; context: JsonObject | undefined } {
    const about = this.settings.context;
    return { step: run.stepId, agent: run.agent, context: typeof about === "function" ? about(context.context) : about };
  }

  /** Before each message of the model. After a halt there are no tools; one that calls nevertheless ends the run. */
  private async offered(context: RunContext, agent: string, tools: Tool[]): Promise<Tool[]> {
    const run = this.run(context, agent);
    run.isWith(agent);
    if (run.halt && run.step > run.halt.step + 1) throw run.halt.error;
    if (run.halt) return [];
    await run.begin();
    const functions = tools.filter((tool): tool is FunctionTool => tool.type === "function");
    const shown = await run.session.definitions({ ...this.place(context, run), tools: functions.map(definitionOf) });
    return tools.flatMap((tool) => {
      const guarded = this.tool(tool), definition = shown?.get(tool.name);
      if (!shown || guarded.type !== "function") return [guarded];
      return definition ? [this.shown(guarded, definition)] : []; // a policy hides it
    });
  }

  /** The tool with the words that policies have for it now. */
  private shown(tool: FunctionTool, { description, inputSchema, _meta }: Definition): FunctionTool {
    const strict = _meta?.[STRICT_KEY];
    const copy: FunctionTool = { ...tool, description: description ?? tool.description,
      parameters: inputSchema as unknown as FunctionTool["parameters"], ...(typeof strict === "boolean" && { strict }) };
    this.tools.set(copy, copy);
    return copy;
  }

  // ---- one tool ----

  /** Tools that run at the model's provider are left alone. */
  private tool(tool: Tool): Tool {
    if (tool.type !== "function") return tool;
    const known = this.tools.get(tool);
    if (known) return known;
    const invoke: FunctionTool["invoke"] = (context, input, details) => this.invoke(tool, context, input, details);
    const copy: FunctionTool = { ...tool, invoke };
    this.tools.set(tool, copy);
    this.tools.set(copy, copy);
    return copy;
  }

  private async invoke(
    tool: FunctionTool, context: RunContext, input: string, details: Parameters<FunctionTool["invoke"]>[2],
  ): Promise<unknown> {
    const run = this.run(context, ""), signal = details?.signal;
    await run.begin();
    const checked = await run.session.check(tool.name, asArguments(input),
      { ...this.place(context, run), call: details?.toolCall?.callId, signal, tools: [definitionOf(tool)] });
    const outcome = await run.session.run(checked, async () => {
      const value: unknown = await tool.invoke(context, JSON.stringify(checked.arguments), details);
      if (typeof value === "string" && value.startsWith(DEFAULT_ERROR)) throw new Error(value);
      return value;
    }, { signal, failure: failureIn });
    if (outcome.verdict.halted) {
      run.halt = { error: new Halt(outcome.text, outcome.verdict), step: run.step };
    }
    return told(tool, outcome);
  }
}

function definitionOf(tool: FunctionTool): Definition {
  const inputSchema = tool.parameters as unknown as JsonObject;
  return { name: tool.name, description: tool.description, inputSchema, _meta: EXACT };
}

/** The outcome as the SDK says it to the model. */
function told(tool: FunctionTool, outcome: Outcome): unknown {
  const { value, notes } = outcome;
  if (!outcome.unchanged) return outcome.text;
  if (notes.length === 0 || tool.outputSchema) return value;
  const blocks = Array.isArray(value) ? value : [value];
  if (blocks.every((block) => isObject(block) && typeof block["type"] === "string")) { // structured output, such as images
    return [...blocks, ...notes.map((text) => ({ type: "text", text }))];
  }
  return outcome.text;
}

/** Arguments that are no JSON go to toolgate as text. */
function asArguments(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}

/** What the tool's own schema refuses after toolgate let it pass is for the model to repair. */
function failureIn(error: unknown): Failure {
  if (!(error instanceof ModelBehaviorError) || !("toolInvocation" in error)) return failureOf(error); // InvalidToolInputError
  const why = (error as { originalError?: { message?: string; issues?: unknown } }).originalError;
  const issues = Array.isArray(why?.issues) ? issuesText(why.issues as StandardIssue[]) : why?.message;
  return { message: issues ?? "its own schema does not accept these arguments", retry: true }; // the SDK hides tool data
}

/** The user's last message, in words. */
function goalOf(input: readonly AgentInputItem[]): string | undefined {
  const message = input.findLast((item) => "role" in item && item.role === "user");
  if (!message || !("content" in message)) return undefined;
  if (typeof message.content === "string") return message.content;
  const texts = message.content.map((part) => "text" in part && typeof part.text === "string" ? part.text : "");
  return texts.filter(Boolean).join("\n") || undefined;
}
