"""Finds what each line of a text stands under: headings, and lines that end in a colon before it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

Place = tuple[int, int]
"""Where a passage begins and ends in a text."""

_QUOTE = r"(?:>[ \t]?)*"
_ITEM = re.compile(rf"{_QUOTE}(?:([-*•+])|\d{{1,3}}[.)、])[ \t]+(?:\[[ xX]\][ \t]+)?")
_TITLE = re.compile(rf"{_QUOTE}(#{{1,6}})[ \t]+")
_MARKS = "*_` \t"
_BOLD = re.compile(r"(\*\*|__)[^\s*_](?:[^\n]*[^\s*_])?[:：]?\1[:：]?")
_SENTENCES = re.compile(r".*[.!?。！？；](?=\s)\s*|.*[。！？；]", re.DOTALL)
_LONGEST = 200
_CUT_MARK = "… "
_BOLD_DEPTH, _COLON_DEPTH, _NESTED_DEPTH, _LIST_DEPTH = 8, 10, 12, 20
_TAB = 4

_POLITE = (
    r"(?:(?:please|and|so|also|but|always|just|you|we|i want you to|under no circumstances),? )*"
)
_NOT = (
    r"(?:never|do not|don['’]?ts?|(?:must|should|shall|may) (?:not|never)|(?:must|should|ca)n['’]?t|cannot|"
    r"avoid|refrain from|stay away from|keep (?:off|out of)|no[- ]gos?|not allowed|forbidden|prohibited|"
    r"off[- ]limits|hands off)\b"
    r"(?! (?:forget|hesitate|worry|mind|see|know|think|understand|miss|fail|only|get|have)\b)"
)
_NEGATED = re.compile(
    rf"{_POLITE}(?:to )?{_NOT}"
    r"|.{0,80}\b(?:(?:must|should|may|shall) (?:not|never)|(?:must|should)n['’]?t|"
    r"not to (?:do|touch|use|change|be)|not allowed|forbidden|prohibited|prohibitions?|off[- ]limits|no[- ]gos|"
    r"under no circumstances|(?:please|but|also),? (?:do not|don['’]?t|never|avoid)|"
    r"(?:things|what) to avoid|don['’]ts)\b"
    r"|.*\b(?:never|do not|don['’]t|(?:must|should|may|shall) not)\s*:\Z"
    r"|.{0,30}(?:不要|不许|不准|不得|不可以|不应|禁止|严禁|[切请]勿|切忌|千万别|绝不|避免|禁忌|红线)"
    r"|(?:请|也|都)?(?:别|勿|不能|不可)(?![人的墅处名致样])",
    re.IGNORECASE,
)
_RULES = re.compile(
    rf"{_POLITE}(?:always|must|make sure|ensure|remember|keep to|stick to)\b"
    r"|.{0,80}\b(?:rules|constraints|conventions|requirements|guidelines|preferences)\b.{0,20}"
    r"|.{0,30}(?:规则|约束|规范|约定|偏好|必须|务必|一律|记住)",
    re.IGNORECASE,
)
_PERMITTED = re.compile(
    rf"{_POLITE}(?:do|instead|fix|add|allowed|you (?:may|can|should)|(?:can|could|would) you|"
    r"i(?:['’]d)? (?:want|need|like))\b"
    r"|.{0,10}(?:请|可以|允许|应该|帮我)",
    re.IGNORECASE,
)


Sense = Literal["forbids", "rules", "asks"]
_SENSES: dict[Sense, re.Pattern[str]] = {
    "forbids": _NEGATED,
    "rules": _RULES,
    "asks": _PERMITTED,
}


class Line(NamedTuple):
    """A line of a text, without its list mark, and the places of what it stands under."""

    start: int
    stop: int
    under: tuple[Place, ...]
    """The nearest last."""
    is_item: bool
    is_lead: bool
    """Whether it announces what follows."""


class _Lead(NamedTuple):
    depth: int
    place: Place


def lines_under(text: str, places: Iterable[Place]) -> Iterator[Line]:
    """The lines at these places, the first one first, each with what it stands under.

    A list item stands under its heading and under the line that ends in a colon, or the item, before
    its list. A paragraph stands under its headings, and under such a line right before it.
    """
    leads: list[_Lead] = []
    before: Line | None = None
    for start, stop in places:
        gap = text[before.stop if before else 0 : start]
        line = _line(text, start, stop, gap, before, leads)
        yield line
        before = line


def _line(
    text: str, start: int, stop: int, gap: str, before: Line | None, leads: list[_Lead]
) -> Line:
    title, item = _TITLE.match(text, start, stop), _ITEM.match(text, start, stop)
    marks = title or item
    begin = marks.end() if marks else start
    lead = _announced(text, begin, stop, is_title=bool(title))
    if title:
        depth = len(title[1])
    elif item:
        depth = _LIST_DEPTH + 2 * _indent(gap) + (1 if item[1] else 0)
    elif before and before.is_item and lead is None and _goes_on(text, before, start, gap):
        return Line(begin, stop, before.under, is_item=True, is_lead=False)
    elif lead:
        depth = _depth_of_lead(text, start, stop, lead, before, leads)
    elif before and not before.is_item and (before.is_lead or gap.count("\n") == 1):
        depth = _NESTED_DEPTH + 1  # The block goes on, or this is what was announced.
    else:
        depth = _BOLD_DEPTH
    while leads and leads[-1].depth >= depth:
        leads.pop()
    under = tuple(one.place for one in leads)
    if lead:
        leads.append(_Lead(depth, lead))
    return Line(begin, stop, under, is_item=bool(item), is_lead=lead is not None)


def _announced(text: str, start: int, stop: int, *, is_title: bool) -> Place | None:
    """The words that announce what follows: a title, bold words alone, the sentence before a colon."""
    begin, end = start, stop
    whole = is_title or _BOLD.fullmatch(text, start, stop) is not None
    while begin < end and text[begin] in _MARKS:
        begin += 1
    while begin < end and text[end - 1] in _MARKS:
        end -= 1
    if begin == end or not (whole or text[end - 1] in ":："):
        return None
    if not whole and (last := _SENTENCES.match(text, begin, end - 1)):
        begin = last.end()
    return begin, end


def _depth_of_lead(
    text: str, start: int, stop: int, lead: Place, before: Line | None, leads: Sequence[_Lead]
) -> int:
    if _BOLD.fullmatch(text, start, stop):
        return _BOLD_DEPTH
    if _sense(text[slice(*lead)]) or not leads:
        return _COLON_DEPTH if before and before.is_lead else _BOLD_DEPTH
    announced = before is not None and before.is_lead
    nested = any(one.depth == _NESTED_DEPTH for one in leads)
    return _NESTED_DEPTH if announced or nested else _BOLD_DEPTH


def _sense(lead: str) -> Sense | None:
    """How a heading changes what stands under it, or None if it only names it."""
    lead = lead.removeprefix(_CUT_MARK)
    if lead.endswith(("?", "？")):
        return None
    return next((sense for sense, pattern in _SENSES.items() if pattern.match(lead)), None)


def _goes_on(text: str, before: Line, start: int, gap: str) -> bool:
    """Whether a line goes on with the list item before it."""
    if gap.count("\n") > 1:
        return _indent(gap) > 1
    return _indent(gap) > 0 or (text[before.stop - 1].isalnum() and text[start].islower())


def _indent(gap: str) -> int:
    blanks = gap.rpartition("\n")[2]
    return sum(_TAB if blank == "\t" else 1 for blank in blanks)


def sense_of(leads: Sequence[str]) -> Sense | None:
    """How these headings change what stands under them: the nearest one that has a sense decides."""
    return next((sense for lead in reversed(leads) if (sense := _sense(lead))), None)


def shown(text: str, under: Sequence[Place]) -> tuple[str, ...]:
    """Of these headings those that are worth repeating: the nearest, and the one that decides the sense.

    Of a long one the end is shown, behind an ellipsis.
    """
    leads = [text[slice(*place)] for place in under]
    deciding = next((lead for lead in reversed(leads) if _sense(lead)), None)
    kept = dict.fromkeys(lead for lead in (deciding, *leads[-1:]) if lead)
    return tuple(
        lead if len(lead) <= _LONGEST else f"{_CUT_MARK}{lead[len(_CUT_MARK) - _LONGEST :]}"
        for lead in kept
    )
