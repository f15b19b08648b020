"""Parts of texts that fit a limit: beginnings, both ends around a mark, places to cut at."""

from collections.abc import Callable, Sequence

Measure = Callable[[str], int]
"""Tokens of a text, or any other size that grows with it."""


def beginning(text: str, most: int, *, trim: bool = False) -> str:
    """Return a text of at most ``most`` characters, with an ellipsis where it is cut.

    ``trim``: no blanks before the ellipsis.
    """
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    return f"{kept.rstrip() if trim else kept}…"


def ends(text: str, head: int, tail: int, mark: str, *, trim: bool = False) -> str:
    """Return the first ``head`` and the last ``tail`` characters around a mark.

    ``trim``: no blanks on either side of the mark.
    """
    first, last = text[:head], text[len(text) - tail :]
    return f"{first.rstrip()}{mark}{last.lstrip()}" if trim else f"{first}{mark}{last}"


def ends_within(text: str, most: int, measure: Measure, mark: str) -> str:
    """Return both ends of a text, two to one around a mark, of at most this size.

    Empty where that leaves less than two marks' length of it.
    """
    shown, keep = text, len(text)
    while measure(shown) > most:
        keep = int(keep * min(0.9, most / measure(shown)))
        if keep < 2 * len(mark):
            return ""
        shown = ends(text, keep * 2 // 3, keep // 3, mark, trim=True)
    return shown


def longest_beginning(text: str, most: int, measure: Measure) -> str:
    """Return the longest beginning of at most this size; whole lines, where the last is not half of it."""
    if measure(text) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if measure(text[:middle]) <= most else (low, middle - 1)
    return text[: last_mark(text, ("\n",), low // 2 + 1, low)[1]]


def fitting_length(size: int, characters: int, most: int, fits: Callable[[int], bool]) -> int:
    """Return a number of characters that fits: the share of a text of this size, or less by tenths.

    It is 1 at least, whether that fits or not.
    """
    length = max(1, characters * most // max(1, size))
    while length > 1 and not fits(length):
        length = length * 9 // 10
    return length


def last_mark(text: str, marks: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """Return start and stop of the last place of a mark between these two; the first mark that is there.

    ``last`` twice where there is none.
    """
    for mark in marks:
        found = text.rfind(mark, first, last)
        if found >= 0:
            return found, found + len(mark)
    return last, last


def encodable(text: str, most: int) -> str:
    """Return the first ``most`` characters; what UTF-8 cannot hold becomes a question mark."""
    return text[:most].encode("utf-8", "replace").decode("utf-8")
