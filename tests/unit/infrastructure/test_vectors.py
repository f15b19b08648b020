"""The store of vectors: what is near, what is missing, what is damaged, what is left of what was erased."""

import sqlite3
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from refold.application.errors import EmbedderError
from refold.application.ports.recall_index import Filters
from refold.application.recall.tokens import digest_of
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.projection_store import database_file
from refold.infrastructure.recall.vectors import SQLiteVectorStore
from tests.support.fake_embedders import DigestEmbedder
from tests.support.passage_lists import PassageList

TEXTS = ("alpha", "beta", "gamma", "delta", "epsilon")
T = Filters("t")
EMBEDDER = DigestEmbedder()
M = EMBEDDER.model


def opened(
    path: Path | str, index: PassageList, told: list[Notice] | None = None
) -> SQLiteVectorStore:
    return SQLiteVectorStore(path, index, notify=ignore if told is None else told.append)


def embed(store: SQLiteVectorStore, *texts: str, embedder: DigestEmbedder = EMBEDDER) -> None:
    assert store.add(embedder.model, {digest_of(text): embedder.vector(text) for text in texts})


def near(store: SQLiteVectorStore, text: str, filters: Filters = T, limit: int = 50) -> list[int]:
    found = store.nearest(M, EMBEDDER.vector(text), filters, limit)
    assert [one.cosine for one in found] == sorted((one.cosine for one in found), reverse=True)
    return [one.number for one in found]


def flipped(path: Path) -> None:
    """Change one byte of the first vector, behind the store's back."""
    with closing(sqlite3.connect(path)) as db, db:
        (number, vector) = db.execute("SELECT id, vector FROM vectors LIMIT 1").fetchone()
        changed = bytes([vector[0] ^ 1]) + vector[1:]
        db.execute("UPDATE vectors SET vector = ? WHERE id = ?", (changed, number))


@pytest.fixture
def index() -> PassageList:
    return PassageList(*TEXTS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.vectors.db"


@pytest.fixture
def store(path: Path, index: PassageList) -> Iterator[SQLiteVectorStore]:
    with closing(opened(path, index)) as made:
        yield made


def test_the_nearest_is_the_text_itself(store: SQLiteVectorStore) -> None:
    embed(store, *TEXTS)
    for number, text in enumerate(TEXTS, 1):
        (best, *_) = store.nearest(M, EMBEDDER.vector(text), T, 5)
        assert best.number == number
        assert best.cosine == pytest.approx(1.0)
    assert len(near(store, "alpha", limit=2)) == 2
    assert near(store, "alpha", limit=0) == []


def test_only_what_has_a_vector_is_found_and_what_is_missing_is_told(
    store: SQLiteVectorStore,
) -> None:
    digests = [digest_of(text) for text in (*TEXTS, "alpha")]
    assert near(store, "alpha") == []
    assert list(store.missing(M, digests)) == digests[:5]
    embed(store, "beta", "delta")
    assert sorted(near(store, "alpha")) == [2, 4]
    assert list(store.missing(M, digests)) == [digest_of(t) for t in ("alpha", "gamma", "epsilon")]
    assert store.count(M) == 2
    assert store.missing(M, ()) == []


def test_what_is_made_later_and_what_is_said_later_is_found(
    store: SQLiteVectorStore, index: PassageList, path: Path
) -> None:
    embed(store, "beta")
    assert near(store, "alpha") == [2]
    embed(store, "alpha", "zeta")
    assert near(store, "alpha")[0] == 1
    index.say("zeta", "eta", "beta")
    assert near(store, "zeta")[0] == 6
    assert sorted(near(store, "beta")) == [1, 2, 6, 8]  # Equal words have one vector.
    with closing(opened(path, index)) as other:
        embed(other, "eta", "gamma")
    assert sorted(near(store, "eta")) == [1, 2, 3, 6, 7, 8]


def test_vectors_in_a_file_that_took_the_place_of_this_one_are_found(
    store: SQLiteVectorStore, index: PassageList, path: Path
) -> None:
    embed(store, "beta", "gamma", "delta")
    assert 1 not in near(store, "alpha")
    with closing(opened(path, index)) as other:
        assert other.drop()
        embed(other, "alpha")
    assert near(store, "alpha")[0] == 1


def test_a_conversation_has_its_own_and_all_are_searched_together(
    store: SQLiteVectorStore, index: PassageList
) -> None:
    index.say("alpha", "zeta", thread_id="other")
    embed(store, *TEXTS, "zeta")
    assert near(store, "zeta", Filters("other")) == [7, 6]
    assert set(near(store, "zeta", Filters())) == set(range(1, 8))
    assert near(store, "zeta", Filters("nobody")) == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters("t", roles=frozenset({"user"})), {1, 3, 5}),
        (Filters("t", roles=frozenset({"user", "assistant"})), {1, 2, 3, 4, 5}),
        (Filters("t", roles=frozenset({"tool"})), set[int]()),
        (Filters("t", kinds=frozenset({"text"})), {1, 2, 3, 4, 5}),
        (Filters("t", kinds=frozenset({"result"})), set[int]()),
        (Filters("t", tools=frozenset({"bash"})), set[int]()),
        (Filters("t", since="2026-01-04"), {3, 4, 5}),
        (Filters("t", until="2026-01-04T00:00:00+00:00"), {1, 2}),
        (Filters("t", positions=(2, 4)), {2, 3}),
        (Filters("t", leave_out=frozenset({1, 5})), {2, 3, 4}),
        (Filters("t", roles=frozenset({"user"}), leave_out=frozenset({1}), positions=(0, 4)), {3}),
    ],
)
def test_filters_are_kept(store: SQLiteVectorStore, filters: Filters, expected: set[int]) -> None:
    embed(store, *TEXTS)
    assert set(near(store, "alpha", filters)) == expected


