"""pydantic-ai: every tool of an agent, or of one toolset, goes through toolgate.

    agent = Agent(model, tools=[get_weather], capabilities=[Toolgate(gate.session("chat-7"))])
"""
from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.run import AgentRunResult
from pydantic_ai.messages import ModelResponse, ToolCallPart, ToolReturn
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import to_jsonable_python

from .errors import BadArguments, Halt
from .gate import Session
from .results import Failure, failure_of
from .schemas import in_words
from .verdict import Outcome
from .words import EXACT, REPAIR_KEY, REPAIR_MAX, STRICT_KEY

SessionOf: TypeAlias = "Session | Callable[[RunContext[Any]], Session]"
ContextOf: TypeAlias = "Callable[[RunContext[Any]], Mapping[str, Any]]"

RAW = "toolgate: the model's own arguments"  # the key under which they travel to call_tool
RETRIES_USUAL = 1  # pydantic-ai's own, if nobody sets any: then toolgate's budget holds
RETRIES_MAX = 1_000_000  # toolgate counts attempts; pydantic-ai must not end the run before


class _AsSent:
    """Validates nothing: toolgate reads the arguments as the model wrote them, malformed JSON included."""

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> dict[str, Any]:
        return {RAW: input if isinstance(input, str) else bytes(input).decode()}

    def validate_python(self, input: Any, **_: Any) -> dict[str, Any]:
        return {RAW: input}


@dataclass
class _Run:
    """What one run of the agent remembers."""

    session: Session
    names: set[str] = field(default_factory=set)
    halt: Halt | None = None
    halted_at: int = 0  # the step whose calls were halted

    def called_again(self, ctx: RunContext[Any]) -> bool:
        """The model was told to answer, had no tools, and called one nevertheless."""
        responses = [message for message in ctx.messages if isinstance(message, ModelResponse)]
        called = {part.tool_name for part in responses[-1].parts if isinstance(part, ToolCallPart)} if responses else set()
        return ctx.run_step > self.halted_at + 1 and not called.isdisjoint(self.names)


@dataclass
class GatedToolset(WrapperToolset[AgentDepsT]):
    """A toolset whose calls toolgate checks. `session` may be a function of the run's context.

    `context`: what policies read as `call.context`, such as `lambda ctx: {"role": ctx.deps.role}`.
    """

    session: SessionOf
    context: ContextOf | None = None
    run: _Run | None = field(default=None, repr=False)

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        session = _session(self.session, ctx)
        await session.begin_run(str(ctx.run_id), ctx.prompt if isinstance(ctx.prompt, str) else None)
        return replace(self, wrapped=await self.wrapped.for_run(ctx), run=_Run(session))

    async def for_run_step(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        return replace(self, wrapped=await self.wrapped.for_run_step(ctx))

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """The tools as policies show them now. After a halt there are none, so the model can only answer; one that calls
        nevertheless ends the run.
        """
        tools = await super().get_tools(ctx)
        run = self.run
        if not run:  # listed outside of a run
            return tools
        if run.halt:
            if run.called_again(ctx):
                raise run.halt
            return {}
        run.names |= tools.keys()
        own = {name: _definition(tool, ctx) for name, tool in tools.items() if tool.tool_def.kind != "external"}
        run.session.declare(list(own.values()))
        shown = await run.session.definitions(step=_step(ctx), context=self._context(ctx)) if own else None
        return {
            name: tool if name not in own else _Gated.of(tool, (shown or own)[name])
            for name, tool in tools.items() if name not in own or name in (shown or own)
        }

    def _context(self, ctx: RunContext[AgentDepsT]) -> Mapping[str, Any] | None:
        return self.context(ctx) if self.context else None

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        if not self.run or not isinstance(tool, _Gated):
            return await super().call_tool(name, tool_args, ctx, tool)
        run, inner = self.run, tool.inner
        checked = await run.session.check(
            name, tool_args[RAW], step=_step(ctx), call=ctx.tool_call_id, context=self._context(ctx))

        async def execute() -> Any:
            try:
                arguments = inner.args_validator.validate_json(json.dumps(checked.arguments), context=ctx.validation_context)
            except ValidationError as error:
                raise BadArguments(in_words(error)) from error
            if inner.args_validator_func:
                judged = inner.args_validator_func(ctx, **arguments)
                if inspect.isawaitable(judged):
                    await judged
            return await self.wrapped.call_tool(name, arguments, ctx, inner)

        return self._told(run, ctx, await run.session.run(checked, execute, failure=_failure, plain=_plain))

    def _told(self, run: _Run, ctx: RunContext[AgentDepsT], outcome: Outcome) -> Any:
        """The outcome as pydantic-ai says it to the model."""
        if outcome.halted:
            run.halt, run.halted_at = Halt(outcome.text, outcome.verdict), ctx.run_step
        if outcome.unchanged:
            return outcome.value
        if outcome.verdict.kind == "repair":
            raise ModelRetry(outcome.text)
        if not outcome.verdict.passed:
            raise ToolFailed(outcome.text)
        if isinstance(outcome.value, ToolReturn):
            return replace(outcome.value, return_value=outcome.text)
        return outcome.text


@dataclass
class Toolgate(AbstractCapability[AgentDepsT]):
    """All tools of the agent: functions, toolsets, MCP servers."""

    session: SessionOf
    context: ContextOf | None = None

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        return GatedToolset(toolset, self.session, self.context)

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        try:
            return await handler()
        finally:
            _session(self.session, ctx).end_run()


@dataclass(kw_only=True)
class _Gated(ToolsetTool[AgentDepsT]):
    inner: ToolsetTool[AgentDepsT]

    @classmethod
    def of(cls, inner: ToolsetTool[AgentDepsT], shown: Mapping[str, Any]) -> _Gated[AgentDepsT]:
        about = inner.tool_def
        about = replace(
            about, description=shown.get("description") or about.description, parameters_json_schema=shown["inputSchema"],
            strict=shown.get("_meta", {}).get(STRICT_KEY, about.strict),
        )
        return cls(toolset=inner.toolset, tool_def=about, max_retries=RETRIES_MAX, args_validator=_AsSent(), inner=inner)


def _session(given: SessionOf, ctx: RunContext[Any]) -> Session:
    return given if isinstance(given, Session) else given(ctx)


def _step(ctx: RunContext[Any]) -> str:
    return f"{ctx.run_id}/{ctx.run_step}"


def _definition(tool: ToolsetTool[Any], ctx: RunContext[Any]) -> dict[str, Any]:
    about, retries = tool.tool_def, tool.max_retries
    is_usual = retries == RETRIES_USUAL == ctx.max_retries
    return {"name": about.name, "description": about.description or "", "inputSchema": about.parameters_json_schema,
            "_meta": EXACT if is_usual else {**EXACT, REPAIR_KEY: min(retries, REPAIR_MAX)}}


def _failure(error: Exception) -> Failure | None:
    if isinstance(error, (ApprovalRequired, CallDeferred)):
        return None  # runs later, or elsewhere
    if isinstance(error, ModelRetry):
        return Failure(error.message, retry=True)
    if isinstance(error, ToolFailed):
        return Failure(str(error))
    return failure_of(error)


def _plain(value: Any) -> Any:
    return to_jsonable_python(value.return_value if isinstance(value, ToolReturn) else value, fallback=str, bytes_mode="base64")
