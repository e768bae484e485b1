"""One connection of asyncio: requests go out, replies come back in any order, and the daemon may ask the user.

It ends at the first trouble; connection.py makes the next one.
"""
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from . import wire
from .errors import ToolgateError, Unavailable
from .words import LATE_MAX_COUNT, REPLY_MAX_BYTES

Answerer = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class Lost(Unavailable):
    """The connection ended; the daemon may have read the request."""


class Link:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answerer: Answerer | None) -> None:
        self._reader, self._writer, self._answerer = reader, writer, answerer
        self._ids = wire.Ids()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._given_up: dict[int, Callable[[dict[str, Any]], None]] = {}
        self._questions: set[asyncio.Task[None]] = set()
        self.asking = 0  # questions that the user is reading
        self.lost: Lost | None = None
        self._task = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def open(cls, path: str, answerer: Answerer | None) -> Link:
        reader, writer = await asyncio.open_unix_connection(path, limit=REPLY_MAX_BYTES)
        return cls(reader, writer, answerer)

    def send(self, line: bytes) -> None:
        """Does not wait: for what needs no reply, such as a cancellation."""
        if not self.lost:
            self._writer.write(line)

    async def ask(
        self, request: wire.Request, timeout_s: float, late: Callable[[dict[str, Any]], None] | None
    ) -> dict[str, Any]:
        """`late` gets the result that comes although nobody waits for it any more."""
        if self.lost:
            raise self.lost
        id = self._ids.take()
        line = wire.request_line(request, id)
        answer = self._waiting[id] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(line)  # not drained: a daemon that reads nothing would be waited for without end
            return wire.result_of(await self._answer_in_time(answer, request, timeout_s))
        except (asyncio.CancelledError, TimeoutError, Unavailable) as error:
            if isinstance(error, wire.Stopping):
                self._end(error)
            if not isinstance(error, Unavailable) and not self.lost:
                self._give_up(id, answer, late)
            if isinstance(error, TimeoutError) and self._writer.transport.get_write_buffer_size():
                self._writer.transport.abort()  # the daemon reads nothing: what waits for it would only grow
            if isinstance(error, asyncio.CancelledError | Unavailable):
                raise
            raise Unavailable(f"toolgate has not answered {request.method} within {timeout_s:g} s") from error
        finally:
            self._waiting.pop(id, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # read, so that asyncio does not complain of one that nobody awaits

    def _give_up(
        self, id: int, answer: asyncio.Future[dict[str, Any]], late: Callable[[dict[str, Any]], None] | None
    ) -> None:
        if answer.done():  # the reply came in the same moment
            _tell_late(late, answer.result())
            return
        if late:
            if len(self._given_up) >= LATE_MAX_COUNT:  # the daemon does not answer what it could cancel
                self._given_up.pop(next(iter(self._given_up)))
            self._given_up[id] = late
        self.send(wire.notification_line("notifications/cancelled", {"requestId": id}))

    async def _answer_in_time(
        self, answer: asyncio.Future[dict[str, Any]], request: wire.Request, timeout_s: float
    ) -> dict[str, Any]:
        """The time that a person takes to answer a question is not the daemon's."""
        while True:
            done, _ = await asyncio.wait({answer}, timeout=timeout_s)
            if done:
                return answer.result()
            if not self.asking:
                raise TimeoutError

    async def _read(self) -> None:
        error: Exception | None = None
        try:
            while line := await self._reader.readline():
                self._take(wire.read_message(line))
        except (OSError, ValueError, ToolgateError) as trouble:  # ValueError: a line beyond the limit
            error = trouble
        finally:  # cancelled, too: the event loop ends
            self._end(error)

    def _take(self, message: dict[str, Any]) -> None:
        id = message.get("id")
        if message.get("method") == "elicitation/create" and self._answerer:
            task = asyncio.get_running_loop().create_task(self._answer(id, message.get("params") or {}))
            self._questions.add(task)
            task.add_done_callback(self._questions.discard)
        elif "method" in message:
            return  # a notification
        elif id is None:
            wire.result_of(message)  # an error about the connection: raises
        elif late := self._given_up.pop(id, None):
            _tell_late(late, message)
        elif (waiting := self._waiting.get(id)) and not waiting.done():
            waiting.set_result(message)

    async def _answer(self, id: Any, params: dict[str, Any]) -> None:
        assert self._answerer
        self.asking += 1
        try:
            self.send(wire.response_line(id, await self._answerer(params)))
        finally:
            self.asking -= 1

    def _end(self, error: Exception | None) -> Lost:
        if not self.lost:
            self.lost = Lost(f"the connection to toolgate ended: {error}" if error else "toolgate closed the connection")
            self.lost.__cause__ = error
            self._writer.close()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(self.lost)
        return self.lost

    async def close(self) -> None:
        self._task.cancel()
        self._end(None)
        await asyncio.gather(self._task, return_exceptions=True)


def _tell_late(late: Callable[[dict[str, Any]], None] | None, message: dict[str, Any]) -> None:
    if late and isinstance(message.get("result"), dict):
        late(message["result"])
