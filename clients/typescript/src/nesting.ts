// Which agent makes a call: the outermost run has no name, an agent that runs inside of a tool has the tool's. Every tool
// that a session runs is remembered for what it awaits: a call of the same session meanwhile is a nested agent's.
import { AsyncLocalStorage } from "node:async_hooks";
import { AGENT_MAX_BYTES } from "./protocol.js";

const running = new AsyncLocalStorage<{ readonly session: string; readonly tools: readonly string[] }>();

function inside(session: string): readonly string[] {
  const now = running.getStore();
  return now?.session === session ? now.tools : [];
}

export function runInside<T>(session: string, tool: string, body: () => T): T {
  return running.run({ session, tools: [...inside(session), tool] }, body);
}

export function isNested(session: string): boolean {
  return inside(session).length > 0;
}

/** The agent of a call; `given`: what the caller says besides, such as the agent that a run was handed to. */
export function agentOf(session: string, given?: string): string | undefined {
  const path = [...inside(session), ...(given ? [given] : [])].join("/");
  return Buffer.from(path).subarray(0, AGENT_MAX_BYTES).toString().replace(/\uFFFD$/, "") || undefined;
}
