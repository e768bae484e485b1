"""The middleware for LangChain with LangChain's own GenericFakeChatModel. usage: langchain_test.py SOCKET"""
from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Sequence
from typing import Any, TypedDict

import policies
import served
import tap
from langchain.agents import AgentState, create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, InvalidToolCall, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command, interrupt

import toolgate.sync
from toolgate import Gate, Halt, ToolgateError
from toolgate.langchain import Toolgate

ran: list[Any] = []


@tool
def forecast(city: str, days: int = 1) -> dict[str, Any]:
    """The weather in a city."""
    ran.append((city, days))
    if city == "Atlantis":
        raise LookupError("no such city: Atlantis")
    return {"sky": "grey", "days": days}


sleeping = asyncio.Event()


@tool
async def sleeps(city: str) -> str:
    """Never ends."""
    sleeping.set()
    await asyncio.sleep(3600)
    return city


class Role(TypedDict):
    role: str


class Counting(AgentState[Any]):
    asked: int


@tool
def count(n: int, runtime: ToolRuntime) -> Command[Any]:
    """Count in the agent's state."""
    return Command(update={"asked": n, "messages": [ToolMessage(f"counted {n}", tool_call_id=runtime.tool_call_id)]})


class Playing(GenericFakeChatModel):
    """Makes the calls of each step while it has tools, then answers."""

    offered: list[list[str]] = []
    described: list[dict[str, str]] = []
    obeys: bool = True

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        self.offered.append([one.name for one in tools])
        self.described.append({one.name: one.description for one in tools})
        return self

    def _generate(self, messages: Any, *args: Any, **more: Any) -> Any:
        halted = isinstance(messages[-1], ToolMessage) and "Stop." in messages[-1].text
        if halted and self.obeys:
            self.messages = iter([AIMessage("my best answer")])
        return super()._generate(messages, *args, **more)


def calls(*made: tuple[str, Any]) -> AIMessage:
    ids = [uuid.uuid4().hex for _ in made]
    return AIMessage(
        "", id=uuid.uuid4().hex,
        tool_calls=[{"name": name, "args": args, "id": id} for (name, args), id in zip(made, ids) if isinstance(args, dict)],
        invalid_tool_calls=[
            InvalidToolCall(name=name, args=args, id=id, error=None, type="invalid_tool_call")
            for (name, args), id in zip(made, ids) if isinstance(args, str)
        ],
    )


async def play(socket: str, steps: list[AIMessage], obeys: bool = True, sync: bool = False) -> tuple[list[str], str, str]:
    ran.clear()
    model = Playing(messages=iter([*steps, AIMessage("my best answer")]), obeys=obeys)
    name, question = str(uuid.uuid4()), {"messages": [("user", "rain?")]}
    gate = toolgate.sync.Gate(socket) if sync else Gate(socket)
    agent = create_agent(model, [forecast], middleware=[Toolgate(gate.session(name))])
    state = agent.invoke(question) if isinstance(gate, toolgate.sync.Gate) else await agent.ainvoke(question)
    if isinstance(gate, Gate):
        await gate.close()
    heard = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
    return heard, state["messages"][-1].text, name


async def test_pass(socket: str) -> None:
    """LangChain: a good call runs, and its result reaches the model unchanged"""
    heard, output, _ = await play(socket, [calls(("forecast", {"city": "Bern"}))])
    assert heard == ['{"sky": "grey", "days": 1}'] and output == "my best answer", heard


async def repairs(socket: str, sync: bool) -> None:
    heard, output, _ = await play(socket, [
        calls(("forecast", {"town": "Bern"})), calls(("forecast", '{"city": "Ber')),
        calls(("forecast", {"city": "Bern", "days": "2"})), calls(("forecast", {"city": "Atlantis"}))], sync=sync)
    assert "'city' is missing" in heard[0] and "cut off" in heard[1] and "'days' was read as 2" in heard[2], heard
    assert "no such city" in heard[3], heard
    assert ran == [("Bern", 2), ("Atlantis", 1)] and output == "my best answer"


