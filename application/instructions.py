"""Instruction files such as AGENTS.md: budgeted, then one text behind the caller's system prompt."""

import logging
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from refold.domain.errors import InvalidSetting

logger = logging.getLogger(__name__)

CHARACTERS = 20_000
"""Of one file (requirement C5)."""
TOTAL = 24_000
"""Of all files together, with their headings (requirement C5)."""
LEAST = 64
"""With less room than this left, a file is skipped (requirement C5)."""
_HEAD, _TAIL = 0.7, 0.2
_NEAR = 10
"""A cut moves to the end of a line that lies within this part, a tenth, of what is shown there."""
_LONGEST_NAME = 22
"""Characters of a name, from its end, in a marker."""


class InstructionFile(NamedTuple):
    """A file, and what stands in it."""

    name: str
    text: str


class ShownFile(NamedTuple):
    """What became of a file."""

    name: str
    text: str
    """As it is shown; empty where it is skipped."""
    cut: int
    """How many of its characters are not shown."""


class Instructions(NamedTuple):
    """The text of all files, and what became of each."""

    text: str = ""
    """Empty where there is nothing to say."""
    files: tuple[ShownFile, ...] = ()


def budgeted(
    files: Iterable[InstructionFile], *, characters: int = CHARACTERS, total: int = TOTAL
) -> Instructions:
    """The files one after the other, each under a heading with its name, within their budget.

    Of a file that is too long 70 % of its room are taken from its beginning and 20 % from its end, with a
    marker between them that says what is left out of which file and counts towards the room. A file for
    which fewer than 64 characters are left is skipped, and the log says so; a blank one says nothing.
    """
    shown: list[ShownFile] = []
    parts: list[str] = []
    left = total
    for file in files:
        if not file.text.strip():
            shown.append(ShownFile(file.name, "", 0))
            continue
        heading = f"{heading_of(file.name)}\n"
        room = left - len(heading) - (2 if parts else 0)
        if room < LEAST:
            logger.warning(
                "instructions of %s are left out: only %d of %d characters for all such files are left",
                file.name,
                max(0, room),
                total,
            )
            shown.append(ShownFile(file.name, "", len(file.text)))
            continue
        part = _within(file, min(room, characters))
        shown.append(part)
        parts.append(heading + part.text)
        left = room - len(part.text)
    return Instructions("\n\n".join(parts), tuple(shown))


def instruction_text(
    files: Mapping[str, str], *, characters: int = CHARACTERS, total: int = TOTAL
) -> str:
    """The system text that instruction files make, budgeted as a memory does it; for agents without one.

    ``files``: what stands in each, by name, in the order in which they are to be read. ``characters``: of
    one file at most; ``total``: of all together. A file that is too long shows beginning and end, with a
    marker between them; one for which no room is left is skipped, and the logger ``refold`` says so.

    Raises:
        InvalidSetting: a budget of fewer than 64 characters.
    """
    for setting, value in (("characters", characters), ("total", total)):
        if value < LEAST:
            raise InvalidSetting(
                f"{setting} = {value}: must be at least {LEAST}", setting=setting, value=value
            )
    given = (InstructionFile(name, text) for name, text in files.items())
    return budgeted(given, characters=characters, total=total).text


def heading_of(name: str) -> str:
    """What stands above the text of a file."""
    return f"[Instructions from {_printable(name)}]"


def _within(file: InstructionFile, room: int) -> ShownFile:
    text = file.text.strip("\r\n").rstrip()
    if len(text) <= room:
        return ShownFile(file.name, text, 0)
    whole = len(file.text)
    beside = room - len(_marker(file.name, whole))
    head = min(int(room * _HEAD), beside * 7 // 9)
    begin = _head_of(text, head)
    end = _tail_of(text, min(int(room * _TAIL), beside - head))
    cut = whole - len(begin) - len(end)
    return ShownFile(file.name, begin + _marker(file.name, cut) + end, cut)


def _marker(name: str, cut: int) -> str:
    """Of at most 64 characters, and no more for a smaller ``cut``."""
    short = _printable(name)
    if len(short) > _LONGEST_NAME:
        short = f"…{short[-_LONGEST_NAME:]}"
    return f"\n[… {cut:,} characters of {short} cut …]\n"


def _printable(name: str) -> str:
    """The name without anything that could end the line it stands on, or the brackets around it."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\[\]\ud800-\udfff]", "_", name)


def _head_of(text: str, most: int) -> str:
    """At most so many characters from the beginning, to the end of a line where one is near."""
    most = _whole(text, most)
    line = text.rfind("\n", most - most // _NEAR, most + 1)
    return text[: line if line > 0 else most].rstrip()


def _tail_of(text: str, most: int) -> str:
    """At most so many characters from the end, from the beginning of a line where one is near."""
    start = len(text) - most
    while start < len(text) and not _is_boundary(text, start):
        start += 1
    line = text.find("\n", max(0, start - 1), start + most // _NEAR)
    return text[line + 1 if line >= 0 else start :].lstrip()


def _whole(text: str, place: int) -> int:
    """The last place up to this one where no character that people see is parted."""
    while place > 0 and not _is_boundary(text, place):
        place -= 1
    return place


_JOINER = "\u200d"
_MODIFIERS = range(0x1F3FB, 0x1F400)
_TAGS = range(0xE0020, 0xE0080)
_FLAGS = range(0x1F1E6, 0x1F200)


def _is_boundary(text: str, place: int) -> bool:
    """Whether a text may be cut before this place: what is written as one stays one."""
    if not 0 < place < len(text):
        return True
    before, after = text[place - 1], text[place]
    if unicodedata.category(after) in ("Mn", "Mc", "Me") or _JOINER in (before, after):
        return False
    if ord(after) in _MODIFIERS or ord(after) in _TAGS or (before, after) == ("\r", "\n"):
        return False
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return False
    if ord(before) in _FLAGS and ord(after) in _FLAGS:
        first = place
        while first > 0 and ord(text[first - 1]) in _FLAGS:
            first -= 1
        return (place - first) % 2 == 0
    # Hangul written letter by letter.
    return not (0x1160 <= ord(after) <= 0x11FF)
