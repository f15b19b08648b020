"""Read stored JSON, and settings, as values without pydantic, whose validators take long to build.

Only values of the types that the fields have are read here. For anything unusual, the caller asks the validator,
which also explains what is wrong.
"""

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from refold.domain.value import Value, fields_of, from_stored, is_list, is_object

Reader = Callable[[Any], Any]
V = TypeVar("V", bound=Value)

_EXACT = 2**53
"""Integers below this are exact as floating-point numbers."""
_WHOLE = len("2026-01-02T03:04:05")
_LONGEST = len("2026-01-02T03:04:05.000006Z")


class CodecError(ValueError):
    """A stored event has a name, shape or fields that this version of refold cannot read."""


class NewerShape(CodecError):
    """A stored event has a name or shape of a newer version of refold."""


class Unusual(ValueError):
    """The JSON differs from what refold writes."""


def read_plain(cls: type[V], fields: object) -> V:
    """Return the value with these fields.

    Raises:
        Unusual: the validator of the class has to decide.
    """
    value: V = _reader(cls)(fields)
    return value


@cache
def _reader(kind: Any) -> Reader:
    if kind in _READERS:
        return _READERS[kind]
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _any_of(parts)
    if origin is Literal:
        return _one_of(parts)
    if origin is dict and parts == (str, Any):
        return _read_object
    if origin is tuple and len(parts) == 2 and parts[1] is ...:
        return _tuple_of(_reader(parts[0]))
    if hasattr(kind, "_fields"):
        return _named_tuple(kind)
    if isinstance(kind, type) and issubclass(kind, Value):
        return _value(kind)
    return _refuse


def _exactly(kind: type) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise Unusual
        return value

    return read


def _read_float(value: Any) -> float:
    if type(value) is int and -_EXACT < value < _EXACT:
        return float(value)
    if type(value) is not float or not math.isfinite(value):
        raise Unusual
    return value


def _read_time(value: Any) -> datetime:
    if not isinstance(value, str) or not _WHOLE < len(value) <= _LONGEST or value[-1] != "Z":
        raise Unusual
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise Unusual from None


def _read_path(value: Any) -> Path:
    if type(value) is str:
        return Path(value)
    if not isinstance(value, Path):
        raise Unusual
    return value


def _read_object(value: Any) -> dict[str, Any]:
    if not is_object(value):
        raise Unusual
    return value


def _refuse(value: Any) -> Any:
    raise Unusual


def _any_of(kinds: tuple[Any, ...]) -> Reader:
    readers = [_reader(kind) for kind in kinds if kind is not NoneType]
    optional = NoneType in kinds

    def read(value: Any) -> Any:
        if value is None and optional:
            return None
        for one in readers[:-1]:
            try:
                return one(value)
            except Unusual:
                pass
        return readers[-1](value)

    return read


def _one_of(values: tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not str or value not in values:
            raise Unusual
        return value

    return read


def _tuple_of(item: Reader) -> Reader:
    def read(value: Any) -> Any:
        if not is_list(value):
            raise Unusual
        return tuple(map(item, value))

    return read


def _named_tuple(cls: Any) -> Reader:
    kinds = list(get_type_hints(cls).values())
    readers = [_reader(kind) for kind in kinds]
    least = len(readers) - len(cls._field_defaults)
    # Most columns are checked at once: there are many of these tuples.
    types = [str if get_origin(kind) is Literal else kind for kind in kinds]
    types = [kind if kind in (str, int, bool) else None for kind in types]
    chosen = [(at, get_args(kind)) for at, kind in enumerate(kinds) if get_origin(kind) is Literal]

    def read(value: Any) -> Any:
        if not is_list(value) or not least <= len(value) <= len(readers):
            raise Unusual
        if list(map(type, value)) == types and all(value[at] in all_ for at, all_ in chosen):
            return cls._make(value)
        return cls(*[one(part) for one, part in zip(readers, value, strict=False)])

    return read


def _value(cls: type[Value]) -> Reader:
    fields = fields_of(cls)
    readers = {
        name: _limited(_reader(kind), fields.limits.get(name, {}))
        for name, kind in fields.types.items()
    }
    defaults, factories = fields.defaults, fields.factories
    required = fields.names - defaults.keys() - factories.keys()

    def read(value: Any) -> Any:
        if not is_object(value) or not required <= value.keys() <= fields.names:
            raise Unusual
        found = {  # In the order of the fields, as the validator has them.
            name: one(value[name])
            if name in value
            else factories[name]()
            if name in factories
            else defaults[name]
            for name, one in readers.items()
        }
        return from_stored(cls, found)

    return read


def _limited(read: Reader, limits: Mapping[str, Any]) -> Reader:
    demanded = limits.keys() - {"default", "default_factory"}
    if not demanded:
        return read
    if demanded <= {"min_length", "max_length"}:
        return _of_length(read, limits.get("min_length", 0), limits.get("max_length", math.inf))
    if not demanded <= {"ge", "gt", "le", "lt"}:
        return _refuse
    least, above = limits.get("ge", -math.inf), limits.get("gt", -math.inf)
    most, below = limits.get("le", math.inf), limits.get("lt", math.inf)

    def check(value: Any) -> Any:
        number = read(value)
        if number is not None and not (least <= number <= most and above < number < below):
            raise Unusual
        return number

    return check


def _of_length(read: Reader, least: int, most: float) -> Reader:
    def check(value: Any) -> Any:
        text = read(value)
        if text is not None and not least <= len(text) <= most:
            raise Unusual
        return text

    return check


_READERS: dict[Any, Reader] = {
    **{kind: _exactly(kind) for kind in (str, int, bool, NoneType)},
    float: _read_float,
    datetime: _read_time,
    Path: _read_path,
    Any: lambda value: value,
}
