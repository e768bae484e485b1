"""The JSON Schema of a function's parameters, from its type hints by pydantic and its docstring by griffe."""
from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from collections.abc import Callable, Mapping
from typing import Any

from .errors import BadArguments
from .functions import Context, Effects, Tool

try:
    import pydantic
    from pydantic.errors import PydanticUserError
    from pydantic.json_schema import GenerateJsonSchema
except ImportError as error:
    raise ImportError("guard needs pydantic: pip install 'toolgate[guard]'") from error

REF_TEMPLATE = "#/$defs/{model}"
SAYS_NOTHING = frozenset({"title", "description", "default", "examples"})  # a schema of these alone fits any value


class _Untitled(GenerateJsonSchema):
    """A title that only repeats the field's name tells a model nothing."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def describe(
    function: Callable[..., Any], name: str | None, description: str | None, effects: Effects | None, repair: int | None
) -> Tool:
    if not inspect.isroutine(function):
        raise TypeError(f"guard takes a function, not {function!r}")
    parameters = list(inspect.signature(function).parameters.values())
    hints = _hints(function)
    contexts = [one.name for one in parameters if _is_context(hints.get(one.name))]
    if len(contexts) > 1:
        raise TypeError(f"{function.__name__}: one parameter may be a Context, not {' and '.join(contexts)}")
    parameters = [one for one in parameters if one.name not in contexts]
    adapters = {one.name: _adapter(function, one, hints) for one in parameters}
    about, words = _documentation(function)
    schema = _schema(function, parameters, adapters, words)
    whole = parameters[0].name if len(parameters) == 1 and _is_whole(parameters[0], hints) else None
    return Tool(
        function, name or function.__name__, description or about, _schema_of_whole(schema, whole) if whole else schema,
        effects, adapters, contexts[0] if contexts else None, whole, repair,
    )


def _is_context(hint: Any) -> bool:
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    return hint is Context or Context in typing.get_args(hint)  # Optional[Context]


def _is_whole(one: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    """A model, a dataclass or a TypedDict that must be given: its fields are the tool's parameters."""
    hint = hints[one.name]
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    is_object = isinstance(hint, type) and (
        issubclass(hint, pydantic.BaseModel) and not issubclass(hint, pydantic.RootModel)
        or dataclasses.is_dataclass(hint) or hasattr(hint, "__total__"))
    return is_object and one.default is one.empty


def _schema_of_whole(schema: dict[str, Any], parameter: str) -> dict[str, Any]:
    """The schema of the parameter's own type, closed as a function's is. One that refers to itself stays in $defs."""
    own, definitions = dict(schema["properties"][parameter]), dict(schema.get("$defs", {}))
    if "$ref" in own:
        own = {**definitions[own.pop("$ref").rsplit("/", 1)[1]], **own}
    own.setdefault("additionalProperties", False)
    return {**own, "$defs": definitions} if definitions else own


def typed(adapters: Mapping[str, pydantic.TypeAdapter[Any]], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """JSON arguments as the values of their hints. A JSON text is read as pydantic reads JSON: dates are texts there."""
    try:
        return {name: adapters[name].validate_json(json.dumps(value)) for name, value in arguments.items()}
    except pydantic.ValidationError as error:
        raise BadArguments(in_words(error)) from error


def in_words(error: pydantic.ValidationError) -> str:
    return "; ".join(": ".join(filter(None, (".".join(map(str, one["loc"])), one["msg"]))) for one in error.errors())


def _cannot(function: Callable[..., Any], parameter: str, why: str) -> TypeError:
    return TypeError(f"{function.__name__}: no JSON Schema describes its parameter '{parameter}': {why}")


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"{function.__name__}: a type hint names what its module does not define: {error}") from error


def _adapter(function: Callable[..., Any], one: inspect.Parameter, hints: Mapping[str, Any]) -> pydantic.TypeAdapter[Any]:
    if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY):
        raise _cannot(function, one.name, "a model names each argument, so there is no *args, **kwargs or positional-only one")
    if one.name not in hints:
        raise _cannot(function, one.name, "it has no type hint")
    try:
        return pydantic.TypeAdapter(hints[one.name])
    except PydanticUserError as error:
        raise _cannot(function, one.name, _first_line(error)) from error


def _schema(
    function: Callable[..., Any], parameters: list[inspect.Parameter],
    adapters: Mapping[str, pydantic.TypeAdapter[Any]], words: Mapping[str, str],
) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for one in parameters:
        try:
            made = adapters[one.name].json_schema(ref_template=REF_TEMPLATE, schema_generator=_Untitled)
        except PydanticUserError as error:
            raise _cannot(function, one.name, _first_line(error)) from error
        if made.keys() <= SAYS_NOTHING:
            raise _cannot(function, one.name, "its type hint fits any value")
        for name, definition in made.pop("$defs", {}).items():
            if definitions.setdefault(name, definition) != definition:
                raise _cannot(function, one.name, f"another parameter has a different type that is called {name}, too")
        properties[one.name] = _with_words(made, one, adapters[one.name], words)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [one.name for one in parameters if one.default is one.empty]
    if required:
        schema["required"] = required
    if definitions:
        schema["$defs"] = definitions
    return schema


def _with_words(
    made: dict[str, Any], one: inspect.Parameter, adapter: pydantic.TypeAdapter[Any], words: Mapping[str, str]
) -> dict[str, Any]:
    if one.name in words:
        made.setdefault("description", words[one.name])
    if one.default is not one.empty and one.default is not None:
        made["default"] = adapter.dump_python(one.default, mode="json", warnings=False)
    return made


def _documentation(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What the docstring says of the function, and of each parameter (Google, NumPy or Sphinx style)."""
    text = inspect.getdoc(function) or ""
    try:
        import griffe
    except ImportError:
        return text, {}
    style = next((name for name, sign in STYLES if sign in text), "google")
    sections = griffe.parse(griffe.Docstring(text, lineno=1), style, warnings=False)  # type: ignore[arg-type]
    about = "\n\n".join(section.value for section in sections if section.kind is griffe.DocstringSectionKind.text)
    words = {
        parameter.name: parameter.description.strip()
        for section in sections if section.kind is griffe.DocstringSectionKind.parameters
        for parameter in section.value
    }
    return about.strip() or text, words


STYLES = (("sphinx", ":param "), ("numpy", "\n----"))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
