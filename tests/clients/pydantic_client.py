#!/usr/bin/env python3
"""pydantic-ai with toolgate as an MCP stdio server, and scripted models without network. Prints TAP.

usage: pydantic_client.py TOOLGATE SOCKET
"""
import asyncio
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

DAY = {"action": "by_time_span", "start": "2026-05-04T00:00:00Z", "end": "2026-05-05T00:00:00Z"}
GARDEN = "9d0e6f52-1c3b-4e8a-8f27-7b5a4c3d2e11"
failures = 0


def tap(what, good, otherwise=""):
    global failures
    failures += not good
    print(("ok - " if good else "not ok - ") + what)
    if not good:
        print("#   " + str(otherwise).replace("\n", "\n#   "))


def toolset(toolgate, path, **more):
    return MCPToolset(StdioTransport(command=toolgate, args=["connect", path, "--session", "auto"]), **more)


def playing(calls):
    """A model that makes these calls, one per message, and the list of results it got."""
    heard = []

    def model(messages, info):
        for part in messages[-1].parts:
            if isinstance(part, ToolReturnPart):
                heard.append((part.outcome == "success", str(part.content)))
        if len(heard) == len(calls):
            return ModelResponse(parts=[TextPart("done")])
        name, arguments = calls[len(heard)]
        return ModelResponse(parts=[ToolCallPart(name, arguments)])

    return FunctionModel(model), heard


async def play(calls, *where):
    model, heard = playing(calls)
    async with Agent(model, toolsets=[toolset(*where, max_retries=10)]) as agent:
        await agent.run("go on")
    return heard


async def main(*where):
    seen = TestModel(call_tools=[])
    async with Agent(seen, toolsets=[toolset(*where)]) as agent:
        await agent.run("what can you do?")
    names = {tool.name for tool in seen.last_model_request_parameters.function_tools}
    tap("the model gets the tools of policies/", {"get_events", "create_task", "search_orders"} <= names, names)

    [(good, text)] = await play([("get_events", DAY)], *where)
    tap("a valid call passes", good and "Dentist" in text, text)

    heard = await play([("create_task", {"titel": "Prune the roses", "project_id": GARDEN}),
                        ("create_task", {"title": "Prune the roses", "project_id": GARDEN})], *where)
    tap("an invalid call is explained to the model", not heard[0][0] and "did you mean 'title'?" in heard[0][1], heard[0])
    tap("and repaired on the second try", heard[1][0] and "Prune the roses" in heard[1][1], heard[1])

    heard = await play([("lookup_contact", {"action": "search", "query": "chloe"})] * 5, *where)
    tap("a loop is stopped at the third call", [good for good, _ in heard] == [True, True, False, False, False], heard)
    return failures


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main(*sys.argv[1:])) else 0)
