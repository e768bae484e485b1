// toolgate checks each tool call of an agent, and each result: `new Gate(path).session("chat-7")`.
export { Gate, type GateOptions } from "./gate.js";
export { Session, type CheckOptions, type Judged, type RunningOptions, type TurnId, type TurnOptions } from "./session.js";
export {
  guard, InvalidArguments, type AnyTool, type Definition, type Effects, type RunOptions, type StandardSchema, type Tool,
} from "./guard.js";
export {
  Ask, Halt, Lost, ProtocolError, Refuse, Repair, Stopped, ToolgateError, TooLarge, Unavailable, Wait, stoppedBy,
} from "./errors.js";
export { RetryError, type Failure } from "./results.js";
export type { Block, Checked, Kind, Outcome, Problem, Reported, Suggestion, Verdict } from "./verdict.js";
export type { OnUnavailable } from "./connection.js";
export type { Answer, OnAsk } from "./questions.js";
