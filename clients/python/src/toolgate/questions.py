"""A policy's question, put to the user of this program."""
from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

# (question, choices) -> a choice, True or False where there are no choices, or None: the user declines.
OnAsk = Callable[[str, Sequence[str]], "Awaitable[str | bool | None] | str | bool | None"]


def read_question(params: dict[str, Any]) -> tuple[str, list[str]]:
    answer = params.get("requestedSchema", {}).get("properties", {}).get("answer", {})
    return str(params.get("message", "")), [str(choice) for choice in answer.get("enum", ())]


def as_result(answer: str | bool | None) -> dict[str, Any]:
    return {"action": "decline"} if answer is None else {"action": "accept", "content": {"answer": answer}}


def failed(error: Exception) -> dict[str, Any]:
    """A user who cannot be asked has not agreed."""
    logging.getLogger("toolgate").error("on_ask failed, so the call is declined: %s", error, exc_info=error)
    return {"action": "cancel"}


async def answer_question(on_ask: OnAsk, params: dict[str, Any]) -> dict[str, Any]:
    try:
        answer = on_ask(*read_question(params))
        return as_result(await answer if inspect.isawaitable(answer) else answer)
    except Exception as error:
        return failed(error)