def test_cosines_are_told_of_what_has_a_vector(
    store: SQLiteVectorStore, index: PassageList
) -> None:
    embed(store, "alpha", "beta")
    found = store.cosines(M, EMBEDDER.vector("beta"), index.all())
    assert found.keys() == {1, 2}
    assert found[2] == pytest.approx(1.0)
    assert store.cosines("other", EMBEDDER.vector("beta"), index.all()) == {}
    assert store.cosines(M, [1.0, 0.0], index.all()) == {}


def test_models_are_never_compared(store: SQLiteVectorStore) -> None:
    other = DigestEmbedder("digests-2")
    embed(store, "alpha")
    embed(store, "beta", embedder=other)
    assert near(store, "beta") == [1]
    assert [n for n, _ in store.nearest(other.model, other.vector("beta"), T, 5)] == [2]
    assert (store.count(M), store.count(other.model)) == (1, 1)


def test_another_dimension_is_refused_until_a_question_has_it_as_well(
    store: SQLiteVectorStore,
) -> None:
    embed(store, "alpha")
    with pytest.raises(
        EmbedderError, match="8 dimensions, and the embedder now gives 3"
    ) as refused:
        store.add(M, {"d": [1.0, 2.0, 3.0]})
    assert refused.value.reason == "dimension"
    assert store.count(M) == 1
    assert near(store, "alpha") == [1]
    with pytest.raises(EmbedderError, match="computed again") as refused:
        store.nearest(M, [1.0, 2.0, 3.0], T, 5)
    assert refused.value.reason == "dimension"
    assert store.count(M) == 0
    assert store.nearest(M, [1.0, 2.0, 3.0], T, 5) == ()
    assert store.add(M, {digest_of("alpha"): [1.0, 2.0, 3.0]})
    assert [one.number for one in store.nearest(M, [1.0, 2.0, 3.0], T, 5)] == [1]


@pytest.mark.parametrize(
    "vectors",
    [
        {"a": [1.0, 2.0], "b": [1.0]},
        {"a": []},
        {"a": [float("nan"), 1.0]},
        {"a": [float("inf"), 1.0]},
        {"a": [[1.0], [2.0]]},
        {"a": "no vector"},
        {"a": None},
    ],
)
def test_what_is_no_vector_is_refused(
    store: SQLiteVectorStore, vectors: dict[str, Sequence[float]]
) -> None:
    with pytest.raises(EmbedderError) as refused:
        store.add(M, vectors)
    assert refused.value.reason == "bad_answer"
    assert store.count(M) == 0


def test_the_length_of_a_vector_does_not_count(store: SQLiteVectorStore) -> None:
    store.add("m", {digest_of("alpha"): [300.0, 400.0], digest_of("beta"): [0.0, 0.0]})
    found = store.nearest("m", [0.003, 0.004], T, 5)
    assert [(one.number, round(one.cosine, 6)) for one in found] == [(1, 1.0), (2, 0.0)]


