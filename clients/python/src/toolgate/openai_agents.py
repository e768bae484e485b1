"""OpenAI Agents SDK: an agent whose function tools go through toolgate.

    agent = guarded(Agent(name="assistant", tools=[get_weather]), gate.session("chat-7"))

A tool guardrail of the SDK can refuse a call, but not hand on repaired arguments; so this wraps each tool, where the
arguments are still the model's text. MCP servers of the agent are not wrapped: connect them through
`toolgate connect`.
"""
from __future__ import annotations

import functools
import inspect
import json
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

from agents import (
    Agent, AgentHooks, FunctionTool, ModelBehaviorError, RunContextWrapper, Tool, ToolOutputFileContent, ToolOutputImage,
    ToolOutputText, UserError,
)
from agents.items import ModelResponse, TResponseInputItem
from agents.tool_context import ToolContext
from pydantic_core import to_jsonable_python

from .errors import Halt
from .gate import Session
from .nesting import agent_of
from .results import Failure, failure_of
from .verdict import Outcome
from .words import EXACT, STRICT_KEY

SessionOf: TypeAlias = "Session | Callable[[RunContextWrapper[Any]], Session]"
ContextOf: TypeAlias = "Callable[[RunContextWrapper[Any]], Mapping[str, Any]]"

RUNS_MAX = 1024  # that are remembered at a time
STRUCTURED = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)


@dataclass
class _Run:
    """What one run remembers. The SDK has no id of a run, but one usage object, which agents that are tools share."""

    usage: Any
    session: Session
    first: str  # the agent that it began with: the others got it by a handoff
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    has_turn: bool = False
    step: int = 0
    halt: Halt | None = None
    halted_at: int = 0

    def agent(self, name: str) -> str | None:
        return None if name == self.first else name


_runs: OrderedDict[tuple[int, str, str | None], _Run] = OrderedDict()


def _run_of(given: SessionOf, context: RunContextWrapper[Any], agent: str) -> _Run:
    """Agents of one run that hand off to each other share it."""
    session = given if isinstance(given, Session) else given(context)
    key = id(context.usage), session.name, agent_of(session.name, None)
    run = _runs.get(key)
    if not run:
        run = _runs[key] = _Run(context.usage, session, agent)
        if len(_runs) > RUNS_MAX:
            _runs.popitem(last=False)
    return run


def guarded(agent: Agent[Any], session: SessionOf, context: ContextOf | None = None) -> Agent[Any]:
    """A copy of the agent whose function tools toolgate checks. `session` may be a function of the run's context.

    `context`: what policies read as `call.context`, such as `lambda ctx: {"role": ctx.context.role}`.
    """
    values = {one.name: getattr(agent, one.name) for one in fields(agent) if one.init}
    values["tools"] = [
        _guarded_tool(tool, session, context, agent.name) if isinstance(tool, FunctionTool) else tool
        for tool in agent.tools]
    values["hooks"] = _Hooks(session, context, agent)
    return _showing(type(agent))(**values)  # type: ignore[arg-type]


@functools.cache
def _showing(kind: type[Agent[Any]]) -> type[Agent[Any]]:
    """The kind of agent whose model sees its tools as policies show them now."""

    class Showing(kind):  # type: ignore[misc, valid-type]
        async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
            tools: list[Tool] = await super().get_all_tools(run_context)
            return await self.hooks.shown(self, tools, run_context) if isinstance(self.hooks, _Hooks) else tools

    Showing.__name__, Showing.__qualname__, Showing.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return Showing


def _guarded_tool(tool: FunctionTool, given: SessionOf, about: ContextOf | None, agent: str) -> FunctionTool:
    ends_run = not tool._use_default_failure_error_function and not tool._failure_error_function
    raising = replace(tool, _failure_error_function=None, _use_default_failure_error_function=False)

    async def invoke(context: ToolContext[Any], text: str) -> Any:
        name = context.agent.name if context.agent else agent
        run = _run_of(given, context, name)
        checked = await run.session.check(
            tool.name, text, step=f"{run.id}/{run.step}", call=context.tool_call_id, agent=run.agent(name),
            context=about(context) if about else None)

        async def execute() -> Any:
            try:
                return await raising.on_invoke_tool(context, json.dumps(checked.arguments))
            except Exception as error:
                raise await _as_the_tool_says(tool, context, error)

        outcome = await run.session.run(checked, execute, failure=_ends_run if ends_run else _failure, plain=_plain)
        if outcome.halted:
            run.halt, run.halted_at = Halt(outcome.text, outcome.verdict), run.step
        return outcome.value if outcome.unchanged else _with_notes(outcome)

    return replace(tool, on_invoke_tool=invoke)


