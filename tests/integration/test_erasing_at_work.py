"""Erasing while others read, write and summarise, and after a crash."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import refold
from refold.application.api.memory import Memory
from refold.application.ports.conversation_log import LoggedEvent
from refold.infrastructure.event_store.erased_rows import PENDING
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.files.log_place import derived_path
from refold.infrastructure.projection_store.read_models import SQLiteViews
from tests.support.erasing_scenes import SECRET, Quoting, holding, is_sound, opened, talk
from tests.support.fake_summarisers import HeldSummariser


def test_a_summariser_that_answers_after_the_erasure_is_refused(folder: Path) -> None:
    held = HeldSummariser(Quoting())
    with opened(folder, summariser=held, window=100_000) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 30, [1])
        results: list[str] = []
        late = threading.Thread(target=lambda: results.append(conversation.compact().reason))
        late.start()
        assert held.started.wait(20)
        conversation.erase(2)
        held.release()
        late.join(20)
        assert results == ["overtaken"]
        assert holding(folder) == {}
        assert {row.outcome for row in conversation.compactions()} == {"failed"}
        is_sound(memory, conversation)


def test_erasing_works_for_asyncio_as_well(folder: Path) -> None:
    async def erase() -> None:
        async with refold.aopen(folder / "a.db") as memory:
            conversation = memory.conversation("t")
            await conversation.append({"role": "user", "content": SECRET})
            assert (await conversation.erase(0)).complete
            assert holding(folder) == {}
            assert (await memory.erase_conversation("t")).changed

    asyncio.run(erase())


@pytest.mark.slow
def test_a_reader_in_the_way_is_told_and_the_rest_is_done_later(folder: Path) -> None:
    with opened(folder) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 3, [1])
        with closing(sqlite3.connect(folder / "a.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM stored_events").fetchall()
            report = conversation.erase(2)
            assert not report.complete
            assert conversation.read(2).erased
        assert conversation.erase(2).complete
        assert holding(folder) == {}


def test_a_log_that_another_program_checkpoints_is_not_truncated_by_an_erasure(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ahead = folder / "a.db-wal"
    with refold.open(folder / "a.db", checkpoints=False) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 3, [1])
        before = ahead.stat().st_size
        assert not conversation.erase(2).complete
        assert ahead.stat().st_size >= before > 0
        assert "another program checkpoints this log" in caplog.text
        with refold.open(folder / "a.db") as other:
            assert other.conversation("t").erase(2).complete
        assert ahead.stat().st_size < before
    assert holding(folder) == {}


@pytest.mark.slow
def test_what_a_dead_process_left_is_removed_when_the_log_is_opened(folder: Path) -> None:
    code = """
import os, sys, refold
from refold.infrastructure.event_store.erased_rows import StreamEraser
memory = refold.open(sys.argv[1])
conversation = memory.conversation("t")
conversation.append([{"role": "user", "content": sys.argv[2]}, {"role": "user", "content": "more"}])
conversation.messages()
StreamEraser.finish = lambda *_: os._exit(9)
conversation.erase(0)
"""
    place = str(folder / "a.db")
    died = subprocess.run([sys.executable, "-c", code, place, SECRET], check=False)
    assert died.returncode == 9
    assert holding(folder)
    opened(folder).close()
    assert holding(folder) == {}
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute(f"SELECT count(*) FROM {PENDING}").fetchone() == (0,)


def test_another_memory_that_has_it_open_shows_it_no_more(folder: Path, memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 3, [1])
    with opened(folder) as other:
        mine = other.conversation("t")
        assert SECRET in str(mine.context().messages)
        assert SECRET in str(mine.messages())
        conversation.erase(2)
        assert SECRET not in str(mine.context().messages)
        assert SECRET not in str(mine.messages())
        assert mine.explain(2, 3)[0].fate == "erased"
        assert other.verify().ok
    assert holding(folder) == {}


def test_what_another_memory_erased_is_no_damage_of_read_models_in_memory(folder: Path) -> None:
    key = b"k" * 32
    with opened(folder, encryption_key=key) as one, opened(folder, encryption_key=key) as other:
        talk(one.conversation("t"), 3, [1])
        assert len(other.conversations()) == 1
        one.conversation("t").erase(2)
        assert other.verify().damage == ()
        assert SECRET not in str(other.conversation("t").messages())


class InterruptedLog(SQLiteLog):
    """Something happens while it is being scanned, once."""

    between: Callable[[], None] | None = None

    def scan(self, after: int = 0) -> Iterator[LoggedEvent]:
        for event in super().scan(after):
            yield event
            between, self.between = self.between, None
            if between is not None:
                between()


def test_read_models_that_were_filled_while_it_was_erased_are_filled_again(
    folder: Path, memory: Memory
) -> None:
    conversation = memory.conversation("t")
    conversation.append([{"role": "user", "content": f"{SECRET} {n}"} for n in range(3)])
    erasing = threading.Thread(target=conversation.erase, args=([0, 1, 2],))

    def erase() -> None:
        # Rows were read from the log; it is erased, and the erasing one waits to drop the file.
        erasing.start()
        while conversation.version < 6:
            time.sleep(0.01)

    log = InterruptedLog(folder / "a.db")
    log.between = erase
    views = SQLiteViews(derived_path(folder / "a.db", "views"), log)
    try:
        assert SECRET not in str([row.text for row in views.messages("t", 0, 9)])
        erasing.join(20)
        assert SECRET not in str([row.text for row in views.messages("t", 0, 9)])
        assert holding(folder) == {}
    finally:
        views.close()
        log.close()


@pytest.mark.slow
def test_processes_that_go_on_reading_and_writing_are_not_in_the_way(
    folder: Path, memory: Memory
) -> None:
    code = """
import sys, refold
with refold.open(sys.argv[1], window=3_000) as memory:
    conversation = memory.conversation("t")
    for n in range(10_000):
        conversation.append({"role": "user", "content": f"meanwhile {n}"})
        conversation.context()
        conversation.messages(-5)
        shown = "Geheimnis" in str(conversation.messages(0, 3))
        print(shown, flush=True)
"""
    conversation = memory.conversation("t")
    talk(conversation, 20, [1])
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder / "a.db")], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        report = conversation.erase(2)
        while not report.complete:
            report = conversation.erase(2)
        assert holding(folder) == {}
        # What it said while it was erased waits in the pipe.
        assert any(other.stdout.readline() == "False\n" for _ in range(500))
        assert other.stdout.readline() == "False\n"
        assert holding(folder) == {}
        other.terminate()
    assert holding(folder) == {}
    assert memory.verify().ok
