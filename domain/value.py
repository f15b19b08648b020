"""The base of every value in the domain, and the plain JSON data that content is made of."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, ParamSpec, Protocol, Self, TypeGuard, TypeVar, cast

from pydantic import BaseModel, ConfigDict


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value is a JSON object; keys are strings in all data that comes this far."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list | tuple)


_CONTROL = re.compile(r"[\x00-\x07\x0b\x0e-\x1f]")
"""Characters that JSON writes as an escape of six characters."""
_PUNCTUATION = 4
"""Quotes, a colon or a comma, and a blank."""


def byte_size(value: Any) -> int:
    """Return the bytes of JSON data in UTF-8, or a few more; quick for long texts without escapes."""
    if isinstance(value, str):
        plain = len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
        return plain + _escapes(value) + 2
    if is_object(value):
        return 2 + sum(byte_size(k) + byte_size(v) + _PUNCTUATION for k, v in value.items())
    if is_list(value) or isinstance(value, tuple):
        return 2 + sum(byte_size(v) + 2 for v in cast("Sequence[Any]", value))
    return len(str(value)) + 1


def _escapes(text: str) -> int:
    twice = sum(map(text.count, ('"', "\\", "\n", "\r", "\t", "\b", "\f")))
    return twice + 5 * len(_CONTROL.findall(text))


# The slots of every model, written past the guard that keeps values frozen.
_set_fields = BaseModel.__dict__["__dict__"].__set__
_set_given = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__
_NOT_RECORDED: set[str] = set()
"""Which fields were given explicitly matters to nobody here; one empty set serves all values."""
_new: Callable[[Any], Any] = object.__new__


class Value(BaseModel, frozen=True):
    """An immutable value. Subclasses repeat ``frozen=True``, so that type checkers see it."""

    # Built when first used: most programs use a few of the values, and all of them import quickly.
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)

    def __replace__(self, **changes: Any) -> Self:
        """Return a copy with some fields replaced, as ``replace`` does.

        For Python 3.13, type checkers derive this method from the fields of each class; for older
        versions they know no names.
        """
        value: Any = self
        copy: Self = replace(value, **changes)
        return copy


P = ParamSpec("P")
V = TypeVar("V", bound=Value)
V_co = TypeVar("V_co", covariant=True)


class Replaceable(Protocol[P, V_co]):
    """A value as ``replace`` takes it; ``P`` has the names and types of its fields."""

    def __replace__(self, *_: P.args, **changes: P.kwargs) -> V_co:
        """Return a copy with some fields replaced."""
        ...


def replace(value: Replaceable[P, V_co], /, *_: P.args, **changes: P.kwargs) -> V_co:
    """Return a copy of a value with some fields replaced; they are valid, and not validated again.

    Loading folds thousands of events; validating each value of each step would double its cost.
    """
    before = value.__dict__
    fields = {**before, **changes}
    if len(fields) != len(before):
        raise _not_the_fields(type(value), changes.keys() - before.keys())
    copy: V_co = _made(type(value), fields)
    return copy


def build_unvalidated(cls: Callable[P, V], /, *_: P.args, **fields: P.kwargs) -> V:
    """Return the value of fields that are valid already, without validating them again.

    A field that is left out has its default, as in a call of the class.
    """
    known = _fields_of(cls)
    given: dict[str, Any] = fields
    if len(given) != len(known.names):
        given = _completed(known, given)
        if given.keys() != known.names:
            raise _not_the_fields(cls, given.keys() ^ known.names)
    value: V = _made(cls, given)
    return value


def from_stored(cls: type[V], fields: dict[str, Any]) -> V:
    """Return the value that was stored as these fields, which are not validated again.

    For codecs and the readers of tables alone: no type checker knows what such a dict holds.
    """
    known = _fields_of(cls)
    value: V = _made(cls, fields if len(fields) == len(known.names) else _completed(known, fields))
    return value


def replace_from(value: V, other: V, names: Collection[str]) -> V:
    """Return a copy of a value in which the fields of these names are as another value has them."""
    before = value.__dict__
    if unknown := names - before.keys():
        raise _not_the_fields(type(value), unknown)
    copy: V = _made(type(value), {**before, **{name: getattr(other, name) for name in names}})
    return copy


def narrow(value: V, cls: type[V]) -> V:
    """Return a value of a class that the class of ``value`` extends, with the fields that both have."""
    fields = value.__dict__
    narrowed: V = _made(cls, {name: fields[name] for name in cls.model_fields})
    return narrowed


class Rewritten(Value, frozen=True):
    """An earlier event of this conversation whose content was removed in place; its place is left."""

    version: int
    remains: str
    """The SHA-256 of what is left of its payload."""


class _Fields(NamedTuple):
    names: frozenset[str]
    defaults: Mapping[str, Any]
    factories: Mapping[str, Callable[[], Any]]
    """What makes the defaults that are made for each value."""


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


def _completed(known: _Fields, given: dict[str, Any]) -> dict[str, Any]:
    if not known.factories:
        return {**known.defaults, **given}
    made = {name: make() for name, make in known.factories.items() if name not in given}
    return {**known.defaults, **made, **given}


def _made(cls: Any, fields: dict[str, Any]) -> Any:
    value = _new(cls)
    _set_fields(value, fields)
    _set_given(value, _NOT_RECORDED)
    _set_extra(value, None)
    _set_private(value, None)
    return value


def _not_the_fields(cls: Any, names: Collection[str]) -> TypeError:
    return TypeError(f"not the fields of {cls.__name__}: {', '.join(sorted(names))}")
