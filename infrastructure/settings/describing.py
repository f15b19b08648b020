"""What a setting can be, in words: for tables, and for the message that refuses a value."""

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from refold.infrastructure.log.stored.encryption import KEY_FORM

_KINDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    SecretStr: "a text",
}
_FORMS = {
    "encryption_key": KEY_FORM,
    "notes_timezone": "a time zone such as Europe/Berlin, UTC or +08:00",
}
"""Of settings that their type does not tell enough of."""


def kind_of(name: str, field: FieldInfo) -> str:
    """The type of a setting in words, or the form that it must have."""
    if name in _FORMS:
        return _FORMS[name]
    inner = _inner(field.annotation)
    if get_origin(inner) is Literal:
        return f"one of {', '.join(map(str, get_args(inner)))}"
    if get_origin(inner) is dict:
        return "tables of settings, by model"
    if get_origin(inner) is tuple:
        return "a list of files"
    return _KINDS.get(inner, "a file")


def bounds_of(field: FieldInfo) -> str:
    """The range of a setting in words; empty where there is none."""
    said: list[str] = []
    for bound in field.metadata:
        match bound:
            case Gt(gt=limit):
                said.append(f"above {limit}")
            case Ge(ge=limit):
                said.append(f"at least {limit}")
            case Lt(lt=limit):
                said.append(f"below {limit}")
            case Le(le=limit):
                said.append(f"at most {limit}")
            case MinLen():
                said.append("not empty")
            case _:
                pass
    return " and ".join(said)


def expected(name: str, field: FieldInfo) -> str:
    """What a setting must be: type and range."""
    return ", ".join(part for part in (kind_of(name, field), bounds_of(field)) if part)


def default_of(field: FieldInfo) -> str:
    """The default of a setting as a policy file would say it; empty where it is not set."""
    value = field.get_default(call_default_factory=True)
    match value:
        case None | {}:
            return ""
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _inner(annotation: Any) -> Any:
    """The type without ``None``."""
    if get_origin(annotation) in (Union, UnionType):
        return next(part for part in get_args(annotation) if part is not NoneType)
    return annotation