class _Hooks(AgentHooks[Any]):
    """Begins the turn, counts the model's messages, and ends a run whose model calls on after a halt."""

    def __init__(self, session: SessionOf, about: ContextOf | None, agent: Agent[Any]) -> None:
        self._given, self._about, self._inner = session, about, agent.hooks or AgentHooks[Any]()
        self._own = {tool.name: _definition(tool) for tool in agent.tools if isinstance(tool, FunctionTool)}

    async def shown(self, agent: Agent[Any], tools: list[Tool], context: RunContextWrapper[Any]) -> list[Tool]:
        """Before each message of the model. After a halt it has no tools, so it can only answer."""
        run = _run_of(self._given, context, agent.name)
        if not run.has_turn:  # the session may have begun another run meanwhile
            run.has_turn = True
            await run.session.begin_run(run.id, _goal(context.turn_input))
        run.session.declare(list(self._own.values()))
        if run.halt:
            return [tool for tool in tools if tool.name not in self._own]
        shown = await run.session.definitions(
            step=f"{run.id}/{run.step + 1}", agent=run.agent(agent.name), context=self._about(context) if self._about else None)
        if shown is None:
            return tools
        return [
            _as_shown(tool, shown[tool.name]) if isinstance(tool, FunctionTool) and tool.name in self._own else tool
            for tool in tools if tool.name not in self._own or tool.name in shown
        ]

    async def on_llm_start(
        self, context: RunContextWrapper[Any], agent: Agent[Any], system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        _run_of(self._given, context, agent.name).step += 1
        await self._inner.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        await self._inner.on_llm_end(context, agent, response)
        run = _run_of(self._given, context, agent.name)
        calls = any(getattr(item, "type", None) == "function_call" for item in response.output)
        if run.halt and calls and run.step > run.halted_at:
            raise run.halt

    async def on_start(self, context: Any, agent: Any) -> None:
        await self._inner.on_start(context, agent)

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        _run_of(self._given, context, agent.name).session.end_run()
        await self._inner.on_end(context, agent, output)

    async def on_handoff(self, context: Any, agent: Any, source: Any) -> None:
        await self._inner.on_handoff(context, agent, source)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        await self._inner.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        await self._inner.on_tool_end(context, agent, tool, result)


def _goal(items: list[TResponseInputItem]) -> str | None:
    """The user's last words."""
    for item in reversed(items):
        message: Any = item
        if not isinstance(message, dict) or message.get("role") != "user":
            continue
        content = message.get("content")
        if isinstance(content, str):
            return content
        return "\n".join(part["text"] for part in content or () if "text" in part) or None
    return None


class _Said(Exception):
    """The words of the tool's own failure_error_function."""


async def _as_the_tool_says(tool: FunctionTool, context: ToolContext[Any], error: Exception) -> Exception:
    is_usual = tool._use_default_failure_error_function or isinstance(error, ModelBehaviorError)
    if is_usual or not tool._failure_error_function:
        return error
    said = tool._failure_error_function(context, error)
    return _Said(await said if inspect.isawaitable(said) else said)


def _failure(error: Exception) -> Failure | None:
    if isinstance(error, ModelBehaviorError):  # arguments that the function's own types refuse
        return Failure(str(error), retry=True)
    return failure_of(error)


def _ends_run(error: Exception) -> Failure | None:
    """The tool is made so that its error ends the run."""
    return _failure(error) if isinstance(error, ModelBehaviorError) else None


def _with_notes(outcome: Outcome) -> Any:
    """Structured output, such as images, gets the notes beside it."""
    blocks = outcome.value if isinstance(outcome.value, list) else [outcome.value]
    if not outcome.notes or not blocks or not all(isinstance(block, STRUCTURED) for block in blocks):
        return outcome.text
    return [*blocks, *(ToolOutputText(text=note) for note in outcome.notes)]


def _plain(value: Any) -> Any:
    return to_jsonable_python(value, fallback=str, bytes_mode="base64")


def _as_shown(tool: FunctionTool, shown: Mapping[str, Any]) -> FunctionTool:
    """A policy's schema may be one that strict mode cannot express: that is an error only if the policy wants it strict."""
    wanted = shown.get("_meta", {}).get(STRICT_KEY)
    words = {"description": shown.get("description", ""), "params_json_schema": dict(shown["inputSchema"])}
    try:
        return replace(tool, **words, strict_json_schema=tool.strict_json_schema if wanted is None else wanted)
    except UserError:
        if wanted:
            raise
        return replace(tool, **words, strict_json_schema=False)


def _definition(tool: FunctionTool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.params_json_schema,
            "_meta": EXACT}
