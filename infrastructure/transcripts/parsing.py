"""JSON from files of unknown origin: any text gives values, or one typed problem."""

import json
import math
from typing import Any, TypeGuard, cast

MAX_DEPTH = 200
"""Levels of nesting that are read: real messages stay under 30, and pydantic writes up to 255."""

_MAX_DIGITS = 4000  # CPython refuses to convert integers of more than 4,300 digits


class BrokenJsonError(ValueError):
    """The text is not JSON, or not JSON that can be kept."""


def parse_json(text: str) -> Any:
    """Parse one JSON value; numbers that JSON or Python lacks (NaN, 1e999) become their text.

    Raises:
        BrokenJsonError: not JSON, something behind the value, or nested deeper than ``MAX_DEPTH``.
    """
    values, problem = parse_run(text)
    if problem is not None:
        raise BrokenJsonError(problem)
    if len(values) != 1:
        raise BrokenJsonError(f"{len(values)} values instead of one")
    return values[0]


def parse_run(text: str) -> tuple[list[Any], str | None]:
    """Parse JSON values that stand one behind the other; the second part says what stopped it."""
    values: list[Any] = []
    start = _next_start(text, 0)
    while start < len(text):
        try:
            value, end = _DECODER.raw_decode(text, start)
        except RecursionError:
            return values, "nested too deeply"
        except ValueError as error:
            return values, str(error)
        if _too_deep(value, text, start, end):
            return values, f"nested deeper than {MAX_DEPTH} levels"
        values.append(value)
        start = _next_start(text, end)
    return values, None


def as_object(value: Any) -> dict[str, Any] | None:
    """A JSON object as such, else None."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any] | None:
    """A JSON list as such, else None."""
    return value if _is_list(value) else None


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def objects_in(value: Any) -> list[dict[str, Any]]:
    """The objects in a JSON list; none where it is no list."""
    found = (as_object(item) for item in as_list(value) or [])
    return [item for item in found if item is not None]


def _next_start(text: str, start: int) -> int:
    while start < len(text) and text[start] in " \t\r\n":
        start += 1
    return start


def _whole_number(literal: str) -> int | str:
    return int(literal) if len(literal) <= _MAX_DIGITS else literal


def _real_number(literal: str) -> float | str:
    number = float(literal)
    return number if math.isfinite(number) else literal


def _too_deep(value: Any, text: str, start: int, end: int) -> bool:
    if text.count("[", start, end) + text.count("{", start, end) <= MAX_DEPTH:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    parts = (as_object(value) or {}).values() or as_list(value) or []
    return [part for part in parts if isinstance(part, dict | list)]


_DECODER = json.JSONDecoder(
    parse_constant=str,
    parse_int=_whole_number,
    parse_float=_real_number,
    strict=False,  # raw control characters in strings do not cost a record
)
