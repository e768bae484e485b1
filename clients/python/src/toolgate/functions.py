"""guard: a function as a tool, with a JSON Schema from its type hints. Needs pydantic, and griffe for docstrings."""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from .words import EXACT, REPAIR_KEY, REPAIR_MAX

if TYPE_CHECKING:
    from . import sync
    from .gate import Session

F = TypeVar("F", bound=Callable[..., Any])
Effects = Literal["read", "write", "destructive"]

HINTS: dict[str, dict[str, bool]] = {
    "read": {"readOnlyHint": True},
    "write": {"readOnlyHint": False, "destructiveHint": False},
    "destructive": {"readOnlyHint": False, "destructiveHint": True},
}


@dataclass(frozen=True)
class Context:
    """What a function may take beside the model's arguments: a parameter of this type is no part of its schema."""

    session: Session | sync.Session
    deps: Any = None  # the program's own: session.call(…, deps=…)
    values: Mapping[str, Any] = field(default_factory=dict)  # what policies read as call.context
    step: str | None = None
    call: str | None = None


@dataclass(frozen=True)
class Tool:
    """A function that models may call. Called as a function, it is the function: unchecked."""

    function: Callable[..., Any]
    name: str
    description: str
    input_schema: Mapping[str, Any]
    effects: Effects | None
    adapters: Mapping[str, Any] = field(repr=False, default_factory=dict)  # parameter -> TypeAdapter
    takes_context: str | None = None  # the parameter
    takes_whole: str | None = None  # the parameter whose model is all of the arguments
    repair: int | None = None

    @property
    def definition(self) -> dict[str, Any]:
        """As toolgate/register takes it."""
        meta: dict[str, Any] = dict(EXACT) if self.repair is None else {**EXACT, REPAIR_KEY: self.repair}
        definition: dict[str, Any] = {"name": self.name, "description": self.description, "inputSchema": self.input_schema,
                                      "_meta": meta}
        if self.effects:
            definition["annotations"] = HINTS[self.effects]
        return definition

    def run(self, arguments: Mapping[str, Any], context: Context | None = None) -> Any:
        """The function with JSON arguments made into what its hints say: dates, dataclasses, models."""
        from .schemas import typed

        given = typed(self.adapters, {self.takes_whole: arguments} if self.takes_whole else arguments)
        return self.function(**given, **({self.takes_context: context} if self.takes_context else {}))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


@overload
def guard(function: Callable[..., Any], /) -> Tool: ...
@overload
def guard(
    *, name: str | None = None, description: str | None = None, effects: Effects | None = None, retries: int | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...
def guard(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, description: str | None = None,
    effects: Effects | None = None, retries: int | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Describes a function to toolgate: `@guard` or `@guard(effects="read")`.

    A parameter that no JSON Schema can describe is a TypeError here, when the program starts. A single parameter that is
    a model, a dataclass or a TypedDict is the whole of the arguments; one of type Context is the program's, not the
    model's. `retries`: how often the model may correct a call.
    """

    def described(given: Callable[..., Any]) -> Tool:
        from .schemas import describe  # pydantic is needed only here

        if effects is not None and effects not in HINTS:
            raise ValueError(f'effects must be "read", "write" or "destructive", not {effects!r}')
        if retries is not None and (type(retries) is not int or not 0 <= retries <= REPAIR_MAX):
            raise ValueError(f"retries must be a whole number from 0 to {REPAIR_MAX}, not {retries!r}")
        return describe(given, name, description, effects, retries)

    return described(function) if function else described


def as_tools(tools: Sequence[Tool | Mapping[str, Any]]) -> tuple[dict[str, Tool], list[Mapping[str, Any]]]:
    """The functions by name, and every definition."""
    functions = {tool.name: tool for tool in tools if isinstance(tool, Tool)}
    return functions, [tool.definition if isinstance(tool, Tool) else tool for tool in tools]
