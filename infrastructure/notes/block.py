"""Our part of a file that a person writes as well: between two marks, and nothing outside of them."""

import re
from collections.abc import Iterator, Sequence

BEGIN = b"<!-- refold:notes:begin - written anew each time, so write above or below -->"
END = b"<!-- refold:notes:end -->"
_BEGINS, _ENDS = b"<!-- refold:notes:begin", b"<!-- refold:notes:end"

# What stands in our part, for a file whose marks a person has broken: the rest of it is his.
_OURS = re.compile(
    rb"- .*\((?:from )?refold://\S+/[0-9]+(?:(?:, | to )refold://\S+/[0-9]+)*\)"
    rb"|# Memory|# Notes of [0-9-]{10}|## (?:Decisions|Preferences|Constraints)|### \S+"
)


def with_block(content: bytes, text: str) -> bytes:
    """The file with ``text`` as our part, or without one where it is empty.

    Everything outside of the marks stays, byte for byte. Without marks our part comes last. Where marks
    are broken (one is missing, there are more than two), what is certainly ours goes with them, and
    whatever else stood there stays.
    """
    before, after = _around(content)
    if not text:
        return before + after
    block = BEGIN + b"\n" + text.encode("utf-8", "replace") + b"\n" + END + b"\n"
    if not after and before.strip() and not _has_marks(content):
        before += b"\n" if before.endswith(b"\n") else b"\n\n"
    elif before and not before.endswith((b"\n", b"\r")):
        before += b"\n"  # A mark begins its line, behind blanks as well.
    return before + block + after


def _has_marks(content: bytes) -> bool:
    return any(map(_mark, content.splitlines()))


def _around(content: bytes) -> tuple[bytes, bytes]:
    """What stands before our part, and after it."""
    lines = content.splitlines(keepends=True)
    marks = [(at, kind) for at, line in enumerate(lines) if (kind := _mark(line))]
    if not marks:
        return content, b""
    first, kind = marks[0]
    if [found for _, found in marks] == ["begin", "end"]:
        return b"".join(lines[:first]), b"".join(lines[marks[1][0] + 1 :])
    before = _kept(lines[:first]) if kind == "end" else iter(lines[:first])
    return b"".join(before), b"".join(_mended(lines[first:]))


def _mended(lines: Sequence[bytes]) -> Iterator[bytes]:
    """The lines from the first mark on that are not ours."""
    part: list[bytes] = []
    last = ""
    for line in lines:
        kind = _mark(line)
        if not kind:
            part.append(line)
            continue
        if (last, kind) != ("begin", "end"):  # Between these all is ours.
            yield from part if last == "end" and kind == "begin" else _kept(part)
        part, last = [], kind
    yield from part if last == "end" else _kept(part)


def _kept(lines: Sequence[bytes]) -> Iterator[bytes]:
    return (line for line in lines if not _OURS.fullmatch(line.strip()))


def _mark(line: bytes) -> str:
    text = line.strip()
    if text.startswith(_BEGINS) and text.endswith(b"-->"):
        return "begin"
    return "end" if text.startswith(_ENDS) and text.endswith(b"-->") else ""
