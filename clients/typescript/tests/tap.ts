// Tests as TAP: each is a function of this module's users, with one minute.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

const MINUTE_MS = 60_000;
const tests: [string, () => Promise<void>][] = [];

export const socket: string = process.argv[2] ?? "";

export function test(title: string, body: () => Promise<void>): void {
  tests.push([title, body]);
}

export function fresh(): string {
  return randomUUID();
}

/** Waits for a condition, never for a time. */
export async function eventually<T>(what: string, body: () => Promise<T | undefined | false>): Promise<T> {
  for (const until = performance.now() + 20_000; performance.now() < until;) {
    const value = await body();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`never: ${what}`);
}

/** Each as wrong as the last, and no call twice. */
export const WRONG = Array.from({ length: 6 }, (_, n) => ({ town: `Bern ${n}`, days: 1 }));

/** What the model reads of WRONG where each call has an id of its own, as every provider gives it. */
export function attemptsRunOut(heard: readonly string[]): void {
  assert.match(heard[0] ?? "", /2 attempts left/);
  assert.match(heard[1] ?? "", /1 attempt left/);
  for (const text of heard.slice(2, WRONG.length)) {
    assert.match(text, /forecast was not run/);
    assert.doesNotMatch(text, /[1-9] attempts? left/);
  }
}

interface Requesting {
  request(method: string): Promise<Record<string, unknown>>;
  connection: { request(request: { method: string; params: Record<string, unknown> }, options?: object): Promise<Record<string, unknown>> };
}

/** The agents of the checks that a body makes, and how many turns it begins. */
export async function overheard(gate: Requesting, body: () => Promise<void>): Promise<{ agents: unknown[]; turns: number }> {
  const made = { agents: [] as unknown[], turns: 0 }, ask = gate.connection.request;
  gate.connection.request = function (request, options) {
    const meta = request.params["_meta"] as Record<string, unknown> | undefined;
    if (request.method === "toolgate/check") made.agents.push(meta?.["dev.toolgate/agent"]);
    if (request.method === "toolgate/turn") made.turns++;
    return ask.call(gate.connection, request, options);
  };
  await body().finally(() => { gate.connection.request = ask; });
  return made;
}

export async function gaveUp(gate: Requesting): Promise<number> {
  const { counters } = await gate.request("toolgate/status") as { counters: { chains: { llm_gave_up: number } } };
  return counters.chains.llm_gave_up;
}

export async function run(cleanUp?: () => Promise<void>): Promise<void> {
  let failed = 0;
  for (const [title, body] of tests) {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => { timer = setTimeout(() => reject(new Error("took a minute")), MINUTE_MS); });
    try {
      await Promise.race([body(), late]);
      console.log(`ok - ${title}`);
    } catch (error) {
      failed++;
      const told = error instanceof Error ? error.stack ?? error.message : String(error);
      console.log(`not ok - ${title}\n#   ${told.replaceAll("\n", "\n#   ")}`);
    } finally {
      clearTimeout(timer);
    }
  }
  await cleanUp?.();
  process.exit(failed > 0 || tests.length === 0 ? 1 : 0);
}
