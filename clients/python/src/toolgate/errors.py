"""What can go wrong. A verdict that is not `pass` is data; it becomes an error (Stopped) only where you ask for one."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .verdict import Verdict


class ToolgateError(Exception):
    """Any error of this client."""


class Unavailable(ToolgateError):
    """No daemon answered in time: the call is neither checked nor counted."""


class TooLarge(ToolgateError):
    """A request is longer than the daemon reads."""


class BadArguments(ToolgateError):
    """Arguments fit the JSON Schema, but not the function's own validators: the model should change them."""


class Retry(ToolgateError):
    """Raise it in a tool to say what the model should do better: it tries again, on the tool's repair budget."""


class ProtocolError(ToolgateError):
    """The daemon rejected a request (not a tool call): its words say what to change in the program."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, str(self))


class Stopped(ToolgateError):
    """A call did not pass. `str(error)` is what the model should read."""

    def __init__(self, text: str, verdict: Verdict) -> None:
        super().__init__(text)
        self.text = text
        self.verdict = verdict

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text, self.verdict)


class Repair(Stopped):
    """The model should change the arguments and call again."""


class Wait(Stopped):
    """The model may make the same call again after `verdict.after_s` seconds."""


class Refuse(Stopped):
    """The model should not make this call."""


class Ask(Stopped):
    """The user must decide: `verdict.choices`."""


class Halt(Stopped):
    """The run must end."""
