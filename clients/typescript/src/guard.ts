// guard: a function of this program as a tool, with a JSON Schema. What no JSON Schema describes is an error here, when
// the program starts.
import { EXACT, isObject, REPAIR_KEY, REPAIR_MAX, type JsonObject } from "./protocol.js";

export type Effects = "read" | "write" | "destructive";

const HINTS: { readonly [E in Effects]: JsonObject } = {
  read: { readOnlyHint: true },
  write: { readOnlyHint: false, destructiveHint: false },
  destructive: { readOnlyHint: false, destructiveHint: true },
};

/** The part of Standard Schema (https://standardschema.dev) that guard reads: zod 4, valibot and others have it. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: { readonly input: (options: { target: string }) => unknown };
  };
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<StandardIssue> };

export interface StandardIssue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

/** As toolgate/register takes it. */
export interface Definition {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: JsonObject;
  readonly annotations?: JsonObject;
  /** `{"dev.toolgate/schema": "strict"}`: what does not fit the schema cannot run. */
  readonly _meta?: JsonObject;
}

/** What a running tool gets beside its arguments. */
export interface RunOptions {
  readonly signal?: AbortSignal | undefined;
  /** What `session.call` was given for policies. */
  readonly context?: JsonObject | undefined;
  /** What `session.call` was given for the tool alone. */
  readonly deps?: unknown;
}

/** A function that models may call. */
export interface Tool<Args = never, Result = unknown> {
  readonly definition: Definition;
  /** Runs the function with JSON arguments; throws InvalidArguments if its own schema does not accept them. */
  run(args: unknown, options?: RunOptions): Promise<Result>;
  /** The function itself: unchecked. */
  readonly execute: (args: Args, options: RunOptions) => Result | Promise<Result>;
}

export type AnyTool = Tool<never, unknown>;

interface Described {
  readonly name: string;
  readonly description?: string;
  /** The tool's effects; without them toolgate judges by its name. */
  readonly effects?: Effects;
  /** How often the model may correct a call. */
  readonly retries?: number;
}

/** What the function's own schema refused after toolgate had let it pass, such as a `refine` of zod. */
export class InvalidArguments extends Error {
  override readonly name = "InvalidArguments";
}

/**
 * Describes a function to toolgate. `parameters` is a Standard Schema that can describe itself as JSON Schema (zod 4),
 * or a plain JSON Schema. For a Standard Schema that cannot (valibot), give the JSON Schema as `jsonSchema`, too.
 */
export function guard<Schema extends StandardSchema, Result>(options: Described & {
  readonly parameters: Schema;
  readonly jsonSchema?: JsonObject;
  readonly execute: (args: OutputOf<Schema>, options: RunOptions) => Result | Promise<Result>;
}): Tool<OutputOf<Schema>, Result>;
export function guard<Args = JsonObject, Result = unknown>(options: Described & {
  readonly parameters: JsonObject;
  readonly execute: (args: Args, options: RunOptions) => Result | Promise<Result>;
}): Tool<Args, Result>;
export function guard(options: Described & {
  readonly parameters: StandardSchema | JsonObject;
  readonly jsonSchema?: JsonObject;
  readonly execute: (args: never, options: RunOptions) => unknown;
}): AnyTool {
  const { name, description, effects, parameters, execute } = options;
  if (effects !== undefined && !Object.hasOwn(HINTS, effects)) {
    throw new TypeError(`${name}: effects must be "read", "write" or "destructive", not ${JSON.stringify(effects)}`);
  }
  const { retries } = options;
  if (retries !== undefined && !(Number.isInteger(retries) && retries >= 0 && retries <= REPAIR_MAX)) {
    throw new RangeError(`${name}: retries must be a whole number from 0 to ${REPAIR_MAX}, not ${String(retries)}`);
  }
  const standard = isStandard(parameters) ? parameters : undefined;
  const inputSchema = options.jsonSchema ?? (standard ? describe(name, standard) : parameters as JsonObject);
  mustDescribe(name, inputSchema);
  const _meta = retries === undefined ? EXACT : { ...EXACT, [REPAIR_KEY]: retries };
  const definition = {
    name, inputSchema, _meta, ...(description !== undefined && { description }), ...(effects && { annotations: HINTS[effects] }),
  };
  return {
    definition, execute,
    run: async (args, run = {}) => execute((standard ? await validated(standard, args) : args) as never, run),
  };
}

export function isTool(tool: AnyTool | Definition): tool is AnyTool {
  return "definition" in tool;
}

type OutputOf<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["output"];

function isStandard(schema: unknown): schema is StandardSchema {
  return (typeof schema === "object" || typeof schema === "function") && schema !== null && "~standard" in schema;
}

function cannot(name: string, why: string): TypeError {
  return new TypeError(`${name}: no JSON Schema describes its parameters: ${why}`);
}

function describe(name: string, schema: StandardSchema): JsonObject {
  const { vendor, jsonSchema } = schema["~standard"];
  if (!jsonSchema) {
    throw cannot(name, `${vendor} cannot convert this schema; give guard the JSON Schema, too, as \`jsonSchema\``);
  }
  let made: unknown;
  try {
    made = jsonSchema.input({ target: "draft-2020-12" });
  } catch (error) {
    throw cannot(name, error instanceof Error ? error.message : String(error));
  }
  return made as JsonObject;
}

function mustDescribe(name: string, schema: unknown): void {
  if (!isObject(schema)) throw cannot(name, "a JSON Schema is an object");
  if (schema["type"] !== "object") throw cannot(name, 'arguments are an object, so the schema must have type "object"');
  const properties = schema["properties"] ?? {};
  if (!isObject(properties)) throw cannot(name, '"properties" must be an object');
  for (const [key, property] of Object.entries(properties)) {
    if (saysNothing(property)) throw cannot(name, `'${key}' fits any value; say which`);
  }
}

const NO_CONSTRAINT: ReadonlySet<string> = new Set(["title", "description", "default", "examples", "$comment"]);

function saysNothing(schema: unknown): boolean {
  return schema === true || !isObject(schema) || Object.keys(schema).every((key) => NO_CONSTRAINT.has(key));
}

async function validated(schema: StandardSchema, args: unknown): Promise<unknown> {
  const result = await schema["~standard"].validate(args);
  if (result.issues === undefined) return result.value;
  throw new InvalidArguments(issuesText(result.issues));
}

/** The issues of a Standard Schema or of zod, in one line. */
export function issuesText(issues: readonly StandardIssue[]): string {
  return issues.map(issueText).join("; ");
}

function issueText(issue: StandardIssue): string {
  const path = (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
  return path ? `'${path}': ${issue.message}` : issue.message;
}
