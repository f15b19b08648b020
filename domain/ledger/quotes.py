"""Finds what stands in a person's message and is not that person's: quotations, logs, pasted texts."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from . import cues
from .headings import Place
from .leads import Sort, announces, orders
from .printed import Print, advertisement_in, print_of
from .speech import lines

_SCANNED = 24_000
_FENCES = re.compile(
    r"```.*?(?:```|\Z)|^[ \t]*(?P<fence>~~~|\"\"\"|'''|<<<).*?(?:^[ \t]*(?:(?P=fence)|>>>)|\"\"\"\s*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_TAGGED = re.compile(
    r"^[ \t]*<((?:error|build|test|ci|server|console)?[-_]?(?:logs?|output|stdout|stderr|errors?)|trace(?:back)?|stack[-_]?trace|"
    r"documents?|document_content|docs?|file(?:[-_]contents?)?|feedback|review|comments?|e?mails?|messages?|quotes?|quoted|"
    r"pasted?(?:[-_]\w+)?|transcript|conversation|diff|patch|code|tool[-_]results?|function_results|search[-_]results?|"
    r"web[-_]?page|page|article|source|data|observation|excerpt|blockquote|pre)\b[^<>\n]{0,200}>.*?</\1>",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_MAIL = re.compile(
    r"^[ \t]*(?:-{2,} ?(?:Original|Forwarded) [Mm]essage ?-{2,}|Begin forwarded message:|On [^\n]{6,100} wrote:[ \t]*$|"
    r"(?:(?:From|To|Cc|Date|Sent|Subject|发件人|收件人|日期|主题)[:：] ?[^\n]+\n[ \t]*){2,})",
    re.MULTILINE,
)
_SPEAKER = re.compile(
    r"^[ \t]*(?:\*\*|\[)?(User|Human|Assistant|Agent|AI|Bot|Model|System)(?:\*\*|\])?\s?:",
    re.MULTILINE,
)
_COLON = re.compile(r"[:：](?=\s|\Z|[\"“「『*_`]|[^\x00-\x7f])|：")
_SENTENCE = re.compile(r"(?<=[.!?。！？])[\s\"”]+|(?<=[。！？])|[ \t]{2,}")
_APART = re.compile(r"[ \t]{3,}|\t")
_RETURNS = re.compile(
    r"(?:->|=>|→|—)|(?:can|could|would|will|should|do|does|did|is|are|shall) (?:you|we|i)\b|(?:please|pls|plz)\b|"
    r"but (?:i|we|it|that|the)\b|(?:so|ok(?:ay)?|now|then|also|and)?,? ?(?:fix|address|handle|resolve|check|look into|investigate|apply|implement|ignore|"
    r"do|have a look at|deal with|respond to|reply to|evaluate|verify|find out)\b|(?:any idea|thoughts|ideas|let['’]?s|"
    r"i['’]?(?:d|m|ve|ll)?|we['’]?(?:d|re|ve|ll)?|my|what|why|how|where|which)\b|请|帮|你|我|为什么|怎么|能不能|这是",
    re.IGNORECASE,
)
_REFERS = re.compile(
    r"(?:->|=>|→)|(?:(?:please|pls|plz|so|now|then|ok(?:ay)?|and),? )*(?:(?:can|could|would|will) (?:you|we)\b|"
    r"(?:fix|address|handle|resolve|check|look into|investigate|apply|implement|ignore|do|deal with|respond to|reply to|"
    r"evaluate|verify|consider|follow) (?:it|this|that|these|those|them|all|everything|his|her|their|"
    r"the (?:feedback|comments?|review|e?-?mail|issues?|problem))\b|(?:summari[sz]e|translate|explain|analy[sz]e|continue|"
    r"answer|reply|respond|draft|review|eval(?:uate)?|why|what)\b)|so,? (?:please|let['’]?s)\b|any ideas?\b|thoughts|what do you think|"
    r"i (?:dis)?agree\b|帮我|请你|你看|怎么看",
    re.IGNORECASE,
)
_QUOTATION = re.compile(
    r"(?<![^\s(\[:：,，。>])[\"“]([^\s\"“”](?:[^\"“”]|(?<=\w)\"(?=\w)){0,3000}?)[\"”](?![\w])|「([^「」]{1,3000})」|『([^『』]{1,3000})』"
)
_ARROW = re.compile(r"->|=>|→")
_ADDRESS = re.compile(r"(?:https?:/|[~.]?/|@)\S+|`[^`\n]+`")
_GOES_ON = re.compile(r",?[ \t]+(?:[a-z]|[-–—] ?[a-z])|[，,]?[\u3400-\u9fff]")
_CONSIDER = re.compile(r"(?:(?<=\A)|(?<=[\n])|(?<=[.!] ))Consider (?:\w+ing|whether|if|a|an|the)\b")
_PERSONAL = re.compile(
    r"\b(?:i|i['’]\w+|my|me|we|us|our|you|your|please|let['’]?s)\b", re.IGNORECASE
)
_LEAST_OF_REVIEW = 100
_LONG_QUOTATION = 160
_SEVERAL = re.compile(r"[.!?]\s+\S|[。！？]\s*[^\s\"”]")
_PASTED = 1_500
"""Characters: a shorter text behind such words was typed, unless it has a title."""
_TITLED = re.compile(r"^#{1,3} \S", re.MULTILINE)
_SHORT_END = 400
_MASK = "ǁ"
"""A letter that no word has, so that what is masked still counts as words."""


class Quote(NamedTuple):
    """A passage that is not the person's, and the words of that person that announce it, if any."""

    start: int
    stop: int
    sort: Sort
    lead: Place | None = None
    is_review: bool = False
    """Whether it asks to consider something, in the manner of a code review."""


