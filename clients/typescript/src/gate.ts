// Gate: the way to one daemon. It connects when it is first needed, and again whenever the connection is lost.
import { Connection, type OnUnavailable, type Settings } from "./connection.js";
import { isTool, type AnyTool, type Definition } from "./guard.js";
import { TIMEOUT_MS, WAIT_MS, type JsonObject } from "./protocol.js";
import { answerQuestion, type OnAsk } from "./questions.js";
import { Session } from "./session.js";

export interface GateOptions {
  /** The functions that this program runs itself, described by `guard`; or definitions {name, description, inputSchema}. */
  readonly tools?: readonly (AnyTool | Definition)[];
  /** For a reply, the time to connect included. */
  readonly timeoutMs?: number;
  /** For a daemon that is not there. */
  readonly waitMs?: number;
  /** Without a daemon: throw Unavailable, let calls run unchecked, or refuse them. */
  readonly onUnavailable?: OnUnavailable;
  /** Puts a policy's question to the user. Without it the model gets the question as text. */
  readonly onAsk?: OnAsk;
}

export class Gate {
  readonly settings: Settings;
  readonly tools = new Map<string, AnyTool>();
  readonly definitions = new Map<string, Definition>();
  readonly connection: Connection;
  private readonly sessions = new Map<string, WeakRef<Session>>();
  private readonly forgotten = new FinalizationRegistry<{ name: string; ref: WeakRef<Session> }>(({ name, ref }) => {
    if (this.sessions.get(name) === ref) this.sessions.delete(name);
  });

  constructor(path: string, options: GateOptions = {}) {
    const { timeoutMs = TIMEOUT_MS, waitMs = WAIT_MS, onUnavailable = "raise", onAsk } = options;
    if (!(timeoutMs > 0) || !(waitMs >= 0)) throw new RangeError("timeoutMs must be above 0, and waitMs 0 or more");
    if (!["raise", "allow", "refuse"].includes(onUnavailable)) {
      throw new TypeError(`onUnavailable must be "raise", "allow" or "refuse", not ${JSON.stringify(onUnavailable)}`);
    }
    this.settings = { path, timeoutMs, waitMs, onUnavailable };
    const answerer = onAsk && ((params: JsonObject) => answerQuestion(onAsk, params));
    this.connection = new Connection(this.settings, answerer, onAsk && { method: "initialize", params: INITIALIZE });
    this.declare(options.tools ?? []);
  }

  /** Tools that this program runs, for all sessions; the daemon gets them with the next check. */
  declare(tools: readonly (AnyTool | Definition)[]): void {
    for (const tool of tools) {
      if (isTool(tool)) this.tools.set(tool.definition.name, tool);
      const definition = isTool(tool) ? tool.definition : tool;
      this.definitions.set(definition.name, definition);
    }
  }

  /** One conversation. The same name on several workers is the same session. */
  session(name: string): Session {
    const known = this.sessions.get(name)?.deref();
    if (known) return known;
    const session = new Session(this, name), ref = new WeakRef(session);
    this.sessions.set(name, ref);
    this.forgotten.register(session, { name, ref });
    return session;
  }

  /** Any method of docs/protocol.md, such as `toolgate/session`. */
  request(method: string, params: JsonObject = {}, options: { signal?: AbortSignal } = {}): Promise<JsonObject> {
    return this.connection.request({ method, params }, options);
  }

  /** Closes the connection; a later request opens another. */
  close(): void {
    this.connection.close();
  }
}

const INITIALIZE: JsonObject = {
  protocolVersion: "2025-11-25", capabilities: { elicitation: {} }, clientInfo: { name: "toolgate-typescript", version: "2.0.0-dev" },
};