def test_a_new_edition_forgets_the_numbers_of_the_one_before(
    store: SQLiteVectorStore, index: PassageList
) -> None:
    embed(store, *TEXTS)
    assert near(store, "epsilon")[0] == 5
    index.erase("beta")
    assert near(store, "epsilon")[0] == 4
    assert set(near(store, "epsilon")) == {1, 2, 3, 4}


def test_what_was_erased_meanwhile_is_not_kept(store: SQLiteVectorStore) -> None:
    assert not store.add(M, {"d": EMBEDDER.vector("alpha")}, still=lambda: False)
    assert store.count(M) == 0


def test_the_vectors_of_other_models_can_be_deleted(store: SQLiteVectorStore) -> None:
    old = DigestEmbedder("digests-0", dimension=4)
    assert store.keep_only(M) == 0
    embed(store, "alpha", "beta", embedder=old)
    embed(store, "alpha")
    assert store.keep_only(M) == 2
    assert (store.count(old.model), store.count(M)) == (0, 1)
    assert store.keep_only(M) == 0
    assert near(store, "alpha") == [1]


def bytes_of(vector: Sequence[float]) -> bytes:
    length = sum(one * one for one in vector) ** 0.5
    return struct.pack("<4f", *(one / length for one in vector[:4]))


def holds(folder: Path, *needles: bytes) -> list[bytes]:
    contents = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return [needle for needle in needles if any(needle in content for content in contents)]


def test_nothing_of_an_erased_text_is_left_on_the_disk(
    store: SQLiteVectorStore, index: PassageList, tmp_path: Path
) -> None:
    texts = [f"text {n}" for n in range(600)]
    index.say(*texts)
    embed(store, *texts)
    embed(store, *texts[::3], embedder=DigestEmbedder("digests-0"))
    gone = texts[7::5]
    vectors = [bytes_of(EMBEDDER.vector(text)) for text in gone]
    digests = [digest_of(text).encode() for text in gone]
    assert len(holds(tmp_path, *vectors, *digests)) == 2 * len(gone)
    with closing(opened(store_path(tmp_path), index)) as reader:
        assert near(reader, "text 7")
        for text in gone:
            index.erase(text)
        assert store.prune(lambda: [passage.digest for passage in index.all()])
        assert holds(tmp_path, *vectors, *digests) == []
        left = [text for text in texts if text not in gone]
        assert store.count(M) == reader.count(M) == len(left)
        assert len(near(reader, "text 0", limit=1_000)) == len(left)
        embed(reader, "new")
        assert store.count(M) == len(left) + 1


def store_path(folder: Path) -> Path:
    return folder / "agent.vectors.db"


def test_without_a_file_nobody_asks_what_is_to_be_kept(
    store: SQLiteVectorStore, path: Path
) -> None:
    def asked() -> list[str]:
        raise AssertionError

    assert store.prune(asked)
    assert not path.exists()
    assert store.drop()


def test_dropping_leaves_no_file_and_the_next_vectors_make_one(
    store: SQLiteVectorStore, path: Path
) -> None:
    embed(store, *TEXTS)
    assert near(store, "alpha")
    assert store.drop()
    assert not path.exists()
    assert near(store, "alpha") == []
    assert store.count(M) == 0
    embed(store, "alpha")
    assert near(store, "alpha") == [1]


def test_a_damaged_vector_is_missing_and_can_be_made_again(path: Path, index: PassageList) -> None:
    told: list[Notice] = []
    with closing(opened(path, index)) as store:
        embed(store, *TEXTS)
    flipped(path)
    with closing(opened(path, index, told)) as store:
        assert set(near(store, "alpha")) == {2, 3, 4, 5}
        assert list(store.missing(M, [digest_of(text) for text in TEXTS])) == [digest_of("alpha")]
        assert [(one.name, one.figures) for one in told] == [("vectors.damaged", {"vectors": 1})]
        embed(store, "alpha")
        assert near(store, "alpha")[0] == 1


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "no database": lambda _: b"no database at all, but long enough to be read as one" * 200,
    "empty": lambda _: b"",
    "cut": lambda whole: whole[:9_000],
    "overwritten": lambda whole: whole[:8_192] + b"\xff" * 40_000,
}


