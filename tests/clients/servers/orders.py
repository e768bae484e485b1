#!/usr/bin/env python3
"""A FastMCP server over streamable HTTP, as an upstream of toolgate: orders.

usage: orders.py PORT    (0: any free port; prints the URL when it listens)
"""
import asyncio
import socket
import sys
from dataclasses import dataclass

import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError

server = FastMCP("orders", version="1")
ORDERS = {7: ("shipped", 1250), 8: ("placed", 399)}


@dataclass
class Order:
    id: int
    status: str
    cents: int


@server.tool(annotations={"readOnlyHint": True})
def find_order(order_id: int) -> Order:
    """Read one order by its number."""
    if order_id not in ORDERS:
        raise ToolError(f"there is no order {order_id}; the orders are 7 and 8")
    status, cents = ORDERS[order_id]
    return Order(order_id, status, cents)


@server.tool(annotations={"readOnlyHint": False, "destructiveHint": True})
def cancel_order(order_id: int, reason: str) -> str:
    """Cancel an order that was not shipped yet."""
    return f"order {order_id} is cancelled: {reason}"


@server.tool(annotations={"readOnlyHint": True})
async def count_stock(shelves: int, ctx: Context) -> str:
    """Count what is on the shelves, a shelf after the other."""
    for shelf in range(shelves):
        await ctx.report_progress(shelf + 1, shelves, f"shelf {shelf + 1}")
        await asyncio.sleep(0.02)
    return f"{shelves} shelves hold {shelves * 40} things"


@server.tool(annotations={"readOnlyHint": True})
def divide(cents: int, people: int) -> float:
    """Divide a price among people."""
    return cents / people


async def serve(port):
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(64)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    app = server.http_app(path="/mcp")
    await uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=0)).serve([listening])


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
