"""Base class of all domain values, and checks for plain JSON data."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import compress, repeat
from operator import ne
from typing import (
    TYPE_CHECKING,
    Any,
    NamedTuple,
    ParamSpec,
    Protocol,
    Self,
    TypeGuard,
    TypeVar,
    cast,
)

from pydantic import BaseModel, ConfigDict

from .late_model import LateBase, LateField, bodies, read_classes


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


class Value(LateBase, frozen=True):
    """An immutable value. Subclasses repeat ``frozen=True``, so that type checkers see it."""

    # Built on first use: most programs use few of the values, and all programs should import
    # quickly.
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any, /) -> Any:
        """Let pydantic read this class before it builds one that has it as a field."""
        read_classes(cls)
        return handler(source)

    if not TYPE_CHECKING:  # Type checkers know that values are compared by their fields.

        def __hash__(self) -> int:
            """Return the hash of the fields."""
            return hash(tuple(map(self.__dict__.get, fields_of(type(self)).types)))

        def __eq__(self, other: object) -> bool:
            """Return whether the other has the same class and fields."""
            if not isinstance(other, BaseModel):
                return NotImplemented
            return type(self) is type(other) and self.__dict__ == other.__dict__

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Return the fields for the representation, as pydantic does, without reading the class."""
        limits = fields_of(type(self)).limits
        fields = self.__dict__.items()
        return [part for part in fields if limits.get(part[0], _NO_LIMITS).get("repr", True)]

    def __replace__(self, **changes: Any) -> Self:
        """Return a copy with some fields replaced, as ``replace`` does.

        For Python 3.13, type checkers derive this method from the fields of each class. For older versions
        they do not know the names of the fields.
        """
        value: Any = self
        copy: Self = replace(value, **changes)
        return copy


_NO_LIMITS: Mapping[str, Any] = {}

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
    known = fields_of(cls)
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


def build_in_order(cls: Callable[P, V], /, *_: P.args, **fields: P.kwargs) -> V:
    """Return a value as ``build_unvalidated`` does, with the fields in the order of the class.

    The validator has them in this order, and so has the JSON of an event.
    """
    value: V = build_unvalidated(cls, *_, **fields)
    given = value.__dict__
    _set_fields(value, {name: given[name] for name in fields_of(cls).types})
    return value


def from_stored(cls: type[V], fields: dict[str, Any]) -> V:
    """Return the value with these stored fields, without validating them.

    Only for codecs and table readers: type checkers cannot check the contents of the dict.

    Raises:
        TypeError: a field without a default is missing.
    """
    known = fields_of(cls)
    if len(fields) != len(known.names):
        fields = _add_defaults(known, fields)
        if len(fields) != len(known.names) and (missing := known.names - fields.keys()):
            raise _field_error(cls, missing)
    value: V = _create(cls, fields)
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


def plain_fields(value: Value) -> dict[str, Any]:
    """Return the fields of a value as ``model_dump`` does, but with times as they are."""
    return {name: _plain(part) for name, part in value.__dict__.items()}


def _plain(part: Any) -> Any:
    if isinstance(part, Value):
        return plain_fields(part)
    return tuple(_plain(one) for one in cast("Any", part)) if type(part) is tuple else part


@lru_cache(maxsize=256)
def _defaults_in_order(cls: type[Value], names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the defaults of these fields, and a value that equals no other for a field without one."""
    defaults = fields_of(cls).defaults
    return tuple(map(defaults.get, names, repeat(_NO_DEFAULT)))


_NO_DEFAULT = object()


def narrow(value: V, cls: type[V]) -> V:
    """Return an instance of a base class of ``value`` with the fields of that base class."""
    fields = value.__dict__
    narrowed: V = _create(cls, {name: fields[name] for name in fields_of(cls).types})
    return narrowed


class Fields(NamedTuple):
    """Fields of a class of values."""

    types: Mapping[str, Any]
    """Annotations, in the order of the fields."""
    names: frozenset[str]
    defaults: Mapping[str, Any]
    factories: Mapping[str, Callable[[], Any]]
    """Functions that make a default for each new value."""
    limits: Mapping[str, Mapping[str, Any]]
    """Arguments of ``Field``: demands in addition to the type, and the default."""


@cache
def fields_of(cls: Any) -> Fields:
    """Return the fields of a class of values."""
    if cls is BaseModel:
        return Fields({}, frozenset(), {}, {}, {})
    body = bodies.get(cls)
    if body is None:
        return _fields_of_pydantic(cls.model_fields)
    # Looking into the tuple is faster than ``issubclass``, which asks the type of the class.
    known = fields_of(next(base for base in cls.__mro__[1:] if BaseModel in base.__mro__))
    types = {**known.types, **body.types}
    defaults, made, limits = dict(known.defaults), dict(known.factories), dict(known.limits)
    for name, value in body.defaults.items():
        if not isinstance(value, LateField):
            defaults[name] = value
            continue
        limits[name] = given = value.given
        if "default" in given:
            defaults[name] = given["default"]
        elif "default_factory" in given:
            made[name] = given["default_factory"]
    return Fields(types, frozenset(types), defaults, made, limits)


def _fields_of_pydantic(fields: Mapping[str, Any]) -> Fields:
    made = {name: field.default_factory for name, field in fields.items() if field.default_factory}
    defaults = {
        name: field.default
        for name, field in fields.items()
        if name not in made and not field.is_required()
    }
    return Fields(
        {name: field.annotation for name, field in fields.items()},
        frozenset(fields),
        defaults,
        made,
        {
            name: {"metadata": field.metadata, "repr": field.repr}
            for name, field in fields.items()
            if field.metadata or not field.repr
        },
    )


def _add_defaults(known: Fields, given: dict[str, Any]) -> dict[str, Any]:
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
