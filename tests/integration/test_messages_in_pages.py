"""Messages are read in pages: equal to the list, in flat memory, and from one stream only."""

import gc
import tracemalloc
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.ports.conversation_log import PAGE
from refold.application.ports.read_models import MessageRow
from refold.infrastructure.event_store.recorder import LogRecorder
from refold.infrastructure.projection_store import view_answers
from refold.infrastructure.projection_store.read_models import SQLiteViews
from refold.infrastructure.projection_store.tables import Tables


def said(number: int) -> dict[str, str]:
    return {"role": "assistant" if number % 2 else "user", "content": f"{number} " + "word " * 40}


@contextmanager
def filled(path: Path, count: int, **settings: Any) -> Generator[refold.ConversationMemory]:
    with refold.open(path, background=False, **settings) as memory:
        conversation = memory.conversation("t")
        for start in range(0, count, 1_000):
            conversation.append([said(n) for n in range(start, min(count, start + 1_000))])
        yield conversation


@pytest.mark.parametrize(
    ("start", "stop"), [(0, None), (3, 1_100), (-700, None), (0, 1), (499, 502), (9, 4), (5_000, 6)]
)
def test_iterating_gives_what_the_list_has(tmp_path: Path, start: int, stop: int | None) -> None:
    with filled(tmp_path / "a.db", 1_300, window=8_000) as conversation:
        conversation.compact(force=True)
        conversation.append(said(1_300))
        conversation.erase([2, 700, 1_299])
        every = conversation.messages()
        assert [m.position for m in every] == list(range(1_301))
        assert any(m.mark for m in every)
        assert any(m.is_archived for m in every)
        assert list(conversation.iter_messages(start, stop)) == every[start:stop]
        assert conversation.messages(start, stop) == every[start:stop]


def test_equal_messages_are_stored_and_validated(tmp_path: Path) -> None:
    with filled(tmp_path / "a.db", 3) as conversation:
        for message in conversation.messages():
            fields = {name: getattr(message, name) for name in refold.StoredMessage.model_fields}
            assert refold.StoredMessage(**fields) == message


def test_a_page_has_a_bounded_number_of_rows_at_any_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, shown = list[int](), list[int]()
    rows_of, messages = LogRecorder.rows_of, SQLiteViews.messages

    def counted(recorder: LogRecorder, *which: Any) -> list[tuple[int, str, bytes]]:
        rows = rows_of(recorder, *which)
        read.append(len(rows))
        return rows

    def counted_rows(views: SQLiteViews, *which: Any) -> Sequence[MessageRow]:
        rows = messages(views, *which)
        shown.append(len(rows))
        return rows

    per_length = list[tuple[int, int]]()
    for length in (1_000, 4_000):
        with filled(tmp_path / f"{length}.db", length) as conversation:
            conversation.messages(0, 1)
            with monkeypatch.context() as patch:
                patch.setattr(LogRecorder, "rows_of", counted)
                patch.setattr(SQLiteViews, "messages", counted_rows)
                read.clear()
                shown.clear()
                first = list(islice(conversation.iter_messages(), 10))
            assert [m.position for m in first] == list(range(10))
            per_length.append((sum(read), sum(shown)))
    assert per_length[0] == per_length[1]
    assert per_length[0][0] <= PAGE + 1
    assert per_length[0][1] == 2  # The read model only says where the range begins and ends.


def test_iterating_takes_flat_memory(tmp_path: Path) -> None:
    peaks = list[int]()
    for length in (1_000, 8_000):
        with filled(tmp_path / f"{length}.db", length) as conversation:
            deque(conversation.iter_messages(), 0)
            gc.collect()
            tracemalloc.start()
            deque(conversation.iter_messages(), 0)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_an_erasure_in_the_meantime_does_not_mix_two_streams(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", background=False) as memory:
        conversation = memory.conversation("t")
        conversation.append([said(n) for n in range(2 * PAGE)])
        messages = conversation.iter_messages()
        assert next(messages).position == 0
        memory.erase_conversation("t")
        conversation.append([said(n) for n in range(3 * PAGE)])
        # The rest of the first page was read before, and nothing else is left.
        assert [m.position for m in messages] == list(range(1, PAGE))


def test_conversations_are_iterated_in_pages_of_equal_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_answers, "PAGE", 40)
    pages, page_of = list[int](), view_answers.conversations_after

    def counted(db: Tables, prefix: str, after: str | None) -> Sequence[refold.ConversationRow]:
        rows = page_of(db, prefix, after)
        pages.append(len(rows))
        return rows

    monkeypatch.setattr(view_answers, "conversations_after", counted)
    peaks = list[int]()
    for length in (100, 400):
        with refold.open(tmp_path / f"{length}.db", background=False) as memory:
            for number in range(length):
                memory.conversation(f"thread-{number}").append(said(0))
            memory.erase_conversation("thread-7")
            memory.conversation("thread-7").append(said(0))
            memory.erase_conversation("thread-9")
            rows = list(memory.iter_conversations())
            assert sorted(rows, key=repr) == sorted(memory.conversations(), key=repr)
            pages.clear()
            gc.collect()
            tracemalloc.start()
            deque(memory.iter_conversations(), 0)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert max(pages) == 40
        assert sum(pages) == length + 1  # The row of the erased stream is read as well.
    assert peaks[1] < 1.2 * peaks[0]


def test_verification_takes_little_memory_for_each_conversation(tmp_path: Path) -> None:
    peaks = dict[str, list[int]]()
    lengths = 500, 2_000
    for length in lengths:
        with refold.open(tmp_path / f"{length}.db", background=False) as memory:
            for number in range(length):
                memory.conversation(f"thread-{number}").append(said(0))
            memory.conversations()
            core = memory._core  # pyright: ignore[reportPrivateUsage]
            for name, check in (
                ("log", partial(core.keeper.check, None)),
                ("read models", lambda views=core.views: deque(views.check(), 0)),
            ):
                check()
                gc.collect()
                tracemalloc.start()
                check()
                peaks.setdefault(name, []).append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
    more = {
        name: (long - short) / (lengths[1] - lengths[0]) for name, (short, long) in peaks.items()
    }
    # The newest event of each conversation is kept, but none of its rows.
    assert more["log"] < 1_200
    assert more["read models"] < 400
