"""Logs kept as each format was written once: their contexts are the same bytes for ever."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionReverted,
    ConversationErased,
    ConversationForked,
    EventLost,
    LinesRecalled,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.frames import RequestFrameChanged
from refold.domain.notes import MemoriesChosen, NotesFlushed
from refold.infrastructure.event_store.envelope import Envelope, parse_frame
from refold.infrastructure.event_store.file_format import FORMAT_VERSION
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.fake_ports import core_of
from tests.support.golden_files import golden_json, golden_text
from tests.support.golden_log import (
    KEYS,
    LOGS,
    WINDOW,
    as_sql,
    contexts,
    from_sql,
    write_foreign,
    write_log,
    write_rebuilt,
    write_scenes,
    write_sealed_log,
    write_work,
)
from tests.support.golden_scenes import ANSWERED
from tests.support.log_files import rows

HOLDS: dict[str, set[type[object]]] = {
    "log-1": {CompactionPerformed, ToolContentOffloaded, CompactionFailed},
    "log-2": {
        CompactionPerformed,
        CompactionFailed,
        CompactionReverted,
        MessagesCondensed,
        MessagePinned,
        MessageUnpinned,
        ToolContentOffloaded,
    },
    "log-3": {
        CompactionPerformed,
        CompactionFailed,
        CompactionReverted,
        ConversationErased,
        ConversationForked,
        EventLost,
        MessageErased,
        MessagesCondensed,
        MessagePinned,
        MessageUnpinned,
        ToolContentOffloaded,
    },
}
# The fifth has the proof of the index of keys.
HOLDS["log-4"] = HOLDS["log-5"] = HOLDS["log-3"]
HOLDS["log-6"] = HOLDS["log-3"] | {
    MemoriesChosen,
    NotesFlushed,
    RequestFrameChanged,
    UserContentShortened,
}
HOLDS["log-7"] = HOLDS["log-8"] = HOLDS["log-9"] = HOLDS["log-6"] | {LinesRecalled}


Writer = Callable[[Path], None]
WRITERS: dict[str, Writer] = {
    "log-4": write_sealed_log,
    "log-6": write_scenes,
    "log-7": write_work,
    "log-8": write_foreign,
    "log-9": write_rebuilt,
}
"""What writes a log today as the kept one was written, except ``write_log``."""


@pytest.fixture(scope="module", params=LOGS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def key(name: str) -> bytes | None:
    return KEYS.get(name)


@pytest.fixture(scope="module")
def made_now(name: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Write the log of today once, when a golden file is missing."""

    @cache
    def write() -> Path:
        path = tmp_path_factory.mktemp("golden") / "now.db"
        WRITERS.get(name, write_log)(path)
        return path

    return write