def quotes_in(text: str) -> tuple[Quote, ...]:
    """Everything that a text quotes, in order; a passage in another one is a part of it."""
    closed = [
        *(Quote(*m.span(), "code") for m in _FENCES.finditer(text)),
        *(Quote(*m.span(), "words") for m in _TAGGED.finditer(text)),
        *_mails(text),
    ]
    text = _without(text, closed)
    printed = _printed(text)
    found = [*closed, *printed, *_announced(text, closed, printed)]
    found += _long_quotations(_without(text, found))
    found += _reviews(_without(text, found))
    return tuple(_disjoint(found))


def own_words(text: str, quotes: Iterable[Quote]) -> str:
    """The text with everything blanked that is quoted: what is left keeps its place."""
    quotes = tuple(quotes)
    for quote in quotes:
        if quote.lead and not orders(text[slice(*quote.lead)]):
            text = _blank(text, quote.lead[0], quote.start)
    return _without(text, quotes)


def quoted_words(text: str, quote: Quote) -> str:
    """The text with everything blanked but one quotation."""
    return _blank(_blank(text, 0, quote.start), quote.stop, len(text))


def parted(text: str) -> tuple[str, str]:
    """The text without what is another's, and that alone; code that nothing announces is the person's."""
    quotes = [quote for quote in quotes_in(text) if quote.sort != "code"]
    others, end = "", 0
    for quote in quotes:
        others += "\n" * (quote.start - end) + text[quote.start : quote.stop]
        end = quote.stop
    return _without(text, quotes), others


def masked(text: str) -> str:
    """The text with a sign in the place of what stands between quotation marks: it is mentioned, not said."""

    def mask(found: re.Match[str]) -> str:
        return found[0][0] + _MASK * (len(found[0]) - 2) + found[0][-1]

    # A text that is quoted as a whole was only written so.
    whole = _QUOTATION.fullmatch(text.strip())
    return text if whole else _QUOTATION.sub(mask, text)


def says_itself(judged: str) -> bool:
    """Whether a masked sentence says anything outside of its quotation marks."""
    return sum(map(str.isalnum, judged.replace(_MASK, ""))) > 1


def _blank(text: str, start: int, stop: int) -> str:
    return text[:start] + "\n" * (stop - start) + text[stop:]


def _without(text: str, quotes: Iterable[Quote]) -> str:
    for quote in quotes:
        text = _blank(text, quote.start, quote.stop)
    return text


def _disjoint(quotes: Iterable[Quote]) -> Iterator[Quote]:
    """The quotations in order, each without what the one before it covers already."""
    end = 0
    for quote in sorted(quotes, key=lambda one: (one.start, -one.stop, one.lead is None)):
        if quote.stop > end:
            yield quote._replace(start=max(end, quote.start))
            end = quote.stop


