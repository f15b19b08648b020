"""Base class of all domain values, and checks for plain JSON data."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache
from itertools import compress
from operator import ne
from typing import Any, NamedTuple, ParamSpec, Protocol, Self, TypeGuard, TypeVar, cast

from pydantic import BaseModel, ConfigDict


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is a JSON object. Keys are strings in all data that reaches this code."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Return whether a value is a JSON array."""
    return isinstance(value, (list, tuple))


_PUNCTUATION = 4
"""Bytes added for each pair of an object; at most what its colon, comma and spaces take."""


_SHORT_ESCAPES = b'"\\\b\f\n\r\t'
"""Bytes that JSON writes as two. Other control characters take six."""
_UNESCAPED = bytes(set(range(0x20, 0x100)) - set(_SHORT_ESCAPES))


def byte_size(value: Any) -> int:
    """Return the size of JSON data in UTF-8 bytes, or slightly more."""
    if isinstance(value, str):
        return _text_size(value)
    if isinstance(value, dict):
        size = 2
        for name, inner in cast("Mapping[str, Any]", value).items():
            size += _text_size(inner) if type(inner) is str else byte_size(inner)
            size += _text_size(name) if len(name) > _SHORT_NAME else _size_of_name(name)
            size += _PUNCTUATION
        return size
    if isinstance(value, (list, tuple)):
        size = 2
        for inner in cast("Sequence[Any]", value):
            size += byte_size(inner) + 2
        return size
    return len(str(value)) + 1


def _text_size(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    escaped = data.translate(None, _UNESCAPED)
    if not escaped:
        return len(data) + 2
    return len(data) + 2 + len(escaped) + 4 * len(escaped.translate(None, _SHORT_ESCAPES))


_SHORT_NAME = 32
"""Number of characters of the longest field name whose size is remembered."""
_size_of_name = lru_cache(maxsize=256)(_text_size)


# Descriptors of the slots of every model. They write past the guard that keeps values frozen.
_set_fields = BaseModel.__dict__["__dict__"].__set__
_set_given = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__
_NOT_RECORDED: set[str] = set()
"""Shared empty set: refold does not use which fields were set explicitly."""
_new: Callable[[Any], Any] = object.__new__


class Value(BaseModel, frozen=True):
    """An immutable value. Subclasses repeat ``frozen=True``, so that type checkers see it."""

    # Built on first use: most programs use few of the values, and all programs should import
    # quickly.
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)

    def __replace__(self, **changes: Any) -> Self:
        """Return a copy with some fields replaced, as ``replace`` does.

        For Python 3.13, type checkers derive this method from the fields of each class. For older versions
        they do not know the names of the fields.
        """
        value: Any = self
        copy: Self = replace(value, **changes)
        return copy


P = ParamSpec("P")
V = TypeVar("V", bound=Value)
V_co = TypeVar("V_co", covariant=True)


class Replaceable(Protocol[P, V_co]):
    """A value that ``replace`` accepts. ``P`` has the names and types of its fields."""

    def __replace__(self, *_: P.args, **changes: P.kwargs) -> V_co:
        """Return a copy with some fields replaced."""
        ...


def replace(value: Replaceable[P, V_co], /, *_: P.args, **changes: P.kwargs) -> V_co:
    """Return a copy of a value with some fields replaced, without validating them.

    Loading folds thousands of events; validating each value of each step would double its cost.
    """
    before = value.__dict__
    fields = {**before, **changes}
    if len(fields) != len(before):
        raise _field_error(type(value), changes.keys() - before.keys())
    copy: V_co = _create(type(value), fields)
    return copy


def build_unvalidated(cls: Callable[P, V], /, *_: P.args, **fields: P.kwargs) -> V:
    """Return a value with fields that are known to be valid, without validating them.

    A field that is left out has its default, as in a call of the class.
    """
    known = _fields_of(cls)
    given: dict[str, Any] = fields
    if len(given) != len(known.names):
        given = _add_defaults(known, given)
        if given.keys() != known.names:
            raise _field_error(cls, given.keys() ^ known.names)
    # Like ``_create``: every append builds several values.
    value: V = _new(cls)
    _set_fields(value, given)
    _set_given(value, _NOT_RECORDED)
    _set_extra(value, None)
    _set_private(value, None)
    return value


def from_stored(cls: type[V], fields: dict[str, Any]) -> V:
    """Return the value with these stored fields, without validating them.

    Only for codecs and table readers: type checkers cannot check the contents of the dict.
    """
    known = _fields_of(cls)
    value: V = _create(
        cls, fields if len(fields) == len(known.names) else _add_defaults(known, fields)
    )
    return value


def replace_from(value: V, other: V, names: Collection[str]) -> V:
    """Return a copy of a value with the named fields taken from another value."""
    before = value.__dict__
    if unknown := names - before.keys():
        raise _field_error(type(value), unknown)
    copy: V = _create(type(value), {**before, **{name: getattr(other, name) for name in names}})
    return copy


def stated_fields(value: Value) -> dict[str, Any]:
    """Return the fields that differ from their defaults."""
    fields = value.__dict__
    defaults = _defaults_in_order(type(value), tuple(fields))
    return dict(compress(fields.items(), map(ne, fields.values(), defaults)))


@lru_cache(maxsize=256)
def _defaults_in_order(cls: type[Value], names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the defaults of these fields, and a value that equals no other for a field without one."""
    defaults = _fields_of(cls).defaults
    return tuple(defaults.get(name, _NO_DEFAULT) for name in names)


_NO_DEFAULT = object()


def narrow(value: V, cls: type[V]) -> V:
    """Return an instance of a base class of ``value`` with the fields of that base class."""
    fields = value.__dict__
    narrowed: V = _create(cls, {name: fields[name] for name in cls.model_fields})
    return narrowed


class Rewritten(Value, frozen=True):
    """An earlier event of this conversation whose content was removed while its row remained."""

    version: int
    remains: str
    """SHA-256 of the remaining payload."""


class _Fields(NamedTuple):
    names: frozenset[str]
    defaults: Mapping[str, Any]
    factories: Mapping[str, Callable[[], Any]]
    """Functions that make a default for each new value."""


@cache
def _fields_of(cls: Any) -> _Fields:
    fields: Mapping[str, Any] = cls.model_fields
    made = {name: field.default_factory for name, field in fields.items() if field.default_factory}
    return _Fields(
        frozenset(fields),
        {
            name: field.default
            for name, field in fields.items()
            if name not in made and not field.is_required()
        },
        made,
    )


def _add_defaults(known: _Fields, given: dict[str, Any]) -> dict[str, Any]:
    if not known.factories:
        return {**known.defaults, **given}
    made = {name: make() for name, make in known.factories.items() if name not in given}
    return {**known.defaults, **made, **given}


def _create(cls: Any, fields: dict[str, Any]) -> Any:
    value = _new(cls)
    _set_fields(value, fields)
    _set_given(value, _NOT_RECORDED)
    _set_extra(value, None)
    _set_private(value, None)
    return value


def _field_error(cls: Any, names: Collection[str]) -> TypeError:
    return TypeError(f"not the fields of {cls.__name__}: {', '.join(sorted(names))}")
