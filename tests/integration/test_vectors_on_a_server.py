"""Vectors on a server: what the port says, with pgvector and without."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from random import Random
from threading import Thread

import pytest

import refold
from refold.application.errors import EmbedderError
from refold.application.ports.recall_index import Filters
from refold.application.recall.passages import Passage
from refold.application.recall.tokens import digest_of
from refold.infrastructure.observability.log_observer import Notice
from refold.infrastructure.postgres.connections import Address, Store
from refold.infrastructure.postgres.log import PostgresLog
from refold.infrastructure.postgres.passage_index import PostgresRecallIndex
from refold.infrastructure.postgres.schema import prepare_schema
from refold.infrastructure.postgres.vector_store import PostgresVectorStore
from refold.infrastructure.postgres.vector_tables import has_index, lacks_halves, model_in
from tests.support.both_recalls import filters_for
from tests.support.fake_embedders import DigestEmbedder
from tests.support.passage_lists import PassageList

TEXTS = ("alpha", "beta", "gamma", "delta", "epsilon")
T = Filters("t")
EMBEDDER = DigestEmbedder()
M = EMBEDDER.model


def nothing_added(store: object) -> None:
    """Act like a server without pgvector."""
    del store


@pytest.fixture
def server(database: str) -> Iterator[Store]:
    store = Store(Address.of(database))
    prepare_schema(store, create=True)
    yield store
    store.close()


@pytest.fixture
def index() -> PassageList:
    return PassageList(*TEXTS)


@pytest.fixture
def told() -> list[Notice]:
    return []


@pytest.fixture
def store(server: Store, index: PassageList, told: list[Notice]) -> Iterator[PostgresVectorStore]:
    with closing(PostgresVectorStore(server, index, notify=told.append)) as made:
        yield made


def embed(store: PostgresVectorStore, *texts: str, embedder: DigestEmbedder = EMBEDDER) -> None:
    assert store.add(embedder.model, {digest_of(text): embedder.vector(text) for text in texts})


def near(store: PostgresVectorStore, text: str, filters: Filters = T, limit: int = 50) -> list[int]:
    found = store.nearest(M, EMBEDDER.vector(text), filters, limit)
    assert [one.cosine for one in found] == sorted((one.cosine for one in found), reverse=True)
    return [one.number for one in found]


def test_the_nearest_is_the_text_itself(store: PostgresVectorStore) -> None:
    embed(store, *TEXTS)
    for number, text in enumerate(TEXTS, 1):
        (best, *_) = store.nearest(M, EMBEDDER.vector(text), T, 5)
        assert best.number == number
        assert best.cosine == pytest.approx(1.0)
    assert len(near(store, "alpha", limit=2)) == 2
    assert near(store, "alpha", limit=0) == []


def test_only_texts_with_a_vector_are_found(store: PostgresVectorStore) -> None:
    digests = [digest_of(text) for text in (*TEXTS, "alpha")]
    assert near(store, "alpha") == []
    assert list(store.missing(M, digests)) == digests[:5]
    embed(store, "beta", "delta")
    assert sorted(near(store, "alpha")) == [2, 4]
    assert list(store.missing(M, digests)) == [digest_of(t) for t in ("alpha", "gamma", "epsilon")]
    assert store.count(M) == 2
    assert store.missing(M, ()) == []


def test_vectors_of_another_process_are_found(
    store: PostgresVectorStore, index: PassageList, server: Store
) -> None:
    embed(store, "beta")
    assert near(store, "alpha") == [2]
    index.say("zeta", "eta", "beta")
    with closing(PostgresVectorStore(server, index)) as other:
        embed(other, "eta", "alpha", "zeta")
    assert near(store, "zeta")[0] == 6
    assert sorted(near(store, "beta")) == [1, 2, 6, 7, 8]  # Equal words have one vector.


def test_models_are_never_compared(store: PostgresVectorStore) -> None:
    other = DigestEmbedder("digests-2", dimension=5)
    embed(store, "alpha")
    embed(store, "beta", embedder=other)
    assert near(store, "beta") == [1]
    assert [n for n, _ in store.nearest(other.model, other.vector("beta"), T, 5)] == [2]
    assert (store.count(M), store.count(other.model)) == (1, 1)


def test_another_dimension_is_refused_until_a_question_has_it_as_well(
    store: PostgresVectorStore,
) -> None:
    embed(store, "alpha")
    with pytest.raises(EmbedderError, match="8 dimensions, and the embedder now gives 3") as no:
        store.add(M, {"d": [1.0, 2.0, 3.0]})
    assert no.value.reason == "dimension"
    assert near(store, "alpha") == [1]
    with pytest.raises(EmbedderError, match="computed again") as no:
        store.nearest(M, [1.0, 2.0, 3.0], T, 5)
    assert no.value.reason == "dimension"
    assert store.count(M) == 0
    assert store.nearest(M, [1.0, 2.0, 3.0], T, 5) == ()
    assert store.add(M, {digest_of("alpha"): [1.0, 2.0, 3.0]})
    assert [one.number for one in store.nearest(M, [1.0, 2.0, 3.0], T, 5)] == [1]


@pytest.mark.parametrize(
    "vectors",
    [{"a": [1.0, 2.0], "b": [1.0]}, {"a": []}, {"a": [float("nan"), 1.0]}, {"a": "no vector"}],
)
def test_values_that_are_not_vectors_are_refused(
    store: PostgresVectorStore, vectors: dict[str, Sequence[float]]
) -> None:
    with pytest.raises(EmbedderError) as refused:
        store.add(M, vectors)
    assert refused.value.reason == "bad_answer"
    assert store.count(M) == 0


def test_the_length_of_a_vector_does_not_count(store: PostgresVectorStore) -> None:
    store.add("m", {digest_of("alpha"): [300.0, 400.0], digest_of("beta"): [0.0, 0.0]})
    found = store.nearest("m", [0.003, 0.004], T, 5)
    assert [(one.number, round(one.cosine, 6)) for one in found] == [(1, 1.0), (2, 0.0)]


def test_vectors_of_texts_erased_meanwhile_are_not_kept(store: PostgresVectorStore) -> None:
    assert not store.add(M, {"d": EMBEDDER.vector("alpha")}, still=lambda: False)
    assert store.count(M) == 0


def test_pruning_keeps_the_other_vectors(store: PostgresVectorStore, index: PassageList) -> None:
    embed(store, *TEXTS)
    index.erase("beta")
    assert store.prune(index.digests)
    assert store.count(M) == 4
    assert sorted(near(store, "beta")) == [1, 2, 3, 4]
    embed(store, "beta")
    assert store.count(M) == 5


def test_without_vectors_nothing_asks_what_to_keep(store: PostgresVectorStore) -> None:
    def asked() -> list[str]:
        raise AssertionError

    assert store.prune(asked)
    assert store.drop()


def test_the_vectors_of_other_models_can_be_deleted(store: PostgresVectorStore) -> None:
    old = DigestEmbedder("digests-0", dimension=4)
    assert store.keep_only(M) == 0
    embed(store, "alpha", "beta", embedder=old)
    embed(store, "alpha")
    assert store.keep_only(M) == 2
    assert (store.count(old.model), store.count(M)) == (0, 1)
    assert store.drop()
    assert store.count(M) == 0


def test_a_changed_vector_is_missing_and_can_be_made_again(
    store: PostgresVectorStore, server: Store, told: list[Notice]
) -> None:
    embed(store, *TEXTS)
    change = "UPDATE {vectors} SET vector = set_byte(vector, 0, get_byte(vector, 0) # 1) WHERE digest = %s"
    server.run(change, (digest_of("alpha"),))
    assert [one.kind for one in store.check()] == ["differs"]
    assert set(near(store, "alpha")) == {2, 3, 4, 5}
    assert list(store.missing(M, [digest_of(text) for text in TEXTS])) == [digest_of("alpha")]
    assert ("vectors.damaged", {"vectors": 1}) in [(one.name, one.figures) for one in told]
    server.run(change, (digest_of("beta"),))
    store.mend()
    assert list(store.check()) == []
    assert store.count(M) == 3


def test_processes_that_add_and_prune_at_once_keep_the_rest(
    store: PostgresVectorStore, server: Store, index: PassageList
) -> None:
    texts = [f"text {n}" for n in range(200)]
    index.say(*texts)
    failed: list[Exception] = []

    def act(begin: int) -> None:
        try:
            for n in range(begin, 200, 4):
                embed(store, texts[n])
                if n % 10 == 0:
                    assert store.prune(index.digests)
        except Exception as error:
            failed.append(error)

    threads = [Thread(target=act, args=(n,)) for n in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failed == []
    assert store.count(M) == 200


def test_vectors_added_after_closing_are_not_kept(store: PostgresVectorStore) -> None:
    store.close()
    assert not store.add(M, {digest_of("beta"): EMBEDDER.vector("beta")})


@pytest.fixture
def stores(database: str) -> Iterator[tuple[PostgresVectorStore, PostgresVectorStore]]:
    """A store that lets the server compare, and one that compares itself, of one log."""
    with refold.open(database) as memory:
        for thread in ("t", "u"):
            texts = [f"{thread} says {n % 70}" for n in range(90)]
            memory.conversation(thread).append(
                [{"role": "user", "content": text} for text in texts], recorded=True, owner="ann"
            )
    with (
        closing(PostgresLog(Address.of(database))) as log,
        closing(PostgresRecallIndex(log.store, log)) as index,
        closing(PostgresVectorStore(log.store, index, answer=index.answer)) as there,
        closing(PostgresVectorStore(log.store, index)) as here,
    ):
        yield there, here


def embed_passages(store: PostgresVectorStore) -> list[Passage]:
    passages = list(store._index.passages())  # pyright: ignore[reportPrivateUsage]
    assert store.add(M, {p.digest: EMBEDDER.vector(p.digest) for p in passages})
    return passages


def test_the_server_ranks_as_numpy_does(
    stores: tuple[PostgresVectorStore, PostgresVectorStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = stores
    passages, draw = embed_passages(there), Random(5)
    monkeypatch.setattr("refold.infrastructure.postgres.near_vectors.MORE", 0)
    for _ in range(6):
        query = EMBEDDER.vector(f"{draw.random()}")
        for filters in filters_for(passages, draw):
            limit = draw.choice((1, 5, 50))
            assert there.nearest(M, query, filters, limit) == here.nearest(M, query, filters, limit)


def test_very_many_vectors_get_an_index_in_the_background(
    stores: tuple[PostgresVectorStore, PostgresVectorStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = stores
    passages = embed_passages(there)
    there.settle(M)
    known = model_in(there._store, M)  # pyright: ignore[reportPrivateUsage]
    assert known is not None
    assert not has_index(there._store, known)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr("refold.infrastructure.postgres.vector_store.MANY", 50)
    there.settle(M)
    assert has_index(there._store, known)  # pyright: ignore[reportPrivateUsage]
    for one in passages[:5]:
        query = EMBEDDER.vector(one.digest)
        found = {hit.number for hit in there.nearest(M, query, Filters(), 10)}
        expected = {hit.number for hit in here.nearest(M, query, Filters(), 10)}
        assert len(found & expected) >= 9
        # A condition that few pass is searched in full.
        few = Filters(positions=(3, 6))
        assert there.nearest(M, query, few, 50) == here.nearest(M, query, few, 50)
    assert there.prune(lambda: [one.digest for one in passages[:20]])
    assert not has_index(there._store, known)  # pyright: ignore[reportPrivateUsage]


def test_pgvector_may_come_later(
    stores: tuple[PostgresVectorStore, PostgresVectorStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = stores
    with monkeypatch.context() as patch:
        patch.setattr("refold.infrastructure.postgres.vector_store.add_pgvector", nothing_added)
        passages = embed_passages(there)
    there._look_at = 0.0  # pyright: ignore[reportPrivateUsage]
    query = EMBEDDER.vector(passages[3].digest)
    assert there.nearest(M, query, Filters(), 50) == here.nearest(M, query, Filters(), 50)
    known = model_in(there._store, M)  # pyright: ignore[reportPrivateUsage]
    assert known is not None
    assert not lacks_halves(there._store, known)  # pyright: ignore[reportPrivateUsage]


def test_a_changed_candidate_is_left_out(
    stores: tuple[PostgresVectorStore, PostgresVectorStore],
) -> None:
    there, _ = stores
    passages = embed_passages(there)
    digest = passages[3].digest
    change = "UPDATE {vectors} SET vector = set_byte(vector, 0, get_byte(vector, 0) # 1) WHERE digest = %s"
    there._store.run(change, (digest,))  # pyright: ignore[reportPrivateUsage]
    found = there.nearest(M, EMBEDDER.vector(digest), Filters(), 5)
    assert len(found) == 5
    assert passages[3].number not in {hit.number for hit in found}
    assert list(there.missing(M, [digest])) == [digest]


def test_a_server_without_pgvector_says_so_once(
    store: PostgresVectorStore, told: list[Notice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refold.infrastructure.postgres.vector_store.add_pgvector", nothing_added)
    embed(store, *TEXTS)
    assert near(store, "alpha")[0] == near(store, "alpha")[0] == 1
    assert [one.name for one in told] == ["vectors.compared_here"]
    assert "CREATE EXTENSION vector" in str(store.describe())
    assert store.describe() is None
