"""JSON-RPC lines: requests out, replies in. No input or output, so that both clients share it."""
from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import ProtocolError, TooLarge, Unavailable
from .results import to_json
from .words import LINE_MAX_BYTES, STOPPING, UNAVAILABLE_CODES

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    method: str
    params: dict[str, Any]


# What a method does, as the requests it makes: it yields each and gets the result, or the error thrown in.
Exchange = Generator[Request, dict[str, Any], T]


class Stopping(Unavailable):
    """The daemon stops before it has answered: the next one may."""


class Ids:
    def __init__(self) -> None:
        self._next: Callable[[], int] = itertools.count(1).__next__

    def take(self) -> int:
        return self._next()


def request_line(request: Request, id: int) -> bytes:
    return _line({"jsonrpc": "2.0", "id": id, "method": request.method, "params": request.params}, request.method)


def notification_line(method: str, params: dict[str, Any]) -> bytes:
    return _line({"jsonrpc": "2.0", "method": method, "params": params}, method)


def response_line(id: Any, result: dict[str, Any]) -> bytes:
    return _line({"jsonrpc": "2.0", "id": id, "result": result}, "a response")


def _line(message: dict[str, Any], what: str) -> bytes:
    line = to_json(message).encode("utf-8", "backslashreplace") + b"\n"  # a lone surrogate as JSON writes it
    if len(line) > LINE_MAX_BYTES:
        raise TooLarge(f"{what} has {len(line):,} bytes, the daemon reads at most {LINE_MAX_BYTES:,}: send less")
    return line


def read_message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line, parse_int=_int)
    except ValueError as error:
        raise Unavailable(f"what answers on the socket is no toolgate: {line[:60]!r} is no JSON") from error
    if not isinstance(message, dict) or not isinstance(message.get("id"), (int, str, type(None))):
        raise Unavailable(f"what answers on the socket is no toolgate: it sent {line[:60]!r}")
    return message


def _int(digits: str) -> int | float:
    """Python converts no more than some thousand digits, which a model may write: then it is infinite, as in other languages."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def result_of(message: dict[str, Any]) -> dict[str, Any]:
    error = message.get("error")
    if isinstance(error, dict):
        code, text = error.get("code", 0), str(error.get("message", "no message"))
        if code == STOPPING:
            raise Stopping(text)
        raise Unavailable(text) if code in UNAVAILABLE_CODES else ProtocolError(int(code), text)
    result = message.get("result")
    if not isinstance(result, dict):
        raise Unavailable("what answers on the socket is no toolgate: its reply has no result")
    return result
