"""Tests as TAP: each coroutine function `test_…` of a module is one test, with a daemon's socket as its argument."""
from __future__ import annotations

import asyncio
import inspect
import re
import sys
import traceback
from collections.abc import Coroutine
from typing import Any


async def cancelled(run: Coroutine[Any, Any, Any], running: asyncio.Event) -> None:
    """Cancels a run of an agent in the middle of its tool."""
    task = asyncio.ensure_future(run)
    waiting = asyncio.ensure_future(running.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    assert not task.done(), task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled(), task


async def nothing_waits(gate: Any, session: str) -> None:
    history = (await gate.request("toolgate/session", session=session))["history"]
    assert [call["class"] for call in history] == ["cancelled"], history


WRONG = [{"town": f"Bern {n}"} for n in range(6)]  # each as wrong as the last, and no call twice


def attempts_run_out(heard: list[str]) -> None:
    """What the model reads of WRONG where each call has an id of its own, as every provider gives it."""
    assert "2 attempts left" in heard[0] and "1 attempt left" in heard[1], heard
    for text in heard[2 : len(WRONG)]:
        assert "forecast was not run" in text and not re.search(r"[1-9] attempts? left", text), heard


def run(module: dict[str, Any], *arguments: str) -> None:
    failed = 0
    tests = [one for name, one in module.items() if name.startswith("test_")]
    for test in tests:
        title = (inspect.getdoc(test) or test.__name__).splitlines()[0]
        try:
            made = test(*arguments)
            if inspect.isawaitable(made):
                asyncio.run(asyncio.wait_for(made, 60))  # type: ignore[arg-type]
            print(f"ok - {title}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok - {title}\n#   " + traceback.format_exc().replace("\n", "\n#   "), flush=True)
    sys.exit(1 if failed or not tests else 0)
