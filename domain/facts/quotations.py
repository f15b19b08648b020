"""Find quotations in a message, and the places where the person speaks again."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from refold.domain.lazy_pattern import lazy_pattern

from . import cues
from .headings import Place
from .speech import (
    LONGEST,
    QUOTATION,
    QUOTATION_MARKS,
    Print,
    Quote,
    Sort,
    advertisement_in,
    announced_sort,
    asks_for_something,
    blank_out,
    blocks_of,
    is_long,
    lines,
    print_of,
)

ARROW = lazy_pattern(r"->|=>|→")
_VERBS = (
    r"(?:fix|address|handle|resolve|check|look into|investigate|apply|implement|ignore|do|deal with|respond to|"
    r"reply to|"
    r"evaluate|verify|consider|follow)"
)
_RETURNS = lazy_pattern(
    rf"{ARROW.pattern}|—|(?:can|could|would|will|should|do|does|did|is|are|shall) (?:you|we|i)\b|(?:please|pls|plz)\b|"
    rf"but (?:i|we|it|that|the)\b|(?:so|ok(?:ay)?|now|then|also|and)?,? ?(?:{_VERBS}|have a look at|find out)\b|"
    r"(?:any idea|thoughts|ideas|let['’]?s|i['’]?(?:d|m|ve|ll)?|we['’]?(?:d|re|ve|ll)?|my|what|why|how|where|which)\b|"
    r"请|帮|你|我|为什么|怎么|能不能|这是",
    re.IGNORECASE,
)
_REFERS = lazy_pattern(
    rf"{ARROW.pattern}|(?:(?:please|pls|plz|so|now|then|ok(?:ay)?|and),? )*(?:(?:can|could|would|will) (?:you|we)\b|"
    rf"{_VERBS} (?:it|this|that|these|those|them|all|everything|his|her|their|"
    r"the (?:feedback|comments?|review|e?-?mail|issues?|problem))\b|(?:summari[sz]e|translate|explain|analy[sz]e|"
    r"continue|answer|reply|respond|draft|review|eval(?:uate)?|why|what)\b)|so,? (?:please|let['’]?s)\b|any ideas?\b|"
    r"thoughts|what do you think|i (?:dis)?agree\b|帮我|请你|你看|怎么看",
    re.IGNORECASE,
)


def is_person_again(passage: str) -> bool:
    """Return whether the person speaks again in a passage after program output."""
    speaks = _RETURNS.match(passage) or cues.ORDER.match(passage)
    return speaks is not None or passage.rstrip().endswith(("?", "？"))


def refers_back(passage: str) -> bool:
    """Return whether a passage refers to the quotation before it."""
    return _REFERS.match(passage) is not None or passage.rstrip().endswith(("?", "？"))


SHORT_END = 400
"""Maximum number of characters of a last paragraph by the person. A longer one is part of the pasted mail."""

_FENCES = lazy_pattern(
    r"```.*?(?:```|\Z)|^[ \t]*(?P<fence>~~~|\"\"\"|'''|<<<).*?(?:^[ \t]*(?:(?P=fence)|>>>)|\"\"\"\s*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_FENCE_SIGNS = ("```", "~~~", '"""', "'''", "<<<")
