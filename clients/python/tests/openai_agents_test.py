"""The adapter for the OpenAI Agents SDK with its own ScriptedModel. usage: openai_agents_test.py SOCKET"""
from __future__ import annotations

import asyncio
import sys
import uuid
from typing import Any

import tap
from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
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


if __name__ == "__main__":
    tap.run(globals(), *sys.argv[1:])
