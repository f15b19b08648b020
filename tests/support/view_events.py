"""Events for tests of the read models: a conversation that appends, compacts, fails and is labelled."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.compaction.compacting import revert_compaction
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import Coverage, Topic
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    ConversationLabelled,
    Event,
    MessageAppended,
    SummarySuperseded,
)
from refold.domain.messages import Message, Role
from refold.infrastructure.event_store.stored_log import StoredLog

EPOCH = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def logged(event: Event, version: int = 2, thread_id: str = "t") -> LoggedEvent:
    return LoggedEvent(version, thread_id, version, "2026-01-02T03:04:05.000000Z", event)


def appended(position: int, text: str = "hello", tokens: int = 7) -> MessageAppended:
    role: Role = "user" if position % 2 == 0 else "assistant"
    return MessageAppended(
        position=position,
        message_id=f"m{position}",
        message=Message(role=role, content=text),
        tokens=tokens,
    )


def coverage(stop: int) -> Coverage:
    return Coverage(start=0, stop=stop, count=stop, first_message_id="m0", last_message_id="m1")


def requested(number: int, stop: int = 2, supersedes: str | None = None) -> CompactionRequested:
    return CompactionRequested(
        attempt_id=f"a{number}",
        requested_at=EPOCH,
        trigger="size",
        coverage=coverage(stop),
        supersedes=supersedes,
        source_digest="d",
        summariser="fake",
        policy=CompactionPolicy(),
        tokens_before=100,
        focus="the tests",
    )


def performed(
    number: int, stop: int = 2, text: str = "They met.", topics: tuple[Topic, ...] = ()
) -> CompactionPerformed:
    return CompactionPerformed(
        attempt_id=f"a{number}",
        summary_id=f"s{number}",
        text=text,
        tokens=5,
        coverage=coverage(stop),
        source_digest="d",
        trigger="size",
        policy=CompactionPolicy(),
        summariser="fake",
        model="fake-1",
        prompt_fingerprint="p",
        tokens_before=100,
        tokens_after=40,
        topics=topics,
        topics_shown=min(1, len(topics)),
    )


TOPICS = (
    Topic(name="pnpm", count=2, last_position=0),
    Topic(name="src/a.py", count=1, last_position=0),
)


def failed(number: int) -> CompactionFailed:
    return CompactionFailed(attempt_id=f"a{number}", reason="empty", detail="nothing came")


class Scribe:
    """Writes conversations into a log, one act after the other."""

    def __init__(self, log: StoredLog) -> None:
        self.log = log
        self._acts = 0

    def say(self, thread_id: str, *texts: str) -> None:
        self._write(
            thread_id,
            lambda length: [appended(length + i, text) for i, text in enumerate(texts)],
        )

    def compact(self, thread_id: str, text: str = "They met.") -> None:
        self._acts += 1
        number = self._acts
        active = self.log.load(thread_id).state.summary
        old = active.summary_id if active else None
        stop = max(1, self.log.load(thread_id).state.length - 1)
        made = performed(number, stop, text, TOPICS)
        events: list[Event] = [requested(number, stop, old), made]
        if old is not None:
            events.append(SummarySuperseded(summary_id=old, by=f"s{number}"))
        self._write(thread_id, lambda _: events)

    def revert(self, thread_id: str) -> None:
        """Revert the active summary, if there is one."""
        state = self.log.load(thread_id).state
        if state.summary is not None:
            before = self.log.load(thread_id, at=state.summary.version - 1).state
            self._write(thread_id, lambda _: revert_compaction(state, before))

    def fail(self, thread_id: str) -> None:
        self._acts += 1
        number = self._acts
        self._write(thread_id, lambda _: [requested(number), failed(number)])

    def label(self, thread_id: str, label: str) -> None:
        self._write(thread_id, lambda _: [ConversationLabelled(label=label)])

    def _write(self, thread_id: str, events: Callable[[int], Sequence[Event]]) -> None:
        self._acts += 1
        at = EPOCH + timedelta(seconds=self._acts)
        self.log.transact(thread_id, lambda loaded: events(loaded.state.length), at=at)
