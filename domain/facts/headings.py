"""Find the headings above each line of a text, and whether they forbid, set rules or ask."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from refold.domain.lazy_pattern import lazy_pattern

Sense = Literal["forbids", "rules", "asks"]

CUT_MARK = "… "
"""Mark before a heading whose beginning was cut off."""

_POLITE = (
    r"(?:(?:please|and|so|also|but|always|just|you|we|i want you to|i do not want you to|"
    r"i don['’]?t want you to|under no circumstances),? )*"
)
_NOT = (
    r"(?:never|do not|don['’]?ts?|(?:must|should|shall|may) (?:not|never)|(?:must|should|ca)n['’]?t|cannot|"
    r"avoid|refrain from|stay away from|keep (?:off|out of)|no[- ]gos?|not (?:allowed|permitted)|forbidden|"
    r"prohibited|unacceptable|anti[- ]patterns?|stop (?:doing|using|adding|making)|"
    r"off[- ]limits|hands off|(?:i|we) (?:do not|don['’]?t) want (?:you|this|these|any)|"
    # German, French, Spanish, Italian, Portuguese, Russian.
    r"niemals|nie|bitte nicht|nicht (?:erlaubt|gestattet|tun)|keinesfalls|auf keinen fall|verboten|vermeide\w*|"
    r"(?:du|sie) (?:darfst|dürfen|sollst|sollen) (?:nicht|nie\w*)|"
    r"jamais|ne (?:\w+ )?(?:pas|jamais)|interdit\w*|à éviter|évite[rz]?|nunca|jamás|no (?:hagas|hacer|debes|usar)|"
    r"prohibid\w+|evita\w*|mai|non (?:fare|devi)|vietat\w+|proibid\w+|não (?:fazer|faça|deve)|"
    r"никогда|нельзя|не (?:надо|делай\w*)|запрещ\w+|избега\w+)\b"
    r"(?! (?:forget|hesitate|worry|mind|see|know|think|understand|miss|fail|only|get|have)\b)"
)
_ZH_NOT = (
    r"不要|不许|不准|不得|不可以|不应|不允许|禁止|严禁|[切请]勿|切忌|千万别|绝不|避免|禁忌|红线|しないで|"
    r"してはいけない|決して|금지|절대"
)
_NEGATED = lazy_pattern(
    rf"{_POLITE}(?:to )?{_NOT}"
    r"|.{0,80}\b(?:(?:must|should|may|shall) (?:not|never)|(?:must|should)n['’]?t|"
    r"not to (?:do|touch|use|change|be)|not (?:allowed|permitted)|forbidden|prohibited|prohibitions?|"
    r"off[- ]limits|no[- ]gos|"
    r"under no circumstances|(?:please|but|also),? (?:do not|don['’]?t|never|avoid)|"
    r"(?:things|what) to avoid|don['’]ts)\b"
    r"|.*\b(?:never|do not|don['’]t|(?:must|should|may|shall) not)(?:\s*:\Z|"
    r" (?:ever )?do (?:any|this|these|those|the following)\b)"
    rf"|.{{0,30}}(?:{_ZH_NOT})"
    r"|(?:请|也|都|你)?(?:别|勿|不能|不可)(?![人的墅处名致样])",
    re.IGNORECASE,
    signs="no|never|don|must|should|can|avoid|refrain|stay away|keep o|forbidden|prohib|proib|unacceptable|"
    "anti|stop|off|nie|kein|verboten|vermeide|nicht|jamais|ne |interdit|nunca|evita|mai|vietat",
)
_RULES = lazy_pattern(
    rf"{_POLITE}(?:always|must|make sure|ensure|remember|keep to|stick to)\b"
    r"|.{0,80}\b(?:rules|constraints|conventions|requirements|guidelines|preferences)\b.{0,20}"
    r"|.{0,30}(?:规则|约束|规范|约定|偏好|必须|务必|一律|记住)",
    re.IGNORECASE,
    signs="always|must|make sure|ensure|remember|keep to|stick to|rules|constraints|conventions|requirements|"
    "guidelines|preferences",
)
_PERMITTED = lazy_pattern(
    rf"{_POLITE}(?:do|instead|fix|add|allowed|you (?:may|can|should)|(?:can|could|would) you|"
    r"i(?:['’]d)? (?:want|need|like))\b"
    r"|.{0,10}(?:请|可以|允许|应该|帮我)",
    re.IGNORECASE,
)
_SENSES: dict[Sense, re.Pattern[str]] = {
    "forbids": _NEGATED,
    "rules": _RULES,
    "asks": _PERMITTED,
}
# The exact meaning of such a heading is unknown, but the lines under it are not simple requests.
_DENIES = lazy_pattern(
    r"\b(?:not|never|none|no|without|unless|stop|nothing|nicht|kein\w*|ohne|jamais|sans|nunca|sin|mai|senza|"
    r"не|без|leave (?:\w+ ){0,2}alone)\b|n['’]t\b|[不别勿禁]",
    re.IGNORECASE,
    signs="no|never|without|unless|stop|nicht|kein|ohne|jamais|sans|nunca|sin|mai|senza|leave|n't",
)
_FORBIDDING_SIGNS, _ALLOWING_SIGNS = frozenset("❌🚫⛔✗✘🛑"), frozenset("✅✔✓")
SIGNS = _FORBIDDING_SIGNS | _ALLOWING_SIGNS
_TAG = lazy_pattern(r"</?[A-Za-z][\w-]*>")
# Without a colon, a heading must state by itself that the next lines are forbidden.
_BARE = lazy_pattern(
    rf"{_POLITE}{_NOT}(?: (?:ever|do|any|of|this|these|the|following|things?|actions?|changes?|below))*[.!]*"
    r"|(?=.*\b(?:things?|these|those|following|actions?|what|which|list|below)\b)"
    r".*\b(?:(?:(?:must|should|may|shall)(?: not|n['’]t| never)|cannot|can['’]t|do not|don['’]t|never)"
    r"(?: ever)?(?: (?:do|touch|change|use|break|delete|try|want)\b.*|[.!?]*\Z)|"
    r"(?:forbidden|prohibited|not (?:allowed|permitted)|off[- ]limits)\b.*)"
    r"|.{0,12}(?:不要|不许|不准|不得|不可以|不允许|禁止|严禁|[切请]勿|千万别|绝不|避免|别|勿)(?:做|以下|这些|事项|操作|的事)*",
    re.IGNORECASE,
)
_QUESTION = lazy_pattern(r"[?？]\Z")


def sense(lead: str) -> Sense | None:
    """Return how a heading changes the meaning of the lines under it, or None if it only names them."""
    signs = SIGNS.intersection(lead)
    lead = _plain(lead.removeprefix(CUT_MARK))
    if not lead:
        return "forbids" if signs & _FORBIDDING_SIGNS else None
    if _QUESTION.search(lead):
        return "rules" if _BARE.fullmatch(lead) else None
    found: Sense | None = next(
        (one for one, pattern in _SENSES.items() if pattern.match(lead)), None
    )
    if found is None and _DENIES.search(lead):
        return "rules"
    return found


def forbids_list(line: str) -> bool:
    """Return whether a line without a colon forbids the items of the list right under it."""
    plain = _plain(line)
    if not plain:
        return bool(_FORBIDDING_SIGNS.intersection(line))
    return _BARE.fullmatch(plain) is not None


def sense_of(leads: Sequence[str]) -> Sense | None:
    """Return how headings change the meaning of the lines under them.

    The nearest heading with a known meaning decides.
    """
    return next((found for lead in reversed(leads) if (found := sense(lead))), None)


def _plain(lead: str) -> str:
    """Return the words of a heading without tags, and without signs and marks around them."""
    lead = _TAG.sub("", lead)
    start, stop = 0, len(lead)
    while start < stop and not lead[start].isalnum():
        start += 1
    while start < stop and not (lead[stop - 1].isalnum() or lead[stop - 1] in "?？:.!"):
        stop -= 1
    return lead[start:stop].replace("：", ":")


Place = tuple[int, int]
"""Start and stop of a passage in a text."""

_QUOTE = r"(?:>[ \t]?)*"
_ITEM = lazy_pattern(
    rf"{_QUOTE}(?:([-*•+])(?=[ \t])|\d{{1,3}}(?:[.)](?=[ \t])|、))[ \t]*(?:\[[ xX]\][ \t]+)?"
)
_TITLE = lazy_pattern(rf"{_QUOTE}(#{{1,6}})[ \t]+")
_MARKS = "*_` \t"
_BOLD = lazy_pattern(r"(\*\*|__)[^\s*_](?:[^\n]*[^\s*_])?[:：]?\1[:：]?")
_SENTENCES = lazy_pattern(r".*[.!?。！？；](?=\s)\s*|.*[。！？；]", re.DOTALL)
_SENTENCE = lazy_pattern(r".*?[.!?。！？；](?=\s)\s*|.*?[。！？；]", re.DOTALL)
_UNDERLINE = lazy_pattern(r"-{3,}|={3,}")
_TAGGED = lazy_pattern(r"<(/?)([A-Za-z][\w-]*)>")
_LONGEST = 200
_NEAR = 2
"""Maximum number of line breaks between a line and the list that it announces."""
_UNDERLINED_DEPTH, _TAG_DEPTH = 2, 7
_BOLD_DEPTH, _COLON_DEPTH, _NESTED_DEPTH, _LIST_DEPTH = 8, 10, 12, 20
_TAB = 4


class Line(NamedTuple):
    """A line of a text without its list mark, and the places of its headings."""

    start: int
    stop: int
    under: tuple[Place, ...]
    """Places of the headings, nearest last."""
    is_item: bool
    is_lead: bool
    """Whether the line announces the next lines."""


class _Lead(NamedTuple):
    depth: int
    place: Place


def lines_under(text: str, places: Iterable[Place]) -> Iterator[Line]:
    """Yield the line at each place, with the places of its headings.

    ``places`` must be in order. A list item belongs to its heading, and to the line with a colon or the
    item before its list. A paragraph belongs to its headings, and to a line with a colon right before it.
    """
    leads: list[_Lead] = []
    before: Line | None = None
    for place, following in pairwise([*places, None]):
        assert place is not None
        start, stop = place
        gap = text[before.stop if before else 0 : start]
        if before and _UNDERLINE.fullmatch(text, start, stop):
            yield Line(start, stop, before.under, is_item=False, is_lead=False)
            continue
        titled = following if _is_title(text, stop, following) else None
        line = _line(text, start, stop, gap, before, leads, following, is_title=bool(titled))
        yield line
        before = line


def _is_title(text: str, stop: int, following: Place | None) -> bool:
    """Return whether the next line underlines the line that ends here, which makes it a title."""
    if following is None or text.count("\n", stop, following[0]) != 1:
        return False
    return _UNDERLINE.fullmatch(text, *following) is not None


def _line(
    text: str,
    start: int,
    stop: int,
    gap: str,
    before: Line | None,
    leads: list[_Lead],
    following: Place | None,
    *,
    is_title: bool,
) -> Line:
    title, item = _TITLE.match(text, start, stop), _ITEM.match(text, start, stop)
    begin = marks.end() if (marks := title or item) else start
    tag = _TAGGED.fullmatch(text, start, stop)
    is_title = is_title or title is not None
    lead = _tag_name(tag) if tag else _find_lead(text, begin, stop, is_title=is_title)
    if lead is None and not (item or tag) and _is_list(text, stop, following):
        lead = _find_prohibition(text, start, stop)
    if tag:
        depth = _TAG_DEPTH
    elif is_title:
        depth = len(title[1]) if title else _UNDERLINED_DEPTH
    elif item:
        depth = _LIST_DEPTH + 2 * _indent(gap) + (1 if item[1] else 0)
    elif before and before.is_item and lead is None and _continues_item(text, before, start, gap):
        return Line(begin, stop, before.under, is_item=True, is_lead=False)
    elif lead:
        depth = _depth_of_lead(text, start, stop, lead, before, leads)
    elif before and not before.is_item and (before.is_lead or gap.count("\n") == 1):
        depth = _NESTED_DEPTH + 1  # The block continues, or this line is the announced one.
    else:
        depth = _BOLD_DEPTH
    while leads and leads[-1].depth >= depth:
        leads.pop()
    under = tuple(one.place for one in leads)
    if item and begin < stop and text[begin] in SIGNS:
        under, begin = (*under, (begin, begin + 1)), begin + 1
    if lead:
        leads.append(_Lead(depth, lead))
    return Line(begin, stop, under, is_item=bool(item), is_lead=lead is not None)


def _tag_name(tag: re.Match[str]) -> Place | None:
    """Return the place of the name in an opening tag, or None for a closing tag."""
    return None if tag[1] else tag.span(2)


def _find_lead(text: str, start: int, stop: int, *, is_title: bool) -> Place | None:
    """Return the place of an announcement: a title, a bold line, or the sentence before a colon.

    None if the line announces nothing.
    """
    begin, end = start, stop
    while begin < end and text[begin] not in _MARKS and not text[begin].isalnum():
        begin += 1  # A sign such as an emoji is shown with the text after it.
    begin = begin if text.startswith(("**", "__"), begin) else start
    whole = is_title or _BOLD.fullmatch(text, begin, stop) is not None
    while begin < end and text[begin] in _MARKS:
        begin += 1
    while begin < end and text[end - 1] in _MARKS:
        end -= 1
    if begin == end or not (whole or text[end - 1] in ":："):
        return None
    if not whole and (last := _SENTENCES.match(text, begin, end - 1)):
        begin = last.end()
    return begin, end


def _is_list(text: str, stop: int, following: Place | None) -> bool:
    """Return whether a list begins right after the line that ends here."""
    if following is None or text.count("\n", stop, following[0]) > _NEAR:
        return False
    return _ITEM.match(text, *following) is not None


def _find_prohibition(text: str, start: int, stop: int) -> Place | None:
    """Return the place of a sentence without a colon that forbids the list under it, or None."""
    while start < stop:
        first = _SENTENCE.match(text, start, stop)
        end = first.end() if first else stop
        if end - start <= _LONGEST and forbids_list(text[start:end].strip()):
            return start, len(text[:end].rstrip())
        start = end
    return None


def _depth_of_lead(
    text: str, start: int, stop: int, lead: Place, before: Line | None, leads: Sequence[_Lead]
) -> int:
    if _BOLD.fullmatch(text, start, stop):
        return _BOLD_DEPTH
    if sense(text[slice(*lead)]) or not leads:
        return _COLON_DEPTH if before and before.is_lead else _BOLD_DEPTH
    announced = before is not None and before.is_lead
    nested = any(one.depth == _NESTED_DEPTH for one in leads)
    return _NESTED_DEPTH if announced or nested else _BOLD_DEPTH


def _continues_item(text: str, before: Line, start: int, gap: str) -> bool:
    """Return whether a line continues the list item before it."""
    if gap.count("\n") > 1:
        return _indent(gap) > 1
    return _indent(gap) > 0 or (text[before.stop - 1].isalnum() and text[start].islower())


def _indent(gap: str) -> int:
    blanks = gap.rpartition("\n")[2]
    return sum(_TAB if blank == "\t" else 1 for blank in blanks)


def choose_headings(text: str, under: Sequence[Place]) -> tuple[str, ...]:
    """Return the headings worth repeating: the nearest one, and the one that decides the meaning.

    Only the end of a long heading is returned, after an ellipsis.
    """
    leads = [text[slice(*place)] for place in under]
    deciding = next((lead for lead in reversed(leads) if sense(lead)), None)
    kept = dict.fromkeys(lead for lead in (deciding, *leads[-1:]) if lead)
    return tuple(
        lead if len(lead) <= _LONGEST else f"{CUT_MARK}{lead[len(CUT_MARK) - _LONGEST :]}"
        for lead in kept
    )
