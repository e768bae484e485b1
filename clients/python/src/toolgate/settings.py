"""What a Gate was made with, and what it says first on each connection."""
from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import ToolgateError
from .wire import Request
from .words import REGISTER, TIMEOUT_S, WAIT_S, OnUnavailable


log = logging.getLogger("toolgate")


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


class Greeting:
    """What a connection says before anything else: that it may ask the user, and the tools that this program runs."""

    def __init__(self, may_ask_user: bool) -> None:
        self._may_ask_user = may_ask_user
        self._definitions: dict[str, Mapping[str, Any]] = {}
        self._version = 0
        self._warned: set[str] = set()  # of tools whose definition has changed

    def declare(self, definitions: Sequence[Mapping[str, Any]]) -> None:
        """A tool's last definition counts; one that is known already costs nothing."""
        new = {one["name"]: one for one in definitions if self._definitions.get(one["name"]) != one}
        for name in new.keys() & self._definitions.keys() - self._warned:
            self._warned.add(name)
            log.warning(
                "%s is declared with another definition than before: by the last one the calls of all sessions of this Gate "
                "are checked; give agents whose tools differ a Gate each", name,
            )
        if new:
            self._definitions = {**self._definitions, **new}
            self._version += 1

    def to_send(self, said: Said) -> list[Request]:
        """What a connection that has said this much must still say."""
        requests = []
        if self._may_ask_user and not said.hello:
            requests.append(_hello())
        if said.version != self._version:
            new = [one for name, one in self._definitions.items() if said.definitions.get(name) != one]
            requests.append(Request(REGISTER, {"tools": new}))
        return requests

    def sent(self, said: Said, request: Request, result: dict[str, Any]) -> None:
        """Raises if the daemon did not take a definition."""
        if request.method != REGISTER:
            said.hello = True
            return
        _all_declared(result)
        said.definitions.update({one["name"]: one for one in request.params["tools"]})
        if all(said.definitions.get(name) == one for name, one in self._definitions.items()):
            said.version = self._version  # else another was declared meanwhile


@dataclass
class Said:
    """What one connection has said of the greeting."""

    hello: bool = False
    version: int = 0
    definitions: dict[str, Mapping[str, Any]] = field(default_factory=dict)


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
