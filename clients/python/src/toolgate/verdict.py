"""The verdict on a call, typed. `raw` is the daemon's whole answer, with the fields of versions to come."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from . import errors
from .errors import Stopped

Kind = Literal["pass", "repair", "wait", "refuse", "ask", "halt"]

STOPS: dict[str, type[Stopped]] = {
    "repair": errors.Repair, "wait": errors.Wait, "refuse": errors.Refuse, "ask": errors.Ask, "halt": errors.Halt,
}


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with the arguments, such as path `args.items[0].price`."""

    path: str
    code: str
    message: str
    severity: str = "error"
    expected: Any = None
    got: Any = None


@dataclass(frozen=True)
class Suggestion:
    """A value that would be accepted at this path."""

    path: str
    value: Any


@dataclass(frozen=True)
class Verdict:
    """docs/protocol.md explains each field."""

    kind: Kind
    valid: bool
    error_class: str
    code: str | None = None
    detail: str | None = None
    hint: str | None = None
    after_s: float | None = None
    problems: tuple[Problem, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    rewrites: tuple[Mapping[str, Any], ...] = ()
    attempt: int | None = None
    attempts_left: int | None = None
    repeats: int = 0
    no_progress: int | None = None
    choices: tuple[Any, ...] = ()
    coverage: str | None = None
    final: bool = False
    warnings: tuple[Any, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def passed(self) -> bool:
        return self.kind == "pass"

    @property
    def halted(self) -> bool:
        """The run must end: call no more tools, let the model answer."""
        return self.kind == "halt" or self.final


@dataclass(frozen=True)
class Checked:
    """The answer to `check`. If it passed, run the tool with exactly `arguments` and report the outcome."""

    verdict: Verdict
    name: str
    arguments: Any
    text: str = ""  # what the model should read if the call did not pass
    advice: str = ""  # notes for the model beside the result: what toolgate repaired
    call_id: str | None = None  # None: no daemon checked this call, and on_unavailable allowed it

    @property
    def passed(self) -> bool:
        return self.verdict.passed

    def raise_for_verdict(self) -> None:
        """Raises Repair, Wait, Refuse, Ask or Halt, with the text for the model, unless the call passed."""
        if not self.passed:
            raise STOPS[self.verdict.kind](self.text, self.verdict)


@dataclass(frozen=True)
class Reported:
    """The answer to `report`: what the model reads."""

    verdict: Verdict
    content: Sequence[Mapping[str, Any]] = ()  # MCP blocks: the result (redacted, shortened) and its notes, or the feedback
    unchanged: bool = False  # the content is the result as it was reported, and nothing else
    same: int = 0  # how many of its first blocks are the result as it was reported: all of its blocks, or 0

    @property
    def text(self) -> str:
        """The blocks as one text; a block that is no text is left out (see `content`)."""
        return text_of(self.content)


@dataclass(frozen=True)
class Outcome:
    """A call from check to report: what the model reads, and the last verdict."""

    verdict: Verdict
    content: Sequence[Mapping[str, Any]]
    checked: Checked
    ran: bool
    value: Any = None  # what the tool returned
    unchanged: bool = False  # the model may read `value` as it is: nothing was redacted, shortened or noted
    notes: tuple[str, ...] = ()  # with these beside it, the model may read `value` as it is

    @property
    def text(self) -> str:
        return text_of(self.content)

    @property
    def halted(self) -> bool:
        return self.verdict.halted


def read_verdict(raw: Mapping[str, Any]) -> Verdict:
    """A kind that this version does not know is `refuse`: nothing runs that nobody allowed."""
    kind = raw.get("verdict")
    known: Kind = cast(Kind, kind) if kind == "pass" or kind in STOPS else "refuse"
    return Verdict(
        kind=known,
        valid=bool(raw.get("valid", known == "pass")),
        error_class=str(raw.get("error_class", "")),
        code=raw.get("code"),
        detail=raw.get("detail"),
        hint=raw.get("hint"),
        after_s=raw.get("after_s"),
        problems=tuple(_problem(message) for message in raw.get("messages", ())),
        suggestions=tuple(Suggestion(str(one.get("path", "")), one.get("value")) for one in raw.get("suggestions", ())),
        rewrites=tuple(raw.get("rewrites", ())),
        attempt=raw.get("attempt"),
        attempts_left=raw.get("attempts_left"),
        repeats=int(raw.get("repeats", 0)),
        no_progress=raw.get("no_progress"),
        choices=tuple(raw.get("choices", ())),
        coverage=raw.get("coverage"),
        final=bool(raw.get("final", False)),
        warnings=tuple(raw.get("warnings", ())),
        raw=raw,
    )


def _problem(message: Mapping[str, Any]) -> Problem:
    return Problem(
        path=str(message.get("path", "")), code=str(message.get("code", "")), message=str(message.get("message", "")),
        severity=str(message.get("severity", "error")), expected=message.get("expected"), got=message.get("got"),
    )


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def text_of(content: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(str(block.get("text", "")) for block in content if block.get("type") == "text")


def not_run(checked: Checked) -> Outcome:
    return Outcome(checked.verdict, [text_block(checked.text)], checked, ran=False)


def ran(checked: Checked, reported: Reported, value: Any = None) -> Outcome:
    """The notes on the arguments come after the result."""
    content = [*reported.content, *([text_block(checked.advice)] if checked.advice else [])]
    unchanged = reported.unchanged and not checked.advice
    notes = tuple(str(block["text"]) for block in content[reported.same:]) if reported.same else ()
    return Outcome(reported.verdict, content, checked, True, value, unchanged, notes)
