"""Answers that fit: as many whole items as there is room for, and what to ask for the rest."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from refold.application.recall.inquiry import LEAST_TOKENS

Count = Callable[[str], int]


class Answer(NamedTuple):
    """The text of an answer, and how many of all its items are in it."""

    text: str
    shown: int
    of: int


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
            return Answer(text, shown, len(items))
    return Answer(_joined(head, tail(0)), 0, len(items))


def first_with_items(tries: Iterable[Answer]) -> str:
    """The first of these texts that shows anything of what there is; else the last."""
    text = ""
    for made in tries:
        text = made.text
        if made.shown or not made.of:
            break
    return text


def rooms(room: int, frame: int) -> Iterable[int]:
    """What the texts of an answer may take, with so much around them: less and less, until it fits."""
    sizes = (room - frame, room // 2, LEAST_TOKENS)
    return dict.fromkeys(max(size, LEAST_TOKENS) for size in sizes)


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