async def test_repair(socket: str) -> None:
    """LangChain: what is wrong with the arguments reaches the model, malformed JSON and a tool's exception, too"""
    await repairs(socket, sync=False)


async def test_repair_sync(socket: str) -> None:
    """LangChain: the same without asyncio"""
    await repairs(socket, sync=True)


async def test_attempts(socket: str) -> None:
    """LangChain: attempts run out though each call has an id of its own, and a right call still passes"""
    for sync in (False, True):
        steps = [*(calls(("forecast", wrong)) for wrong in tap.WRONG), calls(("forecast", {"city": "Bern"}))]
        heard, output, _ = await play(socket, steps, sync=sync)
        tap.attempts_run_out(heard)
        assert ran == [("Bern", 1)] and output == "my best answer", heard


async def test_halt(socket: str) -> None:
    """LangChain: after a halt the model gives its best answer"""
    heard, output, _ = await play(socket, [calls(("forecast", {"city": "Bern"})) for _ in range(20)])
    assert output == "my best answer" and len(ran) == 2 and len(heard) < 10 and "Stop." in heard[-1], heard


async def test_halt_disobeyed(socket: str) -> None:
    """LangChain: a model that calls on after a halt ends the run with Halt"""
    try:
        await play(socket, [calls(("forecast", {"city": "Bern"})) for _ in range(20)], obeys=False)
    except Halt as halt:
        assert "Stop." in halt.text
    else:
        raise AssertionError("the run went on")


async def test_parallel(socket: str) -> None:
    """LangChain: the calls of one message are one step of one turn"""
    _, _, name = await play(socket, [calls(*[("forecast", {"city": city}) for city in ("Bern", "Brno", "Basel")])])
    async with Gate(socket) as gate:
        seen = await gate.request("toolgate/session", session=name)
    history = seen["history"]
    assert seen["turn"] == 1 and len(history) == 3 and len({one["step"] for one in history}) == 1, seen


async def test_command(socket: str) -> None:
    """LangChain: a tool's command changes the agent's state, also where toolgate adds a note to its message"""
    for n in (1, "2"):
        async with Gate(socket) as gate:
            model = Playing(messages=iter([calls(("count", {"n": n})), AIMessage("counted")]))
            middleware = [Toolgate(gate.session(str(uuid.uuid4())))]
            agent = create_agent(model, [count], middleware=middleware, state_schema=Counting)
            state = await agent.ainvoke({"messages": [("user", "count")]})
        heard = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
        assert state["asked"] == int(n) and f"counted {n}" in heard[0] and ("Note" in heard[0]) == (n == "2"), (state, heard)


@tool
def confirm(city: str) -> str:
    """Ask a person."""
    return f"{city}: {interrupt('really?')}"


