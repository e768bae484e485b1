"""Gate, Session and Turn for asyncio."""
from __future__ import annotations

import asyncio
import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from . import exchanges
from .connection import Connection
from .errors import ToolgateError
from .functions import Context, Tool, as_tools
from .nesting import is_nested, running
from .questions import OnAsk, answer_question
from .results import Failure, as_failure, as_is, failure_of
from .settings import Greeting, Settings
from .verdict import Checked, Outcome, Reported, not_run, ran
from .wire import Exchange, Request, request_line
from .words import TIMEOUT_S, WAIT_S, By, OnUnavailable

T = TypeVar("T")


class Gate:
    """The way to one daemon. It connects when it is first needed, and again whenever the connection is lost.

    `tools`: the functions that this program runs itself, marked with `guard`; or definitions
    {name, description, inputSchema}. `on_ask(question, choices)` puts a policy's question to the user: it returns
    one of the choices (of yes and no: True or False), or None if the user declines.
    """

    def __init__(
        self, path: str, *, tools: Sequence[Tool | Mapping[str, Any]] = (), timeout_s: float = TIMEOUT_S,
        wait_s: float = WAIT_S, on_unavailable: OnUnavailable = "raise", on_ask: OnAsk | None = None,
    ) -> None:
        self.settings = Settings(path, timeout_s, wait_s, on_unavailable)
        self.tools: dict[str, Tool] = {}
        self._greeting = Greeting(may_ask_user=on_ask is not None)
        self._sessions: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()
        self._on_ask = on_ask
        self._connections: dict[asyncio.AbstractEventLoop, Connection] = {}
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

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Any method of docs/protocol.md, such as `toolgate/session`."""
        return await self.connection().request(Request(method, params))

    def connection(self) -> Connection:
        loop = asyncio.get_running_loop()
        known = self._connections.get(loop)
        if not known:
            for ended in [one for one in list(self._connections) if one.is_closed()]:
                self._connections.pop(ended, None)
            answerer = self._answer if self._on_ask else None
            known = self._connections[loop] = Connection(self.settings, self._greeting, answerer)
        return known

    async def _answer(self, params: dict[str, Any]) -> dict[str, Any]:
        assert self._on_ask
        return await answer_question(self._on_ask, params)

    async def close(self) -> None:
        """Closes this event loop's connection; a later request opens another."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection:
            await connection.close()

    async def __aenter__(self) -> Gate:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class Session:
    """One conversation with a user: its loops, budgets and seen ids are counted together."""

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

    async def definitions(
        self, *, step: str | None = None, agent: str | None = None, context: Mapping[str, Any] | None = None
    ) -> dict[str, Mapping[str, Any]] | None:
        """The tools as the model should see them now, by name: with the words of policies, without what they hide.

        None: there is no daemon, and `on_unavailable` does not raise.
        """
        return await self._drive(self._state.tools(step, agent, context))

    async def check(
        self, name: str, arguments: Any, *, step: str | None = None, call: str | None = None, agent: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Checked:
        """Whether the call may run, and with which arguments. Give the model's raw text if it is no valid JSON.

        `step` is the id of the model message: its calls count as one step. `call` is the model's id of the call.
        """
        return await self._drive(self._state.check(name, arguments, step, call, agent, context), release=True)

    async def report(
        self, checked: Checked, result: Any = None, *, error: Failure | BaseException | str | None = None, **judged: Any,
    ) -> Reported:
        """The tool's result, or its error; the answer has what the model should read."""
        return await self._drive(self._state.report(checked, result, as_failure(error), judged))

    def release(self, checked: Checked) -> None:
        """The tool's run was cancelled: gives back what the check reserved. Does not wait."""
        if checked.call_id and checked.call_id in self._state.open:
            self._send(self._state.release(checked.call_id))

    async def run(
        self, checked: Checked, run: Callable[[], Any], *, failure: Callable[[Exception], Failure | None] = failure_of,
        plain: Callable[[Any], Any] = as_is,
    ) -> Outcome:
        """Runs what has been checked, and reports; or says why it was not run.

        `failure` reads an exception of the tool: None if it is none, but ends the run. `plain` makes a result JSON.
        """
        if not checked.passed:
            return not_run(checked)
        try:
            with running(self.name, checked.name):
                value = run()
                result = await value if inspect.isawaitable(value) else value
        except Exception as error:
            told = failure(error)
            if told is None:
                self.release(checked)
                raise
            return ran(checked, await self._settle(checked, lambda: None, told))
        except BaseException:  # cancelled: the run ends
            self.release(checked)
            raise
        return ran(checked, await self._settle(checked, lambda: plain(result)), result)

    async def _settle(self, checked: Checked, result: Callable[[], Any], error: Failure | None = None) -> Reported:
        try:
            return await self.report(checked, result(), error=error)
        except BaseException:
            self.release(checked)
            raise

    async def call(
        self, tool: str | Tool, arguments: Any, *, step: str | None = None, call: str | None = None,
        context: Mapping[str, Any] | None = None, deps: Any = None,
    ) -> Outcome:
        """Checks the call, runs one of the gate's tools, and reports: the outcome is what the model reads.

        `context` is for policies; `deps` and `context` for a function that takes a `toolgate.Context`.
        """
        name = tool.name if isinstance(tool, Tool) else tool
        checked = await self.check(name, arguments, step=step, call=call, context=context)
        known = tool if isinstance(tool, Tool) else self.tools.get(checked.name) or self.gate.tools.get(checked.name)
        if not known:
            self.release(checked)
            if checked.passed:
                raise exchanges.no_function(checked)
            return not_run(checked)
        return await self.run(checked, lambda: known.run(checked.arguments, Context(self, deps, context or {}, step, call)))

    def turn(self, goal: str | None = None, *, turn: int | str | None = None, by: By | None = None) -> Turn:
        """A turn: `async with session.turn(goal="…", by="person")`.

        `by="person"`: a person has said something, so that what was read before may be read again. A turn that the
        program begins by itself leaves it out.
        """
        return Turn(self, goal, turn, by)

    async def begin_turn(
        self, goal: str | None = None, *, turn: int | str | None = None, by: By | None = None
    ) -> int | str | None:
        """Begins a turn without a block; returns its number."""
        return await self._drive(self._state.begin_turn(goal, turn, by))

    async def begin_run(self, run: str, goal: str | None) -> None:
        """For adapters: a run of an agent is a turn, unless the program has begun one itself, or a tool runs the agent."""
        if not self.in_turn and self._run != run and not is_nested(self.name):
            self._run = run
            await self.begin_turn(goal)

    def end_run(self) -> None:
        """For adapters: what the model has not repaired by now it has given up. Does not wait."""
        if not is_nested(self.name):
            self._send(next(self._state.end()))

    async def end(self) -> None:
        """The conversation is over."""
        await self._drive(self._state.end())

    def release_all(self) -> None:
        """Gives back what checks without a report have reserved."""
        for call_id in list(self._state.open):
            self._send(self._state.release(call_id))

    def _send(self, request: Request) -> None:
        self.gate.connection().send(request_line(request, 0))

    async def _drive(self, exchange: Exchange[T], *, release: bool = False) -> T:
        """Makes an exchange's requests. `release`: a check that is cancelled may pass nevertheless."""
        connection = self.gate.connection()
        late = self._late if release else None
        declared = self._state.declared
        try:
            request = next(exchange)
            while True:
                try:
                    result = await connection.request(request, late, declared)
                except ToolgateError as error:
                    request = exchange.throw(error)
                else:
                    request = exchange.send(result)
        except StopIteration as end:
            value: T = end.value
            return value

    def _late(self, result: dict[str, Any]) -> None:
        checked = exchanges.read_checked(result, "", None)
        if checked.passed and checked.call_id:
            self._send(exchanges.released(checked.call_id))


class Turn:
    """One turn of the user. Leaving the block gives back what its checks reserved and nobody reported."""

    def __init__(self, session: Session, goal: str | None, turn: int | str | None, by: By | None) -> None:
        self.session, self._goal, self._turn, self._by = session, goal, turn, by
        self.number: int | str | None = None

    async def __aenter__(self) -> Turn:
        self.number = await self.session.begin_turn(self._goal, turn=self._turn, by=self._by)
        self.session.in_turn = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.in_turn = False
        self.session.release_all()

