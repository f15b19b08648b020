"""Find what stands in a person's message and is not that person's: quotations, logs, pasted texts."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from .headings import Place
from .pasted import ARROW, SHORT_END, closed, long_quotations, printed, refers, returns, reviews
from .quote import LONGEST, QUOTATION, Quote, Sort, announces, blanked, blocks_of, is_long, orders
from .speech import lines

_COLON = re.compile(r"[:：](?=\s|\Z|[\"“「『*_`]|[^\x00-\x7f])|：")
_SENTENCE = re.compile(r"(?<=[.!?。！？])[\s\"”]+|(?<=[。！？])|[ \t]{2,}")
_ADDRESS = re.compile(r"(?:https?:/|[~.]?/|@)\S+|`[^`\n]+`")
_GOES_ON = re.compile(r",?[ \t]+(?:[a-z]|[-–—] ?[a-z])|[，,]?[\u3400-\u9fff]")
_PASTED = 1_500
"""Characters: a shorter text behind such words was typed, unless it has a title."""
_TITLED = re.compile(r"^#{1,3} \S", re.MULTILINE)
_MOST_SIGNS = 400
"""A text with more colons and quotation marks than this is data."""


class _Pasted(NamedTuple):
    """A text, and what is known of it."""

    text: str
    blocks: list[list[Place]]
    closed: list[Quote]
    last_printed: int
    """Where the last line ends that a program has printed."""

    def blocks_from(self, begin: int) -> list[list[Place]]:
        """The blocks behind a place; of the one that it stands in, the rest."""
        at = bisect_right(self.blocks, begin, key=lambda block: block[-1][1])
        found = self.blocks[at:]
        if not found:
            return []
        first = [(max(start, begin), stop) for start, stop in found[0] if stop > begin]
        return [first, *found[1:]]


def announced(text: str, closed: Sequence[Quote], printed: Sequence[Quote]) -> Iterator[Quote]:
    """What stands behind words that announce it; ``text`` is without what is ``closed``."""
    own = blanked(text, printed)
    last_printed = max((quote.stop for quote in printed), default=0)
    known = sorted(closed, key=lambda quote: quote.start)
    pasted = _Pasted(text, blocks_of(text), known, last_printed)
    end = signs = 0
    for start, stop in lines(own):
        found = (*_COLON.finditer(own, start, stop), *QUOTATION.finditer(own, start, stop))
        for sign in found if start >= end else ():
            signs += 1
            if signs > _MOST_SIGNS:
                return
            lead = _lead(own, start, sign.start())
            sort = announces(own[slice(*lead)])
            begin = sign.start() if len(sign[0]) > 1 else sign.end()
            if sort and (quote := _behind(pasted, lead, begin, sort)):
                yield quote
                end = quote.stop
                break


def _lead(text: str, start: int, stop: int) -> Place:
    """The sentence, without list marks, that ends where something is announced."""
    start = max(start, stop - 2 * LONGEST)
    for sentence in _SENTENCE.finditer(text, start, stop):
        if sentence.end() < stop:
            start = sentence.end()
    while start < stop and (text[start].isspace() or text[start] in "*_#->•"):
        start += 1
    while start < stop and (text[stop - 1].isspace() or text[stop - 1] in "*_,，"):
        stop -= 1
    return start, stop


def _behind(pasted: _Pasted, lead: Place, begin: int, sort: Sort) -> Quote | None:
    text = pasted.text
    while begin < len(text) and text[begin] in "*_ \t":
        begin += 1
    below = begin
    while below < len(text) and text[below].isspace():
        below += 1
    at = bisect_left(pasted.closed, begin, key=lambda quote: quote.start)
    if at < len(pasted.closed) and pasted.closed[at].start <= below:
        return pasted.closed[at]._replace(sort=sort, lead=lead)
    if below == len(text):
        return None
    if quotation := QUOTATION.match(text, begin):
        # Where the sentence goes on behind it, it is the person's that mentions something.
        goes_on = _GOES_ON.match(text, quotation.end()) and not is_long(quotation[0])
        return None if goes_on else Quote(begin, quotation.end(), sort, lead)
    if sort == "document":
        is_document = len(text) - begin > _PASTED or _TITLED.search(text, begin)
        return Quote(begin, len(text), sort, lead) if is_document else None
    if text[begin] == "\n":
        stop = _end_below(pasted, begin, sort)
    else:
        stop = begin if _ADDRESS.match(text, begin) else _end_inline(pasted, begin, sort)
    return Quote(begin, stop, sort, lead) if stop > begin else None


def _end_inline(pasted: _Pasted, begin: int, sort: Sort) -> int:
    """Where a quotation ends that begins on the line of its lead: with its block, or where the person speaks again."""
    text, goes_on = pasted.text, returns if sort == "output" else refers
    block = pasted.blocks_from(begin)[0]
    stop = block[-1][1]
    for start, end in block[1:]:
        if goes_on(text[start:end]):
            stop = start
            break
    sentences = [found.end() for found in _SENTENCE.finditer(text, begin, stop)]
    for start, end in pairwise([*sentences, stop]):
        if goes_on(text[start:end]):
            return start
    return stop


def _end_below(pasted: _Pasted, begin: int, sort: Sort) -> int:
    """Where a quotation ends that begins below its lead: where the person speaks again."""
    text, blocks, last_printed = pasted.text, pasted.blocks_from(begin), pasted.last_printed
    stop = blocks[0][-1][1]
    is_marked = text[blocks[0][0][0]] == ">"
    for start, end in blocks[0][1:]:
        if is_marked and text[start] != ">":
            return start
        is_behind = sort == "output" and start >= last_printed > begin
        if ARROW.match(text, start) or (is_behind and refers(text[start:end])):
            return start
    for block in blocks[1:]:
        start, end = block[0][0], block[-1][1]
        if ARROW.match(text, start) or _is_own(pasted, text[start:end], start, begin, sort):
            break
        stop = end
    return stop


def _is_own(pasted: _Pasted, passage: str, start: int, begin: int, sort: Sort) -> bool:
    """Whether a block behind an announced quotation is the person's again."""
    if sort == "output":
        behind_log = start >= pasted.last_printed > begin
        return behind_log or (pasted.last_printed <= begin and returns(passage))
    is_last = start == pasted.blocks[-1][0][0]
    return is_last and len(passage) <= SHORT_END and refers(passage)


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
