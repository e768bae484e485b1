"""The adapter for the OpenAI Agents SDK with its own ScriptedModel. usage: openai_agents_test.py SOCKET"""
from __future__ import annotations

import asyncio
import sys
import uuid
from typing import Any

import policies
import served
import tap
from agents import Agent, ModelResponse, RunConfig, Runner, ToolOutputImage, Usage, function_tool
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

from toolgate import Gate, Halt
from toolgate.openai_agents import guarded

ran: list[Any] = []
Step = list[tuple[str, Any]]


@function_tool(strict_mode=False)
async def forecast(city: str, days: int = 1) -> dict[str, Any]:
    """The weather in a city."""
    ran.append((city, days))
    if city == "Atlantis":
        raise LookupError("no such city: Atlantis")
    return {"sky": "grey", "days": days}


sleeping = asyncio.Event()


@function_tool
async def sleeps(city: str) -> str:
    """Never ends."""
    sleeping.set()
    await asyncio.sleep(3600)
    return city


async def play(socket: str, steps: list[Step], obeys: bool = True) -> tuple[list[str], str, str, list[int]]:
    """What the model read of its calls, its answer, the session's name, and how many tools each message had."""
    ran.clear()
    heard: dict[str, str] = {}
    offered: list[int] = []

    def respond(step: Step) -> Any:
        def answer(call: ModelCall) -> Any:
            offered.append(len(call.tools))
            for item in call.input if isinstance(call.input, list) else ():
                if isinstance(item, dict) and item.get("type") == "function_call_output":
                    heard[str(item["call_id"])] = str(item["output"])
            if not step or (obeys and not call.tools):
                return ModelResponse([assistant_message("my best answer")], Usage(), None)
            output = [function_call(name, args, call_id=uuid.uuid4().hex) for name, args in step]
            return ModelResponse(output, Usage(), None)
        return ModelStep.respond(answer)

    name = str(uuid.uuid4())
    async with Gate(socket) as gate:
        model = ScriptedModel([respond(step) for step in [*steps, []]])
        agent = guarded(Agent(name="a", model=model, tools=[forecast]), gate.session(name))
        result = await Runner.run(agent, "rain?", max_turns=50, run_config=RunConfig(tracing_disabled=True))
    return list(heard.values()), str(result.final_output), name, offered


async def test_pass(socket: str) -> None:
    """OpenAI Agents: a good call runs, and its result reaches the model unchanged"""
    heard, output, _, _ = await play(socket, [[("forecast", {"city": "Bern"})]])
    assert "grey" in heard[0] and ran == [("Bern", 1)] and output == "my best answer", heard


async def test_repair(socket: str) -> None:
    """OpenAI Agents: what is wrong with the arguments reaches the model, malformed JSON and a tool's exception, too"""
    heard, output, _, _ = await play(socket, [
        [("forecast", {"town": "Bern"})], [("forecast", '{"city": "Ber')], [("forecast", {"city": "Bern", "days": "2"})],
        [("forecast", {"city": "Atlantis"})]])
    assert "'city' is missing" in heard[0] and "cut off" in heard[1] and "'days' was read as 2" in heard[2], heard
    assert "no such city" in heard[3], heard
    assert ran == [("Bern", 2), ("Atlantis", 1)] and output == "my best answer"


async def test_attempts(socket: str) -> None:
    """OpenAI Agents: attempts run out though each call has an id of its own, and a right call still passes"""
    heard, output, _, _ = await play(
        socket, [*([("forecast", wrong)] for wrong in tap.WRONG), [("forecast", {"city": "Bern"})]])
    tap.attempts_run_out(heard)
    assert ran == [("Bern", 1)] and output == "my best answer", heard


async def test_halt(socket: str) -> None:
    """OpenAI Agents: a halt takes the tools away, and the model gives its best answer"""
    heard, output, _, offered = await play(socket, [[("forecast", {"city": "Bern"})]] * 20)
    assert output == "my best answer" and len(ran) == 2 and "Stop." in heard[-1] and len(heard) < 10, heard
    assert offered[0] == 1 and offered[-1] == 0, offered


async def test_halt_disobeyed(socket: str) -> None:
    """OpenAI Agents: a model that calls on after a halt ends the run with Halt"""
    try:
        await play(socket, [[("forecast", {"city": "Bern"})]] * 20, obeys=False)
    except Halt as halt:
        assert "Stop." in halt.text
    else:
        raise AssertionError("the run went on")


async def test_parallel(socket: str) -> None:
    """OpenAI Agents: the calls of one message are one step of one turn"""
    _, _, name, _ = await play(socket, [[("forecast", {"city": city}) for city in ("Bern", "Brno", "Basel")]])
    async with Gate(socket) as gate:
        seen = await gate.request("toolgate/session", session=name)
    history = seen["history"]
    assert seen["turn"] == 1 and len(history) == 3 and len({one["step"] for one in history}) == 1, seen


