// What a tool's run brought, as the daemon takes it.
import { isDeepStrictEqual } from "node:util";
import { InvalidArguments } from "./guard.js";
import { given, isObject, type JsonObject } from "./protocol.js";
import { textBlock, type Block } from "./verdict.js";
import { toJson } from "./wire.js";

/** A tool's failure. */
export interface Failure {
  readonly message: string;
  /** The same call may work later; without it toolgate infers that from the message. */
  readonly transient?: boolean;
  /** The call may work with other arguments: true, or what the model should do better. */
  readonly retry?: boolean | string;
}

/** Throw it in a tool to say what the model should do better: it counts against the call's repair budget. */
export class RetryError extends Error {
  override readonly name = "RetryError";
}

export function failureOf(error: unknown): Failure {
  if (error instanceof InvalidArguments || error instanceof RetryError) return { message: error.message, retry: true };
  if (error instanceof Error) return { message: error.message || error.name };
  if (isObject(error) && typeof error["message"] === "string") {
    return given({ message: error["message"], transient: error["transient"], retry: error["retry"] }) as unknown as Failure;
  }
  return { message: String(error) };
}

/** Nothing is null in JSON. */
export function jsonResult(value: unknown): unknown {
  return value === undefined ? null : value;
}

const CALL_RESULT: ReadonlySet<string> = new Set(["content", "structuredContent", "isError", "_meta", "resultType"]);

/** Whether a tool returned MCP blocks. Many APIs have a page of items under `content`. */
export function hasBlocks(result: unknown): result is { content: Block[] } {
  return isObject(result) && Array.isArray(result["content"]) && Object.keys(result).every((key) => CALL_RESULT.has(key))
    && result["content"].every((block) => isObject(block) && typeof block["type"] === "string");
}

/** The result as MCP blocks, as the daemon writes them. */
export function contentOf(result: unknown): Block[] {
  if (hasBlocks(result)) return result.content;
  return [textBlock(typeof result === "string" ? result : toJson(jsonResult(result), "the result"))];
}

/** How many of the first blocks of `content` are the result as it was reported: all of its blocks, or 0. */
export function sameBlocks(content: readonly Block[], result: unknown): number {
  const own = contentOf(result);
  const same = own.length <= content.length && own.every((block, i) => sameBlock(block, content[i]));
  const rest = content.slice(own.length);
  return same && rest.every((block) => block.type === "text") ? own.length : 0;
}

function sameBlock(own: Block, read: Block | undefined): boolean {
  if (isDeepStrictEqual(asJson(own), read)) return true;
  return own.type === "text" && read?.type === "text" && sameJson(String(own["text"]), String(read["text"]));
}

/** The daemon may space JSON otherwise. */
function sameJson(own: string, read: string): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(own), JSON.parse(read));
  } catch {
    return own === read;
  }
}

function asJson(block: Block): JsonObject {
  return JSON.parse(toJson(block, "the result")) as JsonObject;
}
