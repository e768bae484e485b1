// One connection: requests go out, replies come back in any order, and the daemon may ask the user.
//
// It ends at the first trouble; connection.ts makes the next one. While nobody waits for a reply it does not keep the
// process alive.
import { connect, type Socket } from "node:net";
import { Lost, Unavailable } from "./errors.js";
import { LATE_MAX_COUNT, REPLY_MAX_BYTES, isObject, type JsonObject, type Request } from "./protocol.js";
import { notificationLine, readMessage, requestLine, responseLine, resultOf } from "./wire.js";

/** Puts a question of the daemon to the user. */
export type Answerer = (params: JsonObject) => Promise<JsonObject>;

export interface AskOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Gets the result that comes although nobody waits for it any more. */
  readonly late?: ((result: JsonObject) => void) | undefined;
}

interface Waiting {
  resolve(message: JsonObject): void;
  reject(error: unknown): void;
}

export class Link {
  lost: Lost | undefined;
  private readonly waiting = new Map<number, Waiting>();
  private readonly givenUp = new Map<number, (result: JsonObject) => void>();
  private chunks: Buffer[] = [];
  private bufferedBytes = 0;
  private lastId = 0;
  private questions = 0; // that the user is reading

  private constructor(private readonly socket: Socket, private readonly answerer: Answerer | undefined) {
    socket.on("data", (chunk: Buffer) => this.read(chunk));
    socket.on("error", (error) => this.end(error));
    socket.on("close", () => this.end());
    this.holdProcess();
  }

  static open(path: string, answerer: Answerer | undefined): Promise<Link> {
    return new Promise((resolve, reject) => {
      const socket = connect(path);
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Link(socket, answerer));
      });
    });
  }

  /** Does not wait: for what needs no reply, such as a cancellation. */
  send(line: string): void {
    if (!this.lost) this.socket.write(line);
  }

  ask(request: Request, options: AskOptions): Promise<JsonObject> {
    options.signal?.throwIfAborted();
    if (this.lost) throw this.lost;
    const id = ++this.lastId;
    const line = requestLine(request, id);
    return new Promise<JsonObject>((resolve, reject) => {
      const giveUp = (error: unknown): void => {
        if (options.late && this.givenUp.size < LATE_MAX_COUNT) this.givenUp.set(id, options.late);
        this.send(notificationLine("notifications/cancelled", { requestId: id }));
        waiting.reject(error);
      };
      const abort = (): void => giveUp(options.signal?.reason);
      const expire = (): void => {
        if (this.questions > 0) { // the time that a person takes to answer is not the daemon's
          timer = setTimeout(expire, options.timeoutMs);
          return;
        }
        giveUp(new Unavailable(`toolgate has not answered ${request.method} within ${options.timeoutMs} ms`));
        if (this.socket.writableLength > 0) this.end(new Error("the daemon reads nothing")); // what waits for it would only grow
      };
      let timer = setTimeout(expire, options.timeoutMs);
      const settle = (): void => {
        clearTimeout(timer);
        options.signal?.removeEventListener("abort", abort);
        this.waiting.delete(id);
        this.holdProcess();
      };
      const waiting: Waiting = {
        resolve: (message) => { settle(); resolve(message); },
        reject: (error) => { settle(); reject(error); },
      };
      options.signal?.addEventListener("abort", abort, { once: true });
      this.waiting.set(id, waiting);
      this.holdProcess();
      this.socket.write(line);
    }).then((message) => this.resultOf(message));
  }

  /** A daemon that stops answers no more requests on this connection. */
  private resultOf(message: JsonObject): JsonObject {
    try {
      return resultOf(message);
    } catch (error) {
      if (error instanceof Lost) this.end(error);
      throw error;
    }
  }

  private holdProcess(): void {
    if (this.waiting.size + this.questions > 0) this.socket.ref();
    else this.socket.unref();
  }

  private read(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0 && !this.lost; at = chunk.indexOf(10, from)) {
      this.chunks.push(chunk.subarray(from, at));
      const line = Buffer.concat(this.chunks).toString();
      this.chunks = [];
      this.bufferedBytes = 0;
      from = at + 1;
      this.takeLine(line);
    }
    this.chunks.push(chunk.subarray(from));
    this.bufferedBytes += chunk.length - from;
    if (this.bufferedBytes > REPLY_MAX_BYTES) this.end(new Error(`a line of more than ${REPLY_MAX_BYTES} bytes`));
  }

  private takeLine(line: string): void {
    try {
      this.take(readMessage(line));
    } catch (error) {
      this.end(error);
    }
  }

  private take(message: JsonObject): void {
    const { id, method } = message;
    if (typeof method === "string") {
      if (method === "elicitation/create" && this.answerer) void this.answer(this.answerer, id, message["params"]);
      return; // any other request or notification is not for this client
    }
    if (id === null || id === undefined) {
      resultOf(message); // an error about the connection: throws
      return;
    }
    const late = this.givenUp.get(id as number);
    if (late) {
      this.givenUp.delete(id as number);
      if (isObject(message["result"])) late(message["result"]);
    } else {
      this.waiting.get(id as number)?.resolve(message);
    }
  }

  private async answer(answerer: Answerer, id: unknown, params: unknown): Promise<void> {
    this.questions++;
    this.holdProcess();
    try {
      this.send(responseLine(id, await answerer(isObject(params) ? params : {})));
    } finally {
      this.questions--;
      this.holdProcess();
    }
  }

  private end(cause?: unknown): void {
    if (this.lost) return;
    const why = cause instanceof Error ? `the connection to toolgate ended: ${cause.message}` : "toolgate closed the connection";
    this.lost = new Lost(why, { cause });
    this.socket.destroy();
    this.chunks = [];
    for (const waiting of [...this.waiting.values()]) waiting.reject(this.lost);
  }

  close(): void {
    if (this.waiting.size > 0 || this.questions > 0) this.end(new Error("this program closed it"));
    else this.finish();
  }

  /** What was sent without waiting, such as a release, still goes out. */
  private finish(): void {
    this.lost ??= new Lost("the connection to toolgate ended: this program closed it");
    this.socket.end();
  }
}

/** The value of `run`, or the signal's reason as soon as it is aborted: `run` may not heed it. */
export async function untilAborted<T>(run: () => T | Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  signal?.throwIfAborted();
  if (!signal) return await run();
  let stop: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([Promise.resolve().then(run), aborted]);
  } finally {
    if (stop) signal.removeEventListener("abort", stop);
  }
}
