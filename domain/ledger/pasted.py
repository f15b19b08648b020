"""Tells where a person speaks again behind something that the message quotes."""

import re
from collections.abc import Iterator, Sequence

from . import cues
from .headings import Place
from .quote import QUOTATION, Print, Quote, advertisement_in, blocks_of, is_long, print_of

ARROW = re.compile(r"->|=>|→")
_VERBS = (
    r"(?:fix|address|handle|resolve|check|look into|investigate|apply|implement|ignore|do|deal with|respond to|"
    r"reply to|"
    r"evaluate|verify|consider|follow)"
)
_RETURNS = re.compile(
    rf"{ARROW.pattern}|—|(?:can|could|would|will|should|do|does|did|is|are|shall) (?:you|we|i)\b|(?:please|pls|plz)\b|"
    rf"but (?:i|we|it|that|the)\b|(?:so|ok(?:ay)?|now|then|also|and)?,? ?(?:{_VERBS}|have a look at|find out)\b|"
    r"(?:any idea|thoughts|ideas|let['’]?s|i['’]?(?:d|m|ve|ll)?|we['’]?(?:d|re|ve|ll)?|my|what|why|how|where|which)\b|"
    r"请|帮|你|我|为什么|怎么|能不能|这是",
    re.IGNORECASE,
)
_REFERS = re.compile(
    rf"{ARROW.pattern}|(?:(?:please|pls|plz|so|now|then|ok(?:ay)?|and),? )*(?:(?:can|could|would|will) (?:you|we)\b|"
    rf"{_VERBS} (?:it|this|that|these|those|them|all|everything|his|her|their|"
    r"the (?:feedback|comments?|review|e?-?mail|issues?|problem))\b|(?:summari[sz]e|translate|explain|analy[sz]e|"
    r"continue|answer|reply|respond|draft|review|eval(?:uate)?|why|what)\b)|so,? (?:please|let['’]?s)\b|any ideas?\b|"
    r"thoughts|what do you think|i (?:dis)?agree\b|帮我|请你|你看|怎么看",
    re.IGNORECASE,
)


def returns(passage: str) -> bool:
    """Whether the person speaks again in a passage behind what a program has printed."""
    speaks = _RETURNS.match(passage) or cues.ORDER.match(passage)
    return speaks is not None or passage.rstrip().endswith(("?", "？"))


def refers(passage: str) -> bool:
    """Whether a passage speaks of what was quoted before it."""
    return _REFERS.match(passage) is not None or passage.rstrip().endswith(("?", "？"))


SHORT_END = 400
"""Characters: in a longer paragraph behind a pasted mail nobody but its writer speaks."""

_FENCES = re.compile(
    r"```.*?(?:```|\Z)|^[ \t]*(?P<fence>~~~|\"\"\"|'''|<<<).*?(?:^[ \t]*(?:(?P=fence)|>>>)|\"\"\"\s*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_TAGGED = re.compile(
    r"^[ \t]*<((?:error|build|test|ci|server|console)?[-_]?(?:logs?|output|stdout|stderr|errors?)|trace(?:back)?|"
    r"stack[-_]?trace|"
    r"documents?|document_content|docs?|file(?:[-_]contents?)?|feedback|review|comments?|e?mails?|messages?|"
    r"quotes?|quoted|"
    r"pasted?(?:[-_]\w+)?|transcript|conversation|diff|patch|code|tool[-_]results?|function_results|search[-_]results?|"
    r"web[-_]?page|page|article|source|data|observation|excerpt|blockquote|pre)\b[^<>\n]{0,200}>",
    re.IGNORECASE | re.MULTILINE,
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
_CONSIDER = re.compile(r"(?:(?<=\A)|(?<=[\n])|(?<=[.!] ))Consider (?:\w+ing|whether|if|a|an|the)\b")
_PERSONAL = re.compile(
    r"\b(?:i|i['’]\w+|my|me|we|us|our|you|your|please|let['’]?s)\b", re.IGNORECASE
)
_LEAST_OF_REVIEW = 100


def closed(text: str) -> list[Quote]:
    """What stands between fences or tags, and mails and talks that were pasted."""
    return [
        *(Quote(*m.span(), "code") for m in _FENCES.finditer(text)),
        *_tagged(text),
        *_mails(text),
    ]


def _tagged(text: str) -> Iterator[Quote]:
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


def _mails(text: str) -> Iterator[Quote]:
    """Mails and talks that were pasted, to their end: where the person speaks of them in the last paragraph."""
    speakers = list(_SPEAKER.finditer(text))
    is_talk = len(speakers) > 2 and len({one[1] for one in speakers}) > 1
    for begins in (_MAIL.search(text), speakers[0] if is_talk else None):
        if begins:
            blocks = blocks_of(text[begins.start() :])
            start, stop = blocks[-1][0][0], blocks[-1][-1][1]
            passage = text[begins.start() + start : begins.start() + stop]
            is_own = len(blocks) > 1 and len(passage) <= SHORT_END and refers(passage)
            yield Quote(begins.start(), begins.start() + start if is_own else len(text), "words")


def printed(text: str) -> list[Quote]:
    """Lines that a program has printed, and those between them; quoted lines; advertisements."""
    found: list[Quote] = []
    are_printed: list[bool] = []
    blocks = blocks_of(text)
    for block in blocks:
        marked = _printed_in(text, block)
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
        if before and behind and not returns(text[block[0][0] : block[-1][1]]):
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
        while last > prompt and prints[last] is Print.NO and refers(said[last]):
            last -= 1
    if prompt is not None or 2 * len(hits) >= last - first + 1:
        return [mark or first <= n <= last for n, mark in enumerate(marked)]
    return marked


def long_quotations(text: str) -> Iterator[Quote]:
    """Several sentences between quotation marks, where the message says more than that."""
    for found in QUOTATION.finditer(text):
        if "\n\n" not in found[0] and found[0] != text.strip() and is_long(found[0]):
            yield Quote(*found.span(), "words")


def reviews(text: str) -> Iterator[Quote]:
    """Paragraphs in the manner of a code review, which speaks of nobody and asks to consider something."""
    first: int | None = None
    for block in blocks_of(text):
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