_MAIL_SIGNS = (":", "：", "--")
"""Every mail and every dialogue has one of these."""
_TAGGED = lazy_pattern(
    r"^[ \t]*<((?:error|build|test|ci|server|console)?[-_]?(?:logs?|output|stdout|stderr|errors?)|trace(?:back)?|"
    r"stack[-_]?trace|"
    r"documents?|document_content|docs?|file(?:[-_]contents?)?|feedback|review|comments?|e?mails?|messages?|"
    r"quotes?|quoted|"
    r"pasted?(?:[-_]\w+)?|transcript|conversation|diff|patch|code|tool[-_]results?|function_results|search[-_]results?|"
    r"web[-_]?page|page|article|source|data|observation|excerpt|blockquote|pre)\b[^<>\n]{0,200}>",
    re.IGNORECASE | re.MULTILINE,
)
_MAIL = lazy_pattern(
    r"^[ \t]*(?:-{2,} ?(?:Original|Forwarded) [Mm]essage ?-{2,}|Begin forwarded message:|On [^\n]{6,100} wrote:[ \t]*$|"
    r"(?:(?:From|To|Cc|Date|Sent|Subject|发件人|收件人|日期|主题)[:：] ?[^\n]+\n[ \t]*){2,})",
    re.MULTILINE,
)
_SPEAKER = lazy_pattern(
    r"^[ \t]*(?:\*\*|\[)?(User|Human|Assistant|Agent|AI|Bot|Model|System)(?:\*\*|\])?\s?:",
    re.MULTILINE,
)
_CONSIDER = lazy_pattern(
    r"(?:(?<=\A)|(?<=[\n])|(?<=[.!] ))Consider (?:\w+ing|whether|if|a|an|the)\b"
)
_PERSONAL = lazy_pattern(
    r"\b(?:i|i['’]\w+|my|me|we|us|our|you|your|please|let['’]?s)\b", re.IGNORECASE
)
_LEAST_OF_REVIEW = 100


def find_delimited(text: str) -> list[Quote]:
    """Return the passages between fences or tags, and pasted mails and dialogues."""
    has_fence = any(map(text.__contains__, _FENCE_SIGNS))
    return [
        *([Quote(*m.span(), "code") for m in _FENCES.finditer(text)] if has_fence else ()),
        *(_find_tagged(text) if "<" in text else ()),
        *(_find_mails(text) if any(map(text.__contains__, _MAIL_SIGNS)) else ()),
    ]


def _find_tagged(text: str) -> Iterator[Quote]:
    end, folded, unclosed = 0, text.lower(), set[str]()
    for opening in _TAGGED.finditer(text):
        closing = f"</{opening[1].lower()}>"
        if opening.start() < end or closing in unclosed:
            continue
        stop = folded.find(closing, opening.end())
        if stop < 0:
            unclosed.add(closing)
        else:
            end = stop + len(closing)
            yield Quote(opening.start(), end, "words")


def _find_mails(text: str) -> Iterator[Quote]:
    """Yield pasted mails and dialogues, without a short last paragraph that refers to them."""
    speakers = list(_SPEAKER.finditer(text))
    is_talk = len(speakers) > 2 and len({one[1] for one in speakers}) > 1
    for begins in (_MAIL.search(text), speakers[0] if is_talk else None):
        if begins:
            blocks = blocks_of(text[begins.start() :])
            start, stop = blocks[-1][0][0], blocks[-1][-1][1]
            passage = text[begins.start() + start : begins.start() + stop]
            is_own = len(blocks) > 1 and len(passage) <= SHORT_END and refers_back(passage)
            yield Quote(begins.start(), begins.start() + start if is_own else len(text), "words")


def find_output(text: str) -> list[Quote]:
    """Return program output, blocks between two outputs, quoted lines, and advertisements."""
    found: list[Quote] = []
    are_printed: list[bool] = []
    blocks = blocks_of(text)
    for block in blocks:
        marked = _output_lines(text, block)
        are_printed.append(2 * sum(marked) >= len(block))
        found += [
            Quote(*place, "output")
            for place, is_printed in zip(block, marked, strict=True)
            if is_printed
        ]
        found += [
            Quote(start + at, stop, "output")
            for start, stop in block
            if (at := advertisement_in(text[start:stop])) is not None
        ]
    for before, block, behind in zip(are_printed, blocks[1:], are_printed[2:], strict=False):
        if before and behind and not is_person_again(text[block[0][0] : block[-1][1]]):
            found.append(Quote(block[0][0], block[-1][1], "output"))
    return found


