// What can go wrong. A verdict that is not `pass` is data; it becomes an error (Stopped) only where you ask for one.
import type { Verdict } from "./verdict.js";

/** Any error of this client. */
export class ToolgateError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No daemon answered in time: the call is neither checked nor counted. */
export class Unavailable extends ToolgateError {}

/** The connection ended, or the daemon stops: another may answer the request. */
export class Lost extends Unavailable {}

/** A request is longer than the daemon reads. */
export class TooLarge extends ToolgateError {}

/** The daemon rejected a request (not a tool call): its words say what to change in the program. */
export class ProtocolError extends ToolgateError {
  constructor(readonly code: number, message: string) {
    super(message);
  }
}

/** A call did not pass. The message is what the model should read. */
export class Stopped extends ToolgateError {
  constructor(readonly text: string, readonly verdict: Verdict) {
    super(text);
  }

  /** Frameworks show the model either this or the message. */
  override toString(): string {
    return this.text;
  }
}

/** The model should change the arguments and call again. */
export class Repair extends Stopped {}
/** The model may make the same call again after `verdict.afterS` seconds. */
export class Wait extends Stopped {}
/** The model should not make this call. */
export class Refuse extends Stopped {}
/** The user must decide: `verdict.choices`. */
export class Ask extends Stopped {}
/** The run must end. */
export class Halt extends Stopped {}

/** The error of a verdict that is not `pass`. */
export function stoppedBy(verdict: Verdict, text: string): Stopped {
  switch (verdict.kind) {
    case "repair": return new Repair(text, verdict);
    case "wait": return new Wait(text, verdict);
    case "ask": return new Ask(text, verdict);
    case "halt": return new Halt(text, verdict);
    default: return new Refuse(text, verdict);
  }
}
