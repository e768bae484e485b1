"""LangChain and LangGraph: middleware for `create_agent`.

    agent = create_agent(model, [get_weather], middleware=[Toolgate(gate.session("chat-7"))])

For `agent.ainvoke` the gate is a toolgate.Gate, for `agent.invoke` a toolgate.sync.Gate. It keeps no state of its
own: what a run must remember is in its messages, so a checkpointed run goes on where it was.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from . import sync
from .errors import Halt, ToolgateError
from .gate import Session
from .results import Failure, failure_of
from .verdict import Outcome, Verdict
from .words import EXACT, STRICT_KEY

AnySession: TypeAlias = "Session | sync.Session"
ContextOf: TypeAlias = "Callable[[ModelRequest[Any] | ToolCallRequest], Mapping[str, Any]]"
S = TypeVar("S", Session, sync.Session)
Ran: TypeAlias = "ToolMessage | Command[Any]"

MARK = "toolgate"  # in additional_kwargs of what the model read of a halted call
TOOLS_NODE = "tools"  # of create_agent: it runs the tools
MALFORMED = "malformed_arguments"  # holds the model's text that is no JSON


class Toolgate(AgentMiddleware[AgentState[Any], Any, Any]):
    """Checks every tool call of the agent. `session` may be a function of the state, for one agent of many chats.

    `context`: what policies read as `call.context`, such as `lambda request: {"role": request.runtime.context.role}`.
    """

    def __init__(self, session: AnySession | Callable[[Any], AnySession], context: ContextOf | None = None) -> None:
        super().__init__()
        self._session, self._context = session, context

    # ---- the run is a turn ----

    def before_agent(self, state: Any, runtime: Any) -> None:
        self._of(state, sync.Session).begin_run(*_user_message(state))

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        await self._of(state, Session).begin_run(*_user_message(state))

    def after_agent(self, state: Any, runtime: Any) -> None:
        if not _subgraph():
            self._any(state).end_run()

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        self.after_agent(state, runtime)

    # ---- the model ----

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        if _halted(request.messages):
            return handler(_without_tools(request))
        session = self._of(request.state, sync.Session)
        session.declare(_definitions(request))
        return handler(_shown(request, session.definitions(**self._place(request))))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        if _halted(request.messages):
            return await handler(_without_tools(request))
        session = self._of(request.state, Session)
        session.declare(_definitions(request))
        return await handler(_shown(request, await session.definitions(**self._place(request))))

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """A model that calls on after a halt ends the run. A call that is no JSON is a call, too."""
        *before, last = state["messages"]
        if not isinstance(last, AIMessage):
            return None
        halt = _halted(before)
        if halt and last.tool_calls:
            raise halt
        if not last.invalid_tool_calls:
            return None
        malformed = [
            {"name": call["name"] or "", "args": {MALFORMED: call["args"] or ""}, "id": call["id"], "type": "tool_call"}
            for call in last.invalid_tool_calls
        ]
        update = {"tool_calls": [*last.tool_calls, *malformed], "invalid_tool_calls": []}
        return {"messages": [last.model_copy(update=update)]}

    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return self.after_model(state, runtime)

    # ---- the call ----

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Ran]) -> Ran:
        session, call = self._of(request.state, sync.Session), request.tool_call
        checked = session.check(
            call["name"], _arguments(call), step=_step(request.state), call=call["id"], **self._place(request))

        def execute() -> Ran:
            return _unless_failed(handler(_with(request, checked.name, checked.arguments)))

        return _told(request, session.run(checked, execute, failure=_failure, plain=_plain))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Ran]]
    ) -> Ran:
        session, call = self._of(request.state, Session), request.tool_call
        checked = await session.check(
            call["name"], _arguments(call), step=_step(request.state), call=call["id"], **self._place(request))

        async def execute() -> Ran:
            return _unless_failed(await handler(_with(request, checked.name, checked.arguments)))

        return _told(request, await session.run(checked, execute, failure=_failure, plain=_plain))

    # ---- the session ----

    def _place(self, request: ModelRequest[Any] | ToolCallRequest) -> dict[str, Any]:
        return {"agent": _subgraph(), "context": self._context(request) if self._context else None}

    def _any(self, state: Any) -> AnySession:
        return self._session(state) if callable(self._session) else self._session

    def _of(self, state: Any, kind: type[S]) -> S:
        session = self._any(state)
        if isinstance(session, kind):
            return session
        if kind is Session:
            raise ToolgateError("agent.ainvoke needs a session of toolgate.Gate, not of toolgate.sync.Gate")
        raise ToolgateError("agent.invoke needs a session of toolgate.sync.Gate, not of toolgate.Gate")


class _ToolFailed(Exception):
    """A tool said with a message that it failed; the framework does so for arguments that its schema refuses."""


def _user_message(state: Any) -> tuple[str, str | None]:
    """The user's last message: it names the turn, and is its goal."""
    said = [message for message in state["messages"] if isinstance(message, HumanMessage)]
    if not said:
        return "", None
    return said[-1].id or said[-1].text, said[-1].text


def _step(state: Any) -> str | None:
    """The model's last message: its calls are one step."""
    last = next((message for message in reversed(state["messages"]) if isinstance(message, AIMessage)), None)
    return last.id if last else None


