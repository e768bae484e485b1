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
from toolgate import Context, Gate, Retry, guard


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


async def test_retries(_: str) -> None:
    """guard: a budget of retries that the daemon would not read is an error when the program starts"""
    for retries in (-1, 1001, True, "2"):
        try:
            guard(retries=retries)(even)  # type: ignore[arg-type]
        except ValueError as error:
            assert "retries must be a whole number from 0 to 1000" in str(error), error
        else:
            raise AssertionError(f"{retries!r}: it was taken")


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


class Order(pydantic.BaseModel):
    """What a customer wants."""

    lines: list[Line]
    place: Place
    note: str = ""


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Tree(pydantic.BaseModel):
    name: str
    children: list["Tree"] = []


async def test_single_model(socket: str) -> None:
    """guard: a single model, dataclass or TypedDict is the whole of the arguments, not one level deeper"""
    @guard(effects="write")
    def buy(order: Order) -> str:
        """Buy."""
        return f"{type(order).__name__} of {len(order.lines)} to {order.place.city}"

    @guard
    def draw(point: Point) -> str:
        """Draw."""
        return f"{point}"

    @guard
    def add(line: Line) -> int:
        """Add."""
        return line["count"]

    @guard
    def plant(tree: Tree) -> int:
        """Plant."""
        return len(tree.children)

    schema: Any = buy.definition["inputSchema"]
    assert set(schema["properties"]) == {"lines", "place", "note"} and schema["additionalProperties"] is False, schema
    assert schema["required"] == ["lines", "place"], schema
    async with Gate(socket, tools=[buy, draw, add, plant]) as gate:
        session = gate.session(str(uuid.uuid4()))
        for name, arguments, text in (
            ("buy", {"lines": [{"article": 1, "count": "2"}], "place": {"city": "Bern"}}, "Order of 1 to Bern"),
            ("draw", {"x": "3"}, "Point(x=3, y=0)"), ("add", {"article": 1, "count": 5}, "5"),
            ("plant", {"name": "a", "children": [{"name": "b", "children": []}]}, "1"),
        ):
            outcome = await session.call(name, arguments)
            assert outcome.ran and text in outcome.text, outcome
        assert (await session.call("buy", {"order": {}})).verdict.kind == "repair"

    @guard
    def two(point: Point, again: Point) -> None:
        """Two."""
    @guard
    def maybe(point: Point = Point(0)) -> None:
        """One that may be missing."""
    for tool, names in ((two, {"point", "again"}), (maybe, {"point"})):
        shaped: Any = tool.definition["inputSchema"]
        assert set(shaped["properties"]) == names, shaped


async def test_context(socket: str) -> None:
    """guard: a parameter of type Context is the program's, and no part of the schema"""
    @guard
    def whoami(context: Context, greeting: str = "I am") -> str:
        """Who is asking."""
        return f"{greeting} {context.deps} as {context.values['role']} in {context.session.name}, {context.call}"

    @guard
    async def place(order: Order, context: Context) -> str:
        """A model and a context."""
        return f"{order.place.city} for {context.deps}"

    schema: Any = whoami.definition["inputSchema"]
    assert set(schema["properties"]) == {"greeting"} and "required" not in schema, schema
    name = str(uuid.uuid4())
    async with Gate(socket, tools=[whoami, place]) as gate:
        session = gate.session(name)
        outcome = await session.call("whoami", {}, context={"role": "clerk"}, deps="Ann", call="c1")
        assert outcome.text == f"I am Ann as clerk in {name}, c1", outcome
        outcome = await session.call("place", {"lines": [], "place": {"city": "Bern"}}, deps="Ann")
        assert outcome.text == "Bern for Ann", outcome
        assert (await session.call("whoami", {"context": {}})).verdict.kind == "repair"
    with toolgate.sync.Gate(socket, tools=[whoami]) as sync:
        told = sync.session(name).call("whoami", {}, context={"role": "boss"}, deps="Bob", call="c2")
        assert told.text == f"I am Bob as boss in {name}, c2", told

    def twice(a: Context, b: Context) -> None: ...
    undescribed(twice, "one parameter may be a Context, not a and b")


async def test_retry(socket: str) -> None:
    """guard: Retry asks the model for other arguments, on the tool's own budget; an exception keeps its type"""
    @guard(retries=3)
    def picky(n: int) -> int:
        """Wants an even number."""
        if n % 2:
            raise Retry("an even number, please")
        if n == 8:
            raise LookupError("there is no 8")
        return n

    async with Gate(socket, tools=[picky]) as gate:
        session = gate.session(str(uuid.uuid4()))
        for left in (3, 2, 1, 0):
            outcome = await session.call("picky", {"n": 2 * left + 1}, step=f"s{left}")
            assert "an even number, please" in outcome.text and (outcome.verdict.attempts_left or 0) == left, outcome
            assert outcome.verdict.kind == ("repair" if left else "refuse"), outcome
        assert (await session.call("picky", {"n": 4})).value == 4
        assert "LookupError: there is no 8" in (await session.call("picky", {"n": 8})).text


if __name__ == "__main__":
    tap.run(globals(), *sys.argv[1:])
