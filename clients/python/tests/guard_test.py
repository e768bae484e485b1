"""guard: schemas from signatures. usage: guard_test.py SOCKET"""
from __future__ import annotations

import dataclasses
import datetime
import enum
import sys
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional

import pydantic
import tap
from typing_extensions import TypedDict

import toolgate.sync
from toolgate import Gate, guard


@dataclasses.dataclass
class Place:
    city: str
    country: str = "CH"


class Person(pydantic.BaseModel):
    name: str
    born: datetime.date


class Line(TypedDict):
    article: int
    count: int


class Colour(enum.Enum):
    red = "red"
    blue = "blue"


@guard(effects="write")
def order(
    lines: list[Line], place: Place, who: Optional[Person] = None, how: Literal["post", "pick up"] = "post",
    colour: Colour = Colour.red, note: Annotated[str, pydantic.Field(max_length=5)] = "", again: Place | None = None,
) -> Any:
    """Order articles.

    Args:
        lines: What to order.
        place: Where it goes.

    Returns:
        The order.
    """
    return {"kinds": [type(value).__name__ for value in (lines, lines[0], place, who, colour)], "place": place, "who": who}


def test_schema(_: str) -> None:
    """guard: hints, models, dataclasses, TypedDicts and docstrings become one closed schema"""
    definition = order.definition
    schema: Any = definition["inputSchema"]
    assert definition["description"] == "Order articles." and definition["annotations"]["readOnlyHint"] is False
    assert schema["required"] == ["lines", "place"] and schema["additionalProperties"] is False
    assert set(schema["$defs"]) == {"Line", "Place", "Person"}, schema
    properties = schema["properties"]
    assert properties["lines"] == {
        "type": "array", "items": {"$ref": "#/$defs/Line"}, "description": "What to order."}, properties["lines"]
    assert properties["how"] == {"enum": ["post", "pick up"], "type": "string", "default": "post"}, properties["how"]
    assert properties["note"]["maxLength"] == 5 and properties["colour"]["default"] == "red"
    assert properties["place"]["description"] == "Where it goes."


async def test_call(socket: str) -> None:
    """guard: a call is repaired by that schema, and the function gets what its hints say"""
    async with Gate(socket, tools=[order]) as gate:
        session = gate.session(str(uuid.uuid4()))
        bad = await session.call("order", {"lines": [{"article": 1, "cuont": 2}], "place": {"city": "Bern"}, "how": "fetch"})
        assert bad.verdict.kind == "repair" and "did you mean 'count'?" in bad.text and "pick up" in bad.text, bad.text
        good = await session.call("order", {
            "lines": [{"article": "1", "count": 2}], "place": {"city": "Bern"}, "colour": "blue",
            "who": {"name": "Ann", "born": "1990-02-03"}})
        assert good.ran and good.text.startswith(
            '{"kinds":["list","dict","Place","Person","Colour"],"place":{"city":"Bern","country":"CH"},'
            '"who":{"name":"Ann","born":"1990-02-03"}}'), good.text
    with toolgate.sync.Gate(socket, tools=[order]) as sync:
        told = sync.session("s").call(order, {"lines": [{"article": 1, "count": 2}], "place": {"city": "Bern"}})
        assert told.ran and told.verdict.passed, told


def undescribed(function: Callable[..., Any], words: str) -> None:
    try:
        guard(function)
    except TypeError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"{words}: it was described")


def even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


class Opaque:
    pass


def test_refused(_: str) -> None:
    """guard: a signature that no schema describes is an error, never a string"""
    def unhinted(city): ...  # type: ignore[no-untyped-def]
    def anything(city: Any) -> None: ...
    def thing(city: object) -> None: ...
    def opaque(city: Opaque) -> None: ...
    def nested(city: list[Opaque]) -> None: ...
    def callback(city: Callable[[], int]) -> None: ...
    def rest(*cities: str) -> None: ...
    def more(**cities: str) -> None: ...
    def positional(city: str, /) -> None: ...
    def missing(city: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
    undescribed(unhinted, "'city': it has no type hint")
    undescribed(anything, "fits any value")
    undescribed(thing, "'city'")
    undescribed(opaque, "'city'")
    undescribed(nested, "'city'")
    undescribed(callback, "'city'")
    undescribed(rest, "*args")
    undescribed(more, "*args")
    undescribed(positional, "positional-only")
    undescribed(missing, "Nowhere")
    undescribed(Opaque, "takes a function")


def test_docstrings(_: str) -> None:
    """guard: parameters are described by docstrings in Google's, NumPy's and Sphinx's style"""
    def google(city: str) -> None:
        """Weather.

        Args:
            city: Which city.
        """
    def numpy(city: str) -> None:
        """Weather.

        Parameters
        ----------
        city : str
            Which city.
        """
    def sphinx(city: str) -> None:
        """Weather.

        :param city: Which city.
        """
    for function in (google, numpy, sphinx):
        definition: Any = guard(function).definition
        assert definition["description"] == "Weather.", definition
        assert definition["inputSchema"]["properties"]["city"]["description"] == "Which city.", definition


async def test_own_validator(socket: str) -> None:
    """guard: what only the model's own validator knows reaches the model, too"""
    def halves(n: Annotated[int, pydantic.AfterValidator(even)]) -> int:
        return n // 2

    async with Gate(socket, tools=[guard(halves)]) as gate:
        session = gate.session(str(uuid.uuid4()))
        odd = await session.call("halves", {"n": 3})
        assert odd.verdict.kind == "repair" and "must be even" in odd.text, odd
        assert (await session.call("halves", {"n": 4})).text == "2"


if __name__ == "__main__":
    tap.run(globals(), *sys.argv[1:])
