// A policy's question, put to the user of this program.
import { isObject, type JsonObject } from "./protocol.js";

/**
 * Returns one of `choices` (of yes and no, where there are none: true or false), or undefined if the user declines.
 */
export type OnAsk = (question: string, choices: readonly string[]) => Answer | Promise<Answer>;

export type Answer = string | boolean | undefined | null;

/** A user who cannot be asked has not agreed. */
export async function answerQuestion(onAsk: OnAsk, params: JsonObject): Promise<JsonObject> {
  try {
    const answer = await onAsk(String(params["message"] ?? ""), choicesOf(params));
    return answer === undefined || answer === null ? { action: "decline" } : { action: "accept", content: { answer } };
  } catch (error) {
    process.emitWarning(`onAsk failed, so the call is declined: ${error instanceof Error ? error.message : String(error)}`,
      { code: "TOOLGATE_ON_ASK" });
    return { action: "cancel" };
  }
}

function choicesOf(params: JsonObject): string[] {
  let schema: unknown = params;
  for (const key of ["requestedSchema", "properties", "answer", "enum"]) schema = isObject(schema) ? schema[key] : undefined;
  return Array.isArray(schema) ? schema.map(String) : [];
}