async def test_interrupt(socket: str) -> None:
    """LangChain: an interrupt ends the run, and the run goes on where it was when a person has answered"""
    async with Gate(socket) as gate:
        session = gate.session(str(uuid.uuid4()))
        model = Playing(messages=iter([calls(("confirm", {"city": "Bern"})), AIMessage("done")]))
        agent = create_agent(model, [confirm], middleware=[Toolgate(session)], checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        state = await agent.ainvoke({"messages": [("user", "go")]}, thread)
        assert state["__interrupt__"][0].value == "really?", state
        await tap.nothing_waits(gate, session.name)
        state = await agent.ainvoke(Command(resume="yes"), thread)
        assert [message.text for message in state["messages"][-2:]] == ["Bern: yes", "done"], state
        assert (await gate.request("toolgate/session", session=session.name))["turn"] == 1


async def test_wrong_gate(socket: str) -> None:
    """LangChain: a gate of the wrong kind is an error that names the right one"""
    for agent_of, words in ((Gate(socket), "toolgate.sync.Gate"), (toolgate.sync.Gate(socket), "of toolgate.Gate")):
        model = Playing(messages=iter([AIMessage("done")]))
        agent = create_agent(model, [forecast], middleware=[Toolgate(agent_of.session("s"))])
        question: Any = {"messages": [("user", "go")]}
        try:
            agent.invoke(question) if isinstance(agent_of, Gate) else await agent.ainvoke(question)
        except ToolgateError as error:
            assert words in str(error), error
        else:
            raise AssertionError("no error")


async def test_cancel(socket: str) -> None:
    """LangChain: a cancelled run gives back what its check reserved"""
    async with Gate(socket) as gate:
        session = gate.session(str(uuid.uuid4()))
        model = Playing(messages=iter([calls(("sleeps", {"city": "Bern"}))]))
        agent = create_agent(model, [sleeps], middleware=[Toolgate(session)])
        await tap.cancelled(agent.ainvoke({"messages": [("user", "rain?")]}), sleeping)
        await tap.nothing_waits(gate, session.name)


@tool
def secret(city: str) -> str:
    """A secret."""
    return "hush"


@tool
def later(city: str) -> str:
    """Later."""
    return "late"


async def ask(agent: Any, sync: bool = False) -> list[str]:
    """What the model heard of its calls."""
    question = {"messages": [("user", "rain?")]}
    state = agent.invoke(question) if sync else await agent.ainvoke(question)
    return [message.text for message in state["messages"] if isinstance(message, ToolMessage)]


async def test_policy_words(_: str) -> None:
    """LangChain: the model reads a policy's words, and sees at each step what prepare shows, with and without asyncio"""
    for make in (Gate, toolgate.sync.Gate):
        with served.daemon(policies.POLICIES) as one:
            gate = make(one.socket)
            model = Playing(messages=iter([calls(("forecast", {"city": "Bern"})), calls(("later", {"city": "Bern"})),
                                           AIMessage("done")]), described=[], offered=[])
            agent = create_agent(model, [forecast, secret, later], middleware=[Toolgate(gate.session("s"))])
            heard = await ask(agent, sync=make is not Gate)
            if isinstance(gate, Gate):
                await gate.close()
        assert model.described[0] == {"forecast": "The weather in a city.\n" + policies.USE_WHEN}, model.described
        assert sorted(model.offered[1]) == ["forecast", "later"] and heard[1] == "late", (model.offered, heard)


async def test_context(_: str) -> None:
    """LangChain: what policies read as call.context comes from the run, with and without asyncio"""
    for make in (Gate, toolgate.sync.Gate):
        with served.daemon(policies.POLICIES) as one:
            gate = make(one.socket)
            for role in ("boss", "clerk"):
                model = Playing(messages=iter([calls(("secret", {"city": "Bern"})), AIMessage("done")]), offered=[])
                middleware = Toolgate(gate.session(role), context=lambda request: {"role": request.runtime.context["role"]})
                agent: Any = create_agent(model, [forecast, secret], middleware=[middleware], context_schema=Role)
                question, context = {"messages": [("user", "?")]}, {"role": role}
                state = await agent.ainvoke(question, context=context) if make is Gate else agent.invoke(question, context=context)
                heard = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
                assert ("secret" in model.offered[0]) == (role == "boss") == (heard == ["hush"]), (model.offered, heard)
            if isinstance(gate, Gate):
                await gate.close()


@tool
def draw(city: str, days: int = 1) -> list[dict[str, Any]]:
    """A picture."""
    return [{"type": "image", "base64": "aGk=", "mime_type": "image/png"}]


async def test_picture_with_a_note(socket: str) -> None:
    """LangChain: a picture stays one where toolgate adds a note"""
    async with Gate(socket) as gate:
        model = Playing(messages=iter([calls(("draw", {"city": "Bern", "days": "2"})), AIMessage("done")]))
        agent = create_agent(model, [draw], middleware=[Toolgate(gate.session(str(uuid.uuid4())))])
        state = await agent.ainvoke({"messages": [("user", "?")]})
    picture, note = next(message.content for message in state["messages"] if isinstance(message, ToolMessage))
    assert picture["base64"] == "aGk=" and "'days' was read as 2" in note["text"], (picture, note)


async def test_two_agents(socket: str) -> None:
    """LangChain: two agents of one Gate have their own tools, also of one name"""
    @tool("forecast")
    def weather(place: str) -> str:
        """Another weather."""
        return f"weather of {place}"

    async with Gate(socket) as gate:
        sessions = [gate.session(str(uuid.uuid4())) for _ in range(2)]
        made = [create_agent(Playing(messages=iter([calls(("forecast", arguments)), AIMessage("done")])), tools,
                             middleware=[Toolgate(session)])
                for arguments, tools, session in (({"city": "Bern"}, [forecast, sleeps], sessions[0]),
                                                  ({"place": "Bern"}, [weather, count], sessions[1]))]
        heard = await asyncio.gather(*map(ask, made))
        assert "grey" in heard[0][0] and heard[1][0] == "weather of Bern", heard
        for session, mine, others in ((sessions[0], "sleeps", "count"), (sessions[1], "count", "sleeps")):
            shown = await session.definitions()
            assert shown and mine in shown and others not in shown, shown


async def test_nested(socket: str) -> None:
    """LangChain: an agent that a tool runs is named by that tool; the outermost run has no name, and begins the turn"""
    for sync in (False, True):
        gate: Any = toolgate.sync.Gate(socket) if sync else Gate(socket)
        session = gate.session(str(uuid.uuid4()))

        def agent(tools: list[Any], *steps: AIMessage) -> Any:
            model = Playing(messages=iter([*steps, AIMessage("done")]))
            return create_agent(model, tools, middleware=[Toolgate(session)])

        helper = agent([forecast], calls(("forecast", {"city": "Bern"})))
        if sync:
            @tool
            def ask_helper(question: str) -> str:
                """Ask a helper."""
                return str(helper.invoke({"messages": [("user", question)]})["messages"][-1].text)
        else:
            @tool
            async def ask_helper(question: str) -> str:
                """Ask a helper."""
                return str((await helper.ainvoke({"messages": [("user", question)]}))["messages"][-1].text)
        with policies.overheard() as made:
            outer = agent([forecast, ask_helper], calls(("ask_helper", {"question": "?"})), calls(("forecast", {"city": "Bern"})))
            await ask(outer, sync)
        assert policies.agents_of(made) == [None, "ask_helper", None], made
        if not sync:
            await gate.close()


async def test_subgraph(socket: str) -> None:
    """LangChain: agents that are parts of a graph are named by their nodes, and share its turn"""
    async with Gate(socket) as gate:
        session = gate.session(str(uuid.uuid4()))
        graph = StateGraph(MessagesState)
        for name, city in (("scout", "Bern"), ("writer", "Brno")):
            model = Playing(messages=iter([calls(("forecast", {"city": city})), AIMessage(f"{name} is done", id=name)]))
            graph.add_node(name, create_agent(model, [forecast], middleware=[Toolgate(session)]))
        graph.add_edge(START, "scout")
        graph.add_edge("scout", "writer")
        with policies.overheard() as made:
            await graph.compile().ainvoke({"messages": [("user", "rain?")]})
    assert policies.agents_of(made) == ["scout", "writer"] and policies.turns(made) == 1, made


async def test_gave_up(socket: str) -> None:
    """LangChain: what the model has not repaired when the run ends, it has given up"""
    async with Gate(socket) as gate:
        before = await policies.gave_up(gate)
        model = Playing(messages=iter([calls(("forecast", {"town": "Bern"})), AIMessage("done")]))
        await ask(create_agent(model, [forecast], middleware=[Toolgate(gate.session(str(uuid.uuid4())))]))
        assert await policies.gave_up(gate) == before + 1


if __name__ == "__main__":
    tap.run(globals(), *sys.argv[1:])
