"""Plain JSON data: what content blocks are made of, and how many bytes it takes in a request."""

import re
from collections.abc import Sequence
from typing import Any, TypeGuard, cast


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
