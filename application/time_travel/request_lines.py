"""Two requests line by line, so that a person sees what differs."""

import difflib
import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from refold.application.context import Context
from refold.domain.json_data import is_list, is_object
from refold.domain.messages import text_of

LONGEST_DATA = 200
"""Characters of binary data in base64 that are shown; of more only the digest is."""


def unified(before: Context, after: Context) -> str:
    """What differs, in the form of ``diff -u``; empty where nothing does."""
    lines = difflib.unified_diff(
        list(_lines(before)),
        list(_lines(after)),
        f"version {before.version}",
        f"version {after.version}",
        lineterm="",
    )
    return "\n".join(lines)


def _lines(made: Context) -> Iterator[str]:
    system = made.system
    texts = [system] if isinstance(system, str) else map(text_of, system)
    for line in "\n".join(texts).splitlines():
        yield f"system: {line}"
    for index, message in enumerate(made.messages):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for number, block in enumerate(blocks):
            if not index and number < made.opening and block.get("type") == "text":
                yield from (f"memory: {line}" for line in text_of(block).splitlines())
            else:
                yield f"{message['role']}: {_json(block)}"


def _json(block: Mapping[str, Any]) -> str:
    return json.dumps(_shortened(block), ensure_ascii=False)


def _shortened(value: object) -> object:
    """The value with binary data named instead of shown."""
    if is_object(value):
        short = {key: _shortened(part) for key, part in value.items()}
        data = value.get("data")
        if value.get("type") == "base64" and isinstance(data, str) and len(data) > LONGEST_DATA:
            digest = sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            short["data"] = f"{len(data):,} characters, SHA-256 {digest}…"
        return short
    if is_list(value):
        return [_shortened(part) for part in value]
    return value
