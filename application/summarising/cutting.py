"""Cutting a text to a number of tokens where nothing better can be done with it."""

from collections.abc import Callable

_GAP = "\n[… cut here …]\n"


def cut(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """Beginning and end of a text, two to one, in at most ``tokens``; empty where that is too little."""
    shown, keep = text, len(text)
    while count(shown) > tokens:
        keep = int(keep * min(0.9, tokens / count(shown)))
        if keep < 2 * len(_GAP):
            return ""
        shown = text[: keep * 2 // 3].rstrip() + _GAP + text[-(keep // 3) :].lstrip()
    return shown
