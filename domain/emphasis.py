"""Texts without what is left of Markdown where a sentence is cut out: marks without their partner."""

import re

LONGEST = 4_000
"""Characters; far more than a note has, and what a model writes may be of any length."""

_CODE = re.compile(r"`[^`]*`")
# Not a pattern of paths (`src/**`), Python's `**kwargs`, or a power.
_BOLD = re.compile(
    r"(?<![\\/*])\*{2,3}(?![*/]|\.\w|kw)(?!(?<=[A-Za-z0-9]\*\*)[A-Za-z0-9])(?!(?<=\s\*\*)\s)"
)
_CLOSING = re.compile(r"(?<=[.!?:。！？：])(?:__|[*_])(?=\s|\Z)|(?<=\w)__(?=\s|\Z)")
_HEADING = re.compile(r"#{1,6}\s+")
_LINE = re.compile(
    r"^[ \t>]*(#{1,6}[ \t]+\S.*|\*\*[^*\n]*[^*\n.!?。！？]\*\*)[ \t]*$",
    re.MULTILINE,
)
_PAUSES = frozenset(":：.。!！?？,，;；")


def plain(text: str) -> str:
    """The text without emphasis marks that have no partner, and without a heading's mark before it. A
    text longer than ``LONGEST`` stays as it is.
    """
    if len(text) > LONGEST:
        return text
    if heading := _HEADING.match(text):
        text = text[heading.end() :]
    quoted = [found.span() for found in _CODE.finditer(text)]
    bold = [m for m in _BOLD.finditer(text) if not any(a <= m.start() < b for a, b in quoted)]
    for mark in reversed(_without_partner(text, bold)):
        text = text[: mark.start()] + text[mark.end() :]
    for mark in reversed(list(_CLOSING.finditer(text))):
        if text.count(mark[0]) == 1:
            text = text[: mark.start()] + text[mark.end() :]
    return text.strip()


def bare(text: str) -> str:
    """The text without marks around it: as headings are compared."""
    return text.strip(" \t\n#*_")


def headings(text: str) -> frozenset[str]:
    """The headings of a text, bare: lines that are marked as one, and lines of nothing but bold words."""
    return frozenset(bare(found[1]) for found in _LINE.finditer(text))


def _without_partner(text: str, marks: list[re.Match[str]]) -> list[re.Match[str]]:
    """Of these marks those that neither end what one before begins, nor begin what one behind ends."""
    lone: list[re.Match[str]] = []
    opened: re.Match[str] | None = None
    for mark in marks:
        before, behind = text[: mark.start()][-1:], text[mark.end() :][:1]
        if opened is not None and mark[0] == opened[0] and before.strip():
            opened = None
        elif behind.strip() and not {before, behind} & _PAUSES:
            lone += [opened] if opened else []
            opened = mark
        else:
            lone.append(mark)
    return sorted([*lone, *([opened] if opened else [])], key=lambda mark: mark.start())
