// The verdict on a call, typed. `raw` is the daemon's whole answer, with the fields of versions to come.
import { isObject, type JsonObject } from "./protocol.js";

export type Kind = "pass" | "repair" | "wait" | "refuse" | "ask" | "halt";

const KINDS: ReadonlySet<unknown> = new Set(["pass", "repair", "wait", "refuse", "ask", "halt"]);

/** One thing that is wrong with the arguments, such as path `args.items[0].price`. */
export interface Problem {
  readonly path: string;
  readonly code: string;
  readonly message: string;
  readonly severity: string;
  readonly expected?: unknown;
  readonly got?: unknown;
}

/** A value that would be accepted at this path. */
export interface Suggestion {
  readonly path: string;
  readonly value: unknown;
}

/** docs/protocol.md explains each field. */
export interface Verdict {
  readonly kind: Kind;
  readonly valid: boolean;
  readonly errorClass: string;
  readonly code?: string;
  readonly detail?: string;
  readonly hint?: string;
  readonly afterS?: number;
  readonly problems: readonly Problem[];
  readonly suggestions: readonly Suggestion[];
  readonly rewrites: readonly JsonObject[];
  readonly attempt?: number;
  readonly attemptsLeft?: number;
  readonly repeats: number;
  readonly noProgress?: number;
  readonly choices: readonly unknown[];
  readonly coverage?: string;
  /** The run must end: call no more tools, let the model answer. */
  readonly halted: boolean;
  readonly warnings: readonly unknown[];
  readonly raw: JsonObject;
}

/** A block of MCP content, such as `{type: "text", text: "…"}`. */
export type Block = JsonObject & { readonly type: string };

/** The answer to `check`. If it passed, run the tool with exactly `arguments` and report the outcome. */
export interface Checked {
  readonly verdict: Verdict;
  readonly passed: boolean;
  readonly name: string;
  readonly arguments: unknown;
  /** What the model should read if the call did not pass. */
  readonly text: string;
  /** Notes for the model beside the result: what toolgate repaired. */
  readonly advice: string;
  /** Missing if no daemon checked this call, and onUnavailable allowed it. */
  readonly callId?: string;
}

/** The answer to `report`: what the model reads. */
export interface Reported {
  readonly verdict: Verdict;
  /** MCP blocks: the result (redacted, shortened) and its notes, or the feedback. */
  readonly content: readonly Block[];
  /** How many blocks of the content are the result as it was reported; the others are notes. 0: it was changed. */
  readonly same: number;
  readonly text: string;
}

/** A call from check to report: what the model reads, and the last verdict. */
export interface Outcome {
  readonly verdict: Verdict;
  readonly content: readonly Block[];
  readonly text: string;
  readonly checked: Checked;
  readonly ran: boolean;
  /** What the tool returned. */
  readonly value?: unknown;
  /** The model may read `value` as it is, with `notes`. False: `content` holds what it may read. */
  readonly unchanged: boolean;
  readonly notes: readonly string[];
}

export function textBlock(text: string): Block {
  return { type: "text", text };
}

/** The text blocks as one text. */
export function textOf(content: readonly Block[]): string {
  return content.map((block) => block.type === "text" ? String(block["text"]) : undefined)
    .filter((text) => text !== undefined).join("\n");
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function count(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** The type of an object whose properties may be undefined, without those that are. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] }
  & { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> };

function defined<T extends object>(object: T): Defined<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Defined<T>;
}

/** A kind that this version does not know is `refuse`: nothing runs that nobody allowed. */
export function readVerdict(raw: JsonObject): Verdict {
  const kind = (KINDS.has(raw["verdict"]) ? raw["verdict"] : "refuse") as Kind;
  return defined({
    kind,
    valid: raw["valid"] === undefined ? kind === "pass" : raw["valid"] === true,
    errorClass: text(raw["error_class"]) ?? "",
    code: text(raw["code"]),
    detail: text(raw["detail"]),
    hint: text(raw["hint"]),
    afterS: count(raw["after_s"]),
    problems: list(raw["messages"]).filter(isObject).map(readProblem),
    suggestions: list(raw["suggestions"]).filter(isObject)
      .map((one) => ({ path: text(one["path"]) ?? "", value: one["value"] })),
    rewrites: list(raw["rewrites"]).filter(isObject),
    attempt: count(raw["attempt"]),
    attemptsLeft: count(raw["attempts_left"]),
    repeats: count(raw["repeats"]) ?? 0,
    noProgress: count(raw["no_progress"]),
    choices: list(raw["choices"]),
    coverage: text(raw["coverage"]),
    halted: kind === "halt" || raw["final"] === true,
    warnings: list(raw["warnings"]),
    raw,
  });
}

function readProblem(one: JsonObject): Problem {
  return defined({
    path: text(one["path"]) ?? "", code: text(one["code"]) ?? "", message: text(one["message"]) ?? "",
    severity: text(one["severity"]) ?? "error", expected: one["expected"], got: one["got"],
  });
}

export function readChecked(result: JsonObject, name: string, args: unknown): Checked {
  const verdict = readVerdict(result);
  const callId = text(result["callId"]);
  return {
    verdict, passed: verdict.kind === "pass", name: text(result["tool"]) ?? name,
    arguments: result["arguments"] ?? args, text: text(result["text"]) ?? "", advice: text(result["advice"]) ?? "",
    ...(callId !== undefined && { callId }),
  };
}

/** A verdict of this client, about a call that the daemon has not judged. */
export function ownVerdict(verdict: string, errorClass: string, code: string, detail: string, hint?: string): Verdict {
  return readVerdict(defined({
    verdict, error_class: errorClass, code, detail, hint, valid: errorClass !== "invalid_arguments",
  }));
}

export function notRun(checked: Checked): Outcome {
  const content = [textBlock(checked.text)];
  return { verdict: checked.verdict, content, text: checked.text, checked, ran: false, unchanged: false, notes: [] };
}

/** The notes on the arguments come after the result. */
export function ran(checked: Checked, reported: Reported, value?: unknown): Outcome {
  const advice = checked.advice ? [textBlock(checked.advice)] : [];
  const content = [...reported.content, ...advice];
  const unchanged = reported.same > 0;
  const notes = unchanged ? content.slice(reported.same).map((block) => String(block["text"] ?? "")) : [];
  return { verdict: reported.verdict, content, text: textOf(content), checked, ran: true, value, unchanged, notes };
}
