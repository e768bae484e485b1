"""The policies of the tests that ask what of them reaches a framework's model, and what the daemon counted."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from toolgate import wire

# forecast says when to use it; secret is for one role; later is hidden until forecast has brought something.
POLICIES = {
    "forecast": """
-- forecast: the weather. The agent runs it. Read only.
return tool "forecast" { effects = "read", use_when = "the user asks for the weather" }
""",
    "secret": """
-- secret: what only the boss may see. The agent runs it. Read only.
return tool "secret" { effects = "read",
  prepare = function(def, call)
    if call.context and call.context.role == "boss" then
      def.description = "For the boss."
      return def
    end
  end }
""",
    "later": """
-- later: hidden until there is a forecast. The agent runs it. Read only.
return tool "later" { effects = "read",
  prepare = function(def, call) if #call.history > 0 then return def end end }
""",
}
USE_WHEN = "Use it when the user asks for the weather."


@contextlib.contextmanager
def overheard() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """(method, _meta) of each request that a client makes meanwhile."""
    made: list[tuple[str, dict[str, Any]]] = []
    line = wire.request_line

    def overhear(request: wire.Request, id: int) -> bytes:
        made.append((request.method, request.params.get("_meta", {})))
        return line(request, id)

    wire.request_line = overhear
    try:
        yield made
    finally:
        wire.request_line = line


def agents_of(made: list[tuple[str, dict[str, Any]]], method: str = "toolgate/check") -> list[str | None]:
    return [meta.get("dev.toolgate/agent") for made_by, meta in made if made_by == method]


def turns(made: list[tuple[str, dict[str, Any]]]) -> int:
    """How many turns began. The end of a run is sent without waiting, and not overheard."""
    return len([method for method, _ in made if method == "toolgate/turn"])


async def gave_up(gate: Any) -> int:
    counters = (await gate.request("toolgate/status"))["counters"]
    return int(counters["chains"]["llm_gave_up"])
