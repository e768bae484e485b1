"""guard: a function as a tool, with a JSON Schema from its type hints. Needs pydantic, and griffe for docstrings."""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload

from .words import EXACT

F = TypeVar("F", bound=Callable[..., Any])
Effects = Literal["read", "write", "destructive"]

HINTS: dict[str, dict[str, bool]] = {
    "read": {"readOnlyHint": True},
    "write": {"readOnlyHint": False, "destructiveHint": False},
    "destructive": {"readOnlyHint": False, "destructiveHint": True},
}


@dataclass(frozen=True)
class Tool:
    """A function that models may call. Called as a function, it is the function: unchecked."""

    function: Callable[..., Any]
    name: str
    description: str
    input_schema: Mapping[str, Any]
    effects: Effects | None
    adapters: Mapping[str, Any] = field(repr=False, default_factory=dict)  # parameter -> TypeAdapter

    @property
    def definition(self) -> dict[str, Any]:
        """As toolgate/register takes it."""
        definition: dict[str, Any] = {"name": self.name, "description": self.description, "inputSchema": self.input_schema,
                                      "_meta": EXACT}
        if self.effects:
            definition["annotations"] = HINTS[self.effects]
        return definition

    def run(self, arguments: Mapping[str, Any]) -> Any:
        """The function with JSON arguments made into what its hints say: dates, dataclasses, models."""
        from .schemas import typed

        return self.function(**typed(self.adapters, arguments))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


@overload
def guard(function: Callable[..., Any], /) -> Tool: ...
@overload
def guard(
    *, name: str | None = None, description: str | None = None, effects: Effects | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...
def guard(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, description: str | None = None,
    effects: Effects | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Describes a function to toolgate: `@guard` or `@guard(effects="read")`.

    A parameter that no JSON Schema can describe is a TypeError here, when the program starts.
    """

    def described(given: Callable[..., Any]) -> Tool:
        from .schemas import describe  # pydantic is needed only here

        if effects is not None and effects not in HINTS:
            raise ValueError(f'effects must be "read", "write" or "destructive", not {effects!r}')
        return describe(given, name, description, effects)

    return described(function) if function else described


def as_tools(tools: Sequence[Tool | Mapping[str, Any]]) -> tuple[dict[str, Tool], list[Mapping[str, Any]]]:
    """The functions by name, and every definition."""
    functions = {tool.name: tool for tool in tools if isinstance(tool, Tool)}
    return functions, [tool.definition if isinstance(tool, Tool) else tool for tool in tools]
