"""Finds what stands in a person's message and is not that person's: quotations, logs, pasted texts."""

import re
from collections.abc import Iterable, Iterator

from .announced import announced
from .leads import orders
from .pasted import closed, long_quotations, printed, reviews
from .quote import QUOTATION, Quote, blanked

_MASK = "ǁ"
"""A letter that no word has, so that what is masked still counts as words."""


def quotes_in(text: str) -> tuple[Quote, ...]:
    """Everything that a text quotes, in order; a passage in another one is a part of it."""
    found = closed(text)
    text = blanked(text, found)
    lines = printed(text)
    found += [*lines, *announced(text, found, lines)]
    found += long_quotations(blanked(text, found))
    found += reviews(blanked(text, found))
    return tuple(_disjoint(found))


def own_words(text: str, quotes: Iterable[Quote]) -> str:
    """The text with everything blanked that is quoted: what is left keeps its place."""
    quotes = tuple(quotes)
    leads = (
        Quote(quote.lead[0], quote.start, quote.sort)
        for quote in quotes
        if quote.lead and not orders(text[slice(*quote.lead)])
    )
    return blanked(text, (*quotes, *leads))


def parted(text: str) -> tuple[str, str]:
    """The text without what is another's, and that alone; code that nothing announces is the person's."""
    quotes = [quote for quote in quotes_in(text) if quote.sort != "code"]
    others, end = "", 0
    for quote in quotes:
        others += "\n" * (quote.start - end) + text[quote.start : quote.stop]
        end = quote.stop
    return blanked(text, quotes), others


def masked(text: str) -> str:
    """The text with a sign in the place of what stands between quotation marks: it is mentioned, not said."""

    def mask(found: re.Match[str]) -> str:
        return found[0][0] + _MASK * (len(found[0]) - 2) + found[0][-1]

    # A text that is quoted as a whole was only written so.
    whole = QUOTATION.fullmatch(text.strip())
    return text if whole else QUOTATION.sub(mask, text)


def says_itself(judged: str) -> bool:
    """Whether a masked sentence says anything outside of its quotation marks."""
    return sum(map(str.isalnum, judged.replace(_MASK, ""))) > 1


def _disjoint(quotes: Iterable[Quote]) -> Iterator[Quote]:
    """The quotations in order, each without what the one before it covers already."""
    end = 0
    for quote in sorted(quotes, key=lambda one: (one.start, -one.stop, one.lead is None)):
        if quote.stop > end:
            yield quote._replace(start=max(end, quote.start))
            end = quote.stop