def _mails(text: str) -> Iterator[Quote]:
    """Mails and talks that were pasted, to their end: where the person speaks of them in the last paragraph."""
    speakers = list(_SPEAKER.finditer(text))
    is_talk = len(speakers) > 2 and len({one[1] for one in speakers}) > 1
    for begins in (_MAIL.search(text), speakers[0] if is_talk else None):
        if begins:
            blocks = _blocks(text[begins.start() :])
            start, stop = blocks[-1][0][0], blocks[-1][-1][1]
            passage = text[begins.start() + start : begins.start() + stop]
            is_own = len(blocks) > 1 and len(passage) <= _SHORT_END and _refers(passage)
            yield Quote(begins.start(), begins.start() + start if is_own else len(text), "words")


def _blocks(text: str) -> list[list[Place]]:
    """The lines of a text, those together that no blank line parts."""
    blocks: list[list[Place]] = []
    end = -2
    for start, stop in _segments(text):
        if not blocks or text.count("\n", end, start) > 1:
            blocks.append([])
        blocks[-1].append((start, stop))
        end = stop
    return blocks


def _segments(text: str) -> Iterator[Place]:
    """The lines; where a program's line was pasted behind words on the same line, both apart."""
    for start, stop in lines(text):
        parts = [found for found in _APART.finditer(text, start, stop)]
        behind = next((f for f in parts if print_of(text[f.end() : stop]) >= Print.YES), None)
        if behind and print_of(text[start:stop]) < Print.YES and text[behind.end()] not in "⎿⏺✻":
            yield start, behind.start()
            yield behind.end(), stop
        else:
            yield start, stop


def _printed(text: str) -> list[Quote]:
    """Lines that a program has printed, and those between them; quoted mails; advertisements."""
    found: list[Quote] = []
    printed: list[bool] = []
    blocks = _blocks(text)
    for block in blocks:
        marked = _printed_in(text, block)
        printed.append(2 * sum(marked) >= len(block))
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
    for before, block, behind in zip(printed, blocks[1:], printed[2:], strict=False):
        if before and behind and not _returns(text[block[0][0] : block[-1][1]]):
            found.append(Quote(block[0][0], block[-1][1], "output"))
    return found


def _printed_in(text: str, block: Sequence[Place]) -> list[bool]:
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
        while last > prompt and prints[last] is Print.NO and _refers(said[last]):
            last -= 1
    if prompt is not None or 2 * len(hits) >= last - first + 1:
        return [mark or first <= n <= last for n, mark in enumerate(marked)]
    return marked


def _returns(passage: str) -> bool:
    """Whether the person speaks again in a passage behind what a program has printed."""
    speaks = _RETURNS.match(passage) or cues.ORDER.match(passage)
    return speaks is not None or passage.rstrip().endswith(("?", "？"))


def _announced(text: str, closed: Sequence[Quote], printed: Sequence[Quote]) -> Iterator[Quote]:
    """What stands behind words that announce it."""
    own = _without(text, printed)
    end = 0
    for start, stop in lines(own):
        signs = (*_COLON.finditer(own, start, stop), *_QUOTATION.finditer(own, start, stop))
        for sign in signs if start >= end else ():
            lead = _lead(own, start, sign.start())
            sort = announces(own[slice(*lead)])
            begin = sign.start() if len(sign[0]) > 1 else sign.end()
            if sort and (quote := _behind(text, lead, begin, sort, closed, printed)):
                yield quote
                end = quote.stop
                break


def _lead(text: str, start: int, stop: int) -> Place:
    """The sentence, without list marks, that ends where something is announced."""
    for sentence in _SENTENCE.finditer(text, start, stop):
        if sentence.end() < stop:
            start = sentence.end()
    while start < stop and (text[start].isspace() or text[start] in "*_#->•"):
        start += 1
    while start < stop and (text[stop - 1].isspace() or text[stop - 1] in "*_,，"):
        stop -= 1
    return start, stop


