// One conversation with a user: its loops, budgets and seen ids are counted together.
import { ProtocolError, TooLarge, ToolgateError, Unavailable } from "./errors.js";
import type { Connection, Declared, OnUnavailable, Settings } from "./connection.js";
import { isTool, type AnyTool, type Definition } from "./guard.js";
import { untilAborted } from "./link.js";
import { agentOf, isNested, runInside } from "./nesting.js";
import {
  AGENT_KEY, CALL_KEY, CHECK, CONTEXT_KEY, GOAL_MAX_BYTES, MODEL_CODES, REPORT, SESSION_KEY, STEP_KEY, TOOLS, TURN, TURN_KEY,
  given, type JsonObject, type Request,
} from "./protocol.js";
import { contentOf, failureOf, jsonResult, sameBlocks, type Failure } from "./results.js";
import {
  notRun, ownVerdict, ran, readChecked, readVerdict, textBlock, textOf,
  type Block, type Checked, type Outcome, type Reported,
} from "./verdict.js";
import { requestLine } from "./wire.js";

export interface CheckOptions {
  /** The id of the model message: its calls count as one step. */
  readonly step?: string | undefined;
  /** The model's id of the call: attempts that repeat it are one repair chain. */
  readonly call?: string | undefined;
  /** More tools of this session, as `declare` takes them. */
  readonly tools?: readonly Definition[] | undefined;
  /** What policies read as `call.context`. */
  readonly context?: JsonObject | undefined;
  /** The agent that the run was handed to. An agent that one of this session's tools runs is known without it. */
  readonly agent?: string | undefined;
  /** Aborted: the check is cancelled, and what it reserved is given back. */
  readonly signal?: AbortSignal | undefined;
}

/** What a judge in this program found about the result. */
export interface Judged {
  readonly coverage?: unknown;
  readonly facts?: JsonObject;
  readonly follow_up?: unknown;
  /** What to ask the user: the model is told to. */
  readonly question?: string;
}

export interface RunningOptions {
  readonly signal?: AbortSignal | undefined;
  /** Reads an exception of the tool; undefined if it is none, but ends the run. */
  readonly failure?: (error: unknown) => Failure | undefined;
}

export type TurnId = number | string;

export interface TurnOptions {
  readonly goal?: string | undefined;
  readonly turn?: TurnId | undefined;
  /** A person has said something, so that what was read before may be read again; not for a turn that the program begins by itself. */
  readonly by?: "person" | undefined;
}

/** What a session needs of its gate. */
export interface SessionGate {
  readonly settings: Settings;
  readonly connection: Connection;
  readonly tools: ReadonlyMap<string, AnyTool>;
  readonly definitions: ReadonlyMap<string, Definition>;
}

export class Session {
  private readonly open = new Map<string, Checked>(); // checks that wait for their report
  private turnId: TurnId | undefined;
  private inTurn = false;
  private readonly tools = new Map<string, AnyTool>();
  private readonly definitionsOf = new Map<string, Definition>();

  /** Use `gate.session(name)`. */
  constructor(private readonly gate: SessionGate, readonly name: string) {
    if (!name) throw new TypeError("a session needs a name: budgets and loops belong to it");
  }

  // ---- tools ----

  /** Tools that this program runs for this session alone: no other reads or calls them. */
  declare(tools: readonly (AnyTool | Definition)[]): void {
    for (const tool of tools) {
      if (isTool(tool)) this.tools.set(tool.definition.name, tool);
      const definition = isTool(tool) ? tool.definition : tool;
      this.definitionsOf.set(definition.name, definition);
    }
  }

  /**
   * The tools as the model should see them now, by name: with the words of policies, without what they hide. Undefined:
   * there is no daemon, and onUnavailable does not raise.
   */
  async definitions(options: Omit<CheckOptions, "call"> = {}): Promise<Map<string, Definition> | undefined> {
    this.declare(options.tools ?? []);
    try {
      const { tools } = await this.gate.connection.request({ method: TOOLS, params: { _meta: this.metaOfCall(options) } },
        { signal: options.signal, declared: this.declared() });
      return new Map((tools as Definition[]).map((one) => [one.name, one]));
    } catch (error) {
      this.onUnavailable(error);
      return undefined;
    }
  }

  private declared(): Declared[] {
    return [{ tools: [...this.gate.definitions.values()] }, { session: this.name, tools: [...this.definitionsOf.values()] }];
  }

  private metaOfCall(options: CheckOptions): JsonObject {
    return this.meta({ [TURN_KEY]: this.turnId, [STEP_KEY]: options.step, [CALL_KEY]: options.call,
      [CONTEXT_KEY]: options.context, [AGENT_KEY]: agentOf(this.name, options.agent) });
  }

  // ---- check ----

