"""Counts of a search: they do not grow with the conversation, and nothing is verified or read twice."""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.conversation.entries import LongEntries
from refold.application.ports.recall_index import Filters, Found
from refold.application.recall.ranking import all_passages, rank
from refold.application.recall.recall_query import ask
from refold.application.recall.search import BETWEEN
from refold.domain.events import MessageAppended
from refold.domain.messages import Message
from refold.infrastructure.event_store.envelope import EventMapper
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.event_store.stored_messages import LARGEST_WINDOW
from refold.infrastructure.projection_store import view_answers
from refold.infrastructure.projection_store.tables import SQLiteTables
from refold.infrastructure.recall import index_search, index_tables, proved_counts
from refold.infrastructure.recall.index_tables import EVENTS, Bucket
from refold.infrastructure.recall.recall_index import SQLiteRecallIndex
from refold.infrastructure.sqlite import sqlite_connection
from refold.infrastructure.sqlite.connection_pool import DurableConnection
from tests.support.counted_reads import decoded_events

from .test_recall_index import START, users, write

ONE = Filters(thread_id="t")
COMMON = 200
MOST_READ = 1_000


class Statements:
    """The statements that were run on tables of folds."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        run = SQLiteTables.execute

        def execute(tables: SQLiteTables, statement: str, values: Any = ()) -> Any:
            self.texts.append(statement)
            return run(tables, statement, values)

        patch.setattr(SQLiteTables, "execute", execute)

    def taken(self) -> list[str]:
        """Return the statements since the last call."""
        texts, self.texts = self.texts, []
        return texts


def verifications(statements: Sequence[str]) -> int:
    """Return how many statements count all entries of a conversation, or read what proves postings."""
    return sum("count(*)" in one or "FROM runs" in one for one in statements)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SQLiteLog]:
    with closing(SQLiteLog(tmp_path / "agent.db")) as opened:
        write(opened, "t", *users(f"common word{n % 7} rare{n}" for n in range(60)))
        write(opened, "u", *users(f"common word{n % 7}" for n in range(40)))
        yield opened


def test_counts_are_verified_once_until_another_connection_writes(
    log: SQLiteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = Statements(monkeypatch)
    with (
        closing(SQLiteRecallIndex(tmp_path / "a.recall.db", log)) as index,
        closing(SQLiteRecallIndex(tmp_path / "a.recall.db", log)) as other,
    ):
        index.find(["common", "rare3"], ONE)
        assert verifications(statements.taken()) > 0
        index.find(["common", "rare3"], ONE)
        assert verifications(statements.taken()) == 0
        write(log, "t", *users(["common rare99"]))
        # It was folded in by the same connection.
        assert [p.position for p in index.find(["rare99"], ONE).candidates] == [60]
        assert verifications(statements.taken()) == 0
        write(log, "t", *users(["common rare100"]))
        other.find(["common"], ONE)
        statements.taken()
        assert index.find(["rare100", "common"], ONE).candidates[0].position == 61
        assert verifications(statements.taken()) > 1


@pytest.mark.parametrize("edit", ["DELETE FROM passages", "DELETE FROM postings"])
def test_an_edit_by_another_connection_is_noticed_by_an_open_index(
    log: SQLiteLog, tmp_path: Path, edit: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.recall.db"
    with closing(SQLiteRecallIndex(path, log)) as index:
        right = index.find(["common", "rare3"], ONE)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(edit)
        assert index.find(["common", "rare3"], ONE) == right
    assert "damaged" in caplog.text


def test_passages_of_a_conversation_are_found_after_later_folds(
    log: SQLiteLog, tmp_path: Path
) -> None:
    write(log, "u", *users(f"common word{n % 7}" for n in range(100)))
    with closing(SQLiteRecallIndex(tmp_path / "a.recall.db", log)) as index:
        assert len(index.find(["common"], ONE, limit=100).candidates) == 60
        write(log, "t", *users(["common again"] * 3))
        assert len(index.find(["common"], ONE, limit=100).candidates) == 63
        write(log, "t", *users(["common again"] * 2))
        with closing(SQLiteRecallIndex(":memory:", log)) as fresh:
            assert fresh.find(["common", "again"], ONE) == index.find(["common", "again"], ONE)


QUESTIONS = (
    ["often1", "often2", "some7", "some9"],
    ["often0", "often1", "often2"],
    ["often1", "even0", "rare1000"],
    ["often1", "even0"],
)


def postings_read(log: SQLiteLog, length: int) -> list[tuple[int, int]]:
    """Return for each question how many places were read, and how many rows of passages were decoded."""
    counts = [0, 0]
    found: list[tuple[int, int]] = []
    said = users(f"often{n % 3} even{n % 2} some{n % 50} rare{n // 2}" for n in range(length))
    write(log, "long", *said)
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(SQLiteRecallIndex(":memory:", log)) as index,
    ):
        index.find(["word"], Filters(thread_id="long"))
        take, decode = Bucket.take, index_tables.passage_of

        def taken(bucket: Bucket, places: bytes) -> None:
            counts[0] += len(places) // 4
            take(bucket, places)

        def decoded(row: Any) -> Any:
            counts[1] += 1
            return decode(row)

        patch.setattr(Bucket, "take", taken)
        patch.setattr(proved_counts, "passage_of", decoded)
        for setting, value in (("COMMON", COMMON), ("MOST_READ", MOST_READ), ("AT_ONCE", 1)):
            patch.setattr(index_search, setting, value)
        for question in QUESTIONS:
            index.find(question, Filters(thread_id="long"), limit=10)
            found.append((counts[0], counts[1]))
            counts[:] = 0, 0
    return found


def test_a_longer_conversation_has_no_more_postings_read_or_passages_decoded(
    tmp_path: Path,
) -> None:
    found: list[list[tuple[int, int]]] = []
    for length in (2_000, 6_000, 18_000):
        with closing(SQLiteLog(tmp_path / f"{length}.db")) as log:
            found.append(postings_read(log, length))
    # The newest segment may exceed the limit, and those with a rare word are always read.
    most = MOST_READ + 2 * 2 * EVENTS
    assert [[read for read, _ in each if read > most] for each in found] == [[], [], []]
    assert all(decoded <= 30 for each in found for _, decoded in each)


def test_a_hit_of_a_very_long_conversation_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    decode = EventMapper.to_domain_event

    def counted(mapper: EventMapper, row: Any) -> Any:
        decoded.append(row.originator_version)
        return decode(mapper, row)

    with refold.open(tmp_path / "a.db", window=200_000, telemetry=False) as memory:
        log = memory._core.log  # pyright: ignore[reportPrivateUsage]
        said = [
            MessageAppended(
                position=n,
                message_id=f"m{n}",
                message=Message(role="user", content=f"message {n} about topic{n}"),
                tokens=LARGEST_WINDOW // 1_000,
            )
            for n in range(6_000)
        ]
        log.transact("t", lambda _: said, at=START)
        assert isinstance(log.load("t").window.entries, LongEntries)
        conversation = memory.conversation("t")
        conversation.recall("topic5")
        monkeypatch.setattr(EventMapper, "to_domain_event", counted)
        hits = conversation.recall("topic77 topic78 topic500", limit=3).hits
    assert len(hits) == 3
    assert len(decoded) == len(set(decoded)) <= 9  # Each hit and its two neighbours.


def test_conversations_with_an_owner_are_read_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    owned = view_answers.owners_in_block

    def counted(db: Any, block: int) -> Any:
        read.append(db)
        return owned(db, block)

    monkeypatch.setattr(view_answers, "owners_in_block", counted)
    with refold.open(tmp_path / "a.db", telemetry=False) as memory:
        memory.conversation("t").append({"role": "user", "content": "The port is 5433."})
        mine = memory.conversation("u", owner="ann")
        mine.append({"role": "user", "content": "The port is 6390."})
        for _ in range(3):
            assert [hit.thread_id for hit in memory.search("port")] == ["t"]
        assert len(read) == 1
        memory.conversation("v").append({"role": "user", "content": "No port is open."})
        assert {hit.thread_id for hit in memory.search("port")} == {"t", "v"}
        assert len(read) == 2


def test_standing_recall_makes_no_commit_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[DurableConnection] = []
    commit = DurableConnection.commit

    def counted(connection: DurableConnection) -> None:
        commits.append(connection)
        commit(connection)

    monkeypatch.setattr(DurableConnection, "commit", counted)
    found: list[int] = []
    for room in (0, 400):
        path = tmp_path / f"{room}.db"
        with refold.open(path, window=6_000, telemetry=False, standing_recall=room) as memory:
            conversation = memory.conversation("t")
            conversation.append({"role": "user", "content": "Redis on staging has port 6390 now."})
            conversation.append(
                {"role": "assistant", "content": "Noted: port 6390, staging redis."}
            )
            for number in range(40):
                text = f"Go on with module m{number}. " + "Look at each file. " * 12
                conversation.append({"role": "user", "content": text})
                conversation.append({"role": "assistant", "content": "Done. " * 40})
                conversation.context()
            commits.clear()
            conversation.append({"role": "user", "content": "Which port has redis on staging?"})
            recalled = "6390" in str(conversation.context().messages[-1])
            conversation.append({"role": "assistant", "content": "6390"})
            found.append(len(commits))
        assert recalled == (room > 0)
    assert found[0] == found[1] > 0


def test_standing_recall_reads_passages_only_if_a_line_may_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(name: str) -> Any:
        method = getattr(proved_counts.Reading, name)

        def count(*given: Any, **named: Any) -> Any:
            read.append(name)
            return method(*given, **named)

        return count

    for name in ("let_through", "neighbours"):
        monkeypatch.setattr(proved_counts.Reading, name, counted(name))
    path = tmp_path / "a.db"
    with refold.open(path, window=6_000, telemetry=False, standing_recall=400) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "Redis on staging has port 6390 now."})
        conversation.append({"role": "assistant", "content": "Noted: port 6390, staging redis."})
        for number in range(40):
            text = f"Go on with module m{number}. " + "Look at each file. " * 12
            conversation.append({"role": "user", "content": text})
            conversation.append({"role": "assistant", "content": "Done. " * 40})
            conversation.context()
        for asked, names in (
            ("Which cat has a file?", set[str]()),  # The only cat is in the question.
            ("Does m3 need 6390?", {"let_through"}),
            ("Which port has redis on staging?", {"let_through", "neighbours"}),
        ):
            read.clear()
            conversation.append({"role": "user", "content": asked})
            recalled = "port 6390" in str(conversation.context().messages[-1])
            assert (set(read), recalled) == (names, len(names) == 2), asked


class Listening:
    """A judge that keeps what is absent, and ends each search before it has candidates."""

    def __init__(self) -> None:
        self.absent: set[str] = set()

    def may_match(self, found: Found, absent: Collection[str]) -> bool:
        assert not found.candidates
        self.absent = set(absent)
        return False

    def wants_neighbours(self, found: Found) -> bool:
        raise AssertionError(found)


def test_words_of_later_messages_alone_are_absent(log: SQLiteLog) -> None:
    judge, words = Listening(), ["common", "rare3", "rare50", "never"]
    with closing(SQLiteRecallIndex(":memory:", log)) as index:
        for stop, absent in ((10, {"rare50"}), (51, set[str]()), (0, {*words[:3]})):
            found = index.find(words, Filters("t", positions=(0, stop)), judge=judge)
            assert (found.candidates, judge.absent) == ((), absent), stop


def test_places_are_read_again_if_they_are_too_many(
    log: SQLiteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proved_counts, "PLACES_KEPT", 10)
    write(log, "u", *users(f"common word{n % 7}" for n in range(100)))
    with closing(SQLiteRecallIndex(":memory:", log)) as index:
        for _ in range(2):
            assert len(index.find(["common"], ONE, limit=100).candidates) == 60


def test_postings_of_many_turns_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    replace = SQLiteTables.replace

    def counted(tables: SQLiteTables, table: str, rows: Any) -> None:
        written.append(table)
        replace(tables, table, rows)

    monkeypatch.setattr(SQLiteTables, "replace", counted)
    with (
        closing(SQLiteLog(tmp_path / "agent.db")) as log,
        closing(SQLiteRecallIndex(tmp_path / "a.recall.db", log)) as index,
    ):
        for number in range(74):
            write(log, "t", *users([f"common rare{number}"]))
            found = index.find(["common", f"rare{number}"], ONE, limit=100)
            assert found.candidates[0].position == number
            assert len(found.candidates) == found.frequencies["common"] == number + 1
        assert (
            written.count("postings") <= 2
        )  # Those of 63 turns, and of the one that ended the wait.
        with closing(SQLiteRecallIndex(":memory:", log)) as fresh:
            assert fresh.find(["common", "rare3"], ONE) == index.find(["common", "rare3"], ONE)
        assert not list(index.check())


def test_postings_tell_which_passages_have_a_token(tmp_path: Path) -> None:
    words = ["often", "some7", "rare3", "tail199"]
    said = users(f"often some{n % 9} rare{n // 4} " + f"tail{n}" for n in range(200))
    with (
        closing(SQLiteLog(tmp_path / "agent.db")) as log,
        closing(SQLiteRecallIndex(":memory:", log)) as index,
    ):
        # Postings of the newest messages wait.
        write(log, "t", *said[:150])
        index.find(words)
        write(log, "t", *said[150:])
        found = index.find(words)
    everything = all_passages(found)
    assert len(everything) > 50
    assert found.having == {
        word: {p.number for p in everything if f" {word} " in p.tokens} for word in words
    }
    # Without postings, passages are searched for tokens.
    question = ask(" ".join(words))
    by_postings, by_texts = (
        [(one.passage, one.score, one.why()) for one in rank(question, each)]
        for each in (found, found._replace(having={}))
    )
    assert by_postings == by_texts


def test_a_recall_looks_into_the_log_three_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a newer version, for new events of the whole log, and for the hits with their neighbours."""
    looks: list[str] = []
    execute = sqlite_connection.ProcessCursor.execute

    def counted(cursor: Any, statement: str, values: Any = ()) -> Any:
        if "stored_events" in statement or statement.startswith(("BEGIN", "ROLLBACK")):
            looks.append(statement)
        return execute(cursor, statement, values)

    with refold.open(tmp_path / "agent.db", telemetry=False) as memory:
        conversation = memory.conversation("t")
        for number in range(40):
            conversation.append({"role": "user", "content": f"message {number} about word{number}"})
        conversation.recall("word3")
        monkeypatch.setattr(sqlite_connection.ProcessCursor, "execute", counted)
        assert conversation.recall("word7 word21").hits
    assert len([one for one in looks if "stored_events" in one]) == 3
    # Each is a query by itself; only the index is read in a transaction.
    assert looks.count("BEGIN DEFERRED") == len(looks) - 3 == 1