async def failing(socket: str, **how: Any) -> list[str]:
    """What the model reads of a tool that fails."""
    @function_tool(**how)
    async def fails(city: str) -> str:
        """Fails."""
        raise LookupError(f"secret path of {city}")

    async with Gate(socket) as gate:
        model = ScriptedModel([[function_call("fails", {"city": "Bern"}, call_id="1")], [assistant_message("done")]])
        agent = guarded(Agent(name="a", model=model, tools=[fails]), gate.session(str(uuid.uuid4())))
        result = await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))
    return [str(item["output"]) for item in result.to_input_list() if item.get("type") == "function_call_output"]


async def test_failure(socket: str) -> None:
    """OpenAI Agents: a tool's own failure_error_function says what the model reads; None ends the run"""
    usual = await failing(socket)
    assert "secret path of Bern" in usual[0] and "An error occurred" not in usual[0], usual
    told = await failing(socket, failure_error_function=lambda context, error: "it cannot be found")
    assert "it cannot be found" in told[0] and "secret" not in told[0], told
    try:
        await failing(socket, failure_error_function=None)
    except Exception as error:
        assert "secret path of Bern" in str(error), error
    else:
        raise AssertionError("the run went on")


async def test_sessions(socket: str) -> None:
    """OpenAI Agents: one agent serves many conversations by a function of the context"""
    name = str(uuid.uuid4())
    async with Gate(socket) as gate:
        model = ScriptedModel([[function_call("forecast", {"city": "Bern"}, call_id="1")], [assistant_message("done")]])
        agent = guarded(Agent(name="a", model=model, tools=[forecast]), lambda context: gate.session(context.context))
        await Runner.run(agent, "go", context=name, run_config=RunConfig(tracing_disabled=True))
        assert len((await gate.request("toolgate/session", session=name))["history"]) == 1


async def test_cancel(socket: str) -> None:
    """OpenAI Agents: a cancelled run gives back what its check reserved"""
    async with Gate(socket) as gate:
        session = gate.session(str(uuid.uuid4()))
        model = ScriptedModel([[function_call("sleeps", {"city": "Bern"}, call_id="1")]])
        agent = guarded(Agent(name="a", model=model, tools=[sleeps]), session)
        await tap.cancelled(Runner.run(agent, "rain?", run_config=RunConfig(tracing_disabled=True)), sleeping)
        await tap.nothing_waits(gate, session.name)


@function_tool
def secret(city: str) -> str:
    """A secret."""
    return "hush"


@function_tool
def later(city: str) -> str:
    """Later."""
    return "late"


class Played:
    """A model that makes these calls, then answers; `described` has the tools of each message."""

    def __init__(self, *steps: Step) -> None:
        self.described: list[dict[str, str]] = []
        self.model = ScriptedModel([self._step(step) for step in [*steps, []]])

    def _step(self, step: Step) -> Any:
        def answer(call: ModelCall) -> Any:
            self.described.append({tool.name: getattr(tool, "description", "") for tool in call.tools})
            if not step:
                return ModelResponse([assistant_message("done")], Usage(), None)
            return ModelResponse([function_call(name, args, call_id=uuid.uuid4().hex) for name, args in step], Usage(), None)
        return ModelStep.respond(answer)


async def ask(agent: Any, **more: Any) -> list[str]:
    """What the model heard of its calls."""
    result = await Runner.run(agent, "rain?", run_config=RunConfig(tracing_disabled=True), **more)
    return [str(item["output"]) for item in result.to_input_list() if item.get("type") == "function_call_output"]


async def test_policy_words(_: str) -> None:
    """OpenAI Agents: the model reads a policy's words, and sees at each step what prepare shows"""
    with served.daemon(policies.POLICIES) as one:
        async with Gate(one.socket) as gate:
            playing = Played([("forecast", {"city": "Bern"})], [("later", {"city": "Bern"})])
            agent = guarded(Agent(name="a", model=playing.model, tools=[forecast, secret, later]), gate.session("s"))
            heard = await ask(agent.clone(name="b"))
    assert playing.described[0] == {"forecast": "The weather in a city.\n" + policies.USE_WHEN}, playing.described
    assert sorted(playing.described[1]) == ["forecast", "later"] and heard[1] == "late", (playing.described, heard)


async def test_context(_: str) -> None:
    """OpenAI Agents: what policies read as call.context comes from the run"""
    with served.daemon(policies.POLICIES) as one:
        async with Gate(one.socket) as gate:
            for role in ("boss", "clerk"):
                playing = Played([("secret", {"city": "Bern"})] if role == "boss" else [])
                agent = guarded(Agent(name="a", model=playing.model, tools=[forecast, secret]), gate.session(role),
                                context=lambda context: {"role": context.context})
                assert await ask(agent, context=role) == (["hush"] if role == "boss" else [])
                assert ("secret" in playing.described[0]) == (role == "boss"), playing.described


