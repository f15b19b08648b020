"""Durable notes: once per cycle on every path, by a model or by code, and never in anybody's way."""

import asyncio
import dataclasses
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Literal

import pytest

from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.compaction.fit_to_budget import settle
from refold.application.compaction.next_request import notes_from
from refold.application.compaction.on_demand import Demand, manual_attempt
from refold.application.conversation.loaded import LoadedConversation
from refold.application.erasure.erasing import erase
from refold.application.errors import LogFull
from refold.application.ports.conversation_log import Decision
from refold.application.ports.summariser import (
    NotesDraft,
    NotesRequest,
    Summariser,
    SummaryDraft,
    SummaryRequest,
)
from refold.application.runtime.core import Core, Extras
from refold.application.runtime.memory_settings import NotesSettings
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import CompactionPerformed, CompactionRequested, Event
from refold.domain.notes import Note, NotesFlushed
from refold.domain.value import replace
from tests.support.builders import assistant, user
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import EmptySummariser, SlowSummariser
from tests.support.note_takers import (
    HangingNoteTaker,
    NotingSummariser,
    RaisingNoteTaker,
    SilentNoteTaker,
    overloaded,
)

RULE = "Please never push to the main branch."


class Desk:
    """A conversation with a log in memory to look into."""

    def __init__(
        self,
        summariser: Summariser | None = None,
        *,
        by: Literal["auto", "ledger", "off"] = "auto",
        policy: CompactionPolicy | None = None,
    ) -> None:
        self.log = MemoryLog()
        core = core_of(self.log, summariser=summariser, policy=policy)
        self.use(
            dataclasses.replace(core, settings=replace(core.settings, notes=NotesSettings(by=by)))
        )

    def use(self, core: Core) -> None:
        self.core = core
        self.conversation = ConversationMemory(core, "t", Runner())

    def talk(self, turns: int = 10, said: str = RULE) -> None:
        long = "word " * 40
        for n in range(turns):
            self.conversation.append([user(f"{said} {long}{n}"), assistant(f"Done {n}. {long}")])

    def compact(self) -> None:
        asyncio.run(manual_attempt(self.core, "t", Demand(), Extras()).run())

    @property
    def events(self) -> list[Event]:
        return self.log.streams["t"]

    @property
    def flushes(self) -> list[NotesFlushed]:
        return [event for event in self.events if isinstance(event, NotesFlushed)]

    def order(self) -> list[type[Event]]:
        kinds = (CompactionRequested, NotesFlushed, CompactionPerformed)
        return [type(event) for event in self.events if isinstance(event, kinds)]


@pytest.fixture(params=["manual", "size"])
def path(request: pytest.FixtureRequest) -> Callable[[Desk], None]:
    def by_size(desk: Desk) -> None:
        # As if the request were larger than everything that may be sent.
        tight = desk.core.budget(Extras()).tightened(0.2)
        asyncio.run(settle(desk.core, "t", tight))

    return by_size if request.param == "size" else Desk.compact


def test_notes_are_taken_before_what_they_are_of_leaves_the_context(
    path: Callable[[Desk], None],
) -> None:
    desk = Desk()
    desk.talk()
    path(desk)
    assert desk.order()[:3] == [CompactionRequested, NotesFlushed, CompactionPerformed]
    done = next(e for e in desk.events if isinstance(e, CompactionPerformed))
    [first, *_] = desk.flushes
    assert (first.start, first.stop) == (0, done.coverage.stop)
    assert first.taken_by == "ledger"
    assert first.model_calls == 0
    assert ("constraint", RULE) in {(note.kind, note.text) for note in first.notes}


def test_once_per_cycle_however_often_a_compaction_fails() -> None:
    desk = Desk(EmptySummariser())
    desk.talk()
    desk.compact()
    desk.compact()
    assert len(desk.flushes) == 1


def test_the_next_cycle_notes_what_the_last_one_did_not_reach() -> None:
    desk = Desk()
    desk.talk()
    desk.compact()
    desk.talk(said="Never touch vendor.")
    desk.compact()
    first, second = desk.flushes
    assert second.start == first.stop
    assert RULE not in {note.text for note in second.notes}
    assert "Never touch vendor." in {note.text for note in second.notes}


def test_what_a_failed_attempt_noted_and_another_covered_further_is_made_up_for() -> None:
    taker = NotingSummariser()
    desk = Desk(taker)
    desk.talk(8)
    desk.use(dataclasses.replace(desk.core, summariser=FailingNoter()))
    desk.compact()
    desk.use(dataclasses.replace(desk.core, summariser=taker))
    desk.talk(4)
    desk.compact()
    desk.talk(4)
    desk.compact()
    first, second = desk.flushes
    assert second.start == first.stop
    positions = [m.position for m in taker.noted[-1].messages]
    assert positions == list(range(second.start, second.stop))
    covered = next(e for e in desk.events if isinstance(e, CompactionPerformed))
    assert second.start < covered.coverage.stop, "what was covered unnoted is read from the log"


