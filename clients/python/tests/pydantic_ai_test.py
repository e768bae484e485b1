"""The adapter for pydantic-ai with its own FunctionModel. usage: pydantic_ai_test.py SOCKET"""
from __future__ import annotations

import asyncio
import sys
import uuid
from typing import Any

import tap
from pydantic_ai import Agent
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from toolgate import Gate, Halt, Session
from toolgate.pydantic_ai import GatedToolset, Toolgate

Step = list[tuple[str, Any]]


class Playing:
    """A model that makes the calls of each step, then answers; `heard` is what it read of each call."""

    def __init__(self, steps: list[Step], obeys: bool = True) -> None:
        self.steps, self.obeys, self.heard, self.tools = steps, obeys, [], []  # type: ignore[var-annotated]
        self.model = FunctionModel(self.answer)

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.tools.append([tool.name for tool in info.function_tools])
        for part in messages[-1].parts:
            if isinstance(part, (ToolReturnPart, RetryPromptPart)):
                self.heard.append(part.model_response_str() if isinstance(part, ToolReturnPart) else part.model_response())
        done = len(self.tools) - 1
        if done >= len(self.steps) or (self.obeys and not info.function_tools):
            return ModelResponse(parts=[TextPart("my best answer")])
        return ModelResponse(parts=[ToolCallPart(name, args) for name, args in self.steps[done]])


ran: list[Any] = []


async def forecast(city: str, days: int = 1) -> dict[str, Any]:
    """The weather in a city."""
    ran.append((city, days))
    return {"sky": "grey", "days": days}


sleeping = asyncio.Event()


async def sleeps(city: str) -> str:
    """Never ends."""
    sleeping.set()
    await asyncio.sleep(3600)
    return city


async def play(socket: str, steps: list[Step], obeys: bool = True) -> tuple[Playing, str, Session]:
    ran.clear()
    playing = Playing(steps, obeys)
    async with Gate(socket) as gate:
        session = gate.session(str(uuid.uuid4()))
        agent = Agent(playing.model, tools=[forecast, sleeps], capabilities=[Toolgate(session)])
        return playing, (await agent.run("rain?")).output, session


async def test_pass(socket: str) -> None:
    """pydantic-ai: a good call runs, and its result reaches the model unchanged"""
    playing, output, _ = await play(socket, [[("forecast", {"city": "Bern"})]])
    assert playing.heard == ['{"sky":"grey","days":1}'], playing.heard
    assert output == "my best answer"


async def test_repair(socket: str) -> None:
    """pydantic-ai: what is wrong with the arguments reaches the model, again and again, and the run goes on"""
    playing, output, _ = await play(socket, [
        [("forecast", {"town": "Bern"})], [("forecast", '{"city": "Ber')], [("forecast", {"city": "Bern", "days": "2"})]])
    assert "'city' is missing" in playing.heard[0], playing.heard
    assert "cut off" in playing.heard[1], playing.heard
    assert "'days' was read as 2" in playing.heard[2], playing.heard
    assert ran == [("Bern", 2)] and output == "my best answer"


async def test_attempts(socket: str) -> None:
    """pydantic-ai: attempts run out though each call has an id of its own, and a right call still passes"""
    playing, output, _ = await play(socket, [*([("forecast", wrong)] for wrong in tap.WRONG), [("forecast", {"city": "Bern"})]])
    tap.attempts_run_out(playing.heard)
    assert ran == [("Bern", 1)] and output == "my best answer", playing.heard


async def test_halt(socket: str) -> None:
    """pydantic-ai: a halt takes the tools away, and the model gives its best answer"""
    playing, output, _ = await play(socket, [[("forecast", {"city": "Bern"})]] * 20)
    assert output == "my best answer" and len(ran) == 2, (output, ran)
    assert "Stop." in playing.heard[-1] and playing.tools[-1] == [] and len(playing.heard) < 10, playing.heard


async def test_halt_disobeyed(socket: str) -> None:
    """pydantic-ai: a model that calls on after a halt ends the run with Halt"""
    try:
        await play(socket, [[("forecast", {"city": "Bern"})]] * 20, obeys=False)
    except Halt as halt:
        assert halt.verdict.kind == "halt" and "Stop." in halt.text
    else:
        raise AssertionError("the run went on")


async def test_parallel(socket: str) -> None:
    """pydantic-ai: the calls of one message are one step of one turn"""
    _, _, session = await play(socket, [[("forecast", {"city": city}) for city in ("Bern", "Brno", "Basel")]])
    async with Gate(socket) as gate:
        seen = await gate.request("toolgate/session", session=session.name)
    history = seen["history"]
    assert seen["turn"] == 1 and len(history) == 3 and len({one["step"] for one in history}) == 1, seen


async def test_toolset(socket: str) -> None:
    """pydantic-ai: one toolset can be checked alone, in a session that depends on the run; an image stays an image"""
    async def chart(city: str) -> BinaryContent:
        """A chart."""
        return BinaryContent(b"png", media_type="image/png")

    name = str(uuid.uuid4())
    async with Gate(socket) as gate:
        toolset = GatedToolset[str](FunctionToolset([chart]), lambda ctx: gate.session(ctx.deps))
        model = Playing([[("chart", {"city": "Bern"}), ("forecast", {"city": "Bern"})]]).model
        agent = Agent(model, deps_type=str, tools=[forecast], toolsets=[toolset])
        result = await agent.run("go", deps=name)
        history = (await gate.request("toolgate/session", session=name))["history"]
    assert [call["tool"] for call in history] == ["chart"], history
    returned = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    assert isinstance(returned[0].content, BinaryContent), returned


async def test_cancel(socket: str) -> None:
    """pydantic-ai: a cancelled run gives back what its check reserved"""
    async with Gate(socket) as gate:
        session = gate.session(str(uuid.uuid4()))
        agent = Agent(Playing([[("sleeps", {"city": "Bern"})]]).model, tools=[sleeps], capabilities=[Toolgate(session)])
        await tap.cancelled(agent.run("rain?"), sleeping)
        await tap.nothing_waits(gate, session.name)


if __name__ == "__main__":
    tap.run(globals(), *sys.argv[1:])
