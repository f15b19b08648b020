"""A log that cannot be written for a while costs no request that fits, and no summary that was paid for."""

import asyncio
import logging
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

import refold
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import CompactionResult
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogBusy, LogError, LogFull, LogNotWritable
from refold.application.ports.conversation_log import Decision
from refold.application.ports.summariser import (
    NotesDraft,
    NotesRequest,
    SummaryDraft,
    SummaryRequest,
)
from refold.domain.events import Event
from refold.infrastructure.event_store.store import SQLiteLog

PAIR = [
    {"role": "user", "content": "hello world " * 60},
    {"role": "assistant", "content": "ok " * 60},
]
TALK = [*PAIR * 31, {"role": "user", "content": "next?"}]
WINDOW = 8_000
QUICKLY = 12
"""Seconds, on a busy machine; far less than the 30 that a write waits for the log."""


class Paid:
    """A summariser that does something to the log before it answers."""

    name = "paid"

    def __init__(self, then: Callable[[], None] = lambda: None, fails: bool = False) -> None:
        self.calls = 0
        self.notes = 0
        self._then = then
        self._fails = fails

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        self.calls += 1
        self._then()
        if self._fails:
            raise refold.SummariserError("refused", "no")
        return SummaryDraft(text="what was said", complete=True, model="m", prompt_fingerprint="1")


