"""Erasing takes out what was folded in place: its cost does not grow with the conversation."""

import random
import re
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.erasure import rebuilt_summary as rereading
from refold.infrastructure.event_store.envelope import EventMapper
from refold.infrastructure.projection_store.catch_up import FollowedLog
from refold.infrastructure.recall import index_tables as postings
from refold.infrastructure.recall.index_tables import thread_token
from refold.infrastructure.sqlite import sqlite_connection
from refold.infrastructure.sqlite.sqlite_connection import ProcessConnection
from tests.support.dying import torn, traced, watched, write_files
from tests.support.erasing_scenes import SECRET, holding
from tests.support.fake_embedders import DigestEmbedder
from tests.support.witness import SHM

FILES = ("a.views.db", "a.recall.db")
SMALL, LARGE = 600, 2_400
WORDS = ["alpha", "beta", "gamma", "delta", "parser", "cache", "index", "ledger", "invoice"]


def said(count: int) -> Iterator[dict[str, str]]:
    chance = random.Random(count)
    for number in range(count):
        words = " ".join(chance.choices(WORDS, k=12))
        role = "assistant" if number % 2 else "user"
        verb = "Never change" if number % 40 == 5 else "See"
        yield {"role": role, "content": f"{verb} number{number}: {words}."}


@pytest.fixture
def short_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of few messages, too, not all are read again."""
    monkeypatch.setattr(rereading, "MOST", 100)
    monkeypatch.setattr(rereading, "FIRST", 8)
    monkeypatch.setattr(rereading, "NEWEST", 32)


def long_conversation(path: Path, count: int, **options: Any) -> Memory:
    memory = refold.open(path, window=20_000, scrub_megabytes=0, **options)
    conversation = memory.conversation("t")
    conversation.append([*said(count)])
    conversation.compact(force=True)
    ask(memory, conversation)
    return memory


def ask(memory: Memory, conversation: ConversationMemory) -> None:
    assert len(memory.conversations()) == 1
    assert conversation.recall("ledger invoice").hits
    conversation.context()


class Counted:
    """What an erasure and the next questions do."""

    def __init__(self, folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events = self.statements = 0
        self.rebuilt: list[str] = []
        folder.mkdir()
        with closing(long_conversation(folder / "a.db", count)) as memory:
            before = rows(folder)
            with monkeypatch.context() as patch:
                self._count(patch)
                report = memory.conversation("t").erase(5)
                ask(memory, memory.conversation("t"))
            assert report.complete
            assert {"summary", "leaf"} <= {one.place for one in report.removed}
            after = rows(folder)
        self.changed = {name: differing(before[name], after[name]) for name in before}

    def _count(self, patch: pytest.MonkeyPatch) -> None:
        for name in ("to_domain_event", "open", "unsealed_columns"):
            patch.setattr(EventMapper, name, self._counting(getattr(EventMapper, name)))
        for name in ("_drop", "drop", "_fill"):
            patch.setattr(FollowedLog, name, self._noting(getattr(FollowedLog, name)))
        execute = sqlite_connection.ProcessConnection.execute

        def counted(connection: ProcessConnection, sql: str, *values: Any) -> Any:
            self.statements += 1
            return execute(connection, sql, *values)

        patch.setattr(sqlite_connection.ProcessConnection, "execute", counted)

    def _counting(self, act: Callable[..., object]) -> Callable[..., object]:
        def counted(*values: object) -> object:
            self.events += 1
            return act(*values)

        return counted

    def _noting(self, act: Callable[..., object]) -> Callable[..., object]:
        def noted(*values: object) -> object:
            self.rebuilt.append(act.__name__)
            return act(*values)

        return noted


TABLES = {
    "postings": "SELECT place, checksum FROM postings",
    "passages": "SELECT number, checksum FROM passages",
    "runs": "SELECT run, checksum FROM runs",
    "messages": "SELECT rowid, checksum FROM messages",
}


def differing(before: dict[int, int], after: dict[int, int]) -> set[int]:
    keys = before.keys() | after.keys()
    return {key for key in keys if before.get(key) != after.get(key)}


def rows(folder: Path) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for file in FILES:
        with closing(sqlite3.connect(folder / file)) as db:
            names = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
            found |= {n: dict(db.execute(q).fetchall()) for n, q in TABLES.items() if n in names}
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("short_reading")
def test_the_cost_of_an_erasure_does_not_grow_with_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Counted(tmp_path / "small", SMALL, monkeypatch)
    large = Counted(tmp_path / "large", LARGE, monkeypatch)
    assert small.rebuilt == large.rebuilt == []
    # Some more steps of searches by halving, and nothing else.
    assert large.events < small.events + 60, (small.events, large.events)
    assert large.statements < small.statements + 60, (small.statements, large.statements)
    for counted in (small, large):
        changed = counted.changed
        (run,) = changed["runs"]
        assert {place >> postings.BUCKET_BITS for place in changed["postings"]} == {run}
        assert len(changed["passages"]) == 1
        assert len(changed["postings"]) < 40
        assert len(changed["messages"]) == 2  # One is emptied, what is left stands in a new one.


@pytest.fixture
def quick_folder() -> Iterator[Path]:
    """Where nothing waits for a disk."""
    with tempfile.TemporaryDirectory(dir=SHM) as folder:
        yield Path(folder)


@pytest.mark.slow
def test_what_is_taken_out_one_after_the_other_leaves_no_byte_behind(quick_folder: Path) -> None:
    """Rows that were deleted, or that grew, would have others moved, which leaves their bytes."""
    marks = [f"zqmark{number:03}" for number in range(90)]
    with refold.open(quick_folder / "a.db", window=8_000, scrub_megabytes=0) as memory:
        conversation = memory.conversation("t")
        for number, mark in enumerate(marks):
            conversation.append(
                {"role": "user", "content": f"{mark} " + "word " * (number % 7 * 9)}
            )
            if number % 15 == 0:
                ask_anything(memory, conversation)
        ask_anything(memory, conversation)
        files = [(quick_folder / name).stat().st_ino for name in FILES]
        for number, mark in enumerate(marks[:-10]):
            assert conversation.erase(number).complete
            for path in quick_folder.iterdir():
                assert mark.encode() not in path.read_bytes(), path.name
        everything = b"".join(path.read_bytes() for path in quick_folder.iterdir())
        assert not [mark for mark in marks[:-10] if mark.encode() in everything]
        assert [(quick_folder / name).stat().st_ino for name in FILES] == files
        assert memory.verify().ok


def ask_anything(memory: Memory, conversation: ConversationMemory) -> None:
    memory.conversations()
    conversation.recall("word")
    conversation.context()


def secret_talk(memory: Memory) -> ConversationMemory:
    conversation = memory.conversation("t")
    conversation.append([{"role": "user", "content": f"word {n}"} for n in range(40)])
    conversation.append({"role": "user", "content": f"{SECRET} word"})
    conversation.append([{"role": "assistant", "content": f"word {n}"} for n in range(40)])
    ask_anything(memory, conversation)
    return conversation


@pytest.mark.slow
def test_another_process_that_reads_the_files_has_them_made_anew(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", scrub_megabytes=0) as memory:
        conversation = secret_talk(memory)
        readers = [sqlite3.connect(tmp_path / name, isolation_level=None) for name in FILES]
        conversation.append({"role": "user", "content": "more"})
        ask_anything(memory, conversation)
        for reader, table in zip(readers, ("messages", "passages"), strict=True):
            reader.execute("BEGIN")
            reader.execute(f"SELECT count(*) FROM {table}").fetchall()
        assert conversation.erase(40).complete
        assert holding(tmp_path) == {}
        assert not any((tmp_path / name).exists() for name in FILES)
        for reader in readers:
            reader.close()
        ask_anything(memory, conversation)
        assert holding(tmp_path) == {}
        assert memory.verify().ok


def test_another_memory_that_has_the_files_open_goes_on_with_them(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", scrub_megabytes=0) as memory:
        conversation = secret_talk(memory)
        with refold.open(tmp_path / "a.db", scrub_megabytes=0) as other:
            its = other.conversation("t")
            assert any(SECRET in hit.text for hit in its.recall(SECRET).hits)
            files = [(tmp_path / name).stat().st_ino for name in FILES]
            assert conversation.erase(40).complete
            assert holding(tmp_path) == {}
            assert not any(SECRET in hit.text for hit in its.recall(SECRET).hits)
            assert SECRET not in str(its.messages())
            its.append({"role": "user", "content": "and on"})
            assert [hit.position for hit in its.recall("and on").hits][:1] == [81]
            assert [(tmp_path / name).stat().st_ino for name in FILES] == files
            assert other.verify().ok


def test_vectors_of_what_is_erased_are_overwritten_and_the_others_stay(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    embedder = DigestEmbedder()
    with refold.open(tmp_path / "a.db", embedder=embedder, scrub_megabytes=0) as memory:
        conversation = secret_talk(memory)
        memory.embed(30.0)
        path = tmp_path / "a.vectors.db"
        with closing(sqlite3.connect(path)) as db:
            stored = dict(db.execute("SELECT digest, vector FROM vectors").fetchall())
        file = path.stat().st_ino
        assert conversation.erase(40).complete
        with closing(sqlite3.connect(path)) as db:
            left = dict(db.execute("SELECT digest, vector FROM vectors").fetchall())
        (gone,) = stored.keys() - left.keys()
        content = b"".join(p.read_bytes() for p in tmp_path.iterdir())
        assert gone.encode() not in content
        assert stored[gone] not in content
        assert path.stat().st_ino == file
        assert memory.verify().ok
        assert conversation.recall("word", mode="vector").hits


def test_whenever_the_process_dies_nothing_half_done_is_used_and_nothing_stays(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    with traced(), refold.open(folder / "a.db", scrub_megabytes=0) as memory:
        conversation = secret_talk(memory)
        done: list[bool] = []
        with watched(folder, lambda: bool(done)) as moments:
            conversation.erase(40)
            done.append(True)
    assert len(moments) > 7
    for number, moment in enumerate([*moments[1:], *torn(moments, 0.5)]):
        life = tmp_path / f"life-{number}"
        write_files(moment.files, life)
        with refold.open(life / "a.db", scrub_megabytes=0) as memory:
            conversation = memory.conversation("t")
            is_erased = conversation.read(40).erased
            if is_erased:
                assert holding(life) == {}, moment.before
            assert (SECRET in str(conversation.messages())) is not is_erased
            assert (
                any(SECRET in hit.text for hit in conversation.recall(SECRET).hits) is not is_erased
            )
            assert memory.verify().ok, moment.before
            assert conversation.erase(40).complete
            assert holding(life) == {}


@pytest.mark.slow
def test_what_is_written_while_it_is_erased_is_not_lost(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", scrub_megabytes=0) as memory:
        conversation = secret_talk(memory)
        stop = threading.Event()
        found = Counter[bool]()

        def ask_on() -> None:
            with refold.open(tmp_path / "a.db", scrub_megabytes=0) as other:
                while not stop.is_set():
                    its = other.conversation("t")
                    its.append({"role": "user", "content": "meanwhile"})
                    found[bool(its.recall("meanwhile").hits)] += 1
                    other.conversations()

        asking = threading.Thread(target=ask_on)
        asking.start()
        reports = [conversation.erase(position) for position in range(38, 44)]
        stop.set()
        asking.join(20)
        assert not found[False]
        assert all(report.complete for report in reports) or conversation.erase(40).complete
        assert holding(tmp_path) == {}
        assert memory.verify().ok


def server_call(word: str) -> list[dict[str, Any]]:
    return [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": word}},
        {"type": "text", "text": f"{word} it is"},
    ]


def test_where_what_follows_cannot_be_told_from_what_is_left_all_is_folded_anew(
    tmp_path: Path,
) -> None:
    with refold.open(tmp_path / "a.db", scrub_megabytes=0) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "word"})
        conversation.append({"role": "assistant", "content": server_call(SECRET)}, recorded=True)
        ask_anything(memory, conversation)
        assert conversation.erase(1).complete
        assert holding(tmp_path) == {}
        ask_anything(memory, conversation)
        assert memory.verify().ok


def test_what_is_damaged_elsewhere_in_the_log_keeps_nothing_in_derived_files(
    tmp_path: Path,
) -> None:
    with refold.open(tmp_path / "a.db", scrub_megabytes=0) as memory:
        conversation = secret_talk(memory)
        memory.conversation("u").append({"role": "user", "content": "not folded in yet"})
        with closing(sqlite3.connect(tmp_path / "a.db")) as db, db:
            db.execute("UPDATE stored_events SET state = x'00' WHERE originator_id = 'u'")
        assert conversation.erase(40).complete
        assert holding(tmp_path) == {}


def test_the_conversation_is_the_same_whether_its_state_was_carried_on_or_replayed(
    tmp_path: Path,
) -> None:
    with refold.open(tmp_path / "a.db", window=8_000, scrub_megabytes=0) as memory:
        conversation = memory.conversation("t")
        for number in range(60):
            conversation.append({"role": "user", "content": f"number {number} " + "word " * 60})
            conversation.context()
        for position in (3, 30, 58):
            conversation.erase(position)
        carried = memory._core.log.load("t")  # pyright: ignore[reportPrivateUsage]
        shown = conversation.context().for_anthropic()
    with closing(sqlite3.connect(tmp_path / "a.db")) as db, db:
        assert db.execute("DELETE FROM stored_snapshots").rowcount > 0
    with refold.open(tmp_path / "a.db", window=8_000, scrub_megabytes=0) as memory:
        replayed = memory._core.log.load("t")  # pyright: ignore[reportPrivateUsage]
        assert replayed.state == carried.state
        assert memory.conversation("t").context().for_anthropic() == shown


@pytest.mark.slow
@pytest.mark.usefixtures("short_reading")
def test_of_a_long_history_a_part_is_read_again_and_the_summary_says_so(tmp_path: Path) -> None:
    with closing(long_conversation(tmp_path / "a.db", 400)) as memory:
        conversation = memory.conversation("t")
        before = conversation.summaries()[-1]
        assert conversation.erase(5).complete
        after = next(one for one in conversation.summaries() if one.is_active)
        assert after.covered_count == before.covered_count
        assert "were not read again" in after.summary_text
        content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert b"number5:" not in content
        assert b"number6:" in content
        assert memory.verify().ok


@pytest.mark.slow(but="PRAGMA user_version=1000000-a.views.db")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "change", ["PRAGMA user_version=1000000", "UPDATE reading_from SET number = 1000000"]
)
def test_a_wrong_note_of_what_was_read_keeps_nothing_that_is_erased(
    tmp_path: Path, name: str, change: str
) -> None:
    with refold.open(tmp_path / "a.db", scrub_megabytes=0) as memory:
        conversation = memory.conversation("t")
        conversation.append([*said(20), {"role": "user", "content": f"It is {SECRET}."}])
        ask(memory, conversation)
    with closing(sqlite3.connect(tmp_path / name, isolation_level=None)) as connection:
        connection.execute(change)
    with refold.open(tmp_path / "a.db", scrub_megabytes=0) as memory:
        assert memory.conversation("t").erase(20).complete
        assert holding(tmp_path) == {}


@pytest.mark.slow(but=["0", "4"])
@pytest.mark.parametrize("bit", range(8))
def test_what_the_index_of_places_leads_to_no_more_is_erased_as_well(
    tmp_path: Path, bit: int
) -> None:
    with refold.open(tmp_path / "a.db", scrub_megabytes=0) as memory:
        conversation = memory.conversation("t")
        conversation.append([*said(20), {"role": "user", "content": "It is a quokka."}, *said(5)])
        ask(memory, conversation)
    path = tmp_path / "a.recall.db"
    content = bytearray(path.read_bytes())
    entries = [found.end() for found in re.finditer(thread_token("t").encode(), content)]
    # Before the values of an entry stand the length of its head and the kind of its first value.
    [place] = [
        at
        for at in entries
        if bytes(content[at - 21 : at - 19]) == b"\x05\x2d" and content[at] == 20
    ]
    content[place] ^= 1 << bit
    path.write_bytes(content)
    with refold.open(tmp_path / "a.db", scrub_megabytes=0) as memory:
        assert memory.conversation("t").erase(20).complete
        assert b"quokka" not in b"".join(p.read_bytes() for p in tmp_path.iterdir())
        ask(memory, memory.conversation("t"))
        assert memory.verify().ok


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE messages SET thread_id = 'other' WHERE position = 20",
        "UPDATE messages SET position = 99 WHERE position = 20",
        "UPDATE summaries SET thread_id = 'other'",
    ],
)
def test_what_a_changed_row_hides_is_erased_as_well(tmp_path: Path, change: str) -> None:
    with refold.open(tmp_path / "a.db", window=20_000, scrub_megabytes=0) as memory:
        conversation = memory.conversation("t")
        conversation.append([*said(20), {"role": "user", "content": f"It is {SECRET}."}, *said(60)])
        assert conversation.compact(force=True).outcome == "performed"
        ask(memory, conversation)
    with closing(sqlite3.connect(tmp_path / "a.views.db", isolation_level=None)) as connection:
        connection.execute(change)
    with refold.open(tmp_path / "a.db", window=20_000, scrub_megabytes=0) as memory:
        assert memory.conversation("t").erase(20).complete
        assert holding(tmp_path) == {}
        ask(memory, memory.conversation("t"))
        assert memory.verify().ok
