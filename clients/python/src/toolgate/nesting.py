"""Which agent makes a call: the outermost run has no name, an agent that runs inside of a tool has the tool's.

Every tool that a session runs is remembered in a context variable, which tasks, threads of asyncio.to_thread and those
of the frameworks inherit: so a call that is made meanwhile, of the same session, is a nested agent's.
"""
from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

from .words import AGENT_MAX_BYTES

# (the session's name, the tools that run, the outermost first)
_running: contextvars.ContextVar[tuple[str, tuple[str, ...]]] = contextvars.ContextVar("toolgate_running", default=("", ()))


@contextlib.contextmanager
def running(session: str, tool: str) -> Iterator[None]:
    token = _running.set((session, (*_inside(session), tool)))
    try:
        yield
    finally:
        _running.reset(token)


def is_nested(session: str) -> bool:
    return bool(_inside(session))


def agent_of(session: str, given: str | None) -> str | None:
    """The agent of a call; `given`: what the caller says besides, such as the agent that a run was handed to."""
    path = "/".join([*_inside(session), *([given] if given else [])])
    return path.encode()[:AGENT_MAX_BYTES].decode(errors="ignore") or None


def _inside(session: str) -> tuple[str, ...]:
    name, tools = _running.get()
    return tools if name == session else ()
