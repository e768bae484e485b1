"""A tool's outcome as JSON: what can be said exactly is converted, anything else is an error that says so."""
from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import json
import pathlib
import uuid
from collections.abc import Mapping
from typing import Any

from .errors import BadArguments, Retry, ToolgateError


@dataclasses.dataclass(frozen=True)
class Failure:
    """A tool's failure. `transient`: the same call may work later. `retry`: the call with other arguments may."""

    message: str
    transient: bool | None = None
    retry: bool | str | None = None

    def as_error(self) -> dict[str, Any]:
        given = {"message": self.message, "transient": self.transient, "retry": self.retry}
        return {key: value for key, value in given.items() if value is not None}


def failure_of(error: BaseException) -> Failure:
    """What an exception says, and its type; toolgate infers from the words whether it is transient."""
    if isinstance(error, (BadArguments, Retry)):
        return Failure(str(error), retry=True)
    name = type(error).__name__
    if isinstance(error, ToolgateError) or not str(error):
        return Failure(str(error) or name)
    return Failure(f"{name}: {error}")


def as_is(value: Any) -> Any:
    return value


def as_failure(error: Failure | BaseException | str | None) -> Failure | None:
    if error is None or isinstance(error, Failure):
        return error
    return Failure(error) if isinstance(error, str) else failure_of(error)


def to_json(value: Any) -> str:
    """NaN and infinity are no JSON numbers and become null, as pydantic writes them. Letters stay as a model reads them."""
    try:
        return _dumps(value, default=_plain)
    except ValueError:
        return _dumps(_finite(value), default=lambda one: _finite(_plain(one)))


_dumps = functools.partial(json.dumps, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):  # a model of pydantic
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (uuid.UUID, decimal.Decimal, pathlib.PurePath)):
        return str(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(
        f"a result of type {type(value).__name__} is no JSON: return dicts, lists, texts, numbers, dataclasses or "
        "pydantic models"
    )


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return value
