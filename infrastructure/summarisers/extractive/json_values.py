"""Narrows stored JSON to a mapping or a list: the one place where its shape is taken on trust."""

from collections.abc import Mapping, Sequence
from typing import Any, cast


def mapping_of(value: object) -> Mapping[str, Any] | None:
    """The value as a JSON object, or None."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def sequence_of(value: object) -> Sequence[Any] | None:
    """The value as a JSON list, or None."""
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else None
