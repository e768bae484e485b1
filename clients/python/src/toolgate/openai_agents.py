"""OpenAI Agents SDK: an agent whose function tools go through toolgate.

    agent = guarded(Agent(name="assistant", tools=[get_weather]), gate.session("chat-7"))

A tool guardrail of the SDK can refuse a call, but not hand on repaired arguments; so this wraps each tool, where the
arguments are still the model's text. MCP servers of the agent are not wrapped: connect them through
`toolgate connect`.
"""
from __future__ import annotations

import inspect
import json
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from agents import Agent, AgentHooks, FunctionTool, ModelBehaviorError, RunContextWrapper
from agents.items import ModelResponse, TResponseInputItem
from agents.tool_context import ToolContext
from pydantic_core import to_jsonable_python

from .errors import Halt
from .gate import Session
from .results import Failure, failure_of
from .words import EXACT

SessionOf: TypeAlias = "Session | Callable[[RunContextWrapper[Any]], Session]"

RUNS_MAX = 64  # of one session that are remembered at a time


@dataclass
class _Run:
    """What one run remembers. The SDK has no id of a run, but one usage object."""

    usage: Any
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    step: int = 0
    halt: Halt | None = None
    halted_at: int = 0


_runs: weakref.WeakKeyDictionary[Session, OrderedDict[int, _Run]] = weakref.WeakKeyDictionary()


def _run_of(session: Session, context: RunContextWrapper[Any]) -> _Run:
    """Agents of one run that hand off to each other share it."""
    runs = _runs.setdefault(session, OrderedDict())
    run = runs.get(id(context.usage))
    if not run:
        run = runs[id(context.usage)] = _Run(context.usage)
        if len(runs) > RUNS_MAX:
            runs.popitem(last=False)
    return run


def _session(given: SessionOf, context: RunContextWrapper[Any]) -> Session:
    return given if isinstance(given, Session) else given(context)


def guarded(agent: Agent[Any], session: SessionOf) -> Agent[Any]:
    """A copy of the agent whose function tools toolgate checks. `session` may be a function of the run's context."""
    tools = [_guarded_tool(tool, session) if isinstance(tool, FunctionTool) else tool for tool in agent.tools]
    return agent.clone(tools=tools, hooks=_Hooks(session, agent))


def _guarded_tool(tool: FunctionTool, given: SessionOf) -> FunctionTool:
    ends_run = not tool._use_default_failure_error_function and not tool._failure_error_function
    raising = replace(tool, _failure_error_function=None, _use_default_failure_error_function=False)

    async def invoke(context: ToolContext[Any], text: str) -> Any:
        session = _session(given, context)
        run = _run_of(session, context)
        checked = await session.check(tool.name, text, step=f"{run.id}/{run.step}", call=context.tool_call_id)

        async def execute() -> Any:
            try:
                return await raising.on_invoke_tool(context, json.dumps(checked.arguments))
            except Exception as error:
                raise await _as_the_tool_says(tool, context, error)

        outcome = await session.run(checked, execute, failure=_ends_run if ends_run else _failure, plain=_plain)
        if outcome.halted:
            run.halt, run.halted_at = Halt(outcome.text, outcome.verdict), run.step
        return outcome.value if outcome.unchanged else outcome.text

    async def enabled(context: RunContextWrapper[Any], agent: Any) -> bool:
        """After a halt the model has no tools, so it can only answer."""
        if _run_of(_session(given, context), context).halt:
            return False
        if not callable(tool.is_enabled):
            return tool.is_enabled
        answer = tool.is_enabled(context, agent)
        return bool(await answer) if inspect.isawaitable(answer) else bool(answer)

    return replace(tool, on_invoke_tool=invoke, is_enabled=enabled)


class _Hooks(AgentHooks[Any]):
    """Begins the turn, counts the model's messages, and ends a run whose model calls on after a halt."""

    def __init__(self, session: SessionOf, agent: Agent[Any]) -> None:
        self._given, self._inner = session, agent.hooks or AgentHooks[Any]()
        self._definitions = [_definition(tool) for tool in agent.tools if isinstance(tool, FunctionTool)]

    async def on_llm_start(
        self, context: RunContextWrapper[Any], agent: Agent[Any], system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        session = _session(self._given, context)
        run = _run_of(session, context)
        run.step += 1
        session.gate.declare(self._definitions)
        await session.begin_run(run.id, _goal(input_items))
        await self._inner.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        await self._inner.on_llm_end(context, agent, response)
        run = _run_of(_session(self._given, context), context)
        calls = any(getattr(item, "type", None) == "function_call" for item in response.output)
        if run.halt and calls and run.step > run.halted_at:
            raise run.halt

    async def on_start(self, context: Any, agent: Any) -> None:
        await self._inner.on_start(context, agent)

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
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


def _plain(value: Any) -> Any:
    return to_jsonable_python(value, fallback=str, bytes_mode="base64")


def _definition(tool: FunctionTool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.params_json_schema,
            "_meta": EXACT}
