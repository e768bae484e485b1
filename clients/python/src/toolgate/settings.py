"""What a Gate was made with, and what it says first on each connection."""
from __future__ import annotations

import importlib.metadata
import itertools
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import ToolgateError
from .wire import Request
from .words import REGISTER, SESSION_KEY, SESSIONS_MAX, TIMEOUT_S, WAIT_S, OnUnavailable


log = logging.getLogger("toolgate")
_versions = itertools.count(1)


@dataclass(frozen=True)
class Settings:
    path: str
    timeout_s: float = TIMEOUT_S
    wait_s: float = WAIT_S
    on_unavailable: OnUnavailable = "raise"

    def __post_init__(self) -> None:
        if self.on_unavailable not in ("raise", "allow", "refuse"):
            raise ValueError(f'on_unavailable must be "raise", "allow" or "refuse", not {self.on_unavailable!r}')
        if self.timeout_s <= 0 or self.wait_s < 0:
            raise ValueError("timeout_s must be above 0, and wait_s 0 or more")

    def why_not_connected(self, error: OSError) -> str:
        if isinstance(error, PermissionError):
            return f"this user may not connect to {self.path}: the operator must let it, by the socket's group or mode"
        return (
            f"no toolgate at {self.path}: {error.strerror or error}; start it with "
            f"`toolgate serve --socket {self.path}`"
        )


class Declared:
    """The tools that this program runs, for all sessions or for one: what a connection must say before their calls."""

    def __init__(self, session: str | None = None) -> None:
        self.session = session
        self.version = 0
        self._definitions: dict[str, Mapping[str, Any]] = {}
        self._warned: set[str] = set()  # of tools whose definition has changed

    def declare(self, definitions: Sequence[Mapping[str, Any]]) -> None:
        """A tool's last definition counts; one that is known already costs nothing."""
        new = {one["name"]: one for one in definitions if self._definitions.get(one["name"]) != one}
        for name in new.keys() & self._definitions.keys() - self._warned if self.session is None else ():
            self._warned.add(name)
            log.warning(
                "%s is declared with another definition than before: by the last one the calls of all sessions of this Gate "
                "are checked; declare tools that differ for their sessions", name,
            )
        if new:
            self._definitions = {**self._definitions, **new}
            self.version = next(_versions)

    def left(self, said: Said) -> list[Request]:
        """What a connection that has said this much must still say."""
        version, known = said.of(self.session)
        new = [one for name, one in self._definitions.items() if version != self.version and known.get(name) != one]
        meta = {"_meta": {SESSION_KEY: self.session}} if self.session is not None else {}
        return [Request(REGISTER, {"tools": new, **meta})] if new else []

    def sent(self, said: Said, request: Request) -> None:
        _, known = said.of(self.session)
        known = {**known, **{one["name"]: one for one in request.params["tools"]}}
        is_all = all(known.get(name) == one for name, one in self._definitions.items())  # else another was declared meanwhile
        said.keep(self.session, self.version if is_all else 0, known)


class Greeting:
    """What a connection says before anything else: that it may ask the user, and the tools that this program runs."""

    def __init__(self, may_ask_user: bool) -> None:
        self._may_ask_user = may_ask_user
        self.declared = Declared()

    def to_send(self, said: Said, own: Declared | None) -> list[Request]:
        """What a connection must still say before a request; `own`: of the request's session."""
        hello = [_hello()] if self._may_ask_user and not said.hello else []
        return [*hello, *self.declared.left(said), *(own.left(said) if own else ())]

    def sent(self, said: Said, request: Request, result: dict[str, Any], own: Declared | None) -> None:
        """Raises if the daemon did not take a definition."""
        if request.method != REGISTER:
            said.hello = True
            return
        _all_declared(result)
        (own if own and "_meta" in request.params else self.declared).sent(said, request)


@dataclass
class Said:
    """What one connection has said of the greeting; of sessions, the last."""

    hello: bool = False
    sets: OrderedDict[str | None, tuple[int, dict[str, Mapping[str, Any]]]] = field(default_factory=OrderedDict)

    def of(self, session: str | None) -> tuple[int, dict[str, Mapping[str, Any]]]:
        if session in self.sets:
            self.sets.move_to_end(session)
        return self.sets.get(session, (0, {}))

    def keep(self, session: str | None, version: int, known: dict[str, Mapping[str, Any]]) -> None:
        self.sets[session] = version, known
        self.sets.move_to_end(session)
        while len(self.sets) > SESSIONS_MAX:
            self.sets.popitem(last=False)


def _hello() -> Request:
    client = {"name": "toolgate-python", "version": _version()}
    return Request(
        "initialize", {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": client}
    )


def _all_declared(result: dict[str, Any]) -> None:
    refused = result.get("refused") or []
    if refused:
        raise ToolgateError(
            "toolgate does not take the definition of " + "; ".join(f"{one['name']}: {one['why']}" for one in refused)
        )


def _version() -> str:
    try:
        return importlib.metadata.version("toolgate-client")
    except importlib.metadata.PackageNotFoundError:
        return "0"
