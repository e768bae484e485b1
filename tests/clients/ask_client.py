#!/usr/bin/env python3
"""The Python SDK with a handler for elicitation, over `toolgate connect` and over the bare socket: a policy's question
reaches the user, and the user's answer the call. Prints TAP.

usage: ask_client.py TOOLGATE SOCKET, of a daemon with the policy `pay` (run.lua)
"""
import asyncio
import sys

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

TOOLGATE, SOCKET = sys.argv[1:3]
BRIDGE = "import socket, sys, threading\n" \
         "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n" \
         "def read():\n" \
         "    for line in s.makefile('rb'): sys.stdout.buffer.write(line); sys.stdout.buffer.flush()\n" \
         "threading.Thread(target=read, daemon=True).start()\n" \
         "for line in sys.stdin.buffer: s.sendall(line)\n"
failures = 0


def tap(what, good, otherwise=""):
    global failures
    failures += not good
    print(("ok - " if good else "not ok - ") + what, flush=True)
    if not good:
        print("#   " + str(otherwise).replace("\n", "\n#   "))


async def answer(name, first_amount, server):
    asked, replies = [], []

    async def handler(_context, params):
        asked.append(params)
        return replies.pop(0)

    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write, elicitation_callback=handler) as session:
            await session.initialize()
            amount = first_amount
            said = []
            for reply in (types.ElicitResult(action="accept", content={"answer": "pay"}),
                          types.ElicitResult(action="accept", content={"answer": "keep"}),
                          types.ElicitResult(action="cancel")):
                replies.append(reply)
                amount += 1
                said.append(await session.call_tool("pay", {"amount": amount}))
    texts = [result.content[0].text for result in said]
    tap(name + ": the question reaches the user, and the first choice runs the call",
        "paid" in texts[0] and len(asked) == 3, texts)
    tap(name + ": any other answer declines it", all("declined" in text for text in texts[1:]), texts)


async def main():
    await answer("Python SDK, connect", 2000, StdioServerParameters(command=TOOLGATE, args=["connect", SOCKET]))
    await answer("Python SDK, socket", 3000, StdioServerParameters(command=sys.executable, args=["-c", BRIDGE, SOCKET]))
    sys.exit(failures > 0)


asyncio.run(main())
