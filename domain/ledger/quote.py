"""A passage that a message quotes, and the form of a text that such passages are found in."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from .headings import Place
from .leads import Sort
from .printed import Print, print_of
from .speech import lines

QUOTATION = re.compile(
    r"(?<![^\s(\[:：,，。>])[\"“]([^\s\"“”](?:[^\"“”]|(?<=\w)\"(?=\w)){0,3000}?)[\"”](?![\w])|"
    r"「([^「」]{1,3000})」|『([^『』]{1,3000})』"
)
_LONG_QUOTATION = 160
_SEVERAL = re.compile(r"[.!?]\s+\S|[。！？]\s*[^\s\"”]")
_APART = re.compile(r"[ \t]{3,}|\t")
_MOST_PARTS = 4
_HEAD = 300


class Quote(NamedTuple):
    """A passage that is not the person's, and the words of that person that announce it, if any."""

    start: int
    stop: int
    sort: Sort
    lead: Place | None = None
    is_review: bool = False
    """Whether it asks to consider something, in the manner of a code review."""


def blanked(text: str, quotes: Iterable[Quote]) -> str:
    """The text with line breaks in the place of everything quoted: what is left keeps its place."""
    parts: list[str] = []
    end = 0
    for quote in sorted(quotes, key=lambda quote: quote.start):
        if quote.stop > end:
            start = max(end, quote.start)
            parts += text[end:start], "\n" * (quote.stop - start)
            end = quote.stop
    return "".join([*parts, text[end:]])


def is_long(quotation: str) -> bool:
    """Whether more than a few words stand between quotation marks: several sentences, or a long one."""
    return len(quotation) > _LONG_QUOTATION or _SEVERAL.search(quotation[:-1]) is not None


def blocks_of(text: str) -> list[list[Place]]:
    """The lines of a text, those together that no blank line parts."""
    found: list[list[Place]] = []
    end = -2
    for start, stop in _segments(text):
        if not found or text.count("\n", end, start) > 1:
            found.append([])
        found[-1].append((start, stop))
        end = stop
    return found


def _segments(text: str) -> Iterator[Place]:
    """The lines; where a program's line was pasted behind words on the same line, both apart."""
    for start, stop in lines(text):
        parts = islice(_APART.finditer(text, start, stop), _MOST_PARTS)
        behind = next(
            (f for f in parts if print_of(text[f.end() : min(stop, f.end() + _HEAD)]) >= Print.YES),
            None,
        )
        if behind and print_of(text[start:stop]) < Print.YES and text[behind.end()] not in "⎿⏺✻":
            yield start, behind.start()
            yield behind.end(), stop
        else:
            yield start, stop
