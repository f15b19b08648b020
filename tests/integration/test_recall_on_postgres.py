"""The recall index on a server answers as the one in a file does: hit by hit, for the same log."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.application.ports.recall_index import Filters
from refold.application.recall.tokens import tokens_of
from refold.application.runtime.memory_settings import RecallMode
from refold.domain.errors import ConversationGone, InvalidMessage
from refold.infrastructure.postgres import passage_search
from refold.infrastructure.postgres.connections import Address
from refold.infrastructure.postgres.log import PostgresLog
from refold.infrastructure.projection_store.tables import Tables
from refold.infrastructure.recall import index_search
from refold.infrastructure.recall.index_tables import EVENTS
from refold.testing.history_layout import Step
from refold.testing.history_strategies import turns
from tests.support.both_recalls import ask_alike, both_recalls, rows_of_recall
from tests.support.effort import one_in
from tests.support.fake_embedders import DigestEmbedder
from tests.support.postgres import Server, private_server, shared_server
from tests.support.real_data import files, needs_data

from .test_standing_recall import FACT, asked, lines_of, worked

RECORDINGS = (
    "claude-code-entire/6860e2316a8a_0.jsonl.gz",
    "pi/*",
    "mini-swe-agent/*",
    "agent-formats/codex_session_with_compaction.jsonl",
    "agent-formats/gemini_with_tool_error.json",
)
MOST_CONVERSATIONS = 40

deeds = st.lists(
    st.one_of(
        *[st.tuples(st.just("say"), st.just(0))] * 5,
        st.tuples(
            st.sampled_from(("ask", "fork", "erase", "erase", "rebuild")), st.integers(0, 60)
        ),
        st.tuples(st.just("erase all"), st.integers(0, 4)),
    ),
    max_size=15,
)


@pytest.fixture
def log(database: str) -> Iterator[PostgresLog]:
    with closing(PostgresLog(Address.of(database))) as opened:
        yield opened


def recorded() -> list[Path]:
    found = [
        next((path for path in files(pattern) if "README" not in path.name), None)
        for pattern in RECORDINGS
    ]
    return [path for path in found if path is not None]


@needs_data
@pytest.mark.parametrize("path", recorded(), ids=lambda path: path.name)
def test_recorded_sessions_are_found_alike(database: str, path: Path) -> None:
    from refold.infrastructure.transcripts.read_transcript import read_transcript

    with refold.open(database, window=1_000_000) as memory:
        conversations = read_transcript(path).conversations[:MOST_CONVERSATIONS]
        for number, conversation in enumerate(conversations):
            said = [one.message for one in conversation.messages]
            memory.conversation(f"t{number % 3}").append(said, recorded=True)
        log = memory._core.log  # pyright: ignore[reportPrivateUsage]
        assert log.newest() > 0
    with closing(PostgresLog(Address.of(database))) as log, both_recalls(log) as (there, here):
        ask_alike(there, here, Random(1), 12)
        assert rows_of_recall(there, log) == rows_of_recall(here, log)
        assert list(there.check()) == []


@one_in(6)
@given(turns(recorded=True, min_messages=3, max_messages=30), deeds, st.integers(0, 1_000))
def test_histories_are_found_alike(
    steps: Sequence[Step], chosen: Sequence[tuple[str, int]], seed: int
) -> None:
    server = shared_server()
    place = server.new_database()
    try:
        play_and_compare(place, list(steps), chosen, seed)
    finally:
        server.drop(place)


def nothing_added(store: object) -> None:
    """Act like a server without pgvector."""
    del store


def play_and_compare(
    place: str, left: list[Step], chosen: Sequence[tuple[str, int]], seed: int
) -> None:
    owners = (None, "ann", "bob")
    with refold.open(place, window=200_000, scrub_megabytes=0) as memory:
        log = PostgresLog(Address.of(place))
        with closing(log), both_recalls(log) as (there, here):
            for turn, (kind, number) in enumerate((("say", 0), ("say", 0), ("ask", 0), *chosen)):
                conversation = memory.conversation("ab"[turn % 2])
                count = len(conversation.messages())
                try:
                    match kind:
                        case "say" if left:
                            owner = owners[turn % 3]
                            conversation.append(left.pop(0), recorded=True, owner=owner)
                        case "ask":
                            ask_alike(there, here, Random(seed), 1)
                        case "fork" if count:
                            conversation.fork()
                        case "erase" if count:
                            conversation.erase(number % count)
                        case "erase all" if count and number == 0:
                            memory.erase_conversation("ab"[turn % 2])
                        case "rebuild":
                            # An index that was folded again has a later edition.
                            assert there.rebuild() == here.rebuild()
                        case _:
                            pass
                except (InvalidMessage, ConversationGone):
                    continue
            ask_alike(there, here, Random(seed), 2)
            assert rows_of_recall(there, log) == rows_of_recall(here, log)
            assert list(there.check()) == []


def test_nul_and_signs_of_patterns_in_names_and_words_break_nothing(database: str) -> None:
    with refold.open(database) as memory:
        for thread in ("%s {x} ?", "a'; --"):
            call = {"type": "tool_use", "id": "1", "name": "to\0ol", "input": {"q": "100% {of} ?"}}
            memory.conversation(thread).append(
                [
                    {"role": "user", "content": "what \0 is 50% of {this} ?"},
                    {"role": "assistant", "content": [call]},
                ],
                recorded=True,
                owner="o%s",
            )
    with closing(PostgresLog(Address.of(database))) as log, both_recalls(log) as (there, here):
        ask_alike(there, here, Random(2), 5)
        # SQLite itself cuts a name in a filter at a NUL, so only the server finds it.
        found = there.find(tokens_of("100"), Filters(tools=frozenset({"to\0ol"}))).candidates
        assert [passage.tool for passage in found] == ["to\0ol"] * 2
        for token in ('"', "%s", "{x}", "a\0b", "\ud83d", "", "?"):
            assert list(there.find([token]).candidates) == list(here.find([token]).candidates)


def test_words_that_are_common_are_found_alike(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A common word finds nothing more once the others have found enough, and is looked up in the newest first."""
    for setting, value in (("COMMON", 20), ("ENOUGH", 2), ("AT_ONCE", 1)):
        monkeypatch.setattr(index_search, setting, value)
    monkeypatch.setattr(passage_search, "FEW", 100)
    draw = Random(3)
    with refold.open(database) as memory:
        for thread in "abc":
            texts = [
                " ".join(draw.choice("ox") * (1 + int(draw.expovariate(1))) for _ in range(8))
                for _ in range(80)
            ]
            memory.conversation(thread).append(
                [{"role": "user", "content": text} for text in texts], recorded=True
            )
    with closing(PostgresLog(Address.of(database))) as log, both_recalls(log) as (there, here):
        ask_alike(there, here, draw, 15)


