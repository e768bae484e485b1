// The words of toolgate's protocol (docs/protocol.md), and this client's limits.

export const CHECK = "toolgate/check";
export const REPORT = "toolgate/report";
export const REGISTER = "toolgate/register";
export const TURN = "toolgate/turn";
export const TOOLS = "toolgate/tools";

export const SESSION_KEY = "dev.toolgate/session";
export const TURN_KEY = "dev.toolgate/turn";
export const STEP_KEY = "dev.toolgate/step";
export const CALL_KEY = "dev.toolgate/call";
export const CONTEXT_KEY = "dev.toolgate/context";
export const AGENT_KEY = "dev.toolgate/agent";
/** Of a definition: how often the model may correct a call. */
export const REPAIR_KEY = "dev.toolgate/repair";
/** The daemon does not read a higher one. */
export const REPAIR_MAX = 1000;
/** Of a definition: whether a policy wants a provider's strict mode for the tool. */
export const STRICT_KEY = "dev.toolgate/strict";

/** Of a definition whose schema was made of a function's parameters, so that what does not fit it cannot run. */
export const EXACT = { "dev.toolgate/schema": "strict" };

// Error codes of the daemon, by what the caller can do.
export const STOPPING = 1013;
export const UNAVAILABLE_CODES: ReadonlySet<number> = new Set([1004, 1005, 1006, 1007, 1008, STOPPING, 1015, 1017]);
/** The arguments or the result are too long, too deep, have too many values, or make a reply that is too long. */
export const MODEL_CODES: ReadonlySet<number> = new Set([1001, 1002, 1003, 1010]);

/** Of a request, as the daemon reads it. */
export const LINE_MAX_BYTES = 8 * 1024 * 1024;
/** The daemon sends 9 MiB. */
export const REPLY_MAX_BYTES = 16 * 1024 * 1024;
export const GOAL_MAX_BYTES = 8 * 1024;
export const AGENT_MAX_BYTES = 128;
/** Whose own tools a connection has declared; the daemon keeps more of them. */
export const SESSIONS_MAX = 64;
/** For a reply, the time to connect included. */
export const TIMEOUT_MS = 30_000;
/** For a daemon that is not there. */
export const WAIT_MS = 5_000;
export const BACKOFF_FIRST_MS = 20;
export const BACKOFF_MAX_MS = 500;
/** Checks that this program gave up, whose result it still reads to give back what they reserved. */
export const LATE_MAX_COUNT = 1_024;

export type JsonObject = { [key: string]: unknown };

export interface Request {
  readonly method: string;
  readonly params: JsonObject;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The properties that are given. */
export function given(properties: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== undefined));
}
