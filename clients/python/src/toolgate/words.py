"""The words of toolgate's protocol (docs/protocol.md), and this client's limits."""
from __future__ import annotations

from typing import Literal

OnUnavailable = Literal["raise", "allow", "refuse"]
By = Literal["person"]  # who began a turn, if not the program

CHECK, REPORT, REGISTER, TURN = "toolgate/check", "toolgate/report", "toolgate/register", "toolgate/turn"
SESSION_KEY, TURN_KEY, STEP_KEY = "dev.toolgate/session", "dev.toolgate/turn", "dev.toolgate/step"
# In a definition: its schema was made of a function's signature, so that what does not fit it cannot run.
SCHEMA_KEY = "dev.toolgate/schema"
EXACT = {SCHEMA_KEY: "strict"}
CALL_KEY, CONTEXT_KEY = "dev.toolgate/call", "dev.toolgate/context"

# Error codes of the daemon, by what the caller can do.
UNAVAILABLE_CODES = frozenset({1004, 1005, 1006, 1007, 1008, 1013, 1015, 1017})  # overload, stopping, no ledger
STOPPING = 1013
MODEL_CODES = frozenset({1001, 1002, 1003})  # the arguments are too long, too deep or have too many values

LINE_MAX_BYTES = 8 * 1024 * 1024  # of a request, as the daemon reads it, and of a reply
TIMEOUT_S = 30.0  # for a reply, the time to connect included
WAIT_S = 5.0  # for a daemon that is not there
BACKOFF_FIRST_S, BACKOFF_MAX_S = 0.02, 0.5