class Holder:
    """Another program that holds the log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: sqlite3.Connection | None = None

    def hold(self) -> None:
        if self._held is None:
            self._held = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._held.execute("BEGIN IMMEDIATE")

    def let_go(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


@pytest.fixture
def holder(path: Path) -> Iterator[Holder]:
    holder = Holder(path)
    yield holder
    holder.let_go()


class Refusals:
    """What writes to a log end in."""

    error: LogError | None = None


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> Refusals:
    """A disk that is full, or a log that cannot be written, when a test says so."""
    refusals, write = Refusals(), SQLiteLog.transact

    def transact(
        self: SQLiteLog, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        if refusals.error is not None:
            raise refusals.error
        return write(self, thread_id, decide, at=at)

    monkeypatch.setattr(SQLiteLog, "transact", transact)
    return refusals


def quickly(ask: Callable[[], refold.Context]) -> refold.Context:
    began = time.monotonic()
    context = ask()
    assert time.monotonic() - began < QUICKLY
    assert context.tokens <= context.budget.limit
    return context


def outcomes(conversation: ConversationMemory) -> list[str]:
    return [row.outcome for row in conversation.compactions()]


@pytest.mark.slow
def test_a_summary_that_another_program_keeps_out_is_written_by_the_next_context(
    path: Path, holder: Holder, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[CompactionResult] = []
    paid = Paid(holder.hold)
    with refold.open(path, window=WINDOW, summariser=paid, on_compaction=told.append) as memory:
        conversation = memory.conversation("t")
        conversation.append(TALK)
        with caplog.at_level(logging.WARNING, "refold"):
            context = quickly(conversation.context)
        assert "the summary cannot be written yet" in caplog.text
        [result] = context.compactions
        assert (result.outcome, result.reason) == ("waiting", "log_busy")
        assert [(row.outcome, row.reason) for row in conversation.compactions()] == [
            ("waiting", "log_busy")
        ]
        again = quickly(conversation.context)
        assert [one.outcome for one in again.compactions] == ["waiting"]
        assert paid.calls == 1
        holder.let_go()
        context = conversation.context()
        assert [one.outcome for one in context.compactions] == ["performed"]
        assert context.tokens < 2_400
        assert outcomes(conversation) == ["performed"]
        assert paid.calls == 1
        assert [one.outcome for one in told] == ["waiting", "performed"]
        assert told[1] == context.compactions[0]
        assert memory.verify().ok


@pytest.mark.slow(but=["compact", "async close"])
@pytest.mark.parametrize("act", ["append", "pin", "compact", "close", "async close"])
def test_whatever_writes_next_writes_it(path: Path, holder: Holder, act: str) -> None:
    paid = Paid(holder.hold)
    memory = refold.open(path, window=WINDOW, summariser=paid)
    conversation = memory.conversation("t")
    conversation.append(TALK)
    conversation.context()
    holder.let_go()
    match act:
        case "append":
            stored = conversation.append({"role": "assistant", "content": "yes"})
            assert stored.positions == (63,)
        case "pin":
            assert conversation.pin("keep this")
        case "compact":
            assert conversation.compact().outcome == "nothing_to_do"
        case _:
            memory.close()
            memory = refold.open(path, window=WINDOW, summariser=paid)
            conversation = memory.conversation("t")
    assert outcomes(conversation) == ["performed"]
    assert paid.calls == 1
    assert conversation.context().summary is not None
    assert memory.verify().ok
    memory.close()


def test_what_was_never_written_is_told_and_settled(
    path: Path, holder: Holder, caplog: pytest.LogCaptureFixture
) -> None:
    with refold.open(path, window=WINDOW, summariser=Paid(holder.hold), close_wait=0.1) as memory:
        conversation = memory.conversation("t")
        conversation.append(TALK)
        conversation.context()
    assert "could not be written and is lost" in caplog.text
    holder.let_go()
    with refold.open(path, window=WINDOW, summariser=Paid()) as memory:
        conversation = memory.conversation("t")
        conversation.context()
        assert outcomes(conversation) == ["failed"]
        assert conversation.compact(force=True).outcome == "performed"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (LogFull("the disk is full"), "log_full"),
        (LogNotWritable("read-only"), "log_not_writable"),
        (LogError("EIO"), "log_failed"),
    ],
)
def test_the_same_where_the_log_cannot_be_written_at_all(
    path: Path, refusals: Refusals, error: LogError, reason: str
) -> None:
    def refuse() -> None:
        refusals.error = error

    paid = Paid(refuse)
    with refold.open(path, window=WINDOW, summariser=paid) as memory:
        conversation = memory.conversation("t")
        conversation.append(TALK)
        for _ in range(2):
            [result] = quickly(conversation.context).compactions
            assert (result.outcome, result.reason) == ("waiting", reason)
        refusals.error = None
        assert [one.outcome for one in conversation.context().compactions] == ["performed"]
        assert paid.calls == 1
        # From the beginning on nothing can be written: nothing is asked for in vain.
        conversation.append(PAIR * 20)
        refusals.error = error
        [result] = quickly(conversation.context).compactions
        assert (result.outcome, result.reason) == ("failed", reason)
        assert paid.calls == 1


def test_an_end_that_could_not_be_recorded_blocks_nobody(path: Path, holder: Holder) -> None:
    once = iter([holder.hold])
    paid = Paid(lambda: next(once, lambda: None)(), fails=True)
    with refold.open(path, window=WINDOW, summariser=paid) as memory:
        conversation = memory.conversation("t")
        conversation.append(TALK)
        [result] = quickly(conversation.context).compactions
        assert (result.outcome, result.reason) == ("failed", "refused")
        holder.let_go()
        conversation.context()
        assert outcomes(conversation) == ["failed"]
        assert memory.conversation("t").compact(force=True).outcome == "failed"


def test_a_request_that_does_not_fit_still_raises(path: Path, refusals: Refusals) -> None:
    with refold.open(path, window=WINDOW) as memory:
        conversation = memory.conversation("t")
        conversation.append(TALK + PAIR * 10)
        refusals.error = LogFull("the disk is full")
        with pytest.raises(LogFull):
            conversation.context()
        refusals.error = None
        assert [one.outcome for one in conversation.context().compactions] == ["performed"]


def test_a_message_that_was_erased_meanwhile_is_in_no_summary_that_waited(
    path: Path, refusals: Refusals
) -> None:
    def refuse() -> None:
        refusals.error = LogFull("the disk is full")

    with refold.open(path, window=WINDOW, summariser=Paid(refuse)) as memory:
        conversation = memory.conversation("t")
        conversation.append(TALK)
        conversation.context()
        refusals.error = None
        conversation.erase(0)
        conversation.append({"role": "assistant", "content": "yes"})
        assert outcomes(conversation) == ["failed"]
        assert conversation.context(at=conversation.version).summary is None
        assert memory.verify().ok


@pytest.mark.slow
def test_notes_of_a_model_are_kept_as_well(path: Path, holder: Holder) -> None:
    class Noting(Paid):
        async def take_notes(self, request: NotesRequest) -> NotesDraft:
            self.notes += 1
            holder.hold()
            return NotesDraft(
                notes=(refold.Note(kind="fact", text="the boat is green", positions=(0,)),),
                model="m",
                prompt_fingerprint="1",
            )

    noting = Noting()
    with refold.open(path, window=WINDOW, summariser=noting) as memory:
        conversation = memory.conversation("t")
        conversation.append(TALK)
        quickly(conversation.context)
        holder.let_go()
        conversation.context()
        assert [note.text for note in conversation.notes()] == ["the boat is green"]
        assert noting.notes == 1


def test_the_loop_of_a_service_goes_on_meanwhile(path: Path, holder: Holder) -> None:
    async def serve() -> None:
        async with refold.aopen(path, window=WINDOW, summariser=Paid(holder.hold)) as memory:
            conversation = memory.conversation("t")
            await conversation.append(TALK)
            began = time.monotonic()
            context = await conversation.context()
            assert time.monotonic() - began < QUICKLY
            assert [one.outcome for one in context.compactions] == ["waiting"]
            holder.let_go()
            context = await conversation.context()
            assert [one.outcome for one in context.compactions] == ["performed"]

    asyncio.run(serve())


@pytest.mark.slow
def test_an_append_waits_for_the_log_as_long_as_before(
    path: Path, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refold.infrastructure.event_store.recorder.LOCK_TIMEOUT", 2)
    with refold.open(path, window=WINDOW) as memory:
        conversation = memory.conversation("t")
        conversation.append(PAIR)
        holder.hold()
        began = time.monotonic()
        with pytest.raises(LogBusy):
            conversation.append(PAIR)
        assert time.monotonic() - began >= 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=900k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_disk_that_is_really_full_costs_no_request_that_fits(small_disk: Path) -> None:
    filler = small_disk / "filler"

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 512)
            except OSError:
                pass

    paid = Paid(fill)
    with refold.open(small_disk / "agent.db", window=WINDOW, summariser=paid) as memory:
        conversation = memory.conversation("t")
        conversation.append(TALK)
        assert [one.outcome for one in quickly(conversation.context).compactions] == ["waiting"]
        assert [one.outcome for one in quickly(conversation.context).compactions] == ["waiting"]
        filler.unlink()
        assert [one.outcome for one in conversation.context().compactions] == ["performed"]
        assert paid.calls == 1
        assert memory.verify().ok