@pytest.mark.parametrize("damage", BROKEN)
def test_a_broken_file_is_dropped_and_made_again(
    path: Path, index: PassageList, damage: str
) -> None:
    with closing(opened(path, index)) as store:
        embed(store, *TEXTS)
    path.write_bytes(BROKEN[damage](path.read_bytes()))
    with closing(opened(path, index)) as store:
        assert near(store, "alpha") == []
        missing = store.missing(M, [digest_of(text) for text in TEXTS])
        assert len(missing) == 5
        embed(store, *TEXTS)
        assert near(store, "alpha")[0] == 1
    with closing(opened(path, index)) as store:
        assert store.count(M) == 5


def test_a_file_of_another_format_is_made_again(path: Path, index: PassageList) -> None:
    with closing(opened(path, index)) as store:
        embed(store, "alpha")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=99")
    with closing(opened(path, index)) as store:
        assert store.count(M) == 0
        embed(store, "alpha")
        assert store.count(M) == 1


def test_pruning_a_broken_file_deletes_it(path: Path, index: PassageList) -> None:
    with closing(opened(path, index)) as store:
        embed(store, "alpha")
    path.write_bytes(b"secret " * 5_000)
    with closing(opened(path, index)) as store:
        assert store.prune(list)
        assert holds(path.parent, b"secret") == []


def test_where_no_file_can_be_the_vectors_are_kept_in_memory(
    tmp_path: Path, index: PassageList, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "folder").mkdir()
    with closing(opened(tmp_path / "folder", index)) as store:
        embed(store, *TEXTS)
        assert near(store, "alpha")[0] == 1
    assert "keeping them in memory" in caplog.text


def test_in_memory_nothing_touches_a_disk(
    tmp_path: Path, index: PassageList, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(opened(":memory:", index)) as store:
        embed(store, *TEXTS)
        assert near(store, "alpha")[0] == 1
        index.erase("alpha")
        assert store.prune(lambda: [one.digest for one in index.all()])
        assert store.count(M) == 4
        assert store.drop()
        assert store.count(M) == 0
    assert list(tmp_path.iterdir()) == []


def test_what_is_added_after_closing_is_not_kept(path: Path, index: PassageList) -> None:
    store = opened(path, index)
    embed(store, "alpha")
    store.close()
    store.close()
    assert not store.add(M, {digest_of("beta"): EMBEDDER.vector("beta")})


def test_only_the_owner_of_the_log_may_read_the_file(tmp_path: Path, index: PassageList) -> None:
    log = tmp_path / "agent.db"
    log.touch(mode=0o600)
    with closing(SQLiteVectorStore(store_path(tmp_path), index, of=log)) as store:
        embed(store, "alpha")
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_matrices_of_conversations_that_were_not_asked_lately_are_forgotten(
    store: SQLiteVectorStore, index: PassageList, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refold.infrastructure.recall.vector_matrices.KEPT_BYTES", 3_000)
    for thread in "abcdef":
        index.say(*TEXTS, thread_id=thread)
    embed(store, *TEXTS)
    for thread in "abcdefabc":
        assert len(near(store, "alpha", Filters(thread))) == 5


def test_more_passages_than_one_matrix_holds_are_searched(
    store: SQLiteVectorStore, index: PassageList
) -> None:
    texts = [f"text {n}" for n in range(2_500)]
    index.say(*texts)
    embed(store, *texts)
    for n in (0, 1_018, 1_019, 1_020, 2_499):
        (best,) = store.nearest(M, EMBEDDER.vector(f"text {n}"), T, 1)
        assert (best.number, round(best.cosine, 5)) == (n + 6, 1.0)


def test_a_file_that_could_not_be_used_for_a_moment_is_used_again(
    path: Path, index: PassageList, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_file, "AGAIN_AFTER", 0.0, raising=False)
    in_the_way = path.with_name(f"{path.name}.lock")
    in_the_way.mkdir()
    with closing(opened(path, index)) as store:
        embed(store, "alpha")
        assert not path.exists()
        in_the_way.rmdir()
        embed(store, "alpha", "beta")
        assert near(store, "beta")[0] == 2
    with closing(opened(path, index)) as again:
        assert again.count(M) == 2
