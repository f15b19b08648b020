"""Base class of all domain values, and checks for plain JSON data."""

from abc import ABCMeta
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache
from itertools import compress
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


class _LateField:
    """Default and limits of a field. Pydantic has a class for them, but importing it takes long."""

    __slots__ = ("given",)

    def __init__(self, **given: Any) -> None:
        self.given = given


if TYPE_CHECKING:
    from pydantic import Field as Field
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass, Field = type(BaseModel), _LateField


class _Body(NamedTuple):
    """Parts of the statement that defines a class."""

    types: Mapping[str, Any]
    """Annotations of the fields."""
    defaults: Mapping[str, Any]
    others: Mapping[str, Any]
    """Methods and all else."""
    options: Mapping[str, Any]


_bodies: dict[type, _Body] = {}
_late: set[type] = set()
"""Classes that pydantic has not read yet."""
_running: set[type] = set()
"""Classes that pydantic reads now."""
_lock: AbstractContextManager[object] = nullcontext()
"""Lock that is held while pydantic reads a class."""


def guard_with(lock: AbstractContextManager[object]) -> None:
    """Use this lock from now on. Call this before threads start, and in a forked process."""
    global _lock
    _lock = lock
    _running.clear()


class _LateAttribute:
    """An attribute that pydantic makes when it reads a class. Looking it up makes pydantic read the class."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        with _lock:
            holder = next(cls for cls in owner.__mro__ if self._name in vars(cls))
            if holder in _running:
                return getattr(cast("Any", super(holder, owner)), self._name)
            _read_classes(owner)
        return getattr(owner if instance is None else instance, self._name)

    def __contains__(self, name: object) -> bool:
        """Return False, because pydantic asks here whether it knows a field already."""
        return False


_NAMES = (
    "model_config __class_vars__ __private_attributes__ __pydantic_complete__ "
    "__pydantic_computed_fields__ __pydantic_core_schema__ __pydantic_custom_init__ "
    "__pydantic_decorators__ __pydantic_extra_info__ __pydantic_fields__ "
    "__pydantic_generic_metadata__ __pydantic_parent_namespace__ __pydantic_post_init__ "
    "__pydantic_serializer__ __pydantic_setattr_handlers__ __pydantic_validator__"
)
LATE_ATTRIBUTES = frozenset(_NAMES.split())
"""Attributes that pydantic sets on each class."""
_LATE = {name: _LateAttribute(name) for name in LATE_ATTRIBUTES}
_KNOWN = "__known__"
_MISSING: Any = object()


def _read_classes(owner: type) -> None:
    """Let pydantic read a class and the classes that it inherits from, unless it has."""
    with _lock:
        for cls in reversed(owner.__mro__):
            if cls in _late and cls not in _running:
                _running.add(cls)
                try:
                    _read_class(cls, _bodies[cls])
                    _late.discard(cls)
                finally:
                    _running.discard(cls)


def _read_class(cls: type, body: _Body) -> None:
    namespace = {**body.others, **_for_pydantic(body.defaults), _KNOWN: cls}
    kind: Any = type(cls)
    ModelMetaclass.__new__(kind, cls.__name__, cls.__bases__, namespace, **body.options)
    for name, value in list(vars(cls).items()):
        if isinstance(value, _LateAttribute):  # This version of pydantic does not have it.
            delattr(cls, name)


def _for_pydantic(defaults: Mapping[str, Any]) -> dict[str, Any]:
    from pydantic import Field as PydanticField

    return {
        name: PydanticField(**value.given) if isinstance(value, _LateField) else value
        for name, value in defaults.items()
    }


def is_late(cls: type) -> bool:
    """Return whether pydantic has not read a class yet."""
    return cls in _late


class _KnownClass(ABCMeta):
    """The type that pydantic calls to create a class. A class that exists is updated instead."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **options: Any
    ) -> Any:
        known: type | None = namespace.pop(_KNOWN, None)
        if known is None:
            return super().__new__(mcs, name, bases, namespace, **options)
        present = vars(known)
        for key, value in namespace.items():
            if present.get(key, _MISSING) is not value:
                setattr(known, key, value)
        return known


class LateModel(ModelMetaclass, _KnownClass):
    """The type of classes of values. Pydantic reads a class when it is first needed for it.

    A program uses few of the classes, and those mostly without validation. Reading one takes pydantic longer
    than Python needs for the module around it.
    """

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        """Create a class that pydantic has not read."""
        types: Mapping[str, Any] = namespace.get("__annotations__", {})
        others = {k: v for k, v in namespace.items() if k not in types and k != "__classcell__"}
        defaults = {field: namespace.pop(field) for field in types if field in namespace}
        if _is_read_at_once(namespace, defaults):
            namespace.update(_for_pydantic(defaults))
            return super().__new__(mcs, name, bases, namespace, **options)
        cls = ABCMeta.__new__(mcs, name, bases, {**namespace, **_LATE})
        _bodies[cls] = _Body(types, defaults, others, options)
        _late.add(cls)
        return cls


def _is_read_at_once(namespace: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Return whether pydantic alone knows the fields. From Python 3.14 on a function returns annotations."""
    returned = "__annotations__" not in namespace and any("annotate" in name for name in namespace)
    return returned or any(type(one).__module__ == "pydantic.fields" for one in defaults.values())


if TYPE_CHECKING:
    LateBase = BaseModel
else:

    class LateBase(BaseModel, metaclass=LateModel, defer_build=True):
        """A model whose subclasses pydantic reads late."""


class Value(LateBase, frozen=True):
    """An immutable value. Subclasses repeat ``frozen=True``, so that type checkers see it."""

    # Built on first use: most programs use few of the values, and all programs should import
    # quickly.
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any, /) -> Any:
        """Let pydantic read this class before it builds one that has it as a field."""
        _read_classes(cls)
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


def from_stored(cls: type[V], fields: dict[str, Any]) -> V:
    """Return the value with these stored fields, without validating them.

    Only for codecs and table readers: type checkers cannot check the contents of the dict.
    """
    known = fields_of(cls)
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
    defaults = fields_of(cls).defaults
    return tuple(defaults.get(name, _NO_DEFAULT) for name in names)


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
    """Demands in addition to the type, as arguments of ``Field``."""


@cache
def fields_of(cls: Any) -> Fields:
    """Return the fields of a class of values."""
    if cls is BaseModel:
        return Fields({}, frozenset(), {}, {}, {})
    body = _bodies.get(cls)
    if body is None:
        return _fields_of_pydantic(cls.model_fields)
    known = fields_of(next(base for base in cls.__mro__[1:] if issubclass(base, BaseModel)))
    types = {**known.types, **body.types}
    defaults, made, limits = dict(known.defaults), dict(known.factories), dict(known.limits)
    for name, value in body.defaults.items():
        if not isinstance(value, _LateField):
            defaults[name] = value
            continue
        demanded = dict(value.given)
        if "default_factory" in demanded:
            made[name] = demanded.pop("default_factory")
        elif "default" in demanded:
            defaults[name] = demanded.pop("default")
        limits[name] = demanded
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
        {name: {"metadata": field.metadata} for name, field in fields.items() if field.metadata},
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
