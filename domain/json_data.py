"""Plain JSON data, told apart: what content blocks are made of."""

from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value is a JSON object; keys are strings in all data that comes this far."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list | tuple)