  /** Whether the call may run, and with which arguments. Give the model's raw text if it is no valid JSON. */
  async check(name: string, args: unknown, options: CheckOptions = {}): Promise<Checked> {
    this.declare(options.tools ?? []);
    const request = { method: CHECK, params: { name, arguments: args, _meta: this.metaOfCall(options) } };
    let result: JsonObject;
    try {
      result = await this.gate.connection.request(request,
        { signal: options.signal, declared: this.declared(), late: (one) => this.releaseLate(one) });
    } catch (error) {
      return this.unchecked(name, args, error);
    }
    const checked = readChecked(result, name, args);
    if (checked.passed && checked.callId) this.open.set(checked.callId, checked);
    return checked;
  }

  private unchecked(name: string, args: unknown, error: unknown): Checked {
    if (error instanceof TooLarge || (error instanceof ProtocolError && MODEL_CODES.has(error.code))) {
      return refused(name, args, "invalid_arguments", error.message, "Send less at a time.");
    }
    if (this.onUnavailable(error) === "allow") {
      const verdict = ownVerdict("pass", "unavailable", "unchecked", messageOf(error));
      return { verdict, passed: true, name, arguments: args, text: "", advice: "" };
    }
    return refused(name, args, "unavailable", "its arguments cannot be checked at the moment",
      "Do not repeat the call. Tell the user that tools cannot be used at the moment.");
  }

  /** What to do without a daemon; throws the error if that is what the program wants, or if it is another error. */
  private onUnavailable(error: unknown): Exclude<OnUnavailable, "raise"> {
    const { onUnavailable } = this.gate.settings;
    if (!(error instanceof Unavailable) || onUnavailable === "raise") throw error;
    process.emitWarning(`session ${this.name}: ${error.message}; onUnavailable is "${onUnavailable}"`,
      { code: "TOOLGATE_UNAVAILABLE" });
    return onUnavailable;
  }

  // ---- report ----

  /** The tool's result; the answer has what the model should read. */
  report(checked: Checked, result: unknown, judged: Judged = {}): Promise<Reported> {
    return this.reportOutcome(checked, { result: jsonResult(result) }, judged);
  }

  /** The tool's error: an exception, its message, or `{message, transient?, retry?}`. */
  reportError(checked: Checked, error: unknown, judged: Judged = {}): Promise<Reported> {
    return this.reportOutcome(checked, { error: failureOf(error) }, judged);
  }

  private async reportOutcome(
    checked: Checked, outcome: { result: unknown } | { error: Failure }, judged: Judged,
  ): Promise<Reported> {
    if (!checked.passed) {
      throw new ToolgateError(`${checked.name} did not pass its check (${checked.verdict.kind}), so there is nothing to report`);
    }
    const { callId, name, arguments: args } = checked;
    if (!callId) return unreported(checked, outcome);
    // The session may have forgotten the call, so the report repeats it.
    const params = { callId, name, arguments: args, ...given({ ...judged }), ...outcome };
    this.open.delete(callId);
    let answer: JsonObject;
    try {
      answer = await this.gate.connection.request({ method: REPORT, params });
    } catch (error) {
      return this.unjudged(checked, outcome, judged, error);
    }
    const content = Array.isArray(answer["content"]) ? answer["content"] as Block[] : [textBlock(String(answer["text"] ?? ""))];
    const same = "result" in outcome ? sameBlocks(content, outcome.result) : 0;
    return { verdict: readVerdict(answer), content, same, text: textOf(content) };
  }

  private async unjudged(
    checked: Checked, outcome: { result: unknown } | { error: Failure }, judged: Judged, error: unknown,
  ): Promise<Reported> {
    const tooLong = error instanceof TooLarge || (error instanceof ProtocolError && MODEL_CODES.has(error.code));
    if (tooLong && "result" in outcome) {
      const message = `the result is too long to be checked: ${error.message}`;
      return this.reportOutcome(checked, { error: { message, retry: "Ask for less: a page, a narrower range." } }, judged);
    }
    if (!(error instanceof Unavailable)) { // the result cannot be said as JSON, or the request is wrong
      this.release(checked);
      throw error;
    }
    if (this.onUnavailable(error) === "allow") return unreported(checked, outcome);
    const hint = "It ran, but its result cannot be checked at the moment. Look before you repeat it.";
    const content = [textBlock(`${checked.name}: ${hint}`)];
    const verdict = ownVerdict("refuse", "unavailable", "unavailable", error.message, hint);
    return { verdict, content, same: 0, text: textOf(content) };
  }

  // ---- check, run, report ----

  /** Checks the call, runs one of the gate's tools, and reports: the outcome is what the model reads. */
  async call(
    tool: string | AnyTool, args: unknown, options: CheckOptions & RunningOptions & { deps?: unknown } = {},
  ): Promise<Outcome> {
    const checked = typeof tool === "string" ? await this.check(tool, args, options)
      : await this.check(tool.definition.name, args, { tools: [tool.definition], ...options });
    if (!checked.passed) return notRun(checked);
    const known = typeof tool === "string" ? this.tools.get(checked.name) ?? this.gate.tools.get(checked.name) : tool;
    if (!known) {
      this.release(checked);
      throw new ToolgateError(`this program has no function ${checked.name}: make the gate with { tools: [${checked.name}] }`);
    }
    const { signal, context, deps } = options;
    return this.run(checked, () => known.run(checked.arguments, { signal, context, deps }), options);
  }

