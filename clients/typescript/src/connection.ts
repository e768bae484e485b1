// The way to the daemon: connects when needed, again when the connection is lost, and declares the tools first.
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { Lost, ToolgateError, Unavailable } from "./errors.js";
import type { Definition } from "./guard.js";
import { Link, untilAborted, type Answerer, type AskOptions } from "./link.js";
import {
  BACKOFF_FIRST_MS, BACKOFF_MAX_MS, isObject, REGISTER, SESSION_KEY, SESSIONS_MAX, type JsonObject, type Request,
} from "./protocol.js";

export type OnUnavailable = "raise" | "allow" | "refuse";

export interface Settings {
  readonly path: string;
  readonly timeoutMs: number;
  readonly waitMs: number;
  readonly onUnavailable: OnUnavailable;
}

export interface RequestOptions extends Pick<AskOptions, "signal" | "late"> {
  /** The daemon must know these when it reads the request. */
  readonly declared?: readonly Declared[] | undefined;
}

/** Tools that this program runs: of one session, or (without its name) of all. */
export interface Declared {
  readonly session?: string;
  readonly tools: readonly Definition[];
}

/** One connection, and what was said on it. */
interface Greeted {
  readonly link: Link;
  readonly known: Map<string | undefined, Map<string, Definition>>; // by session: what the daemon has from this connection
}

export class Connection {
  private greeted: Greeted | undefined;
  private readying: Promise<Greeted> | undefined;

  constructor(
    private readonly settings: Settings, private readonly answerer: Answerer | undefined,
    private readonly initialize: Request | undefined,
  ) {}

  /** A request whose connection is lost is made once more: the daemon was restarted. */
  async request(request: Request, options: RequestOptions = {}): Promise<JsonObject> {
    const deadline = performance.now() + this.settings.timeoutMs;
    try {
      return await this.ask(request, deadline, options);
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      return await this.ask(request, deadline, options);
    }
  }

  private async ask(request: Request, deadline: number, options: RequestOptions): Promise<JsonObject> {
    const greeted = await untilAborted(() => this.ready(deadline), options.signal);
    // All lines are written at once, so that no other declaration comes between them.
    const declared = Promise.all((options.declared ?? []).map((one) => this.declare(greeted, one, deadline)));
    declared.catch(() => {}); // ask may throw before it is awaited
    const asked = greeted.link.ask(request, { ...options, timeoutMs: remaining(deadline) });
    asked.catch(() => {}); // the declaration's error comes first
    await declared;
    return await asked;
  }

  /** A tool's last declaration counts; one that the daemon has already costs nothing. */
  private async declare({ link, known: sets }: Greeted, { session, tools }: Declared, deadline: number): Promise<void> {
    const known = sets.get(session) ?? new Map<string, Definition>();
    const fresh = tools.filter((one) => known.get(one.name) !== one && !isDeepStrictEqual(known.get(one.name), one));
    if (tools.length > 0) { // the session that was used last is forgotten last, here as by the daemon
      sets.delete(session);
      sets.set(session, known);
      for (const oldest of sets.keys()) if (sets.size > SESSIONS_MAX && oldest !== undefined) sets.delete(oldest);
    }
    if (fresh.length === 0) return;
    for (const one of fresh) known.set(one.name, one);
    const params = { tools: fresh, ...(session !== undefined && { _meta: { [SESSION_KEY]: session } }) };
    try {
      allDeclared(await link.ask({ method: REGISTER, params }, { timeoutMs: remaining(deadline) }));
    } catch (error) {
      for (const one of fresh) if (known.get(one.name) === one) known.delete(one.name);
      throw error;
    }
  }

  /** Does not wait, and does nothing without a connection. */
  send(line: string): void {
    this.greeted?.link.send(line);
  }

  /** One request connects, the others wait for it. */
  private ready(deadline: number): Promise<Greeted> {
    if (this.greeted && !this.greeted.link.lost) return Promise.resolve(this.greeted);
    this.readying ??= this.connectAndGreet(deadline).finally(() => { this.readying = undefined; });
    return this.readying;
  }

  private async connectAndGreet(deadline: number): Promise<Greeted> {
    const link = await this.connect(deadline);
    if (this.initialize) await link.ask(this.initialize, { timeoutMs: remaining(deadline) });
    this.greeted = { link, known: new Map() };
    return this.greeted;
  }

  private async connect(deadline: number): Promise<Link> {
    const until = Math.min(deadline, performance.now() + this.settings.waitMs);
    for (let pause = BACKOFF_FIRST_MS; ; pause = Math.min(pause * 2, BACKOFF_MAX_MS)) {
      try {
        return await Link.open(this.settings.path, this.answerer);
      } catch (error) {
        if (codeOf(error) === "EACCES" || performance.now() + pause > until) throw this.unavailable(error);
      }
      await sleep(pause);
    }
  }

  private unavailable(error: unknown): ToolgateError {
    const { path } = this.settings, why = error instanceof Error ? error.message : String(error);
    if (codeOf(error) === "EACCES") {
      const text = `this user may not connect to ${path}: the operator must let it, by the socket's group or mode`;
      return new Unavailable(text, { cause: error });
    }
    return new Unavailable(`no toolgate at ${path}: ${why}; start it with \`toolgate serve --socket ${path}\``, { cause: error });
  }

  close(): void {
    this.greeted?.link.close();
    this.greeted = undefined;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

function remaining(deadline: number): number {
  return Math.max(deadline - performance.now(), 1);
}

function allDeclared(result: JsonObject): void {
  const refused = Array.isArray(result["refused"]) ? result["refused"].filter(isObject) : [];
  if (refused.length === 0) return;
  const each = refused.map((one) => `${String(one["name"])}: ${String(one["why"])}`);
  throw new ToolgateError(`toolgate does not take the definition of ${each.join("; ")}`);
}
