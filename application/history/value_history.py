"""Say why a request has a value or not: when it entered, where it is, when it left, and what brings it back."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

from refold.application.api.results import Context
from refold.application.compaction.next_request import context_of, present_request
from refold.application.conversation.addresses import address_of
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.stream_places import places_in, stored_messages
from refold.application.frames.sent_request import load_sent
from refold.application.projections.row_changes import message_time
from refold.application.recall.hits import ContextVisibility
from refold.application.rendering.render import ledger_line, pin_line, topics_line
from refold.application.runtime.core import Core, Extras
from refold.domain.events import MessageAppended, RecalledLine, Trigger
from refold.domain.messages import CALLS, Message, readable, readable_content, text_of
from refold.domain.value import Value

from .moments import At, load_at
from .query import message_rows
from .value_match import ValueMatch, read_value
from .value_timeline import (
    MOST_READ,
    Cause,
    Change,
    Occurrences,
    Standing,
    Timeline,
    no_occurrences,
)
from .ways_back import SimilarLine, WayBack, similar_lines, ways_back

MOST_RENDERED = 40
"""Number of requests that are rendered for their size, at most."""
MOST_CHANGES = 20
"""Number of changes that are listed; of more, the newest."""
_CALLED_BEFORE = 16
"""Number of messages before a tool result in which its call is looked for."""


class Occurrence(Value, frozen=True):
    """A message that has the value."""

    position: int
    version: int
    """Version of the conversation right after the message was appended."""
    address: str
    """Address for reading the whole message with ``conversation.read``."""
    role: str
    author: str | None
    """Writer of a message of the user, if it is recorded."""
    tool: str | None
    """Name of the tool whose call or result has the value, or None for words."""
    at: str
    """Time when it was written, or else logged: ISO 8601, UTC."""
    tokens: int
    line: str
    """A little of the line around the value, without credentials."""


PlaceKind = Literal[
    "message",
    "preview",
    "summary",
    "topics",
    "ledger",
    "index",
    "pin",
    "quoted memory",
    "recalled line",
    "system text",
    "other",
]
"""A part of a request. ``preview``: the part of a shortened message that is still shown."""


class ValuePlace(Value, frozen=True):
    """A part of the request that has the value."""

    kind: PlaceKind
    position: int | None
    """Position of the message, or of the source of a line; the newest one of several. None if it has none."""
    count: int
    """Number of messages or lines of this kind that have it."""
    line: str
    """A little of the line around the value, without credentials."""


class ValueChange(Value, frozen=True):
    """An event after which the request had the value in another way."""

    version: int
    at: str
    """Time of the event in ISO 8601, UTC."""
    before: Standing
    after: Standing
    cause: Cause
    summary_id: str | None
    """Id of the summary that a compaction made, or that was reverted."""
    trigger: Trigger | None
    """Reason of a compaction, or None for other events."""
    position: int | None
    """Position of the message that was appended, or to which a line was added."""
    tokens_before: int | None
    """Tokens of the whole request before the event, or None if they were not measured."""
    tokens_after: int | None


class ValueHistory(Value, frozen=True):
    """The history of a value in one conversation."""

    thread_id: str
    value: str
    version: int
    """Version of the conversation that ``standing`` and ``places`` are about."""
    match: Literal["exact", "similar", "none"]
    """``similar``: no message has the value exactly, but some have it with other case or spacing."""
    count: int
    """Number of messages that have the value."""
    first: Occurrence | None
    newest: Occurrence | None
    standing: Standing
    """The best way in which the next request has the value."""
    places: tuple[ValuePlace, ...]
    """Where the next request has it."""
    changes: tuple[ValueChange, ...]
    """When that changed, oldest first: at most ``MOST_CHANGES``, the newest."""
    change_count: int
    """Number of all changes."""
    is_certain: bool
    """False if too many versions had shortened messages, so that old changes may be missing."""
    ways: tuple[WayBack, ...]
    """Ways to bring the value back, empty if a message shows it word for word."""
    similar: tuple[SimilarLine, ...]
    """Lines that recall finds, if nothing has the value."""
    erased: int
    """Number of erased messages. A value that only they had is in no list, and nothing brings it back."""

    @property
    def is_known(self) -> bool:
        """True if a message or the request has the value."""
        return self.count > 0 or self.standing != "nowhere"


def why(core: Core, thread_id: str, value: str, at: At | None) -> ValueHistory:
    """Return the history of a value up to a moment, by default now.

    Raises:
        InvalidSetting: the value is blank or too long, or there is no such version.
        ConversationGone: the conversation was erased.
        LogError: the log cannot be read.
    """
    match = ValueMatch(read_value(value))
    now = core.log.load(thread_id).present() if at is None else None
    then = _History(core, now or load_at(core, thread_id, 0 if at is None else at), match)
    if now is None and (newest := core.log.load(thread_id)).state.version > then.version:
        return then.tell(_History(core, newest, match).ways())
    return then.tell(then.ways())


def _occurrences(
    core: Core, loaded: LoadedConversation, match: ValueMatch
) -> tuple[Occurrences, ValueMatch]:
    """Return the messages that have the value, and how they were found. Messages are read in pages."""
    alike = match.ignore_case()
    exact, similar = no_occurrences(), no_occurrences()
    for row in message_rows(core, loaded.thread_id, range(loaded.state.length)):
        if row.text in match:
            exact.add(row.position, row.version)
        elif not exact.positions and row.text in alike:
            similar.add(row.position, row.version)
    return (similar, alike) if similar.positions and not exact.positions else (exact, match)


class _History:
    """The parts of one answer."""

    def __init__(self, core: Core, loaded: LoadedConversation, match: ValueMatch) -> None:
        self._core, self._loaded, self._thread_id = core, loaded, loaded.thread_id
        self.version = loaded.state.version
        self._found, self._match = _occurrences(core, loaded, match)
        self._request = _Request(core, loaded, self._match)
        self._places = self._request.places(self._found)
        self._timeline = self._read_timeline()
        self._changes, self._is_certain = self._timeline.changes(self._shows_shortened)
        self._rendered = 1

    def ways(self) -> tuple[WayBack, ...]:
        """Return the ways to bring the value back, empty if a message shows it or no message has it."""
        if not self._found.positions or standing_of(self._places) == "message":
            return ()
        left = (c.point.version for c in reversed(self._changes) if c.before == "message")
        return ways_back(
            self._core,
            self._timeline,
            self._match,
            self._found,
            self._request.context,
            next(left, None),
        )

    def tell(self, ways: tuple[WayBack, ...]) -> ValueHistory:
        """Return the answer with these ways."""
        found, standing = self._found, standing_of(self._places)
        known = bool(found.positions) or standing != "nowhere"
        return ValueHistory(
            thread_id=self._thread_id,
            value=self._match.value,
            version=self.version,
            match="none" if not found.positions else "exact" if self._match.exact else "similar",
            count=len(found.positions),
            first=self._occurrence(0) if found.positions else None,
            newest=self._occurrence(-1) if found.positions else None,
            standing=standing,
            places=self._places,
            changes=tuple(map(self._change, self._changes[-MOST_CHANGES:])),
            change_count=len(self._changes),
            is_certain=self._is_certain,
            ways=ways,
            similar=() if known else similar_lines(self._core, self._thread_id, self._match),
            erased=len(self._timeline.erased),
        )

    def _read_timeline(self) -> Timeline:
        state = self._loaded.state
        timeline = Timeline(self._match, self._found, self._words_of)
        places = places_in(self._core, self._thread_id, state.version, state.length)
        for logged in places.decisions_after(0):
            timeline.fold(logged)
        timeline.finish(state.version)
        return timeline

    def _shows_shortened(self, version: int) -> bool:
        """Return whether the newest shortened messages of a version show the value."""
        visible = ContextVisibility(self._core.log.load(self._thread_id, at=version))
        end = bisect_left(self._found.versions, version + 1)
        newest = reversed(self._found.positions[max(0, end - MOST_READ) : end])
        shortened = (p for p in newest if visible.fate(p) in ("offloaded", "condensed"))
        return any(visible.shortened_text(p) in self._match for p in shortened)

    def _words_of(self, line: RecalledLine) -> str:
        for logged in self._core.log.read_at(self._thread_id, [line.version]):
            if isinstance(logged.event, MessageAppended):
                return readable(logged.event.message)[line.start : line.stop]
        return ""

    def _change(self, change: Change) -> ValueChange:
        point = change.point
        before, after = point.tokens_before, point.tokens_after
        if before is None and change.after != "message" and point.cause != "appended":
            before, after = self._size(point.version - 1), self._size(point.version)
        return ValueChange(
            version=point.version,
            at=point.at or self._time_of(point.version),
            before=change.before,
            after=change.after,
            cause=point.cause,
            summary_id=point.summary_id,
            trigger=point.trigger,
            position=point.position,
            tokens_before=before,
            tokens_after=after,
        )

    def _size(self, version: int) -> int | None:
        """Return the tokens of the request at a version, or None if too many were rendered already."""
        if self._rendered >= MOST_RENDERED:
            return None
        self._rendered += 1
        loaded = self._core.log.load(self._thread_id, at=version)
        return context_of(self._core, loaded, Extras()).tokens

    def _time_of(self, version: int) -> str:
        """Return when the message of a version was written, or else logged."""
        for logged in self._core.log.read_at(self._thread_id, [version]):
            event = logged.event
            return message_time(logged, event) if isinstance(event, MessageAppended) else logged.at
        return ""

    def _occurrence(self, index: int) -> Occurrence | None:
        position = self._found.positions[index]
        stored = stored_messages(self._core, self._thread_id, position, position + 1)
        if not stored:
            return None
        (one,) = stored
        return Occurrence(
            position=position,
            version=one.version,
            address=address_of(self._thread_id, position),
            role=one.message.role,
            author=one.message.author,
            tool=_tool_of(self._core, self._thread_id, position, one.message, self._match),
            at=one.at,
            tokens=one.tokens,
            line=self._match.line(one.text),
        )


def _tool_of(
    core: Core, thread_id: str, position: int, message: Message, match: ValueMatch
) -> str | None:
    """Return the name of the tool whose call or result has the value, or None."""
    for block in message.blocks():
        if readable_content((block,)) not in match:
            continue
        if block.get("type") in CALLS:
            return str(block.get("name"))
        if block.get("type") != "tool_result":
            return None
        start = max(0, position - _CALLED_BEFORE)
        for earlier in reversed(stored_messages(core, thread_id, start, position)):
            for call in earlier.message.blocks():
                if call.get("type") in CALLS and call.get("id") == block.get("tool_use_id"):
                    return str(call.get("name"))
        return "unknown tool"
    return None


class _Text(NamedTuple):
    """A text of a request, with the position of its source, if any."""

    kind: PlaceKind
    position: int | None
    text: str


class _Request:
    """The request of one version, searched for a value."""

    def __init__(self, core: Core, loaded: LoadedConversation, match: ValueMatch) -> None:
        self._core, self._match = core, match
        self._sent, self._extras = load_sent(core, loaded, Extras())
        budget = core.budget(self._extras)
        self._is_rendered = not self._sent.is_too_long_to_render(budget)
        self.context: Context = (
            context_of(core, loaded, Extras())
            if self._is_rendered
            else present_request(core, self._sent, budget, self._extras, loaded.state.version)
        )

    def places(self, found: Occurrences) -> tuple[ValuePlace, ...]:
        """Return the parts of the request that have the value, messages first. The rendered request decides.

        A conversation that is too long for its window is not rendered; its parts decide alone.
        """
        rendered = [text for text in _texts(self.context) if text in self._match]
        if self._is_rendered and not rendered:
            return ()
        own = {kind: list[_Text]() for kind in get_args(PlaceKind)}
        for one in self._memory():
            if one.text in self._match:
                own[one.kind].append(one)
        places = [*self._messages(found), *(self._place(some) for some in own.values() if some)]
        if not places and rendered:
            places = [self._place([_Text("other", None, rendered[0])])]
        return tuple(places)

    def _place(self, some: list[_Text]) -> ValuePlace:
        newest = max(some, key=lambda one: -1 if one.position is None else one.position)
        return ValuePlace(
            kind=newest.kind,
            position=newest.position,
            count=len(some),
            line=self._match.line(newest.text),
        )

    def _messages(self, found: Occurrences) -> Iterator[ValuePlace]:
        """Yield a place for the whole messages that have the value, and one for the shortened ones."""
        visible, count = ContextVisibility(self._sent), Counter[PlaceKind]()
        newest = dict[PlaceKind, int]()
        for position in found.positions:
            match visible.fate(position):
                case "summarised" | "omitted":
                    continue
                case "offloaded" | "condensed":
                    if visible.shortened_text(position) not in self._match:
                        continue
                    kind: PlaceKind = "preview"
                case _:
                    kind = "message"
            count[kind] += 1
            newest[kind] = position
        for kind in sorted(count):
            position = newest[kind]
            line = self._match.line(visible.shortened_text(position))
            yield ValuePlace(kind=kind, position=position, count=count[kind], line=line)

    def _memory(self) -> Iterator[_Text]:
        window = self._sent.window
        if (made := window.summary) is not None:
            yield _Text("summary", None, made.text)
            topics = made.topics[: made.topics_shown]
            yield _Text("topics", None, topics_line(topics, ask=made.topics_ask))
            for line in made.ledger[: made.ledger_shown]:
                yield _Text("ledger", line.position, ledger_line(line))
            for entry in made.index[: made.index_shown]:
                yield _Text("index", entry.position, entry.text)
        for pin in window.pins:
            yield _Text("pin", pin.position, pin_line(pin))
        for memory in window.memories.memories if window.memories else ():
            own = memory.position if memory.thread_id is None else None
            yield _Text("quoted memory", own, memory.text)
        for lines in self._core.recalled.find(self._core.log, self._sent).values():
            for recalled in lines:
                yield _Text("recalled line", recalled.line.position, recalled.text)
        given = self._core.system_of(self._extras)
        texts = [given] if isinstance(given, str) else map(text_of, given or ())
        for text in texts:
            yield _Text("system text", None, text)


def _texts(context: Context) -> Iterator[str]:
    """Yield the readable texts of a request, without thinking."""
    system = context.system
    yield from [system] if isinstance(system, str) else map(text_of, system)
    for message in context.messages:
        yield readable_content(message["content"])


def standing_of(places: tuple[ValuePlace, ...]) -> Standing:
    """Return the best way in which these places have the value."""
    if not places:
        return "nowhere"
    return "message" if places[0].kind in ("message", "preview") else "memory"
