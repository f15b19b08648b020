"""What an unknown file looks like, in words for an error message."""

from typing import Any

from .parsing import as_list, as_object
from .source import Source


def describe(source: Source) -> str:
    """One phrase on the shape of a file: JSON or JSON lines, how many, which keys or types."""
    if source.is_document:
        return f"one JSON value: {_shape(source.document)}"
    count = len(source.records)
    lines = "1 JSON line" if count == 1 else f"{count} JSON lines"
    return f"{lines}; the first is {_shape(source.records[0].value)}"


def _shape(value: Any) -> str:
    if (one := as_object(value)) is not None:
        return f"an object with {_keys(one)}"
    items = as_list(value)
    if items is None:
        return _kind(value)
    if not items:
        return "an empty list"
    first = as_object(items[0])
    shape = _kind(items[0]) if first is None else f"an object with {_keys(first)}"
    return f"a list of {len(items)}; its first is {shape}"


def _keys(value: dict[str, Any]) -> str:
    if not value:
        return "no keys"
    names = ", ".join(ascii(key[:30])[1:-1] for key in list(value)[:6])
    return f"the keys {names}{', …' if len(value) > 6 else ''}"


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a truth value"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"
