"""The way to the daemon for asyncio: connects when needed, again when the connection is lost, and declares the tools."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from .errors import Unavailable
from .link import Answerer, Link, Lost
from .settings import Declared, Greeting, Said, Settings
from .wire import Request, Stopping
from .words import BACKOFF_FIRST_S, BACKOFF_MAX_S


class Connection:
    """Belongs to one event loop."""

    def __init__(self, settings: Settings, greeting: Greeting, answerer: Answerer | None) -> None:
        self._settings, self._greeting, self._answerer = settings, greeting, answerer
        self._link: Link | None = None
        self._said = Said()
        self._lock = asyncio.Lock()

    async def request(
        self, request: Request, late: Callable[[dict[str, Any]], None] | None = None, own: Declared | None = None
    ) -> dict[str, Any]:
        """A request whose connection is lost is made once more: the daemon was restarted. `own`: its session's tools."""
        deadline = time.monotonic() + self._settings.timeout_s
        try:
            return await self._ask(request, deadline, late, own)
        except (Lost, Stopping):
            return await self._ask(request, deadline, late, own)

    async def _ask(
        self, request: Request, deadline: float, late: Callable[[dict[str, Any]], None] | None, own: Declared | None
    ) -> dict[str, Any]:
        link = await self._ready_link(deadline, own)
        return await link.ask(request, max(deadline - time.monotonic(), 0.001), late)

    def send(self, line: bytes) -> None:
        """Does not wait, and does nothing without a connection."""
        if self._link:
            self._link.send(line)

    async def _ready_link(self, deadline: float, own: Declared | None) -> Link:
        until = min(deadline, time.monotonic() + self._settings.wait_s)  # also while another request tries to connect
        async with self._lock:  # one connects, the others wait for it
            if not self._link or self._link.lost:
                self._link, self._said = await self._connect(until), Said()
            while left := self._greeting.to_send(self._said, own):
                result = await self._link.ask(left[0], max(deadline - time.monotonic(), 0.001), None)
                self._greeting.sent(self._said, left[0], result, own)
            return self._link

    async def _connect(self, until: float) -> Link:
        pause = BACKOFF_FIRST_S
        while True:
            try:
                return await Link.open(self._settings.path, self._answerer)
            except OSError as error:
                if isinstance(error, PermissionError) or time.monotonic() + pause > until:
                    raise Unavailable(self._settings.why_not_connected(error)) from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, BACKOFF_MAX_S)

    async def close(self) -> None:
        if self._link:
            await self._link.close()
            self._link = None
