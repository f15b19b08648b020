"""Parts of texts that fit a limit: beginnings, both ends around a mark, and places to cut at."""

from collections.abc import Callable, Sequence

Measure = Callable[[str], int]
"""Function that returns the tokens of a text, or another size that grows with it."""


def beginning(text: str, most: int, *, trim: bool = False) -> str:
    """Return a text of at most ``most`` characters, with an ellipsis if it is cut.

    ``trim`` removes spaces before the ellipsis.
    """
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    return f"{kept.rstrip() if trim else kept}…"


def ends(text: str, head: int, tail: int, mark: str, *, trim: bool = False) -> str:
    """Return the first ``head`` and the last ``tail`` characters around a mark.

    ``trim`` removes spaces on both sides of the mark.
    """
    first, last = text[:head], text[len(text) - tail :]
    return f"{first.rstrip()}{mark}{last.lstrip()}" if trim else f"{first}{mark}{last}"


def ends_within(text: str, most: int, measure: Measure, mark: str) -> str:
    """Return the beginning and the end of a text around a mark, within a size of ``most``.

    The beginning is twice as long as the end. The result is empty if less than two lengths of the mark
    would remain.
    """
    shown, keep = text, len(text)
    while measure(shown) > most:
        keep = int(keep * min(0.9, most / measure(shown)))
        if keep < 2 * len(mark):
            return ""
        shown = ends(text, keep * 2 // 3, keep // 3, mark, trim=True)
    return shown


def longest_beginning(text: str, most: int, measure: Measure) -> str:
    """Return the longest beginning with a size of at most ``most``.

    It ends at a line break, unless the last line has more than half of it.
    """
    if measure(text) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if measure(text[:middle]) <= most else (low, middle - 1)
    return text[: last_mark(text, ("\n",), low // 2 + 1, low)[1]]


def fitting_length(size: int, characters: int, most: int, fits: Callable[[int], bool]) -> int:
    """Return a number of characters that fits, or 1.

    The first guess is proportional to ``most`` and the ``size`` of the text; it shrinks by tenths until it
    fits.
    """
    length = max(1, characters * most // max(1, size))
    while length > 1 and not fits(length):
        length = length * 9 // 10
    return length


def last_mark(text: str, marks: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """Return start and stop of the last occurrence of a mark between ``first`` and ``last``.

    Earlier marks are preferred. Without an occurrence both numbers are ``last``.
    """
    for mark in marks:
        found = text.rfind(mark, first, last)
        if found >= 0:
            return found, found + len(mark)
    return last, last


def encodable(text: str, most: int) -> str:
    """Return the first ``most`` characters. Characters that UTF-8 cannot encode become question marks."""
    return text[:most].encode("utf-8", "replace").decode("utf-8")
