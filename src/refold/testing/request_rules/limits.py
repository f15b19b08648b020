"""Rules about a request as a whole: cache marks, encoding and size."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from refold.testing.request_rules.request import (
    THINKING,
    Json,
    all_blocks,
    mappings,
    messages_of,
    sent,
)

MAX_CACHE_MARKS = 4
MAX_MESSAGES = 100_000
MAX_BYTES = 32_000_000

_SURROGATE = re.compile("[\ud800-\udfff]")


def too_many_cache_marks(request: Json) -> Iterator[str]:
    """Report more than four cache marks in total."""
    holders: list[Json] = [request, *mappings(request.get("tools"))]
    holders += [placed.block for placed in all_blocks(request)]
    count = sum(1 for holder in holders if holder.get("cache_control") is not None)
    if count > MAX_CACHE_MARKS:
        yield f"cache-marks: request: {count} cache marks, at most {MAX_CACHE_MARKS}"


def misplaced_cache_marks(request: Json) -> Iterator[str]:
    """Report cache marks on blank text or thinking, which cannot have one."""
    for placed in all_blocks(request):
        block = placed.block
        if block.get("cache_control") is None:
            continue
        if block.get("type") == "text" and not str(block.get("text") or "").strip():
            yield f"cache-on-blank: {placed.where}: a cache mark on a blank text"
        if block.get("type") in THINKING:
            yield f"cache-on-thinking: {placed.where}: thinking takes no cache mark"


def encoding(request: Json) -> Iterator[str]:
    """Report lone surrogates, numbers that JSON lacks, and values that are not JSON."""
    waiting: list[tuple[str, object]] = [("request", sent(request))]
    while waiting:
        where, value = waiting.pop()
        if fault := _fault(value):
            yield f"encoding: {where}: {fault}"
        elif isinstance(value, Mapping):
            for key, inner in cast("Mapping[object, object]", value).items():
                waiting += [(f"{where} key", key), (f"{where}.{key!r}", inner)]
        elif isinstance(value, list | tuple):
            items = cast("Sequence[object]", value)
            waiting += [(f"{where}[{i}]", inner) for i, inner in enumerate(items)]


def _fault(value: object) -> str:
    match value:
        case str() if _SURROGATE.search(value):
            return "lone surrogate"
        case float() if not math.isfinite(value):
            return f"{value} is not a JSON number"
        case str() | bool() | int() | float() | None | list() | tuple() | Mapping():
            return ""
        case _:
            return f"{type(value).__name__} is not JSON"


def too_many_messages(request: Json) -> Iterator[str]:
    """Report more messages than the API accepts."""
    if (count := len(messages_of(request))) > MAX_MESSAGES:
        yield f"message-count: messages: {count:,} messages, at most {MAX_MESSAGES:,}"


def too_large(request: Json) -> Iterator[str]:
    """Report a request body above 32 MB."""
    size = len(_body(sent(request)))
    if size > MAX_BYTES:
        yield f"size: request: {size:,} bytes, at most {MAX_BYTES:,}"


def _body(value: dict[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
    return text.encode("utf-8", "surrogatepass")
