"""Classes that pydantic reads when they are first needed.

Pydantic reads the fields of a class where the class is defined, so a program that imports refold would pay for all
classes of values. Here the class exists first. Pydantic's own code fills it in when an attribute that pydantic makes is
first looked up. Decision 43 says why.
"""

from abc import ABCMeta
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import VERSION, BaseModel

NEWEST_KNOWN = (2, 14)
"""Newest version of pydantic with which this was tested. A newer one reads each class where it is defined."""
_READS_AT_ONCE = tuple(map(int, VERSION.split(".")[:2])) > NEWEST_KNOWN


class LateField:
    """Default and limits of a field. Pydantic has a class for them, but importing it takes long."""

    __slots__ = ("given",)

    def __init__(self, **given: Any) -> None:
        self.given = given


if TYPE_CHECKING:
    from pydantic import Field as Field
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass, Field = type(BaseModel), LateField


class Body(NamedTuple):
    """Parts of the statement that defines a class."""

    types: Mapping[str, Any]
    """Annotations of the fields."""
    defaults: Mapping[str, Any]
    others: Mapping[str, Any]
    """Methods and all else."""
    options: Mapping[str, Any]


bodies: dict[type, Body] = {}
late_classes: set[type] = set()
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
            read_classes(owner)
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


def read_classes(owner: type) -> None:
    """Let pydantic read a class and the classes that it inherits from, unless it has."""
    with _lock:
        for cls in reversed(owner.__mro__):
            if cls in late_classes and cls not in _running:
                _running.add(cls)
                try:
                    _read_class(cls, bodies[cls])
                    late_classes.discard(cls)
                finally:
                    _running.discard(cls)


def _read_class(cls: type, body: Body) -> None:
    namespace = {**body.others, **_for_pydantic(body.defaults), _KNOWN: cls}
    kind: Any = type(cls)
    ModelMetaclass.__new__(kind, cls.__name__, cls.__bases__, namespace, **body.options)
    for name, value in list(vars(cls).items()):
        if isinstance(value, _LateAttribute):  # This version of pydantic does not have it.
            delattr(cls, name)


def _for_pydantic(defaults: Mapping[str, Any]) -> dict[str, Any]:
    from pydantic import Field as PydanticField

    return {
        name: PydanticField(**value.given) if isinstance(value, LateField) else value
        for name, value in defaults.items()
    }


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
        bodies[cls] = Body(types, defaults, others, options)
        late_classes.add(cls)
        return cls


def _is_read_at_once(namespace: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Return whether the version of pydantic is too new, or the fields are known to pydantic alone.

    From Python 3.14 on, a class has a function that returns its annotations.
    """
    if _READS_AT_ONCE:
        return True
    returned = "__annotations__" not in namespace and any("annotate" in name for name in namespace)
    return returned or any(type(one).__module__ == "pydantic.fields" for one in defaults.values())


if TYPE_CHECKING:
    LateBase = BaseModel
else:

    class LateBase(BaseModel, metaclass=LateModel, defer_build=True):
        """A model whose subclasses pydantic reads late."""
