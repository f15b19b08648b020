"""Observable events: a stable name and figures, never message text, and the log lines that show them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from refold.application.errors import LogBehindAnchor, LogDamaged
from refold.application.runtime.plain_lines import ShownThreadIds, plain_logger, raised, shown_id
from refold.domain.conversation import Conversation
from refold.domain.events import (
    CompactionFailed,
    CompactionRequested,
    ConversationErased,
    ConversationForked,
    EditDecided,
    EditProposed,
    Event,
    LinesRecalled,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    SaidPart,
    ShortenedPart,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.notes import MemoriesChosen, NotesFlushed

if TYPE_CHECKING:
    from refold.application.api.results import CompactionResult
    from refold.application.ports.summariser import Summariser

Figure = str | int | float | bool


class Notice(NamedTuple):
    """An observable event of a conversation."""

    name: str
    thread_id: str
    figures: Mapping[str, Figure]


def ignore(notice: Notice) -> None:
    """Ignore the event."""


def describe_result(result: CompactionResult) -> Notice:
    """Describe the result of a compaction.

    The detail is omitted, because it may quote the summariser.
    """
    figures: dict[str, Figure | None] = {
        "trigger": result.trigger,
        "reason": result.reason or None,
        "summariser": result.summariser,
        "attempt_id": result.attempt_id,
        "summary_id": result.summary_id,
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "freed": result.freed,
        "messages_covered": result.messages_covered,
        "messages_kept": result.messages_kept,
        "results_offloaded": result.results_offloaded,
        "results_condensed": result.results_condensed,
        "omitted": len(result.omitted),
        "effective": result.effective,
        "split_turn": result.is_split_turn,
        "rebuilt": result.rebuilt,
        "model_calls": result.model_calls,
        "retries": result.retries,
        "seconds": round(result.seconds, 3),
        "breaker_open": result.breaker_open,
        "blocked_since": result.blocked_since,
    }
    said = {name: figure for name, figure in figures.items() if figure is not None}
    return Notice(f"compaction.{result.outcome}", result.thread_id, said)


def describe_fallback(result: CompactionResult, configured: str) -> Notice | None:
    """Describe a fallback to another summariser, or return None if the configured one was used."""
    if result.attempt_id is None or result.summariser in (None, configured):
        return None
    figures: dict[str, Figure] = {"configured": configured, "summariser": result.summariser}
    return Notice("compaction.fallback", result.thread_id, figures)


def describe_damage(error: LogDamaged | LogBehindAnchor) -> Notice:
    """Describe damage of the log."""
    match error:
        case LogBehindAnchor():
            figures: dict[str, Figure] = {"stored": error.stored, "found": error.found}
        case LogDamaged():
            figures = {"version": error.version}
    return Notice("log.damaged", error.thread_id, {"error": type(error).__name__, **figures})


def describe_decisions(
    thread_id: str,
    before: Conversation,
    after: Conversation,
    events: Sequence[Event],
    *,
    breaker_after: int,
) -> Iterator[Notice]:
    """Describe the decisions in these recorded events.

    Ends of compactions are omitted: their results describe them.
    """
    for event in events:
        if (said := _describe_event(event)) is not None:
            yield Notice(said[0], thread_id, said[1])
    was_open, is_open = (s.setbacks.count >= breaker_after for s in (before, after))
    if was_open != is_open:
        name = "breaker.opened" if is_open else "breaker.closed"
        yield Notice(
            name, thread_id, {"failures": max(before.setbacks.count, after.setbacks.count)}
        )


def _describe_event(event: Event) -> tuple[str, Mapping[str, Figure]] | None:
    match event:
        case CompactionRequested():
            return "compaction.requested", _describe_request(event)
        case CompactionFailed(reason="abandoned"):
            return "compaction.abandoned", {"attempt_id": event.attempt_id}
        case ToolContentOffloaded():
            return "content.offloaded", _describe_parts(event.parts)
        case MessagesCondensed():
            return "content.condensed", _describe_parts(event.parts)
        case UserContentShortened():
            return "content.shortened", _describe_parts(event.parts)
        case LinesRecalled():
            return "lines.recalled", {"lines": len(event.lines), "tokens": event.tokens}
        case MessagePinned():
            return "message.pinned", {"pin_id": event.pin_id}
        case MessageUnpinned():
            return "message.unpinned", {"pin_id": event.pin_id}
        case EditProposed():
            return "edit.proposed", {"edit_id": event.edit_id, "action": event.action}
        case EditDecided():
            return "edit.decided", {"edit_id": event.edit_id, "allowed": event.allowed}
        case NotesFlushed():
            return "notes.flushed", _describe_notes(event)
        case MemoriesChosen():
            return "memories.chosen", {"memories": len(event.memories), "tokens": event.tokens}
        case MessageErased():
            return "message.erased", {"rewritten": len(event.rewritten)}
        case ConversationErased():
            return "conversation.erased", {}
        case ConversationForked():
            return "conversation.forked", {"at_version": event.version}
        case _:
            return None


def _describe_request(event: CompactionRequested) -> Mapping[str, Figure]:
    return {
        "attempt_id": event.attempt_id,
        "trigger": event.trigger,
        "summariser": event.summariser,
        "tokens_before": event.tokens_before,
    }


def _describe_notes(event: NotesFlushed) -> Mapping[str, Figure]:
    figures: dict[str, Figure] = {
        "notes": len(event.notes),
        "taken_by": event.taken_by,
        "model_calls": event.model_calls,
    }
    return {**figures, "reason": event.reason} if event.reason else figures


def _describe_parts(parts: Sequence[ShortenedPart | SaidPart]) -> Mapping[str, Figure]:
    return {"parts": len(parts), "tokens_freed": sum(part.tokens_freed for part in parts)}


logger = plain_logger(__name__)

Watcher = Callable[[Notice], None]


def notify(watchers: Sequence[Watcher], notice: Notice) -> None:
    """Notify every watcher."""
    from refold.application.runtime.foreign_code import Contained

    for watcher in watchers:
        try:
            with Contained():
                watcher(notice)
        except Exception as error:  # An observer must not disturb what was stored.
            logger.warning("an observer failed: %s", raised(error))


class FallbackObserver:
    """An observer that reports compactions by another summariser than the configured one."""

    def __init__(self, configured: Summariser, watchers: Sequence[Watcher]) -> None:
        self._configured = configured
        self._watchers = watchers

    def compaction_ended(self, result: CompactionResult) -> None:
        """Report a fallback, if there was one."""
        notice = describe_fallback(result, self._configured.name)
        if notice is not None:
            for watcher in self._watchers:
                watcher(notice)

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """Ignore the request."""


class StoredDecisions:
    """An observer of the log that notifies watchers of stored decisions and of damage."""

    def __init__(self, watchers: Sequence[Watcher], *, breaker_after: int) -> None:
        self._watchers = watchers
        self._breaker_after = breaker_after

    def stored(
        self, thread_id: str, before: Conversation, after: Conversation, events: Sequence[Event]
    ) -> None:
        """Notify watchers of the decisions in these events."""
        for notice in describe_decisions(
            thread_id, before, after, events, breaker_after=self._breaker_after
        ):
            notify(self._watchers, notice)

    def damaged(self, error: LogDamaged | LogBehindAnchor) -> None:
        """Notify watchers that the log is damaged."""
        notify(self._watchers, describe_damage(error))


Naming = Callable[[str], str]
"""A function that returns the shown form of a thread id, or an empty string."""


def naming(shown: ShownThreadIds) -> Naming:
    """Return the naming function for a setting."""
    return partial(shown_id, shown=shown)


logging.getLogger("refold").addHandler(logging.NullHandler())

LEVELS = {
    "compaction.requested": logging.DEBUG,
    "compaction.chunk": logging.INFO,
    "compaction.performed": logging.INFO,
    "compaction.shortened": logging.INFO,
    "compaction.nothing_to_do": logging.DEBUG,
    "compaction.failed": logging.WARNING,
    "compaction.waiting": logging.WARNING,
    "compaction.in_flight": logging.INFO,
    "compaction.reverted": logging.INFO,
    "compaction.abandoned": logging.WARNING,
    "compaction.fallback": logging.WARNING,
    "content.offloaded": logging.INFO,
    "content.condensed": logging.INFO,
    "content.shortened": logging.INFO,
    "lines.recalled": logging.DEBUG,
    "message.pinned": logging.DEBUG,
    "message.unpinned": logging.DEBUG,
    "edit.proposed": logging.INFO,
    "edit.decided": logging.INFO,
    "notes.flushed": logging.INFO,
    "memories.chosen": logging.INFO,
    "message.erased": logging.INFO,
    "conversation.erased": logging.INFO,
    "conversation.forked": logging.INFO,
    "breaker.opened": logging.WARNING,
    "breaker.closed": logging.INFO,
    "request.made": logging.DEBUG,
    "views.rebuilt": logging.WARNING,
    "recall.rebuilt": logging.WARNING,
    "embedding.finished": logging.INFO,
    "embedding.replaced": logging.INFO,
    "embedding.failed": logging.WARNING,
    "embedder.failed": logging.WARNING,
    "vectors.damaged": logging.WARNING,
    "vectors.compared_here": logging.INFO,
    "snapshot.replaced": logging.WARNING,
    "keys.rebuilt": logging.WARNING,
    "log.damaged": logging.ERROR,
    "log.on_network": logging.WARNING,
}
"""Levels by event name. The keys are all event names."""


class LogLines:
    """An observer that writes to the loggers ``refold.compaction``, ``refold.content`` and others.

    The message is ``NAME key=value …``. As with ``extra``, the record has ``event`` and each key as
    attributes.
    """

    def __init__(self, naming: Naming) -> None:
        self._naming = naming
        self._loggers: dict[str, logging.Logger] = {}
        """Loggers of notices. Looking one up takes a lock of all loggers."""

    def notify(self, notice: Notice) -> None:
        """Write a line if its logger is enabled for the level."""
        level, logger = LEVELS[notice.name], self._loggers.get(notice.name)
        if logger is None:
            logger = logging.getLogger(f"refold.{notice.name.partition('.')[0]}")
            self._loggers[notice.name] = logger
        if not logger.isEnabledFor(level):
            return
        figures: dict[str, Figure] = {**notice.figures}
        if shown := self._naming(notice.thread_id):
            figures = {"thread_id": shown, **figures}
        pairs = "".join(f" {key}={_format_value(value)}" for key, value in figures.items())
        logger.log(level, "%s%s", notice.name, pairs, extra={"event": notice.name, **figures})

    def compaction_ended(self, result: CompactionResult) -> None:
        """Write the result of a compaction."""
        self.notify(describe_result(result))

    def chunk_summarised(self, thread_id: str, done: int, chunks: int) -> None:
        """Write the progress of a summary that takes several calls."""
        self.notify(Notice("compaction.chunk", thread_id, {"done": done, "chunks": chunks}))

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """Write the size of a request."""
        figures: dict[str, Figure] = {"tokens": tokens, "tokens_repeated": tokens_repeated}
        self.notify(Notice("request.made", thread_id, figures))


def _format_value(value: Figure) -> str:
    import json

    match value:
        case bool():
            return str(value).lower()
        case str() if not value or not value.isprintable() or any(map(value.__contains__, ' "=')):
            # The blank is the only printable white space.
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)
