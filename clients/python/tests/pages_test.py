"""The pages' code runs and prints what they show; a model's name stands for the framework's own test model.

usage: TOOLGATE=… pages_test.py
"""
from __future__ import annotations

import contextlib
import io
import os
import pathlib
import re
import sys
from typing import Any

import served
import tap

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
SOCKET, MODEL = "/run/toolgate/toolgate.sock", '"openai:gpt-5"'  # as the pages have them
CALL = ("get_stock", {"warehouse": "Bern", "article": 4711})


def run(code: str, namespace: dict[str, Any]) -> str:
    """What a block printed, as a file that goes on where the last one ended."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<page>", "exec"), namespace)
    return out.getvalue()


def shows(shown: str, said: str) -> None:
    """A line of … stands for any lines."""
    at = 0
    for line in shown.splitlines():
        if line != "…":
            at = said.find(line, at)
            assert at >= 0, f"the page shows {line!r}; what came is:\n{said}"
            at += len(line)


def page(name: str, model: Any = None) -> dict[str, Any]:
    """Runs the blocks of a page in their order, with its policies; returns what they defined."""
    fences = re.findall(r"\n```(\w+)\n(.*?)\n```", (DOCS / name).read_text(), re.DOTALL)
    policies = {re.search(r'return tool "(\w+)"', code)[1]: code for kind, code in fences if kind == "lua"}  # type: ignore[index]
    namespace: dict[str, Any] = {"TEST_MODEL": model, "__name__": "page"}
    blocks = 0
    with served.daemon(policies) as daemon:
        for (kind, code), (after, text) in zip(fences, [*fences[1:], ("", "")]):
            if kind != "python":
                continue
            blocks += 1
            printed = run(code.replace(SOCKET, daemon.socket).replace(MODEL, "TEST_MODEL"), namespace)
            if after == "text":
                shows(text, printed)
            if os.environ.get("SHOW"):
                print(printed)
    assert blocks
    return namespace


def test_python() -> None:
    """pages: docs/clients/python.md"""
    page("clients/python.md")


def test_recipe() -> None:
    """pages: docs/recipes/python-agent.md"""
    page("recipes/python-agent.md")


def test_pydantic_ai() -> None:
    """pages: docs/clients/pydantic-ai.md, with TestModel"""
    from pydantic_ai.models.test import TestModel
    assert '"pieces":12' in page("clients/pydantic-ai.md", TestModel())["result"].output


def test_langchain() -> None:
    """pages: docs/clients/langchain.md, with GenericFakeChatModel"""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

    name, arguments = CALL
    model = Model(messages=iter([AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "1"}]), AIMessage("12")]))
    messages = page("clients/langchain.md", model)["result"]["messages"]
    assert '"pieces": 12' in messages[-2].text and messages[-1].text == "12", messages


def test_openai_agents() -> None:
    """pages: docs/clients/openai-agents.md, with ScriptedModel"""
    from agents.testing import ScriptedModel, assistant_message, function_call
    name, arguments = CALL
    model = ScriptedModel([[function_call(name, arguments, call_id="1")], [assistant_message("12")]])
    result = page("clients/openai-agents.md", model)["result"]
    assert "'pieces': 12" in str(result.to_input_list()) and result.final_output == "12", result.to_input_list()


if __name__ == "__main__":
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    tap.run(globals(), *sys.argv[1:])
