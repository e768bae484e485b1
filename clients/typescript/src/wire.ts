// JSON-RPC lines: requests out, replies in.
import { Lost, ProtocolError, TooLarge, ToolgateError, Unavailable } from "./errors.js";
import { isObject, LINE_MAX_BYTES, STOPPING, UNAVAILABLE_CODES, type JsonObject, type Request } from "./protocol.js";

/** What JSON cannot say is an error that names it; NaN and infinity become null. */
export function toJson(value: unknown, what: string): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value, (key, one: unknown) => plain(one, key));
  } catch (error) {
    throw new ToolgateError(`${what} is no JSON: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
  if (text === undefined) throw new ToolgateError(`${what} is no JSON: it is a ${typeof value}`);
  return text;
}

function plain(value: unknown, key: string): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  if (value instanceof Set) return [...value];
  if (value instanceof Map) return Object.fromEntries(value);
  if (typeof value === "function" || typeof value === "symbol") throw new Error(`'${key}' is a ${typeof value}`);
  return value;
}

export function requestLine(request: Request, id: number): string {
  return line({ jsonrpc: "2.0", id, method: request.method, params: request.params }, request.method);
}

export function notificationLine(method: string, params: JsonObject): string {
  return line({ jsonrpc: "2.0", method, params }, method);
}

export function responseLine(id: unknown, result: JsonObject): string {
  return line({ jsonrpc: "2.0", id, result }, "a response");
}

function line(message: JsonObject, what: string): string {
  const text = toJson(message, what) + "\n";
  const bytes = Buffer.byteLength(text);
  if (bytes > LINE_MAX_BYTES) {
    throw new TooLarge(`${what} has ${bytes} bytes, the daemon reads at most ${LINE_MAX_BYTES}: send less`);
  }
  return text;
}

export function readMessage(text: string): JsonObject {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch (error) {
    const sent = JSON.stringify(text.slice(0, 60));
    throw new Unavailable(`what answers on the socket is no toolgate: ${sent} is no JSON`, { cause: error });
  }
  if (!isObject(message)) throw new Unavailable(`what answers on the socket is no toolgate: it sent ${text.slice(0, 60)}`);
  return message;
}

export function resultOf(message: JsonObject): JsonObject {
  const error = message["error"];
  if (isObject(error)) {
    const code = typeof error["code"] === "number" ? error["code"] : 0, text = String(error["message"] ?? "no message");
    if (code === STOPPING) throw new Lost(text);
    throw UNAVAILABLE_CODES.has(code) ? new Unavailable(text) : new ProtocolError(code, text);
  }
  if (!isObject(message["result"])) throw new Unavailable("what answers on the socket is no toolgate: its reply has no result");
  return message["result"];
}
