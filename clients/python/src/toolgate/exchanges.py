"""What a session says to the daemon and how it reads the answers, without input or output: both clients drive it."""
from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Mapping
from typing import Any

from .errors import ProtocolError, ToolgateError, TooLarge, Unavailable
from .nesting import agent_of
from .results import Failure, to_json
from .settings import Declared, Settings
from .verdict import Checked, Reported, Verdict, read_verdict, text_block
from .wire import Exchange, Request
from .words import (
    AGENT_KEY, CALL_KEY, CHECK, CONTEXT_KEY, GOAL_MAX_BYTES, MODEL_CODES, REPORT, SESSION_KEY, STEP_KEY, TOOLS, TURN,
    TURN_KEY, By, OnUnavailable,
)

log = logging.getLogger("toolgate")

CALL_RESULT = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})  # of MCP
ASK_FOR_LESS = "Ask for less: a page, a narrower range."


class SessionState:
    """One conversation: its name, its turn, and the checks that wait for their report."""

    def __init__(self, name: str, settings: Settings) -> None:
        if not name:
            raise ValueError("a session needs a name: budgets and loops belong to it")
        self.name, self._settings = name, settings
        self._warned = False  # that checks have no report
        self.turn: int | str | None = None
        self.open: dict[str, Checked] = {}
        self.declared = Declared(name)

    # ---- turn ----

    def begin_turn(self, goal: str | None, turn: int | str | None, by: By | None) -> Exchange[int | str | None]:
        given = {"goal": goal_of(goal), "turn": turn, "by": by}
        params = {key: value for key, value in given.items() if value is not None}
        try:
            result = yield Request(TURN, {**params, "_meta": {SESSION_KEY: self.name}})
        except Unavailable as error:
            self._unavailable(error)
            self.turn = None
        else:
            self.turn = result.get("turn")
        return self.turn

    def end(self) -> Exchange[None]:
        try:
            yield Request(TURN, {"end": True, "_meta": {SESSION_KEY: self.name}})
        except Unavailable as error:
            self._unavailable(error)

    # ---- what the model sees ----

    def tools(
        self, step: str | None, agent: str | None, context: Mapping[str, Any] | None
    ) -> Exchange[dict[str, Mapping[str, Any]] | None]:
        try:
            result = yield Request(TOOLS, {"_meta": self._meta(step, None, agent, context)})
        except Unavailable as error:
            self._unavailable(error)
            return None
        return {str(one["name"]): one for one in result["tools"]}

    def _meta(
        self, step: str | None, call: str | None, agent: str | None, context: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        given = {SESSION_KEY: self.name, TURN_KEY: self.turn, STEP_KEY: step, CALL_KEY: call, CONTEXT_KEY: context,
                 AGENT_KEY: agent_of(self.name, agent)}
        return {key: value for key, value in given.items() if value is not None}

    # ---- check ----

    def check(
        self, name: str, arguments: Any, step: str | None, call: str | None, agent: str | None,
        context: Mapping[str, Any] | None,
    ) -> Exchange[Checked]:
        meta = self._meta(step, call, agent, context)
        try:
            result = yield Request(CHECK, {"name": name, "arguments": arguments, "_meta": meta})
        except Unavailable as error:
            return self._unchecked(name, arguments, self._unavailable(error), error)
        except (TooLarge, ProtocolError) as error:  # the model's arguments, not the program's request
            if isinstance(error, ProtocolError) and error.code not in MODEL_CODES:
                raise
            return _not_run(name, arguments, "invalid_arguments", str(error), "Send less at a time.")
        checked = read_checked(result, name, arguments)
        if result.get("unreported") and not self._warned:
            self._warned = True
            log.warning("session %s: %s checks in a row without a report: nothing is counted", self.name, result["unreported"])
        if checked.passed and checked.call_id:
            self.open[checked.call_id] = checked
        return checked

    def _unchecked(self, name: str, arguments: Any, policy: OnUnavailable, error: Unavailable) -> Checked:
        if policy == "allow":
            verdict = Verdict("pass", True, "unavailable", "unchecked", str(error))
            try:
                return Checked(verdict, name, json.loads(arguments) if isinstance(arguments, str) else arguments)
            except ValueError as trouble:
                return _not_run(name, arguments, "invalid_arguments", f"its arguments are no JSON: {trouble}", "Send them again.")
        hint = "Do not repeat the call. Tell the user that tools cannot be used at the moment."
        return _not_run(name, arguments, "unavailable", "its arguments cannot be checked at the moment", hint)

    # ---- report ----

    def report(
        self, checked: Checked, result: Any, failure: Failure | None, judged: Mapping[str, Any]
    ) -> Exchange[Reported]:
        if not checked.passed:
            raise ValueError(f"{checked.name} did not pass its check ({checked.verdict.kind}), so there is nothing to report")
        if checked.call_id is None:
            return self._unreported(checked, result, failure)
        outcome: dict[str, Any] = {"error": failure.as_error()} if failure else {"result": result}
        # The session may have forgotten the call, so the report repeats it.
        params = {"callId": checked.call_id, "name": checked.name, "arguments": checked.arguments, **judged}
        try:
            answer = yield Request(REPORT, {**params, **outcome})
        except (TooLarge, ProtocolError) as error:
            is_told = failure is not None and failure.retry == ASK_FOR_LESS
            if is_told or isinstance(error, ProtocolError) and error.code not in MODEL_CODES:
                raise
            told = Failure(f"the result is too long to be checked: {error}", retry=ASK_FOR_LESS)
            return (yield from self.report(checked, None, told, judged))
        except Unavailable as error:
            if self._unavailable(error) == "allow":
                return self._unreported(checked, result, failure)
            hint = "It ran, but its result cannot be checked at the moment. Look before you repeat it."
            return Reported(
                Verdict("refuse", True, "unavailable", "unavailable", str(error), hint), [text_block(f"{checked.name}: {hint}")]
            )
        self.open.pop(checked.call_id, None)  # only now: a report that is cancelled has settled nothing
        content = answer.get("content") or [text_block(str(answer.get("text", "")))]
        own = [] if failure else content_of(result)
        notes = content[len(own):]
        is_same = content[: len(own)] == own and all(block.get("type") == "text" for block in notes)
        same = len(own) if is_same else 0
        return Reported(read_verdict(answer), content, same > 0 and not notes, same)

    def _unreported(self, checked: Checked, result: Any, failure: Failure | None) -> Reported:
        if failure:
            verdict = dataclasses.replace(checked.verdict, kind="repair", error_class="tool_error", detail=failure.message)
            return Reported(verdict, [text_block(failure.message)])
        content = content_of(result)
        return Reported(checked.verdict, content, unchanged=True, same=len(content))

    def release(self, call_id: str) -> Request:
        self.open.pop(call_id, None)
        return released(call_id)

    def _unavailable(self, error: Unavailable) -> OnUnavailable:
        """What to do without a daemon; raises the error if that is what the program wants."""
        how = self._settings.on_unavailable
        if how == "raise":
            raise error
        log.warning("session %s: %s; on_unavailable is %r", self.name, error, how)
        return how


def goal_of(words: str | None) -> str | None:
    """A user's words as a goal: the daemon takes no longer ones, and no lone surrogates."""
    return words.encode(errors="replace")[:GOAL_MAX_BYTES].decode(errors="ignore") if words else None


def released(call_id: str) -> Request:
    """The tool did not run to its end because its run was cancelled: the call's reservation is given back."""
    return Request(REPORT, {"callId": call_id, "error": {"message": "cancelled", "cancelled": True}})


def read_checked(result: Mapping[str, Any], name: str, arguments: Any) -> Checked:
    return Checked(
        verdict=read_verdict(result),
        name=str(result.get("tool") or name),
        arguments=result.get("arguments", arguments),
        text=str(result.get("text", "")),
        advice=str(result.get("advice", "")),
        call_id=result.get("callId"),
    )


def _not_run(name: str, arguments: Any, error_class: str, detail: str, hint: str) -> Checked:
    verdict = Verdict("refuse", False, error_class, error_class, detail, hint)
    return Checked(verdict, name, arguments, text=f"{name} was not run: {detail}.\nNext: {hint}")


def no_function(checked: Checked) -> ToolgateError:
    return ToolgateError(f"this program has no function {checked.name}: make the gate with Gate(…, tools=[{checked.name}])")


def content_of(result: Any) -> list[dict[str, Any]]:
    """The result as MCP blocks, as the daemon writes them. Many APIs have a page of items under `content`."""
    blocks = result.get("content") if isinstance(result, dict) and result.keys() <= CALL_RESULT else None
    if isinstance(blocks, list) and all(isinstance(one, dict) and isinstance(one.get("type"), str) for one in blocks):
        return list(blocks)
    return [text_block(result if isinstance(result, str) else to_json(result))]
