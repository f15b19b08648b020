"""Fences around quoted text of several lines: longer than any in it, so that it cannot end them."""

import re

# Whatever ends a line for anybody: behind it a text could pass for a heading of ours.
LINE_BREAK = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_TICKS = re.compile("`+")


def fenced(text: str) -> str:
    """The text between two lines of backticks, one more than any run of them in it, at least three."""
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{fence}\n{text}\n{fence}"
