"""Render messages as quoted data, which cannot end its quotation or imitate a line of the prompt."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from refold.application.ports.summariser import SourceMessage
from refold.domain.events import GivenInPart
from refold.domain.messages import THINKING, Block, Message, text_of
from refold.domain.text_cuts import ends
from refold.domain.value import Value, build_in_order

RESULT_LIMIT = 20_000
"""Maximum characters of one tool result, tool input or unknown block."""

_MARK_LENGTH = 16
_CUT_RESERVE = 60
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_PICTURES = frozenset({"image", "image_url", "input_image"})


class Passage(Value, frozen=True):
    """A piece of quoted text under a label of the prompt."""

    label: str
    """One line that describes the text. Names from the source appear in it as JSON."""
    text: str


def well_formed(text: str) -> str:
    """Join surrogate pairs, and replace lone surrogates with U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_middle(text: str, limit: int | None) -> str:
    """Cut a text to ``limit`` characters, if there is a limit: head (two thirds), marker, tail.

    The marker counts towards the limit and gives the number of missing characters.
    """
    if limit is None or len(text) <= limit:
        return text
    room = max(limit - _CUT_RESERVE, 0)
    tail = room // 3
    marker = f"\n[{len(text) - room} of {len(text)} characters left out]\n"
    return ends(text, room - tail, tail, marker)


def passages(messages: Iterable[SourceMessage], limit: int = RESULT_LIMIT) -> Iterator[Passage]:
    """Yield the messages as labelled pieces, in order. Every message has at least its own label.

    Thinking is left out, because it is bound to the place where it was written. Blank texts are left
    out. Tool traffic is cut to ``limit`` characters per piece, but what people and models said never
    is.
    """
    for source in messages:
        head = f"message {source.position} {_speaker(source.message)}"
        said = [p for block in source.message.blocks() for p in _block_passages(block, limit)]
        if not said:
            yield Passage(label=head, text="(nothing in words)")
            continue
        for piece in said:
            label = f"{head} {piece.label}".rstrip()
            yield Passage(label=label, text=well_formed(piece.text))


def given_in_part(
    messages: Iterable[SourceMessage], limit: int = RESULT_LIMIT
) -> tuple[GivenInPart, ...]:
    """Return the messages that ``passages`` cuts, with the number of characters that are left."""
    found: list[GivenInPart] = []
    for source in messages:
        whole = [
            len(piece.text)
            for block in source.message.blocks()
            for piece in _block_passages(block, None)
        ]
        if max(whole, default=0) <= limit:
            continue
        cut_pieces = [
            piece for block in source.message.blocks() for piece in _block_passages(block, limit)
        ]
        given = sum(
            size if size == len(piece.text) else max(limit - _CUT_RESERVE, 0)
            for size, piece in zip(whole, cut_pieces, strict=True)
        )
        if given < sum(whole):
            part = build_in_order(
                GivenInPart, position=source.position, given=given, characters=sum(whole)
            )
            found.append(part)
    return tuple(found)


def mark_for(texts: Sequence[str]) -> str:
    """Return a short name that occurs in none of the texts, always the same for the same texts.

    It is a digest of the texts, so that no text can be written to contain it. If one does nevertheless,
    the next candidate is used.
    """
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode() + data)
    for attempt in range(1_000_000):
        seeded = digest.copy()
        seeded.update(f"#{attempt}".encode())
        mark = seeded.hexdigest()[:_MARK_LENGTH]
        if not any(mark in text.lower() for text in texts):
            return mark
    raise AssertionError("a text cannot hold a million chosen digests of itself")


def quote(name: str, mark: str, body: str) -> str:
    """Return the body between an opening and a closing line with the mark."""
    return f"<{name}-{mark}>\n{body}\n</{name}-{mark}>"


def transcript(pieces: Iterable[Passage], mark: str) -> str:
    """Return the pieces in order, each under ``[mark label]``."""
    return "\n".join(f"[{mark} {piece.label}]\n{piece.text}" for piece in pieces)


def _block_passages(block: Block, limit: int | None) -> Iterator[Passage]:
    kind = str(block.get("type", ""))
    if kind in THINKING:
        return
    if kind == "text":
        text = text_of(block)
        if text.strip():
            yield Passage(label="", text=text)
    elif kind in _PICTURES:
        yield Passage(label="", text="[image]")
    elif kind in _CALLS:
        label = f"{kind} {_name(block.get('name'))} {_name(block.get('id'))}"
        yield Passage(label=label, text=without_middle(_json(block.get("input")), limit))
    elif kind.endswith("tool_result"):
        error = " error" if block.get("is_error") else ""
        label = f"{kind} {_name(block.get('tool_use_id'))}{error}"
        yield Passage(label=label, text=without_middle(_result(block.get("content")), limit))
    else:
        yield Passage(
            label=f"block {_name(kind)}", text=without_middle(text_of(block) or _json(block), limit)
        )


def _result(content: object) -> str:
    match content:
        case None | "" | [] | ():
            return "(no output)"
        case str():
            return content
        case list() | tuple():
            return "\n".join(_part(part) for part in cast(Sequence[object], content))
        case _:
            return _json(content)


def _part(part: object) -> str:
    match part:
        case {"type": str(kind)} if kind in _PICTURES:
            return "[image]"
        case Mapping():
            block = cast(Mapping[str, object], part)
            return text_of(block) or _json(block)
        case _:
            return str(part)


def _name(value: object) -> str:
    """Return a name from the source on one line, with line breaks escaped."""
    return json.dumps(without_middle(well_formed(str(value)), 200))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _speaker(message: Message) -> str:
    """Return the role, and the author if it is known not to be a person."""
    by_program = message.author in ("program", "tool")
    return f"{message.role} (written by a {message.author})" if by_program else message.role