def _behind(
    text: str,
    lead: Place,
    begin: int,
    sort: Sort,
    closed: Sequence[Quote],
    printed: Sequence[Quote],
) -> Quote | None:
    while begin < len(text) and text[begin] in "*_ \t":
        begin += 1
    rest = text[begin:]
    below = begin + len(rest) - len(rest.lstrip())
    for quote in closed:
        if begin <= quote.start <= below:
            return quote._replace(sort=sort, lead=lead)
    if not rest.strip():
        return None
    if quotation := _QUOTATION.match(rest):
        # Where the sentence goes on behind it, it is the person's that mentions something.
        goes_on = _GOES_ON.match(rest, quotation.end()) and not _is_long(quotation[0])
        return None if goes_on else Quote(begin, begin + quotation.end(), sort, lead)
    if sort == "document":
        is_document = _TITLED.search(rest) or len(rest) > _PASTED
        return Quote(begin, len(text), sort, lead) if is_document else None
    if rest.startswith("\n"):
        stop = _end_below(text, begin, sort, printed)
    else:
        stop = begin if _ADDRESS.match(rest) else _end_inline(text, begin, sort)
    return Quote(begin, stop, sort, lead) if stop > begin else None


def _end_inline(text: str, begin: int, sort: Sort) -> int:
    """Where a quotation ends that begins on the line of its lead: with its block, or where the person speaks again."""
    goes_on = _returns if sort == "output" else _refers
    block = _blocks(text[begin:])[0]
    stop = begin + block[-1][1]
    for start, end in block[1:]:
        if goes_on(text[begin + start : begin + end]):
            stop = begin + start
            break
    sentences = [found.end() for found in _SENTENCE.finditer(text, begin, stop)]
    for start, end in pairwise([*sentences, stop]):
        if goes_on(text[start:end]):
            return start
    return stop


def _end_below(text: str, begin: int, sort: Sort, printed: Sequence[Quote]) -> int:
    """Where a quotation ends that begins below its lead: where the person speaks again."""
    blocks = [[(begin + a, begin + b) for a, b in block] for block in _blocks(text[begin:])]
    last_printed = max((quote.stop for quote in printed if quote.start >= begin), default=begin)
    stop = blocks[0][-1][1]
    for line in blocks[0][1:]:
        said = text[slice(*line)]
        if _ARROW.match(said) or (
            sort == "output" and line[0] >= last_printed > begin and _refers(said)
        ):
            return line[0]
    for block in blocks[1:]:
        start, end = block[0][0], block[-1][1]
        passage = text[start:end]
        if _ARROW.match(passage):
            break
        if (
            sort == "output"
            and start >= last_printed
            and (last_printed > begin or _returns(passage))
        ):
            break
        if (
            sort == "words"
            and block is blocks[-1]
            and len(passage) <= _SHORT_END
            and _refers(passage)
        ):
            break
        stop = end
    return stop


def _refers(passage: str) -> bool:
    """Whether a passage speaks of what was quoted before it."""
    return _REFERS.match(passage) is not None or passage.rstrip().endswith(("?", "？"))


def _long_quotations(text: str) -> Iterator[Quote]:
    """Several sentences between quotation marks, where the message says more than that."""
    for found in _QUOTATION.finditer(text):
        if "\n\n" not in found[0] and found[0] != text.strip() and _is_long(found[0]):
            yield Quote(*found.span(), "words")


def _is_long(quotation: str) -> bool:
    return len(quotation) > _LONG_QUOTATION or _SEVERAL.search(quotation[:-1]) is not None


def _reviews(text: str) -> Iterator[Quote]:
    """Paragraphs in the manner of a code review, which speaks of nobody and asks to consider something."""
    blocks = [(block[0][0], block[-1][1]) for block in _blocks(text)]
    for number, block in enumerate(blocks):
        if _is_impersonal(text, block) and _CONSIDER.search(text, *block):
            first = number
            while first and _is_impersonal(text, blocks[first - 1]):
                first -= 1
            yield Quote(blocks[first][0], block[1], "words", is_review=True)


def _is_impersonal(text: str, block: Place) -> bool:
    passage = text[slice(*block)]
    return len(passage) >= _LEAST_OF_REVIEW and not _PERSONAL.search(passage) and "?" not in passage
