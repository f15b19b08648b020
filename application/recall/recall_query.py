"""Parse a recall query; every error names the valid values."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypedDict, cast, get_args

from refold.application.conversation.owner_scope import Scope, read_scope
from refold.application.ports.recall_index import Filters
from refold.application.projections.row_changes import utc
from refold.domain.errors import InvalidSetting

from .hits import RecallMode
from .passages import PassageKind

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
    try:
        return utc(found)
    except (
        OverflowError
    ):  # Only within a day of the end of the calendar, which is before or after every event.
        return utc(found.replace(tzinfo=UTC))


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