class FailingNoter(NotingSummariser):
    """Takes notes, and writes no summary."""

    name = "failing"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        del request
        raise overloaded()


def test_a_model_takes_them_where_it_can() -> None:
    taker = NotingSummariser(Note(kind="decision", text="Port 5433.", positions=(2, 999)))
    desk = Desk(taker)
    desk.talk()
    desk.compact()
    [flush] = desk.flushes
    assert flush.notes == (Note(kind="decision", text="Port 5433.", positions=(2,)),)
    assert (flush.taken_by, flush.model, flush.model_calls) == ("noting", "noting-1", 2)
    [request] = taker.noted
    assert [m.position for m in request.messages] == list(range(flush.start, flush.stop))
    done = next(e for e in desk.events if isinstance(e, CompactionPerformed))
    assert done.model_calls == 1, "calls for notes are not the compaction's"


def test_a_model_that_has_nothing_to_save_is_taken_at_its_word() -> None:
    desk = Desk(SilentNoteTaker())
    desk.talk()
    desk.compact()
    [flush] = desk.flushes
    assert (flush.notes, flush.taken_by, flush.reason) == ((), "noting", "")


@pytest.mark.parametrize(
    ("error", "reason", "calls"),
    [(overloaded(), "overloaded", 3), (RuntimeError("odd"), "error", 1)],
)
def test_where_the_model_fails_code_steps_in(error: Exception, reason: str, calls: int) -> None:
    desk = Desk(RaisingNoteTaker(error))
    desk.talk()
    desk.compact()
    [flush] = desk.flushes
    assert (flush.taken_by, flush.reason, flush.model_calls) == ("ledger", reason, calls)
    assert RULE in {note.text for note in flush.notes}
    assert isinstance(desk.events[-1], CompactionPerformed)


def patient(desk: Desk, seconds: float) -> None:
    settings = desk.core.settings
    notes = replace(settings.notes, timeout=seconds)
    desk.use(dataclasses.replace(desk.core, settings=replace(settings, notes=notes)))


def test_a_model_that_never_answers_is_not_waited_for_longer_than_the_time_out(
    path: Callable[[Desk], None], caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(taker := HangingNoteTaker())
    patient(desk, 0.05)
    desk.talk()
    began = time.monotonic()
    path(desk)
    assert time.monotonic() - began < 2
    [flush] = desk.flushes
    assert (flush.taken_by, flush.reason, flush.model_calls) == ("ledger", "timeout", 1)
    assert [note.kind for note in flush.notes] == ["constraint"]
    assert len(taker.noted) == 1, "one call in a cycle"
    warned = [r.getMessage() for r in caplog.records if "notes_timeout" in r.getMessage()]
    assert len(warned) == 1
    assert "code takes notes: noting gave none in time" in warned[0]


class StubbornNoteTaker(NotingSummariser):
    """Does not let itself be cancelled."""

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        for _ in range(20):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)
        return await super().take_notes(request)


def test_a_call_that_cannot_be_cancelled_does_not_hold_up_the_turn() -> None:
    desk = Desk(StubbornNoteTaker())
    patient(desk, 0.05)
    desk.talk()

    async def act() -> float:
        began = time.monotonic()
        await manual_attempt(desk.core, "t", Demand(), Extras()).run()
        return time.monotonic() - began

    assert asyncio.run(act()) < 1
    [flush] = desk.flushes
    assert (flush.taken_by, flush.reason) == ("ledger", "timeout")


class TakingItsTime(NotingSummariser):
    """Needs longer for a summary than for notes, and for both longer than the time-out."""

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        await asyncio.sleep(0.3)
        return await super().summarise(request)

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        await asyncio.sleep(0.15)
        return await super().take_notes(request)


def test_beside_a_summary_notes_have_as_long_as_the_summary() -> None:
    desk = Desk(TakingItsTime())
    patient(desk, 0.02)
    desk.talk()
    desk.compact()
    [flush] = desk.flushes
    assert (flush.taken_by, flush.reason) == ("noting", "")


def test_a_note_taker_that_cancels_itself_costs_nothing_but_its_notes() -> None:
    class Cancelling(NotingSummariser):
        async def take_notes(self, request: NotesRequest) -> NotesDraft:
            raise asyncio.CancelledError

    desk = Desk(Cancelling())
    desk.talk()
    desk.compact()
    [flush] = desk.flushes
    assert (flush.taken_by, flush.reason) == ("ledger", "error")


@pytest.mark.parametrize(("by", "taken_by"), [("ledger", ["ledger"]), ("off", [])])
def test_settings_say_who_takes_them(by: Literal["ledger", "off"], taken_by: list[str]) -> None:
    taker = NotingSummariser()
    desk = Desk(taker, by=by)
    desk.talk()
    desk.compact()
    assert [flush.taken_by for flush in desk.flushes] == taken_by
    assert taker.noted == []


