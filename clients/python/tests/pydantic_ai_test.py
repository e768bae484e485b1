"""The adapter for pydantic-ai with its own FunctionModel. usage: pydantic_ai_test.py SOCKET"""
from __future__ import annotations

import asyncio
import re
import sys
import uuid
from typing import Any

import policies
import served
import tap
from pydantic_ai import Agent, ModelRetry, RunContext, Tool
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
        self.described: list[dict[str, str | None]] = []
        self.model = FunctionModel(self.answer)

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.tools.append([tool.name for tool in info.function_tools])
        self.described.append({tool.name: tool.description for tool in info.function_tools})
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


def secret(city: str) -> str:
    """A secret."""
    return "hush"


def later(city: str) -> str:
    """Later."""
    return "late"


async def test_policy_words(socket: str) -> None:
    """pydantic-ai: the model reads a policy's words, and sees at each step what prepare shows; deps are the context"""
    for role in ("boss", "clerk"):
        with served.daemon(policies.POLICIES) as one:
            async with Gate(one.socket) as gate:
                playing = Playing([[("forecast", {"city": "Bern"})], [("later", {"city": "Bern"})]])
                toolgate = Toolgate[str](gate.session("s"), context=lambda ctx: {"role": ctx.deps})
                agent = Agent(playing.model, deps_type=str, tools=[forecast, secret, later], capabilities=[toolgate])
                await agent.run("rain?", deps=role)
        first = playing.described[0]
        assert first["forecast"] == "The weather in a city.\n" + policies.USE_WHEN, first
        assert first.get("secret") == ("For the boss." if role == "boss" else None), first
        assert "later" not in first and "later" in playing.tools[1], playing.tools
        assert playing.heard[1] == "late", playing.heard


async def test_two_agents(socket: str) -> None:
    """pydantic-ai: two agents of one Gate have their own tools, also of one name"""
    def weather(place: str) -> str:
        """Another weather."""
        return f"weather of {place}"

    async with Gate(socket) as gate:
        sessions = [gate.session(str(uuid.uuid4())) for _ in range(2)]
        first = Playing([[("forecast", {"city": "Bern"})], [("peer_at", {"place": "Bern"})]])
        second = Playing([[("forecast", {"place": "Bern"})], [("sleeps", {"city": "Bern"})]])
        await asyncio.gather(
            Agent(first.model, tools=[forecast, sleeps], capabilities=[Toolgate(sessions[0])]).run("?"),
            Agent(second.model, tools=[Tool(weather, name="forecast"), Tool(weather, name="peer_at")],
                  capabilities=[Toolgate(sessions[1])]).run("?"))
        assert first.heard[0] == '{"sky":"grey","days":1}' and second.heard[0] == "weather of Bern", (first.heard, second.heard)
        for session, mine, others in ((sessions[0], "sleeps", "peer_at"), (sessions[1], "peer_at", "sleeps")):
            shown = await session.definitions()
            assert shown and mine in shown and others not in shown, shown
            assert others not in (await session.check("no_such_tool", {})).text


async def test_retries(socket: str) -> None:
    """pydantic-ai: a tool's own retries are its repair budget, for arguments and for ModelRetry"""
    def picky(n: int) -> int:
        """Wants an even number."""
        if n % 2:
            raise ModelRetry("an even one, please")
        return n

    for wrong in ([{"m": n} for n in range(9)], [{"n": 2 * n + 1} for n in range(9)]):
        async with Gate(socket) as gate:
            playing = Playing([[("picky", one)] for one in wrong])
            capabilities = [Toolgate[None](gate.session(str(uuid.uuid4())))]
            await Agent(playing.model, tools=[Tool(picky, max_retries=5)], capabilities=capabilities).run("?")
        left = [text for text in playing.heard if re.search("[1-9] attempts? left", text)]
        assert "5 attempts left" in left[0] and "1 attempt left" in left[-1] and len(left) == 5, playing.heard


async def test_nested(socket: str) -> None:
    """pydantic-ai: an agent that a tool runs is named by that tool; the outermost run has no name, and begins the turn"""
    async with Gate(socket) as gate:
        session = gate.session(str(uuid.uuid4()))
        inner = Playing([[("forecast", {"city": "Bern"})]])
        helper = Agent(inner.model, tools=[forecast], capabilities=[Toolgate(session)])

        async def ask_helper(ctx: RunContext[None], question: str) -> str:
            """Ask a helper."""
            return (await helper.run(question, usage=ctx.usage)).output

        outer = Playing([[("ask_helper", {"question": "rain?"})], [("forecast", {"city": "Bern"})]])
        with policies.overheard() as made:
            agent = Agent(outer.model, tools=[forecast, ask_helper], capabilities=[Toolgate(session)])
            assert (await agent.run("rain?")).output == "my best answer"
    assert policies.agents_of(made) == [None, "ask_helper", None], made
    assert "ask_helper" in policies.agents_of(made, "toolgate/tools") and policies.turns(made) == 1, made


async def test_gave_up(socket: str) -> None:
    """pydantic-ai: what the model has not repaired when the run ends, it has given up"""
    async with Gate(socket) as gate:
        before = await policies.gave_up(gate)
        agent = Agent(Playing([[("forecast", {"town": "Bern"})]]).model, tools=[forecast],
                      capabilities=[Toolgate(gate.session(str(uuid.uuid4())))])
        await agent.run("rain?")
        assert await policies.gave_up(gate) == before + 1


async def test_output(socket: str) -> None:
    """pydantic-ai: an output function ends the run; its result is no tool's"""
    def answer(city: str, grey: bool) -> str:
        """The final answer."""
        return f"{city}: {grey}"

    async with Gate(socket) as gate:
        session = gate.session(str(uuid.uuid4()))
        def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            calls = [ToolCallPart("forecast", {"city": "Bern"})] if len(messages) == 1 else [
                ToolCallPart(info.output_tools[0].name, {"city": "Bern", "grey": True})]
            return ModelResponse(parts=list(calls))
        agent = Agent(FunctionModel(model), tools=[forecast], output_type=answer, capabilities=[Toolgate(session)])
        assert (await agent.run("rain?")).output == "Bern: True"
        seen = await gate.request("toolgate/session", session=session.name)
    assert [call["tool"] for call in seen["history"]] == ["forecast"], seen


if __name__ == "__main__":
    tap.run(globals(), *sys.argv[1:])