def _output_lines(text: str, block: Sequence[Place]) -> list[bool]:
    said = [text[start:stop] for start, stop in block]
    prints = [print_of(line) for line in said]
    marked = [
        mark >= Print.YES or line.startswith(">") for mark, line in zip(prints, said, strict=True)
    ]
    hits = [n for n, mark in enumerate(prints) if mark]
    sure = any(marked)
    if not sure and (len(hits) < 3 or len(hits) < 0.7 * len(block)):
        return marked
    hits = [n for n, mark in enumerate(marked) if mark or prints[n]]
    first, last = hits[0], hits[-1]
    prompt = next((n for n, mark in enumerate(prints) if mark is Print.PROMPT), None)
    if prompt is not None:
        last = len(block) - 1
        while last > prompt and prints[last] is Print.NO and refers_back(said[last]):
            last -= 1
    if prompt is not None or 2 * len(hits) >= last - first + 1:
        return [mark or first <= n <= last for n, mark in enumerate(marked)]
    return marked


def find_long_quotations(text: str) -> Iterator[Quote]:
    """Yield long passages in quotation marks, unless the whole text is one."""
    for found in QUOTATION.finditer(text) if any(map(text.__contains__, QUOTATION_MARKS)) else ():
        if "\n\n" not in found[0] and found[0] != text.strip() and is_long(found[0]):
            yield Quote(*found.span(), "words")


def find_reviews(text: str) -> Iterator[Quote]:
    """Yield paragraphs in the style of a code review: impersonal text that asks to consider something."""
    first: int | None = None
    for block in blocks_of(text) if "Consider" in text else ():
        place = (block[0][0], block[-1][1])
        if not _is_impersonal(text, place):
            first = None
            continue
        first = place[0] if first is None else first
        if _CONSIDER.search(text, *place):
            yield Quote(first, place[1], "words", is_review=True)
            first = None


def _is_impersonal(text: str, block: Place) -> bool:
    passage = text[slice(*block)]
    return len(passage) >= _LEAST_OF_REVIEW and not _PERSONAL.search(passage) and "?" not in passage


_COLON = lazy_pattern(r"[:：](?=\s|\Z|[\"“「『*_`]|[^\x00-\x7f])|：")
_SENTENCE = lazy_pattern(r"(?<=[.!?。！？])[\s\"”]+|(?<=[。！？])|[ \t]{2,}")
_ADDRESS = lazy_pattern(r"(?:https?:/|[~.]?/|@)\S+|`[^`\n]+`")
_GOES_ON = lazy_pattern(r",?[ \t]+(?:[a-z]|[-–—] ?[a-z])|[，,]?[\u3400-\u9fff]")
_PASTED = 1_500
"""Minimum number of characters of a pasted text. A shorter one was typed, unless it has a title."""
_TITLED = lazy_pattern(r"^#{1,3} \S", re.MULTILINE)
_MOST_SIGNS = 400
"""Maximum number of colons and quotation marks. A text with more of them is data."""


class _Pasted(NamedTuple):
    """A text with its blocks and known quotations."""

    text: str
    blocks: list[list[Place]]
    closed: list[Quote]
    last_printed: int
    """Position where the last line of program output ends."""

    def blocks_from(self, begin: int) -> list[list[Place]]:
        """Return the blocks after a position, including the rest of the block at that position."""
        at = bisect_right(self.blocks, begin, key=lambda block: block[-1][1])
        found = self.blocks[at:]
        if not found:
            return []
        first = [(max(start, begin), stop) for start, stop in found[0] if stop > begin]
        return [first, *found[1:]]


def find_announced(text: str, closed: Sequence[Quote], printed: Sequence[Quote]) -> Iterator[Quote]:
    """Yield quotations that follow words announcing them. ``text`` must not contain ``closed`` passages."""
    own = blank_out(text, printed)
    if not any(map(own.__contains__, (*QUOTATION_MARKS, ":", "："))):
        return
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
            lead = _find_lead(own, start, sign.start())
            sort = announced_sort(own[slice(*lead)])
            begin = sign.start() if len(sign[0]) > 1 else sign.end()
            if sort and (quote := _quote_after(pasted, lead, begin, sort)):
                yield quote
                end = quote.stop
                break


