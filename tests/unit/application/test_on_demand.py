"""A compaction on demand: what its result says, and that a failure changes nothing."""

import asyncio
from collections.abc import Iterator

import pytest

from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import CompactionResult
from refold.application.compaction.attempt import CompactionAttempt
from refold.application.compaction.on_demand import Demand, manual_attempt
from refold.application.errors import LogError
from refold.application.ports.summariser import Summariser, SummaryDraft, SummaryRequest
from refold.application.runtime.core import Extras
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    Event,
    SummarySuperseded,
)
from refold.domain.notes import NotesFlushed
from tests.support.builders import calls, requested, results, talk, user
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import (
    EmptySummariser,
    GoodSummariser,
    LongerThanSourceSummariser,
    RaisingSummariser,
    RecordingSummariser,
    SlowSummariser,
    TruncatedSummariser,
)

LONG = "word " * 40


OPENED: list[Runner] = []


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


class Desk:
    """A conversation of ``turns`` long turns, with a log in memory to look into."""

    def __init__(self, summariser: Summariser | None = None, turns: int = 10) -> None:
        self.log = MemoryLog()
        self.core = core_of(self.log, summariser=summariser)
        self.runner = Runner()
        OPENED.append(self.runner)
        self.conversation = ConversationMemory(self.core, "t", self.runner)
        if turns:
            self.conversation.append(long_talk(turns))

    @property
    def events(self) -> list[Event]:
        return self.log.streams.get("t", [])

    def shown(self) -> object:
        context = self.conversation.context()
        return context.system, context.messages, context.tokens

    def compact(self, focus: str | None = None) -> CompactionResult:
        return self.conversation.compact(focus=focus)


def long_talk(turns: int) -> list[dict[str, object]]:
    return [{"role": m.role, "content": f"{m.content} {LONG}"} for m in talk(turns)]


def test_a_performed_compaction_says_what_it_freed_and_kept() -> None:
    desk = Desk()
    before = desk.conversation.context().tokens
    result = desk.compact()
    assert result.outcome == "performed"
    assert result.success
    assert result.freed == result.tokens_before - result.tokens_after > 0
    assert (result.messages_covered, result.messages_kept) == (14, 6)
    assert result.summariser == "good"
    context = desk.conversation.context()
    assert context.summary is not None
    assert context.summary.summary_id == result.summary_id
    assert context.tokens < before


def test_requested_and_performed_are_recorded_alike() -> None:
    desk = Desk()
    desk.compact(focus=" the parser ")
    asked, noted, done = desk.events[-3:]
    assert isinstance(asked, CompactionRequested)
    assert isinstance(noted, NotesFlushed)
    assert isinstance(done, CompactionPerformed)
    assert asked.coverage == done.coverage
    assert asked.source_digest == done.source_digest
    assert (asked.trigger, asked.focus, done.focus) == ("manual", "the parser", "the parser")


def test_the_summariser_gets_exactly_what_is_covered() -> None:
    recording = RecordingSummariser()
    desk = Desk(recording)
    desk.compact(focus="the parser")
    [request] = recording.requests
    done = desk.events[-1]
    assert isinstance(done, CompactionPerformed)
    assert [m.position for m in request.messages] == list(range(done.coverage.stop))
    assert (request.previous, request.focus) == (None, "the parser")


def test_a_second_compaction_hands_over_the_first_summary_and_supersedes_it() -> None:
    recording = RecordingSummariser()
    desk = Desk(recording)
    first = desk.compact()
    desk.conversation.append(long_talk(5))
    second = desk.compact()
    request = recording.requests[1]
    assert request.previous == "Covers messages 0-13."
    assert [m.position for m in request.messages] == list(range(14, 24))
    assert desk.events[-1] == SummarySuperseded(
        summary_id=str(first.summary_id), by=str(second.summary_id)
    )
    assert second.messages_covered == 24


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_few_messages_are_nothing_to_do_and_no_model_is_asked(turns: int) -> None:
    recording = RecordingSummariser()
    desk = Desk(recording, turns)
    result = desk.compact()
    assert (result.outcome, result.success, result.freed) == ("nothing_to_do", True, 0)
    assert result.reason == "keep_last"
    assert recording.requests == []


def test_nothing_new_since_the_last_compaction_is_nothing_to_do() -> None:
    recording = RecordingSummariser()
    desk = Desk(recording)
    desk.compact()
    count = len(desk.events)
    result = desk.compact()
    assert (result.outcome, result.freed) == ("nothing_to_do", 0)
    assert len(recording.requests) == 1
    assert len(desk.events) == count


