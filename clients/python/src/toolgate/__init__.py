"""toolgate checks an agent's tool calls before they run, and their results after.

    gate = Gate("/run/toolgate/toolgate.sock", tools=[get_weather])
    session = gate.session("chat-7")
    async with session.turn(goal="Will it rain in Bern?"):
        outcome = await session.call("get_weather", {"city": "Bern"})

`toolgate.sync` has the same classes without asyncio. The core needs only the standard library; `guard` needs
pydantic (`pip install toolgate[guard]`), and each adapter its framework.
"""
from .errors import Ask, Halt, ProtocolError, Refuse, Repair, Retry, Stopped, ToolgateError, Unavailable, Wait
from .functions import Context, Tool, guard
from .gate import Gate, Session, Turn
from .results import Failure
from .verdict import Checked, Kind, Outcome, Problem, Reported, Suggestion, Verdict
from .words import OnUnavailable

__all__ = [
    "Ask", "Checked", "Context", "Failure", "Gate", "Halt", "Kind", "OnUnavailable", "Outcome", "Problem",
    "ProtocolError", "Refuse", "Repair", "Reported", "Retry", "Session", "Stopped", "Suggestion", "Tool", "ToolgateError",
    "Turn", "Unavailable", "Verdict", "Wait", "guard",
]