async def test_two_runs(socket: str) -> None:
    """OpenAI Agents: two runs of one session at a time begin one turn each, so that attempts run out"""
    async with Gate(socket) as gate:
        session = gate.session(str(uuid.uuid4()))
        steps: list[Step] = [[("forecast", wrong)] for wrong in tap.WRONG]
        with policies.overheard() as made:
            await asyncio.gather(*[
                ask(guarded(Agent(name="a", model=Played(*steps).model, tools=[forecast]), session)) for _ in range(2)])
        assert policies.turns(made) == 2, made


@function_tool
def draw(city: str) -> ToolOutputImage:
    """A picture."""
    return ToolOutputImage(image_url="data:image/png;base64,aGk=")


async def test_picture_with_a_note(socket: str) -> None:
    """OpenAI Agents: a picture stays one where toolgate adds a note"""
    async with Gate(socket) as gate:
        playing = Played([("draw", {"City": "Bern"})])
        agent = guarded(Agent(name="a", model=playing.model, tools=[draw]), gate.session(str(uuid.uuid4())))
        result = await Runner.run(agent, "?", run_config=RunConfig(tracing_disabled=True))
    picture, note = next(item["output"] for item in result.to_input_list() if item.get("type") == "function_call_output")
    assert picture["type"] == "input_image" and "'City' was read as 'city'" in note["text"], (picture, note)


async def test_two_agents(socket: str) -> None:
    """OpenAI Agents: two agents of one Gate have their own tools, also of one name"""
    @function_tool(name_override="forecast")
    def weather(place: str) -> str:
        """Another weather."""
        return f"weather of {place}"

    async with Gate(socket) as gate:
        sessions = [gate.session(str(uuid.uuid4())) for _ in range(2)]
        heard = await asyncio.gather(*[
            ask(guarded(Agent(name="a", model=Played([("forecast", arguments)]).model, tools=tools), session))
            for arguments, tools, session in (({"city": "Bern"}, [forecast, sleeps], sessions[0]),
                                              ({"place": "Bern"}, [weather, later], sessions[1]))])
        assert "grey" in heard[0][0] and heard[1][0] == "weather of Bern", heard
        for session, mine, others in ((sessions[0], "sleeps", "later"), (sessions[1], "later", "sleeps")):
            shown = await session.definitions()
            assert shown and mine in shown and others not in shown, shown


async def test_nested(socket: str) -> None:
    """OpenAI Agents: agents that are tools, or got the run by a handoff, are named; the outermost is not"""
    async with Gate(socket) as gate:
        session = gate.session(str(uuid.uuid4()))
        bern: Step = [("forecast", {"city": "Bern"})]
        helper = guarded(Agent(name="helper", model=Played(bern).model, tools=[forecast]), session)
        last = guarded(Agent(name="writer", model=Played([("forecast", {"city": "Brno"})]).model, tools=[forecast]), session)
        tools: list[Any] = [forecast, helper.as_tool("ask_helper", "Ask a helper.", run_config=RunConfig(tracing_disabled=True))]
        model = Played([("ask_helper", {"input": "rain?"})], bern, [("transfer_to_writer", {})]).model
        outer = guarded(Agent(name="outer", model=model, tools=tools, handoffs=[last]), session)
        with policies.overheard() as made:
            await ask(outer)
    assert policies.agents_of(made) == [None, "ask_helper", None, "writer"] and policies.turns(made) == 1, made


async def test_sessions_halt(socket: str) -> None:
    """OpenAI Agents: a halt holds where the session is a function that makes it anew"""
    async with Gate(socket) as gate:
        playing = Played(*[[("forecast", {"city": "Bern"})]] * 5)
        agent = guarded(Agent(name="a", model=playing.model, tools=[forecast]), lambda context: gate.session(context.context))
        heard = await ask(agent, context=str(uuid.uuid4()), max_turns=20)
    assert "Stop." in heard[-1] and playing.described[-1] == {}, heard


async def test_gave_up(socket: str) -> None:
    """OpenAI Agents: what the model has not repaired when the run ends, it has given up"""
    async with Gate(socket) as gate:
        before = await policies.gave_up(gate)
        playing = Played([("forecast", {"town": "Bern"})])
        await ask(guarded(Agent(name="a", model=playing.model, tools=[forecast]), gate.session(str(uuid.uuid4()))))
        assert await policies.gave_up(gate) == before + 1


if __name__ == "__main__":
    tap.run(globals(), *sys.argv[1:])
