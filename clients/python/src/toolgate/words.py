"""The words of toolgate's protocol (docs/protocol.md), and this client's limits."""
from __future__ import annotations

from typing import Literal

OnUnavailable = Literal["raise", "allow", "refuse"]
By = Literal["person"]  # who began a turn, if not the program

CHECK, REPORT, REGISTER, TURN = "toolgate/check", "toolgate/report", "toolgate/register", "toolgate/turn"
TOOLS = "toolgate/tools"
SESSION_KEY, TURN_KEY, STEP_KEY = "dev.toolgate/session", "dev.toolgate/turn", "dev.toolgate/step"
# In a definition: its schema was made of a function's signature, so that what does not fit it cannot run.
SCHEMA_KEY = "dev.toolgate/schema"
EXACT = {SCHEMA_KEY: "strict"}
REPAIR_KEY = "dev.toolgate/repair"  # how often the model may correct a call
REPAIR_MAX = 1000  # the daemon does not read a higher one
STRICT_KEY = "dev.toolgate/strict"  # whether a policy wants a provider's strict mode for the tool
CALL_KEY, CONTEXT_KEY, AGENT_KEY = "dev.toolgate/call", "dev.toolgate/context", "dev.toolgate/agent"
AGENT_MAX_BYTES = 128

# Error codes of the daemon, by what the caller can do.
UNAVAILABLE_CODES = frozenset({1004, 1005, 1006, 1007, 1008, 1013, 1015, 1017})  # overload, stopping, no ledger
STOPPING = 1013
# The arguments or the result are too long, too deep, have too many values, or make a reply that is too long.
MODEL_CODES = frozenset({1001, 1002, 1003, 1010})

LINE_MAX_BYTES = 8 * 1024 * 1024  # of a request, as the daemon reads it
REPLY_MAX_BYTES = 16 * 1024 * 1024  # the daemon sends 9 MiB
GOAL_MAX_BYTES = 8 * 1024
LATE_MAX_COUNT = 1024  # checks that this program gave up, whose result it still reads to give back what they reserved
TIMEOUT_S = 30.0  # for a reply, the time to connect included
WAIT_S = 5.0  # for a daemon that is not there
SESSIONS_MAX = 64  # whose own tools a connection has declared; the daemon keeps more of them
BACKOFF_FIRST_S, BACKOFF_MAX_S = 0.02, 0.5