def test_the_passages_with_a_common_word_that_are_read_are_bounded(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as many passages have the words, and the same number of them is read."""
    for setting, value in (("COMMON", 20), ("ENOUGH", 2), ("AT_ONCE", 1), ("MOST_READ", 400)):
        monkeypatch.setattr(index_search, setting, value)
    monkeypatch.setattr(passage_search, "FEW", 100)
    read: list[int] = []
    run_query = passage_search.run_query

    def counted(db: Tables, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        rows = run_query(db, statement, *values)
        if "array_agg" in statement:
            read.append(len(rows[0][0] or ()))
        return rows

    monkeypatch.setattr(passage_search, "run_query", counted)
    found: list[int] = []
    with refold.open(database) as memory:
        conversation = memory.conversation("t")
        for _ in range(2):
            texts = [f"often{n % 2} even{n % 3} some{n}" for n in range(2 * EVENTS)]
            for begin in range(0, len(texts), 500):
                some = texts[begin : begin + 500]
                conversation.append([{"role": "user", "content": t} for t in some], recorded=True)
            memory.index()
            read.clear()
            assert conversation.recall("often1 even2").hits
            found.append(sum(read))
    assert 0 < found[1] <= found[0] * 1.1 < 4 * EVENTS


def test_an_append_of_another_process_is_found_by_the_next_question(
    database: str, log: PostgresLog
) -> None:
    with both_recalls(log) as (there, _), refold.open(database) as memory:
        assert list(there.find(["kangaroo"]).candidates) == []
        memory.conversation("t").append({"role": "user", "content": "A kangaroo."})
        (found,) = there.find(tokens_of("kangaroo")).candidates
        assert found.position == 0


SECRET, OTHER = "xylophonist", "accordionist"


def bytes_in(server: Server, *needles: str) -> set[str]:
    """The needles that are in a file of the server's tables. Unlogged ones are written when it stops."""
    server.stop("fast")
    found: set[str] = set()
    for path in (server.data / "base").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            found |= {needle for needle in needles if needle.encode() in content}
    server.start()
    return found


def test_no_byte_of_an_erased_message_is_left_in_the_tables_of_recall() -> None:
    embedder, (stem, *_), (kept, *_) = DigestEmbedder(), tokens_of(SECRET), tokens_of(OTHER)
    with private_server() as server:
        place = server.new_database()
        with refold.open(place, embedder=embedder) as memory:
            conversation = memory.conversation("t")
            for n in range(40):
                word = SECRET if n == 7 else OTHER
                conversation.append({"role": "user", "content": f"{word} number {n}"})
            assert memory.embed() is not None
            assert conversation.recall(f"{SECRET} number 7", mode="vector")[0].position == 7
            assert conversation.recall(SECRET, mode="keyword")[0].position == 7
        assert bytes_in(server, stem, kept) == {stem, kept}
        with refold.open(place, embedder=embedder) as memory:
            report = memory.conversation("t").erase(7)
            assert {place.place for place in report.removed} >= {"recall index", "vectors"}
            assert memory.verify().ok
        with psycopg.connect(place) as connection:
            assert connection.execute("SELECT count(*) FROM refold.vectors").fetchone() == (39,)
        assert bytes_in(server, stem, SECRET, kept) == {kept}
        with refold.open(place, embedder=embedder) as memory:
            found = memory.conversation("t").recall(f"{OTHER} number 8", mode="hybrid")
            assert found[0].position == 8


def test_after_a_crash_of_the_server_everything_is_found_again() -> None:
    """A crash empties the tables, which are not in the write-ahead log."""
    with private_server() as server:
        place = server.new_database()
        with refold.open(place, embedder=DigestEmbedder()) as memory:
            conversation = memory.conversation("t")
            conversation.append(
                [{"role": "user", "content": f"number {n}"} for n in range(9)], recorded=True
            )
            assert memory.embed() is not None
            assert conversation.recall("number 7", mode="vector")[0].position == 7
            server.stop("immediate")
            server.start()
            assert conversation.recall("number 7", mode="keyword")[0].position == 7
            conversation.recall("number 7", mode="vector")
            made = memory.embed()
            assert made is not None
            assert made.complete
            assert conversation.recall("number 7", mode="vector")[0].position == 7


def test_standing_recall_quotes_earlier_messages(database: str) -> None:
    with refold.open(database, window=6_000, telemetry=False) as memory:
        assert lines_of(asked(worked(memory))) == [f"[1] assistant: {FACT}"]


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_a_memory_recalls_alike_with_pgvector_and_without(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: RecallMode
) -> None:
    texts = [f"the {animal} number {n}" for n in range(40) for animal in ("owl", "fox", "hen")]
    asked = ("the owl number 7", "fox", "hen number 11")

    def ask(place: str) -> tuple[object, str | None]:
        with refold.open(place, embedder=DigestEmbedder(dimension=24)) as memory:
            conversation = memory.conversation("t")
            if not conversation.messages():
                conversation.append(
                    [{"role": "user", "content": text} for text in texts], recorded=True
                )
            assert memory.embed() is not None
            found = [conversation.recall(one, mode=mode, limit=20) for one in asked]
            again = conversation.recall("owl", mode=mode)
            assert again.notice is None
            return [[hit.position for hit in one] for one in found], found[0].notice

    with_pgvector, said = ask(database)
    assert said is None
    in_a_file, _ = ask(str(tmp_path / "agent.db"))
    monkeypatch.setattr("refold.infrastructure.postgres.vector_store.add_pgvector", nothing_added)
    without, said = ask(database)
    assert with_pgvector == in_a_file == without
    assert "pgvector" in str(said)
