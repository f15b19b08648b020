"""A query of recall: its checked arguments, and the question in it with its words and days."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypedDict, TypeVar, cast, get_args

from refold.application.conversation.owner_scope import Scope, read_scope
from refold.application.ports.recall_index import Filters
from refold.application.projections.row_changes import utc
from refold.application.runtime.memory_settings import RecallMode
from refold.domain.errors import InvalidSetting
from refold.domain.lazy_pattern import lazy_pattern

from .passages import MONTHS, PassageKind
from .tokens import content_tokens, tokens_of

InContext = Literal["mark", "leave_out"]
"""Treatment of hits that the context already shows: mark them, or only count them."""
Moment = datetime | str
"""A time with a time zone, as a datetime or as text in ISO 8601."""
Names = str | Iterable[str] | None
"""One name or several; None or no name matches any."""

ROLES = ("user", "assistant", "system", "tool")
MOST_HITS = 50
MOST_NEIGHBOURS = 10
LEAST_TOKENS, MOST_TOKENS = 50, 1_000_000


class RecallOptions(TypedDict, total=False):
    """Options of a recall query; all are optional."""

    topic: str | None
    """Only messages of this topic, as ``topics()`` lists it. Without a question, the messages in
    which it occurs most. Every listed topic has at least one message.
    """
    mode: RecallMode | None
    """Search by words (``keyword``), by meaning (``vector``) or by both (``hybrid``). None means
    both if an embedder is configured, otherwise words.
    """
    limit: int
    """Largest number of hits: 1 to 50, 5 by default."""
    min_score: float
    """Smallest score relative to the best hit: 0 to 1, 0 by default."""
    roles: Names
    """Only messages of these roles: ``user``, ``assistant``, ``system``, ``tool``."""
    tools: Names
    """Only calls and results of tools with these names."""
    kinds: Names
    """Only words (``text``), tool calls (``call``) or their results (``result``)."""
    since: Moment | None
    """Only messages written at this time or later."""
    until: Moment | None
    """Only messages written before this time."""
    in_context: InContext
    """``mark`` (default) marks hits that the context already shows; ``leave_out`` only counts them."""
    neighbours: int
    """Number of messages to show before and after each hit: 0 to 10, 1 by default."""
    max_tokens: int | None
    """Most tokens of the answer with hits and neighbours, at least 50, or None for the value in the
    settings.
    """
    scope: Scope
    """Scope of the search: ``conversation`` (default of a conversation), ``owner`` for everything of
    the same owner, or ``all`` for the whole log.
    """


class RecallQuery(NamedTuple):
    """A validated query to the history."""

    query: str
    mode: RecallMode | None
    """Search mode, or None for words and meaning if an embedder is configured, otherwise words."""
    limit: int
    min_score: float
    """Smallest score relative to the best hit."""
    filters: Filters
    leave_out: bool
    """True to leave out hits that the context shows."""
    neighbours: int
    """Number of messages to show before and after each hit."""
    max_tokens: int | None
    scope: Scope | None = None
    """Scope of the search, or None for the default of the caller."""
    topic: str = ""
    """Topic of the messages, or empty for any."""


def parse_query(
    query: str = "",
    *,
    topic: str | None = None,
    thread_id: str | None = None,
    mode: RecallMode | None = None,
    limit: int = 5,
    min_score: float = 0.0,
    roles: Names = (),
    tools: Names = (),
    kinds: Names = (),
    since: Moment | None = None,
    until: Moment | None = None,
    in_context: InContext = "mark",
    neighbours: int = 1,
    max_tokens: int | None = None,
    scope: Scope | None = None,
) -> RecallQuery:
    """Validate all arguments and return the query.

    Raises:
        InvalidSetting: an argument is invalid; the error names the valid values.
    """
    _check_asked(query, topic)
    _check_how(mode, min_score, in_context)
    if max_tokens is not None:
        whole_number("max_tokens", max_tokens, LEAST_TOKENS, MOST_TOKENS)
    return RecallQuery(
        query=query,
        mode=mode,
        limit=whole_number("limit", limit, 1, MOST_HITS),
        min_score=float(min_score),
        filters=_filters(thread_id, roles, tools, kinds, (since, until)),
        leave_out=in_context == "leave_out",
        neighbours=whole_number("neighbours", neighbours, 0, MOST_NEIGHBOURS),
        max_tokens=max_tokens,
        scope=None if scope is None else read_scope(scope),
        topic=topic or "",
    )


def _check_asked(query: str, topic: str | None) -> None:
    _check("query", query, isinstance(cast("object", query), str), "a question as text")
    named = topic is None or (isinstance(cast("object", topic), str) and topic.strip())
    _check("topic", topic, bool(named), "the name of a topic")


def _check_how(mode: RecallMode | None, min_score: float, in_context: InContext) -> None:
    if mode is not None:
        _check_choice("mode", mode, get_args(RecallMode))
    _check_choice("in_context", in_context, get_args(InContext))
    share = isinstance(cast("object", min_score), int | float) and 0 <= min_score <= 1
    _check("min_score", min_score, share, "a number from 0 to 1, relative to the best hit")


def _filters(
    thread_id: str | None,
    roles: Names,
    tools: Names,
    kinds: Names,
    period: tuple[Moment | None, Moment | None],
) -> Filters:
    begin, end = moment("since", period[0]), moment("until", period[1])
    if begin is not None and end is not None:
        _check("since", period[0], begin <= end, f"no later than until, {end}")
    return Filters(
        thread_id=thread_id,
        roles=_names("roles", roles, ROLES),
        kinds=cast("frozenset[PassageKind]", _names("kinds", kinds, get_args(PassageKind))),
        tools=_names("tools", tools),
        since=begin,
        until=end,
    )


def moment(setting: str, given: Moment | None) -> str | None:
    """Return a time in the format of passages: ISO 8601, UTC, microseconds.

    Raises:
        InvalidSetting: it is not a time, or has no time zone.
    """
    if given is None:
        return None
    if isinstance(given, datetime):
        found = given
    else:
        try:
            found = datetime.fromisoformat(str(given).strip())
        except ValueError as error:
            what = "a time with a time zone, such as 2026-01-02T03:04:05Z"
            raise _invalid_setting(setting, given, what) from error
    if found.tzinfo is None or found.utcoffset() is None:
        written = found.isoformat()
        what = f"the time has no time zone; add one, such as {written}+00:00"
        raise InvalidSetting(f"{setting}={written}: {what}", setting=setting, value=given)
    return utc(found)


def _names(setting: str, given: Names, allowed: Sequence[str] = ()) -> frozenset[str]:
    said = f"one of {', '.join(allowed)}" if allowed else "names of tools"
    given = () if given is None else given
    _check(setting, given, isinstance(cast("object", given), Iterable), said)
    names = [given] if isinstance(given, str) else list(given)
    for name in names:
        known = isinstance(cast("object", name), str) and (not allowed or name in allowed)
        _check(setting, name, known, said)
    return frozenset(names)


def _check_choice(setting: str, given: str, allowed: Sequence[str]) -> None:
    _check(setting, given, given in allowed, f"one of {', '.join(allowed)}")


def whole_number(setting: str, given: int, least: int, most: int) -> int:
    """Return ``given`` if it is an integer within these bounds.

    Raises:
        InvalidSetting: it is not; the error names the bounds.
    """
    whole = isinstance(cast("object", given), int) and not isinstance(given, bool)
    _check(setting, given, whole and least <= given <= most, f"a number from {least} to {most:,}")
    return given


def _check(setting: str, given: object, fine: bool, allowed: str) -> None:
    if not fine:
        raise _invalid_setting(setting, given, allowed)


def _invalid_setting(setting: str, given: object, allowed: str) -> InvalidSetting:
    return InvalidSetting(
        f"{setting}={str(given)[:80]!r} is invalid: it must be {allowed}",
        setting=setting,
        value=given,
    )


_GERMAN_MONTHS = ("Januar", "Februar", "März", "Mai", "Juni", "Juli", "Oktober", "Dezember")
_MONTH = "|".join(
    (*(rf"{name[:3]}(?:{name[3:]})?" if name[3:] else name for name in MONTHS), *_GERMAN_MONTHS)
)
_DAY = r"(?P<{0}d>[0-3]?\d)(?:st|nd|rd|th|\.)?"
_YEAR = r"(?P<{0}y>(?:19|20)\d\d)"
_FORMS = (
    rf"\b(?P<am>{_MONTH})\.?\s+{_DAY.format('a')}\b(?:,?\s*{_YEAR.format('a')}\b)?",
    rf"\b{_DAY.format('b')}\s+(?:of\s+)?(?P<bm>{_MONTH})\b\.?(?:,?\s*{_YEAR.format('b')}\b)?",
    rf"\b(?P<cm>{_MONTH})\.?,?\s+{_YEAR.format('c')}\b",
    r"(?<!\d)(?:(?P<ey>(?:19|20)\d\d)\s*年\s*)?(?P<em>[01]?\d)\s*月(?:\s*(?P<ed>[0-3]?\d)\s*[日号])?",
    r"(?<!\d)(?P<fy>(?:19|20)\d\d)[-/.](?P<fm>[01]?\d)(?:[-/.](?P<fd>[0-3]?\d))?(?!\d)",
)
_NAMED = lazy_pattern("|".join(_FORMS), re.IGNORECASE)
_DIGIT = lazy_pattern(r"\d")
_SIDE = lazy_pattern(
    r"\b(?:(?P<before>before|until|prior\s+to|bevor|vor(?:\s+de[mnr])?|bis(?:\s+zum)?)"
    r"|(?P<after>after|since|nach(?:\s+de[mnr])?|seit(?:\s+de[mnr])?))\s+$",
    re.IGNORECASE,
)
_CHINESE_SIDE = lazy_pattern("(?P<before>[之以]前)|(?P<after>[之以]后)")
_NUMBERS = {
    **{name[:3].lower(): number for number, name in enumerate(MONTHS, 1)},
    **dict(zip(("mär", "mai", "okt", "dez"), (3, 5, 10, 12), strict=True)),
}

Side = Literal["before", "after"]


class Day(NamedTuple):
    """A day or a whole month; the year is optional."""

    year: int | None
    month: int
    day: int | None
    side: Side | None = None
    """Whether the time before or after is meant, or None for the period itself."""

    def fits(self, at: str) -> bool:
        """Return whether a time in ISO 8601 is in this period, or on the meant side of it."""
        if self.side is not None:
            day = "" if self.day is None else f"-{self.day:02}"
            date = f"{self.year or int(at[:4]):04}-{self.month:02}{day}"
            written = at[: len(date)]
            return written < date if self.side == "before" else written > date
        return (
            (self.year is None or at[:4] == f"{self.year:04}")
            and at[5:7] == f"{self.month:02}"
            and (self.day is None or at[8:10] == f"{self.day:02}")
        )

    def tokens(self) -> list[str]:
        """Return the tokens by which the index finds this day."""
        return tokens_of(f"{self.year or ''} {MONTHS[self.month - 1]} {self.day or ''}")


def days_in(text: str) -> Iterator[Day]:
    """Yield the days and months that a text names; invalid dates are ignored."""
    # Every form has a number.
    for found in _NAMED.finditer(text) if _DIGIT.search(text) else ():
        parts = {name[1]: value for name, value in found.groupdict().items() if value}
        month = _NUMBERS.get(parts["m"][:3].lower()) or _number(parts["m"])
        day = _number(parts["d"]) if "d" in parts else None
        year = _number(parts["y"]) if "y" in parts else None
        if 1 <= month <= 12 and (day is None or 1 <= day <= 31):
            yield Day(year, month, day, _side_of(text, *found.span()))


def _side_of(text: str, start: int, stop: int) -> Side | None:
    """Return which side of a date is meant, by the word before it or, in Chinese, after it."""
    found = _SIDE.search(text[max(0, start - 20) : start]) or _CHINESE_SIDE.match(text[stop:])
    if found is None:
        return None
    return "before" if found["before"] else "after"


def _number(digits: str) -> int:
    return int(digits) if digits.isdecimal() else 0


Sliced = TypeVar("Sliced", str, tuple[str, ...])

MOST_CHARACTERS = 16_000
"""Largest number of characters of a question."""
MOST_ASKED = 200
"""Largest number of tokens to search for; each needs one look into the index."""


class Question(NamedTuple):
    """A parsed question, ready for ranking."""

    text: str
    tokens: tuple[str, ...]
    """Distinct tokens to search for, in order; without any, nothing is found."""
    has_words: bool = True
    """False if it has only function words, which are searched for then."""
    roles: frozenset[str] = frozenset()
    """Roles whose words are meant ("you said" means the assistant), or empty for any."""
    names: frozenset[str] = frozenset()
    """Tokens of capitalised words, which may name the speaker at the head of a message."""
    days: tuple[Day, ...] = ()
    """Days that the question names."""
    order: Literal["first", "last"] | None = None
    """Whether the first or the last of several times is meant, or None for any."""
    relative: tuple[Side, tuple[str, ...]] | None = None
    """The tokens of an event that the answer is before or after, or None."""
    asks_when: bool = False
    """True if the question asks for a time."""


_SAYING = (
    r"(?:advis|answer|ask|describ|explain|gave|give|given|introduc|list|mention|offer|point|promis|propos|provid"
    r"|recommend|repl|said|say|share|sharing|show|suggest|taught|teach|tell|told|warn|wr[io]te|writ)"
)
_ASSISTANT = lazy_pattern(
    rf"\byou(?:'ve|\s+have|\s+had|\s+ever|\s+once|\s+just|\s+also|\s+already|\s+previously|\s+earlier)*\s+{_SAYING}"
    r"|\byour\s+(?:advice|answers?|explanations?|ideas?|recommendations?|reply|suggestions?|tips?)\b"
    rf"|\bthe\s+(?:assistant|agent|model|ai)(?:\s+(?:ever|once|just|also|already|had|has))*\s+{_SAYING}"
    r"|\bthe\s+(?:assistant|agent|model|ai)'s\s+(?:advice|answers?|ideas?|recommendations?|reply|suggestions?|words)\b"
    r"|(?<![和跟给向对与])[你您][^我，。？！,.?!]{0,6}(?:[给跟对和向][了过]?我|推荐|建议|告诉|提到|提过|分享|介绍|讲|说)|[你您]的(?:建议|推荐|回答)|助手(?:说|讲|推荐|建议|告诉|提到|提过|回答|给)",
    re.IGNORECASE,
)
_USER = lazy_pattern(
    r"\b(?:i|i'm|i've|i'd|me|my|mine)\b(?!\.\w)"
    rf"|\bthe\s+user(?:\s+(?:ever|once|just|also|already|had|has))*\s+(?:{_SAYING}|want|prefer|like|need|decid)"
    r"|\bthe\s+user's\s+(?:answers?|choice|ideas?|preferences?|questions?|requests?|wish(?:es)?|words)\b"
    r"|我(?!们)|用户(?:说|讲|问|要|想|喜欢|偏好|希望|提到|提过)",
    re.IGNORECASE,
)
_ROLES = frozenset({"ai", "agent", "assistant", "model", "user"})
_SPEAKERS = _ROLES | {"i", "me", "mine", "my", "us", "you", "your"}
# Ways to ask that say nothing about the speaker.
_ASKING = lazy_pattern(
    r"\b(?:can|could|will|would)\s+you\s+(?:(?:please|kindly|also|maybe)\s+)?\w+(?:\s+(?:me|us)\b)?"
    r"|(?:^|[.!?;,:]|\bplease|\band)\s*(?:tell|show|give|remind|help|let|send|find|get|explain(?:\s+to)?)\s+(?:me|us)\b"
    r"|\bhow\s+(?:do|can|could|should|would|might)\s+i\b|\b(?:can|could|should|may|must)\s+i\b"
    r"|\b(?:i\s+(?:want|need|would\s+like)|i'd\s+like)\s+to\s+(?:know|see|find|hear|ask)\b"
    r"|(?:请问?|麻烦)?[你您]?(?:能不能|能否|可不可以|可以|可否|能)(?:请)?[你您]?(?:再)?(?:告诉|提醒|帮|给)(?:一下)?我"
    r"|(?:请|麻烦)[你您]?(?:再)?(?:告诉|提醒|帮|给|让)(?:一下)?我|(?:^|[，。？！,.?!\s])(?:告诉|提醒|帮|让)我|我想知道|我想问",
    re.IGNORECASE,
)
_WHEN = lazy_pattern(
    r"\b(?:when|since\s+when|how\s+long|(?:what|which)\s+(?:date|day|month|time|week|year)|wann|seit\s+wann|wie\s+lange)\b"
    r"|什么时候|什么时间|哪天|哪一天|哪年|哪一年|哪个月|几月|几号|何时|多久|多长时间",
    re.IGNORECASE,
)
_FIRST = lazy_pattern(
    r"\b(?:first|earliest|originally|initially|zuerst|anfangs|erste[mnrs]?|frühe?ste[mnrs]?)\b|第一次|首次|最早|最初|第一个",
    re.IGNORECASE,
    signs="first|earliest|originally|initially|zuerst|anfangs|erste",
)
_LAST = lazy_pattern(
    r"\b(?:latest|newest|most\s+recent(?:ly)?|finally|zuletzt|letzte[mnrs]?|neue?ste[mnrs]?)\b|最后一次|上一次|最新|最近一次"
    r"|\blast\b(?!\s+(?:week|weekend|month|year|night|spring|summer|autumn|fall|winter|season|\w+day|name)\b)",
    re.IGNORECASE,
    signs="latest|newest|recent|finally|zuletzt|letzte|neu|last",
)
_EVENT = lazy_pattern(
    r"\b(?P<word>before|after|bevor|nachdem|vor\s+de[mnr]|nach\s+de[mnr])\s+(?P<event>[^,.;?!]{1,200})"
    r"|(?P<chinese>[^，。；？！\s]{1,40}?)(?P<side>之前|以前|之后|以后|后来)",
    re.IGNORECASE,
    signs="before|after|vor|nach",
)
_BEFORE = frozenset(
    {"before", "bevor", "之前", "以前", *(f"vor {word}" for word in ("dem", "den", "der"))}
)
_NAME = lazy_pattern(r"[A-ZÀ-ÖØ-ÞА-Я][\w'’-]*[^\W\d_]")


def ask(text: str) -> Question:
    """Parse a question in any language.

    Any string is valid; most of it is searched by words alone. Of a very long one, such as a pasted
    log, only the beginning and the end count, because requests are usually there.
    """
    text = _ends(text, MOST_CHARACTERS)
    days = tuple(days_in(text))
    kept = tuple(dict.fromkeys((*content_tokens(text), *(t for d in days for t in d.tokens()))))
    every = kept or tuple(dict.fromkeys(tokens_of(text)))
    names = frozenset(t for name in _NAME.findall(text) for t in content_tokens(name))
    return Question(
        text,
        _ends(every, MOST_ASKED),
        bool(kept),
        _roles_in(text),
        names,
        days,
        _order_in(text),
        None if any(day.side for day in days) else _relative_in(text),
        _WHEN.search(text) is not None,
    )


def _ends(whole: Sliced, most: int) -> Sliced:
    """Return the beginning and the end of a value that is longer than ``most``."""
    return whole if len(whole) <= most else whole[: most // 2] + whole[-(most // 2) :]


def _order_in(text: str) -> Literal["first", "last"] | None:
    return "first" if _FIRST.search(text) else "last" if _LAST.search(text) else None


def _relative_in(text: str) -> tuple[Side, tuple[str, ...]] | None:
    """Return the event that the answer is before or after, and which of both."""
    if found := _EVENT.search(text):
        tokens = tuple(content_tokens(found["event"] or found["chinese"]))
        is_before = (found["word"] or found["side"]).lower() in _BEFORE
        return ("before" if is_before else "after", tokens) if tokens else None
    return None


def _roles_in(text: str) -> frozenset[str]:
    if text.isascii() and _SPEAKERS.isdisjoint(re.findall(r"\w+", text.lower())):
        return frozenset()  # Every English pattern needs one of these words.
    text = _ASKING.sub(" ", text)
    if _ASSISTANT.search(text):
        return frozenset({"assistant"})
    return frozenset({"user"}) if _USER.search(text) else frozenset()
