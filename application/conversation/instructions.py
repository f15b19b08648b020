"""Instruction files such as AGENTS.md, cut to a budget and joined to one text after the system prompt."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from refold.application.runtime.plain_lines import plain_logger
from refold.domain.compaction.budget import InstructionFileSize
from refold.domain.errors import InvalidSetting
from refold.domain.lazy_pattern import lazy_pattern

logger = plain_logger(__name__)

CHARACTERS = 20_000
"""Default maximum number of characters of one file."""
TOTAL = 24_000
"""Default maximum number of characters of all files, including their headings."""
LEAST = 64
"""Minimum number of characters left; with fewer, a file is skipped."""
_HEAD, _TAIL = 0.7, 0.2
_NEAR = 10
"""Divisor of the shown length. Within this distance, a cut moves to the end of a line."""
_CONTROLS = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_HEADING = lazy_pattern(r"(?:\A|(?<=\n\n))\[Instructions from ([^\[\]\n]*)\]\n")


class InstructionFile(NamedTuple):
    """A file with its content."""

    name: str
    text: str
    problem: str = ""
    """Reason why it cannot be read; ``text`` is then empty."""


class ShownFile(NamedTuple):
    """A file as it is shown."""

    name: str
    text: str
    """Shown text; empty if the file is skipped."""
    cut: int
    """Number of its characters that are not shown."""
    skipped: str = ""
    """Reason why the file is skipped, in a few words."""


class Instructions(NamedTuple):
    """The text of all files, with the result for each."""

    text: str = ""
    """Text of all files; empty if none exists."""
    files: tuple[ShownFile, ...] = ()


def join_files(
    files: Iterable[InstructionFile], *, characters: int = CHARACTERS, total: int = TOTAL
) -> Instructions:
    """Join files under headings with their names, within the budgets.

    A file that is too long shows 70 % of its room from its beginning and 20 % from its end. A marker
    between them says how much is omitted and which file to read; the marker counts towards the room. A file
    is skipped if it cannot be read, or if fewer than 64 characters or less than its marker are left. Each
    cut or skipped file is logged as a warning. A blank file adds nothing.
    """
    shown: list[ShownFile] = []
    parts: list[str] = []
    left = total
    for file in files:
        heading = f"{heading_of(file.name)}\n"
        room = left - len(heading) - (2 if parts else 0)
        part = _fit_file(file, min(room, characters), f"{max(0, room)} of {total}")
        shown.append(part)
        if part.text:
            parts.append(heading + part.text)
            left = room - len(part.text)
    return Instructions("\n\n".join(parts), tuple(shown))


def instruction_text(
    files: Mapping[str, str], *, characters: int = CHARACTERS, total: int = TOTAL
) -> str:
    """Return the system text for instruction files, with the budgets of a memory, for agents without one.

    ``files``: content by name, in the order of the text. ``characters``: maximum of one file. ``total``:
    maximum of all together. A file that is too long shows its beginning and end with a marker between them;
    a file without room is skipped. The logger ``refold`` warns of both.

    Raises:
        InvalidSetting: a budget is not a number of at least 64, or the files are not text by name.
    """
    for setting, value in (("characters", characters), ("total", total)):
        if not isinstance(cast("object", value), int) or value < LEAST:
            raise InvalidSetting(
                f"{setting} = {value}: must be at least {LEAST}", setting=setting, value=value
            )
    named = cast("object", files)
    texts = (*files, *files.values()) if isinstance(named, Mapping) else (named,)
    if not isinstance(named, Mapping) or not all(isinstance(one, str) for one in texts):
        raise InvalidSetting(
            f"files={files!r:.60}: must be texts by name", setting="files", value=files
        )
    given = (InstructionFile(name, text) for name, text in files.items())
    return join_files(given, characters=characters, total=total).text


def heading_of(name: str) -> str:
    """Return the heading above the text of a file."""
    return f"[Instructions from {_printable(name)}]"


def instruction_sizes(
    text: str, files: Sequence[ShownFile], count: Callable[[str], int]
) -> tuple[InstructionFileSize, ...]:
    """Return the size of each file in the text, including skipped files.

    The size of a file is what it adds to those before it, so that the sizes add up to that of the text.
    ``files``: the shown files. Without them, as for a recorded text, the headings in the text name its
    files.
    """
    sizes: list[InstructionFileSize] = []
    end = before = 0
    for file in files or _parse_recorded(text):
        tokens = 0
        if file.text:
            end += (2 if end else 0) + len(heading_of(file.name)) + 1 + len(file.text)
            size = count(text[:end])
            before, tokens = size, max(0, size - before)
        sizes.append(
            InstructionFileSize(name=file.name, tokens=tokens, cut=file.cut, skipped=file.skipped)
        )
    return tuple(sizes)


def _parse_recorded(text: str) -> Sequence[ShownFile]:
    found = list(_HEADING.finditer(text))
    ends = [*(heading.start() - 2 for heading in found[1:]), len(text)]
    return [
        ShownFile(heading[1], text[heading.end() : end], 0)
        for heading, end in zip(found, ends, strict=False)
    ]


def _fit_file(file: InstructionFile, room: int, left: str) -> ShownFile:
    """Return the file cut to its room, or skipped.

    ``left``: total room left, for the log message.
    """
    name = _CONTROLS.sub("_", file.name)
    if file.problem:
        logger.warning("instruction file %s is skipped: it %s", name, file.problem)
        return ShownFile(file.name, "", 0, file.problem)
    if not file.text.strip():
        return ShownFile(file.name, "", 0, "is blank")
    part = _cut_to_room(file, room) if room >= LEAST else None
    if part is None:
        logger.warning(
            "instruction file %s is skipped: only %s characters are left for all files",
            name,
            left,
        )
        return ShownFile(file.name, "", len(file.text), "no room is left for it")
    if part.cut:
        logger.warning(
            "instruction file %s is cut: %s of its %s characters are omitted",
            name,
            f"{part.cut:,}",
            f"{len(file.text):,}",
        )
    return part


def _cut_to_room(file: InstructionFile, room: int) -> ShownFile | None:
    """Return as much of the file as fits the room, or None if not even the marker fits."""
    text = file.text.strip("\r\n").rstrip()
    if len(text) <= room:
        return ShownFile(file.name, text, 0)
    whole = len(file.text)
    remaining = room - len(_marker(file.name, whole))
    if remaining < 0:
        return None
    head = min(int(room * _HEAD), remaining * 7 // 9)
    begin = _head_of(text, head)
    end = _tail_of(text, min(int(room * _TAIL), remaining - head))
    cut = whole - len(begin) - len(end)
    return ShownFile(file.name, begin + _marker(file.name, cut) + end, cut)


def _marker(name: str, cut: int) -> str:
    """Return the marker with the whole path. It is never longer for a smaller ``cut``."""
    path = _CONTROLS.sub("_", name)
    return f"\n[… {cut:,} characters cut, read {path} for the full content …]\n"


def _printable(name: str) -> str:
    """Return the name without characters that could end its line or its brackets."""
    return re.sub(r"[\[\]]", "_", _CONTROLS.sub("_", name))


def _head_of(text: str, most: int) -> str:
    """Return at most ``most`` characters from the beginning, up to the end of a line if one is near."""
    most = _character_boundary(text, most)
    line = text.rfind("\n", most - most // _NEAR, most + 1)
    return text[: line if line > 0 else most].rstrip()


def _tail_of(text: str, most: int) -> str:
    """Return at most ``most`` characters from the end, from the beginning of a line if one is near."""
    start = len(text) - most
    while start < len(text) and not _is_boundary(text, start):
        start += 1
    line = text.find("\n", max(0, start - 1), start + most // _NEAR)
    return text[line + 1 if line >= 0 else start :].lstrip()


def _character_boundary(text: str, place: int) -> int:
    """Return the last place, at most ``place``, that does not split a visible character."""
    while place > 0 and not _is_boundary(text, place):
        place -= 1
    return place


_JOINER = "\u200d"
_MODIFIERS = range(0x1F3FB, 0x1F400)
_TAGS = range(0xE0020, 0xE0080)
_FLAGS = range(0x1F1E6, 0x1F200)


def _is_boundary(text: str, place: int) -> bool:
    """Return whether a text may be cut before this place without splitting a visible character."""
    import unicodedata

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
    # Hangul in conjoining letters.
    return not (0x1160 <= ord(after) <= 0x11FF)