FAILING: list[tuple[Summariser, str]] = [
    (RaisingSummariser("overloaded"), "overloaded"),
    (EmptySummariser(), "empty"),
    (TruncatedSummariser(), "incomplete"),
    (LongerThanSourceSummariser(), "not_smaller"),
]


@pytest.mark.parametrize(("summariser", "reason"), FAILING, ids=[r for _, r in FAILING])
def test_a_failure_is_in_the_result_and_the_context_stays_as_it_was(
    summariser: Summariser, reason: str
) -> None:
    desk = Desk(summariser)
    before = desk.shown()
    result = desk.compact()
    assert (result.outcome, result.reason, result.success) == ("failed", reason, False)
    assert result.tokens_before == result.tokens_after
    assert result.detail
    assert desk.shown() == before
    failed = desk.events[-1]
    assert isinstance(failed, CompactionFailed)
    assert failed.reason == reason


class Broken:
    """A summariser of the user's own, with a fault."""

    name = "broken"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        del request
        raise KeyError("no such thing")


def test_any_exception_of_a_summariser_is_a_failure_that_names_it() -> None:
    desk = Desk(Broken())
    result = desk.compact()
    assert (result.outcome, result.reason) == ("failed", "error")
    assert "KeyError" in result.detail


def test_a_failed_compaction_does_not_block_the_next() -> None:
    desk = Desk(RaisingSummariser())
    assert desk.compact().outcome == "failed"
    healthy = Desk(turns=0)
    healthy.log.streams["t"] = desk.events
    assert healthy.compact().outcome == "performed"


def test_a_running_compaction_is_told_as_such() -> None:
    desk = Desk()
    desk.log.streams["t"].append(requested(8))
    result = desk.compact()
    assert (result.outcome, result.reason, result.success) == ("in_flight", "in_flight", False)
    assert len(desk.events) == 21


def test_what_is_appended_while_the_model_writes_is_kept() -> None:
    async def scene() -> tuple[Desk, CompactionResult]:
        slow = SlowSummariser()
        desk = Desk(slow)
        task = asyncio.create_task(attempt(desk).run())
        await slow.started.wait()
        await asyncio.to_thread(
            desk.conversation.append, [user("meanwhile"), calls("a"), results("a")]
        )
        slow.release.set()
        return desk, await task

    desk, result = asyncio.run(scene())
    assert result.outcome == "performed"
    assert "meanwhile" in str(desk.conversation.context().messages)
    assert desk.log.load("t").state.length == 23
    desk.runner.close()


def attempt(desk: Desk) -> CompactionAttempt:
    return manual_attempt(desk.core, "t", Demand(), Extras())


def test_a_cancelled_compaction_is_recorded_as_failed() -> None:
    async def scene() -> Desk:
        slow = SlowSummariser()
        desk = Desk(slow)
        task = asyncio.create_task(attempt(desk).run())
        await slow.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return desk

    desk = asyncio.run(scene())
    failed = desk.events[-1]
    assert isinstance(failed, CompactionFailed)
    assert failed.reason == "cancelled"


def test_a_compaction_that_was_overtaken_meanwhile_does_not_count() -> None:
    async def scene() -> tuple[Desk, CompactionResult]:
        slow = SlowSummariser()
        desk = Desk(slow)
        task = asyncio.create_task(attempt(desk).run())
        await slow.started.wait()
        [asked] = [e for e in desk.events if isinstance(e, CompactionRequested)]
        desk.events.append(CompactionFailed(attempt_id=asked.attempt_id, reason="abandoned"))
        slow.release.set()
        return desk, await task

    desk, result = asyncio.run(scene())
    assert (result.outcome, result.reason) == ("failed", "overtaken")
    assert [e for e in desk.events if isinstance(e, CompactionPerformed)] == []
    # One end for one attempt: it was given up already, and is not given up twice.
    assert len([e for e in desk.events if isinstance(e, CompactionFailed)]) == 1


def test_a_broken_log_is_raised() -> None:
    desk = Desk()
    desk.log.broken = True
    with pytest.raises(LogError):
        desk.compact()


def test_the_digest_of_the_source_depends_on_its_texts() -> None:
    digests: set[str] = set()
    for word in ("one", "two", "one"):
        desk = Desk(GoodSummariser(), turns=0)
        desk.conversation.append([{"role": "user", "content": word}, *long_talk(10)])
        desk.compact()
        done = desk.events[-1]
        assert isinstance(done, CompactionPerformed)
        digests.add(done.source_digest)
    assert len(digests) == 2
