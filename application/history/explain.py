"""Explain how the model sees each message now, since when, and why."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from refold.application.conversation.addresses import address_of
from refold.application.conversation.entries import (
    SAID,
    Entry,
    Preview,
    PreviewKey,
    entries_between,
)
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.stream_places import places_in
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections.decision_index import versions_about
from refold.application.projections.fates import Decisions, Fate, When, fate_of
from refold.application.runtime.core import Core
from refold.domain.events import MessageAppended
from refold.domain.lazy_pattern import lazy_property
from refold.domain.turns import open_requests
from refold.domain.value import Value

DISTANT = 512
"""Number of later events from which the read models say which of them are worth reading."""


class MessageFate(Value, frozen=True):
    """The fate of one message: the way the model sees it now. Every message has one."""

    position: int
    message_id: str
    role: str
    tokens: int
    """Tokens of the whole message, as it was appended."""
    shown_tokens: int
    """Tokens that the message takes up in the context now; 0 if it is covered."""
    fate: Fate
    why: str
    """The reason for the fate, in words."""
    thinking_dropped_at: int | None
    """Version since which the thinking is left out because the text before it changed, or None."""
    since_version: int
    """Version of the event that decided the fate.

    For a covered message this is the first compaction that covered it, for a shortened one the
    newest decision to shorten it, and for an unchanged one its own event.
    """
    since: str
    """Time of the event in ``since_version``, in ISO 8601, UTC."""
    summary_id: str | None
    """Id of the active summary if it covers the message or reaches past it."""
    address: str
    """Address for reading the whole message with ``ConversationMemory.read``."""


def explain(
    core: Core,
    thread_id: str,
    start: int = 0,
    stop: int | None = None,
    *,
    version: int | None = None,
) -> tuple[MessageFate, ...]:
    """Return the fates of the messages at positions ``start`` up to but not including ``stop``.

    Negative numbers count from the end, as in a slice. ``version`` selects an earlier version of
    the conversation.
    """
    loaded = core.log.load(thread_id, at=version)
    first, last, _ = slice(start, stop).indices(loaded.state.length)
    if first >= last:
        return ()
    decisions, said = Decisions(), list[_Said]()
    for logged in _events_about(core, loaded, first, last):
        event = logged.event
        if not isinstance(event, MessageAppended):
            decisions.fold(logged)
        elif first <= event.position < last:
            said.append(_said_in(logged, event))
    entries = entries_between(loaded.window.entries, first, last)
    judge = _Judge(loaded, decisions, {entry.position: entry for entry in entries})
    return tuple(map(judge.fate, said))


class _Said(NamedTuple):
    """A message without its content, which would fill the memory."""

    when: When
    erased: bool
    position: int
    message_id: str
    role: str
    tokens: int


def _said_in(logged: LoggedEvent, event: MessageAppended) -> _Said:
    when = When(logged.version, logged.at)
    about = event.position, event.message_id, event.message.role, event.tokens
    return _Said(when, logged.erased, *about)


def _events_about(
    core: Core, loaded: LoadedConversation, first: int, last: int
) -> Iterator[LoggedEvent]:
    """Yield the events of the messages, and every decision made since the first of them."""
    newest = loaded.state.version
    places = places_in(core, loaded.thread_id, newest, loaded.state.length)
    begin = places.version_of(first) or 1  # The position of a lost message is unknown.
    end = places.version_of(last - 1) or newest
    yield from places.between(begin, end)
    versions = None
    if newest - end > DISTANT:
        rows = core.views.request_sizes(loaded.thread_id)
        versions = versions_about(rows, range(first, last), end, newest)
    if versions is None:
        yield from places.decisions_after(end)
    else:
        yield from core.log.read_at(loaded.thread_id, versions)


@dataclass(frozen=True)
class _Verdict:
    fate: Fate
    why: str
    when: When
    shown: int = 0
    by_summary: bool = False
    dropped: When | None = None


class _Judge:
    """Decides the fate of messages from the rendered window and the decisions in the log."""

    def __init__(
        self, loaded: LoadedConversation, decisions: Decisions, entries: Mapping[int, Entry]
    ) -> None:
        self._loaded = loaded
        self._decisions = decisions
        self._entries = entries
        self._coverage = loaded.window.summary.coverage if loaded.window.summary else None

    def fate(self, said: _Said) -> MessageFate:
        """Return the fate of a message."""
        position = said.position
        entry = self._entries.get(position)
        erased = said.erased or position in self._decisions.erased
        previews = tuple(self._previews.get(position, {}).values())
        fate = fate_of(self._loaded, position, previews, is_live=entry is not None, erased=erased)
        if fate == "erased":
            verdict = self._judge_erased(position, said.when, entry)
        elif entry is None:
            verdict = self._judge_covered(position, fate)
        else:
            verdict = self._judge_shown(entry, fate, said.when)
        summary = self._loaded.window.summary
        return MessageFate(
            position=position,
            message_id=said.message_id,
            role=said.role,
            tokens=said.tokens,
            shown_tokens=verdict.shown,
            fate=verdict.fate,
            why=verdict.why,
            thinking_dropped_at=verdict.dropped.version if verdict.dropped else None,
            since_version=verdict.when.version,
            since=verdict.when.at,
            summary_id=summary.summary_id if summary and verdict.by_summary else None,
            address=address_of(self._loaded.thread_id, position),
        )

    def _judge_erased(self, position: int, said: When, entry: Entry | None) -> _Verdict:
        when = self._decisions.erased.get(position, said)
        shown = entry.tokens if entry else 0
        return _Verdict("erased", "its content was erased", when, shown)

    def _judge_covered(self, position: int, fate: Fate) -> _Verdict:
        first = self._decisions.first_covering(position)
        assert first is not None
        if fate == "omitted":
            why = "too large to be summarised: the summary only names it"
            return _Verdict("omitted", why, first.when, by_summary=True)
        assert self._loaded.window.summary is not None
        why = f"summary {self._loaded.window.summary.summary_id} covers it"
        if part := self._decisions.given_in_part(position):
            why += f", made from {part.given:,} of its {part.characters:,} characters"
        if any(pin.position == position for pin in self._loaded.state.pins):
            why += "; its words are pinned in the ledger"
        quoted = self._loaded.window.memories
        if quoted is not None and any(one.position == position for one in quoted.memories):
            why += "; quoted in the system text"
        if position in self._recalled:
            why += f"; a line of it is recalled after message {self._recalled[position]}"
        return _Verdict("summarised", why, first.when, by_summary=True)

    def _judge_shown(self, entry: Entry, fate: Fate, said: When) -> _Verdict:
        position = entry.position
        previews = self._previews.get(position, {})
        match fate:
            case "preamble":
                why = "a system message before the first turn is part of the system text"
                verdict = _Verdict(fate, why, said)
            case "offloaded" | "condensed":
                when = self._decisions.shortened.get(position, said)
                why = _describe_shortening(previews)
                if position in self._loaded.state.pinned_positions:
                    why += "; pinned"
                verdict = _Verdict(fate, why, when)
            case "pinned":
                verdict = self._judge_pinned(position, said)
            case "protected":
                standing = self._decisions.standing
                when = standing[-1].when if standing else said
                verdict = _Verdict(fate, self._protection_reason(position), when, by_summary=True)
            case _:
                verdict = _Verdict("full", *self._full_reason(position, said))
        if position in self._loaded.window.recalled:
            lines = len(self._loaded.window.recalled[position].lines)
            what = "1 earlier line is" if lines == 1 else f"{lines} earlier lines are"
            verdict = replace(verdict, why=f"{verdict.why}; {what} recalled after it")
        less = entry.position < self._loaded.window.thinking_from and entry.thinking > 0
        freed = sum(preview.tokens_freed for preview in previews.values())
        return replace(
            verdict,
            shown=entry.tokens - freed - (entry.thinking if less else 0),
            dropped=self._decisions.thinking_dropped(said.version) if less else None,
        )

    def _judge_pinned(self, position: int, said: When) -> _Verdict:
        pin = next(p for p in self._loaded.state.pins if p.position == position and not p.tokens)
        when = self._decisions.pinned.get(pin.pin_id, said)
        inside = self._coverage is not None and position < self._coverage.stop
        return _Verdict("pinned", f"pinned as {pin.pin_id}", when, by_summary=inside)

    def _protection_reason(self, position: int) -> str:
        if position in self._requested:
            return "part of a request of the running turn"
        if position in self._decisions.once_pinned:
            return "was pinned when the summary was made"
        if self._loaded.state.pinned_positions:
            return "part of an open request or of a pinned tool round when the summary was made"
        return "was part of an open request when the summary was made"

    def _full_reason(self, position: int, said: When) -> tuple[str, When]:
        undone = self._decisions.reversal_of(position)
        if undone is not None:
            made = undone.compaction
            return f"summary {made.event.summary_id} covered it and was reverted", undone.when
        if self._coverage is None:
            return "nothing is summarised", said
        return "newer than the active summary", said

    @lazy_property
    def _recalled(self) -> dict[int, int]:
        """For each message with a recalled line, the newest message that the line follows."""
        events = sorted(self._loaded.window.recalled.items())
        return {line.position: at for at, event in events for line in event.lines}

    @lazy_property
    def _previews(self) -> dict[int, dict[PreviewKey, Preview]]:
        found: dict[int, dict[PreviewKey, Preview]] = {}
        for key, preview in self._loaded.window.previews.items():
            found.setdefault(key[0], {})[key] = preview
        return found

    @lazy_property
    def _requested(self) -> frozenset[int]:
        requests = open_requests(self._loaded.state)
        return frozenset(message.position for request in requests for message in request)


def _describe_shortening(previews: Mapping[PreviewKey, Preview]) -> str:
    ways = Counter((side, _describe_preview(preview)) for (_, _, side), preview in previews.items())
    return "; ".join(
        dict.fromkeys(f"{_describe_side(side, count)} {way}" for (side, way), count in ways.items())
    )


def _describe_side(side: str, count: int) -> str:
    if side == SAID:
        return "what the user said"
    if count == 1:
        return "tool content"
    return "each tool result" if side == "result" else "the input of each tool call"


def _describe_preview(preview: Preview) -> str:
    match preview.method:
        case "offload" if not preview.head:
            return "replaced by a marker"
        case "offload":
            return f"shown by {preview.head:,} + {preview.tail:,} characters"
        case "soft-trim":
            return f"cut to {preview.head + preview.tail:,} characters"
        case "hard-clear":
            return "replaced by a marker"
        case "left-out":
            return "left out, with one marker for it and its neighbours"
