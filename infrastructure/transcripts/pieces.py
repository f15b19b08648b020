"""Names and times that stay the same at every reading: thread ids, message keys, moments."""

import hashlib
import json
import unicodedata
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

from refold.application.conversation.transcripts import RecordedConversation, Skipped
from refold.domain.messages import Block
from refold.domain.value import Value

from .transcript_source import BrokenJsonError, as_list, as_object, parse_json

MAX_THREAD_ID = 180
"""Characters of a suggested thread id: under the 200 that are allowed, with room for ``#2``."""

_MAX_ID = 200
_UNPRINTABLE = {"Cc", "Cs", "Cn", "Zl", "Zp"}
_FIRST_MILLISECONDS = 100_000_000_000  # as seconds this is the year 5138, as milliseconds 1973


def usable_id(value: Any) -> str | None:
    """An id as a file gave it, if it can be used as a name; else None."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_ID:
        return None
    return None if any(unicodedata.category(c) in _UNPRINTABLE for c in value) else value


def thread_id(*parts: str) -> str:
    """A thread id made of ``parts``: printable as ids must be, at most ``MAX_THREAD_ID`` characters.

    What had to be changed or cut is told apart by a digest of the original.
    """
    wanted = ":".join(parts)
    clean = "".join(c if c.isprintable() else "_" for c in wanted).strip()
    if clean == wanted and 0 < len(clean) <= MAX_THREAD_ID:
        return clean
    digest = hashlib.sha256(wanted.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{clean[: MAX_THREAD_ID - 13].strip() or 'transcript'}-{digest}"


class Names:
    """Hands out names that are unique among themselves: the second ``x`` is ``x#2``.

    The same sequence of wishes always gets the same names.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._repeats: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """The wished name, or the first free one made from it."""
        name = wanted
        while name in self._taken:
            self._repeats[wanted] = self._repeats.get(wanted, 1) + 1
            name = f"{wanted}#{self._repeats[wanted]}"
        self._taken.add(name)
        return name


def moment(value: Any) -> datetime | None:
    """A recorded time: ISO 8601, seconds or milliseconds since 1970; UTC where no zone is said."""
    try:
        match value:
            case bool():
                return None
            case str():
                at = datetime.fromisoformat(value)
                return at if at.utcoffset() is not None else at.replace(tzinfo=UTC)
            case int() | float():
                seconds = value / 1000 if abs(value) >= _FIRST_MILLISECONDS else value
                return datetime.fromtimestamp(seconds, UTC)
            case _:
                return None
    except (ValueError, OverflowError, OSError):
        return None


Content = str | tuple[Block, ...]


class Reading(Value, frozen=True):
    """What a format made of a source."""

    conversations: tuple[RecordedConversation, ...]
    skipped: tuple[Skipped, ...]


def as_content(value: Any) -> Content | None:
    """Content as it came: a string, or blocks (a bare string among them is a text block).

    None where it is neither.
    """
    if isinstance(value, str):
        return value
    items = as_list(value)
    if items is None:
        return None
    blocks = tuple(block for item in items if (block := _as_block(item)) is not None)
    return blocks if len(blocks) == len(items) else None


def as_blocks(content: Content) -> list[Block]:
    """Content as blocks; an empty string is none."""
    if isinstance(content, str):
        return [text_block(content)] if content else []
    return list(content)


def text_block(text: str) -> Block:
    """A text block."""
    return {"type": "text", "text": text}


def image_block(media_type: Any, data: Any) -> Block:
    """An image block with base64 data."""
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": str(media_type), "data": str(data)},
    }


def tool_use(call_id: str, name: str, arguments: dict[str, Any]) -> Block:
    """A tool call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def arguments_of(raw: Any) -> dict[str, Any]:
    """The arguments of a call as an object; what is none is kept as ``{"_arguments": text}``."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}  # how a call without arguments is often streamed
    parsed = raw
    if isinstance(raw, str):
        try:
            parsed = parse_json(raw)
        except BrokenJsonError:
            return {"_arguments": raw}
    found = as_object(parsed)
    if found is not None:
        return found
    return {"_arguments": raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)}


def text_or_none(value: Any) -> str | None:
    """A string that says something, or None."""
    return value if isinstance(value, str) and value.strip() else None


def why_no_role(item: dict[str, Any], known: Iterable[str]) -> str:
    """What is wrong with the role of a message."""
    if "role" not in item:
        return "no role"
    return f"role {ascii(item['role'])[:40]}, which is none of {', '.join(sorted(known))}"


def extra_of(item: dict[str, Any], taken: Collection[str]) -> dict[str, Any] | None:
    """What a message says besides the fields that are ``taken``; what an export kept so is among it."""
    kept = as_object(item.get("extra")) or {}
    others = {k: v for k, v in item.items() if k not in taken and v is not None}
    if kept:
        others.pop("extra", None)
    return {**kept, **others} or None


def not_a_message(line: int | None, problem: str) -> Skipped:
    """A message that is too broken to keep: the only kind of skipping that loses content."""
    return Skipped(line=line, reason="message that cannot be read", detail=problem, damage=True)


def _as_block(item: Any) -> Block | None:
    return text_block(item) if isinstance(item, str) else as_object(item)
