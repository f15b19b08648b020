"""Text of others inside a message: quotations, and text that imitates the headings of refold."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    ConversationLabelled,
    EditProposed,
    Event,
    MessagePinned,
)
from .frames import FramePart, RequestFrameChanged
from .lazy_pattern import lazy_pattern
from .messages import Message
from .notes import NotesFlushed
from .pinning import WITHDRAWN_LABEL
from .value import is_list, is_object, replace

BLOCKS = ("Conversation Summary", "Conversation Ledger", "Recallable Topics", "Relevant Memories")
"""Names of the blocks that refold renders. Each has its name in square brackets as a heading."""
LINES = (
    "Pinned",
    *(
        f"{kind} {whose}"
        for kind in ("Requests", "Prohibitions", "Rules and preferences")
        for whose in (
            "of the user",
            "in messages whose author is not recorded",
            "in texts that were quoted",
        )
    ),
    "PREVIOUS CONTEXT SUMMARY",
    "RECENT MESSAGES",
)
"""Headings that claim to quote people or to begin another part."""
TAGS = ("read-files", "modified-files")

_UNSEEN = r"[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]"
"""Zero-width characters. Readers do not see them between letters."""


class _Headings:
    """Patterns of headings and tags, in which ``unseen`` may be between two characters."""

    def __init__(self, unseen: str) -> None:
        def any_of(names: tuple[str, ...]) -> str:
            return "|".join(
                unseen.join(r"[\s_\u00a0]+" if one == " " else re.escape(one) for one in name)
                for name in names
            )

        self.block = lazy_pattern(
            rf"[\[［【〔⟦]({unseen}\s*{unseen}(?:{any_of(BLOCKS)}){unseen}\s*{unseen})[\]］】〕⟧]",
            re.IGNORECASE,
        )
        self.line = lazy_pattern(
            rf"^((?:{unseen}[ \t>*_])*{unseen})[#＃](?:{unseen}[#＃]){{0,5}}"
            rf"({unseen}[ \t]*(?:{any_of(LINES)}))(?=[^\w\n]*$)",
            re.IGNORECASE | re.MULTILINE,
        )
        self.tag = lazy_pattern(
            rf"[<＜]({unseen}/?{unseen}(?:{any_of(TAGS)}){unseen})[>＞]", re.IGNORECASE
        )


_SEEN = _Headings("")
_HIDDEN = _Headings(f"{_UNSEEN}*")
"""For texts with zero-width characters. Compiling these patterns takes longer than most compactions."""
_HIDES = lazy_pattern(_UNSEEN)
_FENCE = lazy_pattern(r"^[ \t]*(`{3,}|~{3,})[^`\n]*$", re.MULTILINE)


def remove_headings(text: str) -> str:
    """Return the text without headings and tags of refold, and without a code fence that never ends.

    ``[Conversation Ledger]`` becomes ``(Conversation Ledger)``, ``## Pinned`` becomes ``Pinned``.
    """
    is_plain = text.isascii()
    headings = _SEEN if is_plain or not _HIDES.search(text) else _HIDDEN
    if not is_plain or "[" in text:
        text = headings.block.sub(r"(\1)", text)
    if not is_plain or "#" in text:
        text = headings.line.sub(r"\1\2", text)
    if not is_plain or "<" in text:
        text = headings.tag.sub(r"(\1)", text)
    return _close_fences(text) if "```" in text or "~~~" in text else text


def _close_fences(text: str) -> str:
    """Replace code fences that are never closed, because all following text would become code."""
    done = 0
    while opened := _FENCE.search(text, done):
        end = re.compile(
            rf"^[ \t]*{re.escape(opened[1][0])}{{{len(opened[1])},}}[ \t]*$", re.MULTILINE
        )
        if closed := end.search(text, opened.end()):
            done = closed.end()
            continue
        text = text[: opened.start(1)] + "'" * len(opened[1]) + text[opened.end(1) :]
        done = opened.end()
    return text


SHORTEST_QUOTE = 12
"""Minimum number of characters of a quotation. Unrelated texts often share shorter runs."""

_NOT_SAID = frozenset({"type", "id", "name", "tool_use_id", "media_type", "signature"})
"""Fields of a block that an erasure keeps, or that are not meant for readers."""

_TYPE = frozenset({"type"})
_NAMES = frozenset({"type", "name"})
"""Fields that a tool or a block of system text cannot be without."""

IsQuoted = Callable[[str], bool]


def quotes(text: str, said: str) -> bool:
    """Return whether two texts share a run of 12 characters. All white space counts as one space."""
    shorter, longer = sorted((" ".join(text.split()), " ".join(said.split())), key=len)
    runs = frozenset(_runs(shorter))
    return bool(runs) and not runs.isdisjoint(_runs(longer))


def _runs(text: str) -> Iterator[str]:
    return (text[i : i + SHORTEST_QUOTE] for i in range(len(text) - SHORTEST_QUOTE + 1))


def quote_checker(messages: Iterable[Message]) -> IsQuoted:
    """Return a function that checks whether a text quotes one of these messages."""
    words = [text for message in messages for text in words_of(message)]
    known: dict[str, bool] = {}

    def is_quoted(text: str) -> bool:
        if text not in known:
            known[text] = any(quotes(text, said) for said in words)
        return known[text]

    return is_quoted


def words_of(message: Message) -> Iterator[str]:
    """Yield all texts of a message that an erasure removes."""
    if isinstance(message.content, str):
        yield message.content
        return
    for block in message.content:
        yield from _texts_in({k: v for k, v in block.items() if k not in _NOT_SAID})


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_list(value):
        for part in value:
            yield from _texts_in(part)
    elif is_object(value) and value.get("type") != "base64":
        for part in value.values():
            yield from _texts_in(part)


def quoting_attempts(decisions: Iterable[Event], is_quoted: IsQuoted) -> frozenset[str]:
    """Return the ids of compaction attempts whose focus quotes a message.

    Attempts that continue a summary made with such a focus are included, and those that rebuild it from the
    texts of models. Only what code makes for an erasure is not made of these texts.
    """
    attempts, summaries = set[str](), set[str]()
    for event in decisions:
        match event:
            case CompactionRequested():
                carried = event.supersedes in summaries and event.trigger != "erasure"
                if carried or _quotes(event.focus, is_quoted):
                    attempts.add(event.attempt_id)
            case CompactionPerformed():
                if event.attempt_id in attempts or _quotes(event.focus, is_quoted):
                    attempts.add(event.attempt_id)
                    summaries.add(event.summary_id)
            case _:
                pass
    return frozenset(attempts)


def is_quoting(event: Event, attempts: frozenset[str], is_quoted: IsQuoted) -> bool:
    """Return whether an event contains text for which ``is_quoted`` is true.

    ``attempts`` are the result of ``quoting_attempts``.
    """
    match event:
        case ConversationLabelled():
            return is_quoted(event.label)
        case MessagePinned(position=None) | EditProposed(position=None):
            return is_quoted(event.text)
        case NotesFlushed(is_on_demand=True):
            return any(is_quoted(note.text) for note in event.notes)
        case CompactionRequested() | CompactionPerformed() | CompactionFailed():
            return event.attempt_id in attempts
        case RequestFrameChanged():
            return any(_part_quotes(part, is_quoted) for part in event.parts)
        case _:
            return False


def remove_quotes(event: Event, is_quoted: IsQuoted, marker: str) -> Event:
    """Return the event without quotations.

    ``marker`` replaces a quoting focus or line of a request frame. A quoting label is replaced as well.
    """
    match event:
        case ConversationLabelled() if is_quoted(event.label):
            return replace(event, label=WITHDRAWN_LABEL)
        case CompactionRequested() if _quotes(event.focus, is_quoted):
            return replace(event, focus=marker)
        case CompactionPerformed() if _quotes(event.focus, is_quoted):
            return replace(event, focus=marker)
        case RequestFrameChanged():
            parts = (_replace_in_part(part, is_quoted, marker) for part in event.parts)
            return replace(event, parts=tuple(parts))
        case _:
            return event


def _part_quotes(part: FramePart, is_quoted: IsQuoted) -> bool:
    return any(map(is_quoted, _texts_in(part.value)))


def _replace_in_part(part: FramePart, is_quoted: IsQuoted, marker: str) -> FramePart:
    if not _part_quotes(part, is_quoted):
        return part
    return replace(part, value=_replace_lines(part.value, is_quoted, marker, _NAMES))


def _replace_lines(
    value: Any, is_quoted: IsQuoted, marker: str, kept: frozenset[str] = _TYPE
) -> Any:
    """Replace each quoting line by ``marker``, or the whole text if the quotation spans lines.

    Texts of the fields ``kept`` stay. Those of nested values may be a person's words, except types.
    """
    if isinstance(value, str):
        text = "\n".join(marker if is_quoted(line) else line for line in value.split("\n"))
        return marker if is_quoted(text) else text
    if is_list(value):
        return [_replace_lines(part, is_quoted, marker) for part in value]
    if is_object(value):
        return {
            key: part
            if key in kept and isinstance(part, str)
            else _replace_lines(part, is_quoted, marker)
            for key, part in value.items()
        }
    return value


def _quotes(text: str | None, is_quoted: IsQuoted) -> bool:
    return text is not None and is_quoted(text)
