#!/usr/bin/env python3
"""The Python SDK and pydantic-ai over `toolgate connect`, while the daemon is killed in the middle of calls and started
again 5 s later: one answer to each request, and the client's session never ends. Prints TAP.

usage: restart_client.py TOOLGATE FOLDER (with policies/; the daemon is this program's own)
"""
import asyncio
import os
import subprocess
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

AWAY_S = 5
TOOLGATE, FOLDER = sys.argv[1:3]
SOCKET = FOLDER + "/s"
failures = 0


def tap(what, good, otherwise=""):
    global failures
    failures += not good
    print(("ok - " if good else "not ok - ") + what, flush=True)
    if not good:
        print("#   " + str(otherwise).replace("\n", "\n#   "))


async def until(what, condition):
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError("waited in vain until " + what)


async def serve():
    child = subprocess.Popen([TOOLGATE, "serve", "--socket", SOCKET, "--policies", FOLDER + "/policies"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await until("the daemon listens", lambda: os.path.exists(SOCKET))
    return child


def kill(daemon):
    daemon.kill()
    daemon.wait()
    os.remove(SOCKET)


def runs():
    try:
        with open(FOLDER + "/ran", encoding="utf-8") as file:
            return len(file.read().split())
    except FileNotFoundError:
        return 0


def forget():
    for name in ("ran", "go"):
        if os.path.exists(FOLDER + "/" + name):
            os.remove(FOLDER + "/" + name)


async def away():
    """No daemon for a while, then one whose tools end at once."""
    await asyncio.sleep(AWAY_S)
    with open(FOLDER + "/go", "w", encoding="utf-8"):
        pass
    return await serve()


async def with_the_sdk():
    daemon = await serve()
    async with stdio_client(StdioServerParameters(command=TOOLGATE, args=["connect", SOCKET])) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            tap("Python SDK: lists its tools", "look" in [tool.name for tool in (await session.list_tools()).tools])
            calls = [asyncio.create_task(session.call_tool(name, {"folder": FOLDER})) for name in ("look", "change")]
            await until("both tools run", lambda: runs() == 2)
            kill(daemon)
            answers = [(await call) for call in calls]
            codes = [answer.meta["dev.toolgate/verdict"]["code"] for answer in answers]
            tap("Python SDK: each call has an answer that says what happened",
                all(answer.isError for answer in answers) and codes == ["gateway_restarted"] * 2, codes)
            late = asyncio.create_task(session.list_tools())
            daemon = await away()
            tap("Python SDK: a request of the time between is answered by the next daemon", (await late).tools)
            again = await session.call_tool("look", {"folder": FOLDER})
            tap("Python SDK: the next call works", not again.isError, again)
            tap("Python SDK: no call was repeated", runs() == 3, runs())
    kill(daemon)


async def with_pydantic_ai():
    forget()
    daemon = await serve()
    heard = []

    async def model(messages, info):
        nonlocal daemon
        for part in messages[-1].parts:
            if isinstance(part, ToolReturnPart):
                heard.append(str(part.content))
            elif getattr(part, "tool_name", None):  # a repair
                heard.append(str(part.content))
        if len(heard) == 1:
            daemon = await away()
        if len(heard) >= 2:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("look", {"folder": FOLDER})])

    async def kills():
        await until("the tool runs", lambda: runs() == 1)
        kill(daemon)

    toolset = MCPToolset(StdioTransport(command=TOOLGATE, args=["connect", SOCKET]), max_retries=10)
    async with Agent(FunctionModel(model), toolsets=[toolset]) as agent:
        killing = asyncio.create_task(kills())
        result = await agent.run("go on")
        await killing
    tap("pydantic-ai: the model reads that the gateway was restarted", "restarted" in heard[0] or "gateway" in heard[0], heard)
    tap("pydantic-ai: the next call works, and the run ends well", result.output == "done" and "done" in heard[1], heard)
    tap("pydantic-ai: no call was repeated", runs() == 2, runs())
    kill(daemon)


async def main():
    forget()
    await with_the_sdk()
    await with_pydantic_ai()


asyncio.run(main())
sys.exit(1 if failures else 0)