class ErasingNoteTaker(NotingSummariser):
    """Notes a message that is erased before it answers."""

    def __init__(self) -> None:
        super().__init__(Note(kind="fact", text="the secret", positions=(0,)))
        self.desk: Desk | None = None

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        assert self.desk is not None
        await asyncio.to_thread(erase, self.desk.core, "t", 0)
        return await super().take_notes(request)


def test_what_is_erased_while_notes_are_taken_is_not_noted() -> None:
    taker = ErasingNoteTaker()
    desk = Desk(taker)
    taker.desk = desk
    desk.talk()
    desk.compact()
    assert desk.flushes == []
    desk.use(dataclasses.replace(desk.core, summariser=NotingSummariser()))
    desk.compact()
    [flush] = desk.flushes
    assert [note.text for note in flush.notes] == ["noted from 0"], "the stub alone is left of it"


def test_a_cancelled_compaction_leaves_no_half_notes() -> None:
    async def act() -> None:
        running = asyncio.create_task(manual_attempt(desk.core, "t", Demand(), Extras()).run())
        while not taker.noted:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    taker = HangingNoteTaker()
    desk = Desk(taker)
    desk.talk()
    asyncio.run(act())
    assert desk.flushes == []
    assert desk.core.log.load("t").state.attempt is None


def test_what_another_process_noted_meanwhile_is_not_noted_again() -> None:
    desk = Desk()
    desk.talk()

    def meanwhile() -> None:
        desk.log.before_deciding = other

    def other() -> None:
        flush = NotesFlushed(flush_id="other", start=0, stop=14, notes=(), taken_by="ledger")
        desk.log.streams["t"].append(flush)

    # The first decision is the request; notes are the next.
    desk.log.before_deciding = meanwhile
    desk.compact()
    assert [flush.flush_id for flush in desk.flushes] == ["other"]


class ForgetfulLog(MemoryLog):
    """A log whose second decision cannot be stored."""

    decisions = 0

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        self.decisions += 1
        if self.decisions == 2:
            raise LogFull("no space left")
        return super().transact(thread_id, decide, at=at)


def test_a_log_that_fails_costs_the_notes_alone(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    desk.talk()
    log = ForgetfulLog()
    log.streams = desk.log.streams
    desk.use(dataclasses.replace(desk.core, log=log))
    desk.compact()
    assert desk.flushes == []
    assert isinstance(desk.events[-1], CompactionPerformed)
    assert "no notes were taken" in caplog.text


class BothAtOnce(SlowSummariser):
    """Writes the summary only when it was asked for notes, and these only when for the summary."""

    name = "both"

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        await asyncio.wait_for(self.started.wait(), 5)
        self.release.set()
        return await NotingSummariser().take_notes(request)


def test_while_a_model_notes_the_summary_is_written() -> None:
    """Neither waits for the other, and both have ended before the summary is recorded."""

    async def act() -> None:
        core = dataclasses.replace(desk.core, summariser=BothAtOnce())
        await asyncio.wait_for(manual_attempt(core, "t", Demand(), Extras()).run(), 10)

    desk = Desk()
    desk.talk()
    asyncio.run(act())
    assert [flush.taken_by for flush in desk.flushes] == ["both"]
    assert desk.order() == [CompactionRequested, NotesFlushed, CompactionPerformed]


def large(desk: Desk, reserve: int, soft: int) -> None:
    notes = NotesSettings(reserve_tokens=reserve, soft_tokens=soft)
    desk.use(dataclasses.replace(desk.core, settings=replace(desk.core.settings, notes=notes)))


def test_from_a_size_on_they_are_taken_without_a_compaction() -> None:
    desk = Desk()
    large(desk, 3_000, 1_000)
    desk.talk(36)
    size = desk.conversation.context().tokens
    assert 4_000 <= size < desk.core.budget(Extras()).trigger
    [flush] = desk.flushes
    assert (flush.start, flush.stop) == (0, 72)
    desk.talk(1)
    desk.conversation.context()
    assert len(desk.flushes) == 1, "once per cycle"
    desk.compact()
    assert len(desk.flushes) == 1
    desk.talk(32, "Never touch vendor.")
    desk.conversation.context()
    assert len(desk.flushes) == 2
    assert desk.flushes[1].start == 72


def test_below_that_size_nothing_is_taken() -> None:
    desk = Desk()
    large(desk, 3_000, 0)
    desk.talk(10)
    desk.conversation.context()
    assert desk.flushes == []


def test_a_size_that_a_compaction_reaches_only_is_left_to_compactions() -> None:
    desk = Desk()
    state = replace(desk.core.log.load("t").state, length=3)
    budget = desk.core.budget(Extras())
    assert notes_from(desk.core, state, budget) is None, "8,000 - 24,000 tokens"
    large(desk, 8_000 - budget.target - 1, 0)
    assert notes_from(desk.core, state, budget) == budget.target + 1
