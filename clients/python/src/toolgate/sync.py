"""Gate, Session and Turn without asyncio. A Gate may be used by any thread: each has a connection of its own."""
from __future__ import annotations

import inspect
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from . import exchanges, wire
from .errors import ToolgateError, Unavailable
from .functions import Context, Tool, as_tools
from .nesting import is_nested, running
from .questions import OnAsk, as_result, failed, read_question
from .results import Failure, as_failure, as_is, failure_of
from .settings import Declared, Greeting, Said, Settings
from .verdict import Checked, Outcome, Reported, not_run, ran
from .wire import Exchange, Request
from .words import BACKOFF_FIRST_S, BACKOFF_MAX_S, REPLY_MAX_BYTES, TIMEOUT_S, WAIT_S, By, OnUnavailable

__all__ = ["Gate", "Session", "Turn"]
T = TypeVar("T")


class Gate:
    """As toolgate.Gate."""

    def __init__(
        self, path: str, *, tools: Sequence[Tool | Mapping[str, Any]] = (), timeout_s: float = TIMEOUT_S,
        wait_s: float = WAIT_S, on_unavailable: OnUnavailable = "raise", on_ask: OnAsk | None = None,
    ) -> None:
        self.settings = Settings(path, timeout_s, wait_s, on_unavailable)
        self.tools: dict[str, Tool] = {}
        self._greeting = Greeting(may_ask_user=on_ask is not None)
        self._sessions: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()
        self._on_ask = on_ask
        self._threads = threading.local()
        self.declare(tools)

    def declare(self, tools: Sequence[Tool | Mapping[str, Any]]) -> None:
        """Declares tools that this program runs, for all sessions; one whose definition is known already costs nothing."""
        given, definitions = as_tools(tools)
        self.tools.update(given)
        self._greeting.declared.declare(definitions)

    def session(self, name: str) -> Session:
        """One conversation. The same name on several workers is the same session."""
        known = self._sessions.get(name)
        if not known:
            known = self._sessions[name] = Session(self, name)
        return known

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Any method of docs/protocol.md, such as `toolgate/session`."""
        return self.connection().request(Request(method, params))

    def connection(self) -> Connection:
        known: Connection | None = getattr(self._threads, "connection", None)
        if known and known.pid != os.getpid():  # a fork: the connection is the parent's
            known.drop()
            known = None
        if not known:
            known = self._threads.connection = Connection(self.settings, self._greeting, self._on_ask)
        return known

    def close(self) -> None:
        """Closes this thread's connection; a later request opens another."""
        self.connection().drop()

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Session:
    """As toolgate.Session, without await."""

    def __init__(self, gate: Gate, name: str) -> None:
        self.gate = gate
        self.name = name
        self.tools: dict[str, Tool] = {}  # of this session, before those of the gate
        self.in_turn = False  # the program is in a block of `turn`
        self._run: str | None = None
        self._state = exchanges.SessionState(name, gate.settings)

    def declare(self, tools: Sequence[Tool | Mapping[str, Any]]) -> None:
        """Declares tools that this program runs for this session alone: no other reads or calls them."""
        given, definitions = as_tools(tools)
        self.tools.update(given)
        self._state.declared.declare(definitions)

    def definitions(
        self, *, step: str | None = None, agent: str | None = None, context: Mapping[str, Any] | None = None
    ) -> dict[str, Mapping[str, Any]] | None:
        """The tools as the model should see them now, by name: with the words of policies, without what they hide.

        None: there is no daemon, and `on_unavailable` does not raise.
        """
        return self._drive(self._state.tools(step, agent, context))

    def check(
        self, name: str, arguments: Any, *, step: str | None = None, call: str | None = None, agent: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Checked:
        """Whether the call may run, and with which arguments. Give the model's raw text if it is no valid JSON."""
        return self._drive(self._state.check(name, arguments, step, call, agent, context))

    def report(
        self, checked: Checked, result: Any = None, *, error: Failure | BaseException | str | None = None, **judged: Any,
    ) -> Reported:
        """The tool's result, or its error; the answer has what the model should read."""
        return self._drive(self._state.report(checked, result, as_failure(error), judged))

    def release(self, checked: Checked) -> None:
        """The tool's run was cancelled: gives back what the check reserved. Does not wait."""
        if checked.call_id and checked.call_id in self._state.open:
            self._send(self._state.release(checked.call_id))

    def run(
        self, checked: Checked, run: Callable[[], Any], *, failure: Callable[[Exception], Failure | None] = failure_of,
        plain: Callable[[Any], Any] = as_is,
    ) -> Outcome:
        """Runs what has been checked, and reports; or says why it was not run."""
        if not checked.passed:
            return not_run(checked)
        try:
            with running(self.name, checked.name):
                result = run()
        except Exception as error:
            told = failure(error)
            if told is None:
                self.release(checked)
                raise
            return ran(checked, self._settle(checked, lambda: None, told))
        except BaseException:  # KeyboardInterrupt: the run ends
            self.release(checked)
            raise
        if inspect.isawaitable(result):
            self.release(checked)
            raise ToolgateError(f"{checked.name} is a coroutine function: use toolgate.Gate, not toolgate.sync.Gate")
        return ran(checked, self._settle(checked, lambda: plain(result)), result)

    def _settle(self, checked: Checked, result: Callable[[], Any], error: Failure | None = None) -> Reported:
        try:
            return self.report(checked, result(), error=error)
        except BaseException:
            self.release(checked)
            raise

    def call(
        self, tool: str | Tool, arguments: Any, *, step: str | None = None, call: str | None = None,
        context: Mapping[str, Any] | None = None, deps: Any = None,
    ) -> Outcome:
        """Checks the call, runs one of the gate's tools, and reports: the outcome is what the model reads.

        `context` is for policies; `deps` and `context` for a function that takes a `toolgate.Context`.
        """
        name = tool.name if isinstance(tool, Tool) else tool
        checked = self.check(name, arguments, step=step, call=call, context=context)
        known = tool if isinstance(tool, Tool) else self.tools.get(checked.name) or self.gate.tools.get(checked.name)
        if not known:
            self.release(checked)
            if checked.passed:
                raise exchanges.no_function(checked)
            return not_run(checked)
        return self.run(checked, lambda: known.run(checked.arguments, Context(self, deps, context or {}, step, call)))

    def turn(self, goal: str | None = None, *, turn: int | str | None = None, by: By | None = None) -> Turn:
        """A turn: `with session.turn(goal="…", by="person")`.

        `by="person"`: a person has said something, so that what was read before may be read again. A turn that the
        program begins by itself leaves it out.
        """
        return Turn(self, goal, turn, by)

    def begin_turn(
        self, goal: str | None = None, *, turn: int | str | None = None, by: By | None = None
    ) -> int | str | None:
        """Begins a turn without a block; returns its number."""
        return self._drive(self._state.begin_turn(goal, turn, by))

    def begin_run(self, run: str, goal: str | None) -> None:
        """For adapters: a run of an agent is a turn, unless the program has begun one itself, or a tool runs the agent."""
        if not self.in_turn and self._run != run and not is_nested(self.name):
            self._run = run
            self.begin_turn(goal)

    def end_run(self) -> None:
        """For adapters: what the model has not repaired by now it has given up. Does not wait."""
        if not is_nested(self.name):
            self._send(next(self._state.end()))

    def end(self) -> None:
        """The conversation is over."""
        self._drive(self._state.end())

    def release_all(self) -> None:
        """Gives back what checks without a report have reserved."""
        for call_id in list(self._state.open):
            self._send(self._state.release(call_id))

    def _send(self, request: Request) -> None:
        self.gate.connection().send(wire.request_line(request, 0))

    def _drive(self, exchange: Exchange[T]) -> T:
        connection = self.gate.connection()
        try:
            request = next(exchange)
            while True:
                try:
                    result = connection.request(request, self._state.declared)
                except ToolgateError as error:
                    request = exchange.throw(error)
                else:
                    request = exchange.send(result)
        except StopIteration as end:
            value: T = end.value
            return value


class Turn:
    """One turn of the user. Leaving the block gives back what its checks reserved and nobody reported."""

    def __init__(self, session: Session, goal: str | None, turn: int | str | None, by: By | None) -> None:
        self.session, self._goal, self._turn, self._by = session, goal, turn, by
        self.number: int | str | None = None

    def __enter__(self) -> Turn:
        self.number = self.session.begin_turn(self._goal, turn=self._turn, by=self._by)
        self.session.in_turn = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.in_turn = False
        self.session.release_all()


class Connection:
    """Belongs to one thread: a request at a time."""

    def __init__(self, settings: Settings, greeting: Greeting, on_ask: OnAsk | None) -> None:
        self._settings, self._greeting, self._on_ask = settings, greeting, on_ask
        self._ids = wire.Ids()
        self._socket: socket.socket | None = None
        self._buffer = bytearray()
        self._said = Said()
        self.pid = os.getpid()

    def request(self, request: Request, declared: Declared | None = None) -> dict[str, Any]:
        """A request whose connection is lost is made once more: the daemon was restarted."""
        deadline = time.monotonic() + self._settings.timeout_s
        for last in (False, True):
            try:
                self._make_ready(deadline, declared)
                return self._ask(request, deadline)
            except OSError as error:
                self.drop()
                if isinstance(error, TimeoutError):
                    text = f"toolgate has not answered {request.method} within {self._settings.timeout_s:g} s"
                    raise Unavailable(text) from error
                if last:
                    raise Unavailable(f"the connection to toolgate ended: {error}") from error
            except wire.Stopping:
                self.drop()
                if last:
                    raise
        raise AssertionError("unreachable")

    def send(self, line: bytes) -> None:
        """Does not wait, and does nothing without a connection."""
        if self._socket:
            try:
                self._write(line, time.monotonic())
            except OSError:
                self.drop()

    def drop(self) -> None:
        if self._socket:
            self._socket.close()
        self._socket, self._buffer, self._said = None, bytearray(), Said()

    def _make_ready(self, deadline: float, own: Declared | None) -> None:
        if not self._socket:
            self._socket = self._connect(deadline)
        while left := self._greeting.to_send(self._said, own):
            self._greeting.sent(self._said, left[0], self._ask(left[0], deadline), own)

    def _connect(self, deadline: float) -> socket.socket:
        until = min(deadline, time.monotonic() + self._settings.wait_s)
        pause = BACKOFF_FIRST_S
        while True:
            made = socket.socket(socket.AF_UNIX)
            made.settimeout(0)  # else it waits for a daemon that hangs and accepts nobody
            try:
                made.connect(self._settings.path)
                return made
            except OSError as error:
                made.close()
                if isinstance(error, PermissionError) or time.monotonic() + pause > until:
                    raise Unavailable(self._settings.why_not_connected(error)) from error
            time.sleep(pause)
            pause = min(pause * 2, BACKOFF_MAX_S)

    def _ask(self, request: Request, deadline: float) -> dict[str, Any]:
        id = self._ids.take()
        self._write(wire.request_line(request, id), deadline)
        try:
            while True:
                message = wire.read_message(self._line(deadline))
                if message.get("method") == "elicitation/create" and self._on_ask:
                    asked = time.monotonic()
                    self._write(wire.response_line(message.get("id"), _answer(self._on_ask, message)), None)
                    deadline += time.monotonic() - asked  # the person's time is not the daemon's
                elif "method" not in message and message.get("id") in (id, None):
                    return wire.result_of(message)
        except BaseException as error:  # interrupted or late: the reply must not be taken for the next one's
            if not isinstance(error, ToolgateError):
                self.drop()
            raise

    def _write(self, line: bytes, deadline: float | None) -> None:
        assert self._socket
        self._socket.settimeout(None if deadline is None else max(deadline - time.monotonic(), 0.001))
        self._socket.sendall(line)

    def _line(self, deadline: float) -> bytes:
        assert self._socket
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > REPLY_MAX_BYTES:
                raise OSError("a reply is longer than a line may be")
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            read = self._socket.recv(1 << 16)
            if not read:
                raise ConnectionResetError("toolgate closed the connection")
            self._buffer += read
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line


def _answer(on_ask: OnAsk, message: dict[str, Any]) -> dict[str, Any]:
    try:
        answer = on_ask(*read_question(message.get("params") or {}))
        if inspect.isawaitable(answer):
            raise TypeError("on_ask is a coroutine function: toolgate.sync needs a plain one")
        return as_result(answer)
    except Exception as error:
        return failed(error)
