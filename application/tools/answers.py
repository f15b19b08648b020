"""Answers that fit: as many whole items as there is room for, and what to ask for the rest."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

Count = Callable[[str], int]


class Answer(NamedTuple):
    """The text of an answer, and how many of its items are in it."""

    text: str
    shown: int


def answer(
    head: str,
    items: Sequence[str],
    tail: Callable[[int], str],
    room: int,
    count: Count,
    *,
    between: str = "\n\n",
    least: int = 1,
) -> Answer:
    """An answer of at most ``room`` tokens, with as many items as fit; with none of them where fewer
    than ``least`` do. ``tail`` is given how many items are shown.
    """
    for shown in range(len(items), max(least, 1) - 1, -1):
        text = _joined(head, between.join(items[:shown]), tail(shown))
        if count(text) <= room:
            return Answer(text, shown)
    return Answer(_joined(head, tail(0)), 0)


def longest(text: str, most: int, count: Count) -> str:
    """The longest beginning of a text that takes ``most`` tokens at most; whole lines, where it can be."""
    if count(text) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= most else (low, middle - 1)
    line = text.rfind("\n", 0, low)
    return text[: line + 1] if line > low // 2 else text[:low]


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
