"""Conversations too long to be held in memory: what is read from the log is what was folded from it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.application.conversation.entries import LongEntries, entry_at
from refold.application.conversation.loaded import LoadedConversation, Window, project
from refold.domain.errors import RefoldError
from refold.domain.evolve import fold
from refold.infrastructure.event_store.recorder import LogRecorder
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.effort import tenth_unless_all

LIMITS = {
    "refold.domain.evolve.REMEMBERED": 16,
    "refold.infrastructure.event_store.stored_messages.REMEMBERED": 16,
    "refold.infrastructure.event_store.stored_messages.LARGEST_WINDOW": 0,
    "refold.infrastructure.event_store.stored_messages.BATCH": 8,
    "refold.infrastructure.event_store.stream_reads.BATCH": 8,
    "refold.infrastructure.event_store.conversation_loader.REMEMBERED": 16,
    "refold.infrastructure.event_store.conversation_loader.MOST_HELD": 20,
    "refold.infrastructure.event_store.conversation_loader.LARGEST_WINDOW": 0,
    "refold.infrastructure.event_store.conversation_loader.BATCH": 8,
    "refold.infrastructure.event_store.conversation_loader.EVERY": 12,
}
"""So small that a short history is a long one."""

moves = st.one_of(
    st.tuples(st.sampled_from(("talk", "talk", "tools", "reopen")), st.integers(1, 12)),
    st.tuples(st.sampled_from(("compact", "revert", "erase", "pin", "label")), st.integers(0, 80)),
)


@pytest.fixture(autouse=True, scope="module")
def small_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in LIMITS.items():
            patch.setattr(name, value)
        yield


def said(at: int, kind: str) -> list[dict[str, Any]]:
    words = f"message {at} says what it says, never more. " * 3
    if kind == "talk":
        return [{"role": "user", "content": words}, {"role": "assistant", "content": words}]
    used = {"type": "tool_use", "id": f"c{at}", "name": "look", "input": {"at": words}}
    found = {"type": "tool_result", "tool_use_id": f"c{at}", "content": words}
    return [{"role": "assistant", "content": [used]}, {"role": "user", "content": [found]}]


def done(conversation: Any, kind: str, number: int) -> None:
    length = len(conversation.messages())
    match kind:
        case "talk" | "tools":
            for at in range(length, length + 2 * number, 2):
                conversation.append(said(at, kind))
        case "compact":
            conversation.compact(force=True)
        case "revert":
            conversation.revert_compaction()
        case "erase":
            conversation.erase(number)
        case "pin":
            conversation.pin(number)
        case _:
            conversation.label(str(number))


def replayed(log: SQLiteLog) -> LoadedConversation:
    version = log.load("t").state.version
    events = [logged.event for logged in log.read("t", 1, version)]
    return LoadedConversation("t", fold(events), project(Window(), events))


@tenth_unless_all(12)
@given(st.lists(moves, min_size=1, max_size=6))
def test_whatever_happens_the_log_gives_what_a_replay_gives(drawn: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        memory = refold.open(path, window=3_000, scrub_megabytes=0)
        follower = SQLiteLog(path)
        for kind, number in [("talk", 12), *drawn]:
            if kind == "reopen":
                memory.close()
                memory = refold.open(path, window=3_000, scrub_megabytes=0)
            with suppress(RefoldError):  # Not everything that is drawn can be done.
                done(memory.conversation("t"), kind, number)
            expected, fresh = replayed(follower), SQLiteLog(path)
            assert follower.load("t") == expected
            assert fresh.load("t") == expected
            fresh.close()
        context = memory.conversation("t").context()
        assert context.tokens <= context.budget.limit
        assert not any(memory.verify().damage)
        follower.close()
        memory.close()


def test_a_long_conversation_is_read_from_its_newest_messages_on(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", window=100_000) as memory:
        conversation = memory.conversation("t")
        for at in range(0, 200, 2):
            conversation.append(said(at, "talk"))
    log = SQLiteLog(tmp_path / "a.db")
    entries = log.load("t").window.entries
    assert isinstance(entries, LongEntries)
    assert len(entries.held) <= 20
    assert [entry.position for entry in entries] == list(range(200))
    assert [entry.position for entry in reversed(entries)] == list(range(199, -1, -1))
    assert len(entries) == 200
    assert entries[3].position == 3
    assert entries[-1].position == 199
    assert [entry.position for entry in entries[:2]] == [0, 1]
    found = entry_at(entries, 77)
    assert found is not None
    assert found.position == 77
    log.close()


def test_a_label_before_everything_else_does_not_have_all_of_it_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refold.open(tmp_path / "a.db", window=100_000) as memory:
        conversation = memory.conversation("t")
        conversation.append(said(0, "talk"))
        conversation.label("long")
        for at in range(2, 200, 2):
            conversation.append(said(at, "talk"))
    read, select = list[object](), LogRecorder.rows_of

    def counted(recorder: LogRecorder, *which: Any) -> list[tuple[int, str, bytes]]:
        rows = select(recorder, *which)
        read.extend(rows)
        return rows

    log = SQLiteLog(tmp_path / "a.db")
    with monkeypatch.context() as patch:
        patch.setattr(LogRecorder, "rows_of", counted)
        entries = log.load("t").window.entries
    assert len(read) < 100
    assert [entry.position for entry in entries] == list(range(200))
    log.close()


def test_the_summary_of_a_long_conversation_says_what_was_only_looked_through(
    tmp_path: Path,
) -> None:
    rule = {"role": "user", "content": "Please never push to the main branch without asking me."}
    with refold.open(tmp_path / "a.db", window=6_000) as memory:
        conversation = memory.conversation("t")
        for at in range(0, 400, 2):
            answer = {"role": "assistant", "content": f"number {at} is noted down here " * 4}
            question = {"role": "user", "content": f"here is number {at} of them all " * 4}
            conversation.append([rule if at == 200 else question, answer])
        context = conversation.context()
        assert context.summary is not None
        assert "were only looked through by code" in context.summary.text
        assert "refold://t/0" in context.summary.text
        rules = [line.text for line in context.summary.ledger if line.kind == "rule"]
        assert rules == [rule["content"]]
        coverage = context.summary.coverage
        assert {fate.fate for fate in conversation.explain(0, coverage.stop)} <= {
            "summarised",
            "protected",
        }
        assert conversation.read(100).position == 100