  /** Runs what has been checked, and reports; or says why it was not run. Aborted, it gives back what the check reserved. */
  async run(checked: Checked, run: () => unknown, options: RunningOptions = {}): Promise<Outcome> {
    if (!checked.passed) return notRun(checked);
    const failure = options.failure ?? failureOf;
    let value: unknown;
    try {
      value = await runInside(this.name, checked.name, () => untilAborted(run, options.signal));
    } catch (error) {
      const told = options.signal?.aborted ? undefined : failure(error);
      if (!told) {
        this.release(checked);
        throw error;
      }
      return ran(checked, await this.reportError(checked, told));
    }
    return ran(checked, await this.report(checked, value), value);
  }

  /** The tool did not run to its end: gives back what the check reserved. Does not wait. */
  release(checked: Checked): void {
    if (!checked.callId) return;
    this.open.delete(checked.callId);
    this.gate.connection.send(requestLine(released(checked.callId), 0));
  }

  /** Gives back what checks without a report have reserved. */
  releaseAll(): void {
    for (const checked of [...this.open.values()]) this.release(checked);
  }

  /** A check that was given up may have passed nevertheless. */
  private releaseLate(result: JsonObject): void {
    const checked = readChecked(result, "", undefined);
    if (checked.passed) this.release(checked);
  }

  // ---- turns ----

  /** A turn. With `body`, what its checks reserved and nobody reported is given back at its end. */
  async turn<T>(turn: TurnOptions, body: () => Promise<T>): Promise<T> {
    await this.beginTurn(turn);
    this.inTurn = true;
    try {
      return await body();
    } finally {
      this.inTurn = false;
      this.releaseAll();
    }
  }

  /** Begins a turn; returns its id. */
  async beginTurn(turn: TurnOptions = {}): Promise<TurnId | undefined> {
    const result = await this.requestTurn(given({ ...turn, goal: turn.goal === undefined ? undefined : cutGoal(turn.goal) }));
    const id = result?.["turn"];
    this.turnId = typeof id === "number" || typeof id === "string" ? id : undefined;
    return this.turnId;
  }

  /** For adapters: a run of an agent is a turn, unless the program has begun one itself, or a tool runs the agent. */
  async beginRun(goal: string | undefined): Promise<void> {
    if (!this.inTurn && !isNested(this.name)) await this.beginTurn({ goal });
  }

  /** For adapters: what the model has not repaired by now it has given up. Does not wait. */
  endRun(): void {
    if (isNested(this.name)) return;
    this.gate.connection.send(requestLine({ method: TURN, params: { end: true, _meta: this.meta({}) } }, 0));
  }

  /** The conversation is over. */
  async end(): Promise<void> {
    await this.requestTurn({ end: true });
  }

  private async requestTurn(params: JsonObject): Promise<JsonObject | undefined> {
    try {
      return await this.gate.connection.request({ method: TURN, params: { ...params, _meta: this.meta({}) } });
    } catch (error) {
      this.onUnavailable(error);
      return undefined;
    }
  }

  private meta(more: JsonObject): JsonObject {
    return given({ [SESSION_KEY]: this.name, ...more });
  }
}

function released(callId: string): Request {
  return { method: REPORT, params: { callId, error: { message: "cancelled", cancelled: true } } };
}

function refused(name: string, args: unknown, errorClass: string, detail: string, hint: string): Checked {
  const verdict = ownVerdict("refuse", errorClass, errorClass, detail, hint);
  return { verdict, passed: false, name, arguments: args, text: `${name} was not run: ${detail}.\nNext: ${hint}`, advice: "" };
}

/** Without a daemon the model reads what the tool said. */
function unreported(checked: Checked, outcome: { result: unknown } | { error: Failure }): Reported {
  if ("result" in outcome) {
    const content = contentOf(outcome.result);
    return { verdict: checked.verdict, content, same: content.length, text: textOf(content) };
  }
  const { message } = outcome.error, content = [textBlock(`${checked.name} failed: ${message}`)];
  return { verdict: ownVerdict("repair", "tool_error", "unchecked", message), content, same: 0, text: textOf(content) };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A user's words as a goal: the daemon takes no longer ones, and no lone surrogates, which a Buffer replaces. */
function cutGoal(goal: string): string {
  if (Buffer.byteLength(goal) <= GOAL_MAX_BYTES) return Buffer.from(goal).toString();
  return Buffer.from(goal).subarray(0, GOAL_MAX_BYTES - REPLACEMENT_BYTES).toString().replace(/\uFFFD$/, "");
}

const REPLACEMENT_BYTES = 3; // of the character that stands for one that was cut in two