def test_the_messages_around_a_hit_are_found_without_read_models_and_without_compactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction stands between two messages. Its event is large, and the read models may not exist yet."""
    with refold.open(tmp_path / "a.db", window=6_000, summariser="extractive") as memory:
        conversation = memory.conversation("t")
        for n in range(30):
            conversation.append([{"role": "user", "content": f"part {n} " + "says little. " * 40}])
            conversation.append([{"role": "assistant", "content": f"Seen {n}."}])
        conversation.append({"role": "user", "content": "the zebra of the last part"})
        assert conversation.compact(keep_last=1).outcome == "performed"
        conversation.append([{"role": "assistant", "content": "after the compaction"}])
        conversation.append([{"role": "user", "content": "and further on"}])
        memory.index()
        decoded = decoded_events(monkeypatch)
        [hit] = conversation.recall("zebra", limit=1).hits
    assert [one.text for one in hit.neighbours] == ["Seen 29.", "after the compaction"]
    assert decoded == []
    assert not (tmp_path / "a.views.db").exists()


def test_the_messages_around_a_hit_are_found_beyond_many_other_events(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "well before"})
        for n in range(BETWEEN + 1):
            conversation.pin(f"keep {n}")
        conversation.append({"role": "assistant", "content": "the zebra of the last part"})
        [hit] = memory.search("zebra", limit=1).hits
    assert [one.text for one in hit.neighbours] == ["well before"]