def _subgraph() -> str | None:
    """The nodes of a graph that this agent is a part of, the outermost first; None: it is the graph itself.

    An agent that a tool runs is known by that tool (nesting.py): there its place in the graph says nothing more.
    """
    namespace = str((var_child_runnable_config.get() or {}).get("metadata", {}).get("langgraph_checkpoint_ns", ""))
    nodes = [part.split(":", 1)[0] for part in namespace.split("|")[:-1]]
    return "/".join(node for node in nodes if node != TOOLS_NODE) or None


def _without_tools(request: ModelRequest[Any]) -> ModelRequest[Any]:
    """After a halt the model has none, so it can only answer."""
    return request.override(tools=[], tool_choice=None)


def _definitions(request: ModelRequest[Any]) -> list[dict[str, Any]]:
    return [_definition(tool) for tool in request.tools if isinstance(tool, BaseTool)]


def _shown(request: ModelRequest[Any], shown: Mapping[str, Mapping[str, Any]] | None) -> ModelRequest[Any]:
    """The request with its tools as policies show them now: hidden ones are left out."""
    if shown is None:
        return request
    tools = [
        _as_shown(tool, shown[tool.name]) if isinstance(tool, BaseTool) else tool
        for tool in request.tools if not isinstance(tool, BaseTool) or tool.name in shown
    ]
    return request.override(tools=tools)


def _as_shown(tool: BaseTool, shown: Mapping[str, Any]) -> BaseTool | dict[str, Any]:
    strict = shown.get("_meta", {}).get(STRICT_KEY)
    if strict is not None:  # only a definition says that of one tool
        function = {"name": tool.name, "description": shown.get("description", ""), "parameters": shown["inputSchema"]}
        return {"type": "function", "function": {**function, "strict": strict}}
    own, changed = _definition(tool), {}
    if shown.get("description", "") != own["description"]:
        changed["description"] = shown.get("description", "")
    if shown["inputSchema"] != own["inputSchema"]:
        changed["args_schema"] = shown["inputSchema"]
    return tool.model_copy(update=changed) if changed else tool


def _halted(messages: Sequence[AnyMessage]) -> Halt | None:
    """The halt that the model has read in this turn."""
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            return None
        mark = message.additional_kwargs.get(MARK) if isinstance(message, ToolMessage) else None
        if mark:
            return Halt(message.text, Verdict("halt", True, mark["error_class"], mark["code"], mark["detail"]))
    return None


def _arguments(call: Any) -> Any:
    return call["args"].get(MALFORMED, call["args"])


def _with(request: ToolCallRequest, name: str, arguments: Any) -> ToolCallRequest:
    return request.override(tool_call={**request.tool_call, "args": arguments})


def _unless_failed(result: Ran) -> Ran:
    if isinstance(result, ToolMessage) and result.status == "error":
        raise _ToolFailed(result.text)
    return result


def _failure(error: Exception) -> Failure | None:
    if isinstance(error, GraphBubbleUp):
        return None  # an interrupt: the run ends here, and goes on later
    return failure_of(error)


def _message_of(result: Ran) -> ToolMessage | None:
    if isinstance(result, ToolMessage):
        return result
    update = result.update if isinstance(result.update, dict) else {}
    return next((one for one in update.get("messages", ()) if isinstance(one, ToolMessage)), None)


def _plain(result: Any) -> Any:
    message = _message_of(result)
    return message.content if message else None


def _told(request: ToolCallRequest, outcome: Outcome) -> Ran:
    """The outcome as a message to the model; the framework's own, if nothing about it changed."""
    if outcome.unchanged:
        return cast(Ran, outcome.value)
    status = "success" if outcome.verdict.passed else "error"
    own = _message_of(outcome.value) if outcome.notes else None
    content: Any = outcome.text
    if own and isinstance(own.content, list):  # blocks, such as images: notes come beside them
        content = [*own.content, *({"type": "text", "text": note} for note in outcome.notes)]
    message = ToolMessage(content, tool_call_id=request.tool_call["id"], name=request.tool_call["name"], status=status)
    if outcome.halted:
        verdict = outcome.verdict
        message.additional_kwargs[MARK] = {
            "error_class": verdict.error_class, "code": verdict.code, "detail": verdict.detail,
        }
    if isinstance(outcome.value, Command):
        return _in_command(outcome.value, message)
    return message


def _in_command(command: Command[Any], message: ToolMessage) -> Command[Any]:
    """The command with this message in the place of the tool's: what it does to the state stays."""
    update = command.update if isinstance(command.update, dict) else {}
    messages = [
        message if isinstance(one, ToolMessage) and one.tool_call_id == message.tool_call_id else one
        for one in update.get("messages", ())
    ]
    return dataclasses.replace(command, update={**update, "messages": messages or [message]})


def _definition(tool: BaseTool) -> dict[str, Any]:
    function = convert_to_openai_tool(tool)["function"]
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    if isinstance(tool.tool_call_schema, type):  # of a function's signature, which takes nothing else
        schema = {"additionalProperties": False, **schema}
    return {"name": function["name"], "description": function.get("description", ""), "inputSchema": schema,
            "_meta": EXACT}