def _find_lead(text: str, start: int, stop: int) -> Place:
    """Return the place of the sentence that ends before an announced passage, without list marks."""
    start = max(start, stop - 2 * LONGEST)
    for sentence in _SENTENCE.finditer(text, start, stop):
        if sentence.end() < stop:
            start = sentence.end()
    while start < stop and (text[start].isspace() or text[start] in "*_#->•"):
        start += 1
    while start < stop and (text[stop - 1].isspace() or text[stop - 1] in "*_,，"):
        stop -= 1
    return start, stop


def _quote_after(pasted: _Pasted, lead: Place, begin: int, sort: Sort) -> Quote | None:
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
        # If the sentence continues after the quotation, it is the person's own and only mentions a
        # text.
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
    """Return the end of a quotation that begins on the line of its announcement.

    It ends with its block, or where the person speaks again.
    """
    text, goes_on = pasted.text, is_person_again if sort == "output" else refers_back
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
    """Return the end of a quotation that begins below its announcement: where the person speaks again."""
    text, blocks, last_printed = pasted.text, pasted.blocks_from(begin), pasted.last_printed
    stop = blocks[0][-1][1]
    is_marked = text[blocks[0][0][0]] == ">"
    for start, end in blocks[0][1:]:
        if is_marked and text[start] != ">":
            return start
        is_behind = sort == "output" and start >= last_printed > begin
        if ARROW.match(text, start) or (is_behind and refers_back(text[start:end])):
            return start
    for block in blocks[1:]:
        start, end = block[0][0], block[-1][1]
        if ARROW.match(text, start) or _is_own(pasted, text[start:end], start, begin, sort):
            break
        stop = end
    return stop


def _is_own(pasted: _Pasted, passage: str, start: int, begin: int, sort: Sort) -> bool:
    """Return whether a block after an announced quotation is by the person again."""
    if sort == "output":
        behind_log = start >= pasted.last_printed > begin
        return behind_log or (pasted.last_printed <= begin and is_person_again(passage))
    is_last = start == pasted.blocks[-1][0][0]
    return is_last and len(passage) <= SHORT_END and refers_back(passage)


_MASK = "ǁ"
"""A letter that no word contains, so that masked text still counts as words."""


def quotes_in(text: str) -> tuple[Quote, ...]:
    """Return all quotations of a text in order. A quotation inside another one is part of it."""
    found = find_delimited(text)
    text = blank_out(text, found)
    lines = find_output(text)
    found += [*lines, *find_announced(text, found, lines)]
    found += find_long_quotations(blank_out(text, found))
    found += find_reviews(blank_out(text, found))
    return tuple(_disjoint(found))


def own_words(text: str, quotes: Iterable[Quote]) -> str:
    """Return the text with all quotations replaced by newlines, so that positions do not change."""
    quotes = tuple(quotes)
    leads = (
        Quote(quote.lead[0], quote.start, quote.sort)
        for quote in quotes
        if quote.lead and not asks_for_something(text[slice(*quote.lead)])
    )
    return blank_out(text, (*quotes, *leads))


def mask_quotations(text: str) -> str:
    """Return the text with quotations masked, because quoted words are not statements of the writer."""

    def mask(found: re.Match[str]) -> str:
        return found[0][0] + _MASK * (len(found[0]) - 2) + found[0][-1]

    if not any(map(text.__contains__, QUOTATION_MARKS)):
        return text
    # If quotation marks surround the whole text, it is not a quotation.
    whole = QUOTATION.fullmatch(text.strip())
    return text if whole else QUOTATION.sub(mask, text)


def has_own_words(judged: str) -> bool:
    """Return whether a masked sentence has words outside of quotation marks."""
    return sum(map(str.isalnum, judged.replace(_MASK, ""))) > 1


def _disjoint(quotes: Iterable[Quote]) -> Iterator[Quote]:
    """Yield the quotations in order, each without the part that an earlier one covers."""
    end = 0
    for quote in sorted(quotes, key=lambda one: (one.start, -one.stop, one.lead is None)):
        if quote.stop > end:
            yield quote._replace(start=max(end, quote.start))
            end = quote.stop
