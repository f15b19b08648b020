"""What messages say, in words for a terminal: who speaks, tool calls and results, thinking, long output folded."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from refold.domain.messages import THINKING, Message, gist, text_of

FOLDED_OVER, HEAD, TAIL = 60, 24, 8
"""Lines of a tool's output: over so many it is folded to its beginning and its end."""

COLOURS: Mapping[str, str] = {
    "user": "green",
    "assistant": "cyan",
    "result": "yellow",
    "system": "magenta",
    "program": "dim",
    "tool": "dim",
}


class Piece(NamedTuple):
    """What one block of a message says."""

    text: str
    style: str = ""


def speaker(message: Message) -> str:
    """Who a message is of, as people see it: tool results are of no user."""
    if message.role != "user":
        return message.role
    does = gist(message)
    if does.results and not does.speaks:
        return "result"
    return message.author if message.author in ("program", "tool") else "user"


def begins_turn(message: Message) -> bool:
    """Whether a user says something here, in words."""
    return message.role == "user" and speaker(message) != "result"


def in_words(block: Mapping[str, Any]) -> str:
    """What a content block says: its text, or which tool was called with what."""
    match block.get("type"):
        case "text":
            return text_of(block)
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            return f"→ {block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}"
        case "tool_result":
            return f"← {text_of(block)}"
        case "thinking":
            return f"<thinking> {block.get('thinking')}"
        case kind:
            return f"<{kind}> {text_of(block)}".rstrip()


def pieces_in_short(message: Message) -> Iterator[Piece]:
    """A message for one line: thinking only where nothing else is said, of output how much it is."""
    blocks = message.blocks()
    said = [block for block in blocks if block.get("type") not in THINKING]
    for block in said or blocks:
        yield _in_short(block)


def _in_short(block: Mapping[str, Any]) -> Piece:
    match block.get("type"):
        case "tool_result":
            text = text_of(block)
            lines = text.count("\n") + 1
            much = f"({lines:,} lines) " if lines > 1 else ""
            failed = block.get("is_error") is True
            return Piece(
                f"← {'failed: ' if failed else ''}{much}{text.strip()}", "red" if failed else ""
            )
        case "thinking":
            return Piece(f"(thinking) {block.get('thinking') or ''}", "italic")
        case "redacted_thinking":
            return Piece("(thinking, redacted)", "italic")
        case _:
            return Piece(in_words(block))


def pieces_in_full(message: Message, address: str, *, whole: bool) -> Iterator[Piece]:
    """A message as it is; unless ``whole``, long output is folded."""
    for block in message.blocks():
        match block.get("type"):
            case "tool_result":
                failed = block.get("is_error") is True
                text = text_of(block)
                shown = text if whole else "\n".join(_folded(text.split("\n"), address))
                yield Piece(f"←{' failed:' if failed else ''} {shown}", "red" if failed else "")
            case "thinking":
                yield Piece(f"(thinking) {block.get('thinking') or ''}", "dim italic")
            case "redacted_thinking":
                yield Piece("(thinking, redacted)", "dim italic")
            case _:
                yield Piece(in_words(block))


def _folded(lines: Sequence[str], address: str) -> Sequence[str]:
    if len(lines) <= FOLDED_OVER:
        return lines
    hidden = len(lines) - HEAD - TAIL
    return [*lines[:HEAD], f"  … {hidden:,} lines: refold read {address}", *lines[-TAIL:]]