@pytest.fixture(scope="module")
def kept(name: str, made_now: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log that was written once."""
    path = tmp_path_factory.mktemp("kept") / f"{name}.db"
    return from_sql(golden_text(f"{name}.sql", lambda: as_sql(made_now())), path)


@pytest.fixture(scope="module")
def expected(name: str, made_now: Callable[[], Path], key: bytes | None) -> Any:
    return golden_json(f"{name}.contexts.json", lambda: contexts(made_now(), LOGS[name], key))


def same_bytes(found: Any, wanted: Any) -> None:
    assert found.keys() == wanted.keys()
    for thread_id, then in wanted.items():
        assert found[thread_id]["newest"] == then["newest"]
        pairs = zip(found[thread_id]["digests"], then["digests"], strict=True)
        assert [v for v, (now, was) in enumerate(pairs) if now != was] == [], thread_id


def test_the_kept_log_is_whole(kept: Path, key: bytes | None) -> None:
    log = SQLiteLog(kept, key=key)
    assert list(log.check()) == []
    assert len(list(log.scan())) > 40
    log.close()


def test_the_kept_log_holds_what_its_contexts_should_depend_on(
    name: str, kept: Path, key: bytes | None
) -> None:
    log = SQLiteLog(kept, key=key)
    events = [logged.event for logged in log.scan()]
    log.close()
    assert HOLDS[name] <= {type(event) for event in events}
    performed = [event for event in events if isinstance(event, CompactionPerformed)]
    assert len(performed) >= 3
    if name != "log-1":
        assert any(event.is_split_turn for event in performed)
        assert any(event.ledger_shown for event in performed)


def test_the_contexts_of_the_kept_log_are_the_golden_ones_at_every_version(
    name: str, kept: Path, key: bytes | None, expected: Any
) -> None:
    same_bytes(contexts(kept, LOGS[name], key), expected)


def test_the_contexts_are_the_same_after_the_log_was_opened_and_written_to(
    name: str, kept: Path, key: bytes | None, expected: Any
) -> None:
    raised = from_sql(as_sql(kept), kept.with_name(f"{name}-raised.db"))
    log = SQLiteLog(raised, key=key)
    core, runner = core_of(log, window=WINDOW), Runner()
    for thread_id in LOGS[name]:
        conversation = ConversationMemory(core, thread_id, runner)
        conversation.append({"role": "user", "content": "and on it goes"})
        conversation.fork(thread_id=f"copy of {thread_id}, made now")
    assert list(log.check()) == []
    assert f"PRAGMA user_version={FORMAT_VERSION};" in as_sql(raised)
    runner.close()
    log.close()
    shown = contexts(raised, LOGS[name], key)
    then = {
        t: {"newest": expected[t]["newest"], "digests": shown[t]["digests"][: len(e["digests"])]}
        for t, e in expected.items()
    }
    same_bytes(then, expected)


def test_without_snapshots_the_contexts_are_the_same(
    name: str, kept: Path, key: bytes | None, expected: Any
) -> None:
    sql = [
        x for x in as_sql(kept).splitlines() if not x.startswith('INSERT INTO "stored_snapshots"')
    ]
    bare = from_sql("\n".join(sql), kept.with_name(f"{name}-bare.db"))
    assert len(as_sql(bare)) < len(as_sql(kept))
    same_bytes(contexts(bare, LOGS[name], key), expected)


def test_the_foreign_forms_of_the_kept_log_come_back(tmp_path: Path) -> None:
    path = from_sql(golden_text("log-8.sql"), tmp_path / "foreign.db")
    with refold.open(path, window=WINDOW, telemetry=False) as memory:
        stored = memory.conversation(ANSWERED).messages()
        forms = [m.original.data for m in stored if m.original is not None]
        assert len(forms) == 13
        assert forms[0][0]["id"] == "rs_0"
        assert forms[0][1]["content"][0]["text"] == "I read part 0 now."
        assert forms[0][2]["arguments"] == '{"path":"notes/part-0.txt"}'
        assert stored[-2].erased
        sent = memory.conversation(ANSWERED).context(at=1).for_openai(api="responses")
        assert sent["input"][0]["content"].startswith("Read notes/part-0.txt.")
        files = refold.MemoryFiles(memory, owner="ann")
        line = "the first line of a file that is long enough\n"
        assert files.files() == {"/memories/kept/a.txt": line}
        assert len(files.history()) == 4


def test_the_sealed_log_holds_events_in_every_encoding(tmp_path: Path) -> None:
    path = from_sql(golden_text("log-4.sql"), tmp_path / "encodings.db")
    found = {(frame.erased, re.sub(":[0-9a-f]+", ":N", frame.encoding)) for frame in frames(path)}
    assert found == {
        (False, ""),
        (True, ""),
        (False, "aes:N"),
        (True, "aes:N"),
        (False, "zstd:N,aes:N"),
    }


def frames(path: Path) -> list[Envelope]:
    return [parse_frame(state) for *_, state in rows(path)]


@pytest.mark.slow(but="log-3")
@pytest.mark.parametrize("like", ["log-3", *WRITERS])
def test_the_same_conversations_written_again_give_the_same_contexts(
    like: str, tmp_path: Path
) -> None:
    def written(path: Path) -> Any:
        WRITERS.get(like, write_log)(path)
        return contexts(path, LOGS[like], KEYS.get(like))

    same_bytes(written(tmp_path / "again.db"), written(tmp_path / "first.db"))
