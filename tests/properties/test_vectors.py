"""Vectors that grew with the log find what vectors made from nothing find, whatever happened between."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from refold.application.ports.recall_index import Filters
from refold.application.ports.vectors import Nearest
from refold.application.recall.tokens import digest_of
from refold.infrastructure.recall.vectors import SQLiteVectorStore
from tests.support.fake_embedders import DigestEmbedder
from tests.support.passage_lists import PassageList

TEXTS = [f"text {n}" for n in range(12)]
EMBEDDERS = (DigestEmbedder("digests-1"), DigestEmbedder("digests-2", dimension=6))
ROUNDED = 5

TEXTS_OF = TypeAdapter(list[str])

texts = st.lists(st.sampled_from(TEXTS), max_size=6)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), texts, st.sampled_from(["t", "u"])),
        st.tuples(st.just("embed"), texts, st.sampled_from(EMBEDDERS)),
        st.tuples(st.just("embed elsewhere"), texts, st.sampled_from(EMBEDDERS)),
        st.tuples(st.just("ask"), st.sampled_from([None, "t", "u"]), st.sampled_from(EMBEDDERS)),
        st.tuples(st.just("erase"), st.sampled_from(TEXTS), st.none()),
        st.tuples(st.just("keep only"), st.sampled_from(EMBEDDERS), st.none()),
        st.tuples(st.just("drop"), st.none(), st.none()),
        st.tuples(st.just("reopen"), st.none(), st.none()),
    ),
    max_size=25,
)


class Desk:
    """A store that is used all the time, another one on the same file, and what they should know."""

    def __init__(self, path: Path | str) -> None:
        self.path = path
        self.index = PassageList()
        self.known: dict[str, set[str]] = {one.model: set() for one in EMBEDDERS}
        self.store = SQLiteVectorStore(path, self.index)
        self.other = SQLiteVectorStore(path, self.index)

    def act(self, name: str, what: object, how: object) -> None:
        acts: dict[str, Callable[[], object]] = {
            "say": lambda: self.index.say(*_texts(what), thread_id=str(how)),
            "embed": lambda: self.embed(self.store, _texts(what), _embedder(how)),
            "embed elsewhere": lambda: self.embed(self.other, _texts(what), _embedder(how)),
            "ask": lambda: self.check(None if what is None else str(what), _embedder(how)),
            "erase": lambda: self.erase(str(what)),
            "keep only": lambda: self.keep_only(_embedder(what)),
            "drop": self.drop,
            "reopen": self.reopen,
        }
        acts[name]()

    def embed(self, store: SQLiteVectorStore, some: list[str], embedder: DigestEmbedder) -> None:
        assert store.add(embedder.model, {digest_of(t): embedder.vector(t) for t in some})
        self.known[embedder.model] |= set(some)

    def erase(self, text: str) -> None:
        self.index.erase(text)
        assert self.store.prune(lambda: [one.digest for one in self.index.all()])
        left = {one for _, one in self.index.texts}
        for known in self.known.values():
            known &= left

    def keep_only(self, embedder: DigestEmbedder) -> None:
        removed = self.store.keep_only(embedder.model)
        others = [m for m in self.known if m != embedder.model]
        assert removed == sum(len(self.known[model]) for model in others)
        for model in others:
            self.known[model] = set()

    def drop(self) -> None:
        assert self.store.drop()
        self.known = {model: set() for model in self.known}

    def reopen(self) -> None:
        self.store.close()
        self.store = SQLiteVectorStore(self.path, self.index)

    def check(self, thread_id: str | None, embedder: DigestEmbedder) -> None:
        """As a store that is made from nothing, and as a sum that is done by hand."""
        model, filters, query = embedder.model, Filters(thread_id), embedder.vector("text 3")
        found = rounded(self.store.nearest(model, query, filters, 100))
        with closing(SQLiteVectorStore(":memory:", self.index)) as fresh:
            vectors = {digest_of(t): embedder.vector(t) for t in self.known[model]}
            assert fresh.add(model, vectors)
            assert rounded(fresh.nearest(model, query, filters, 100)) == found
        passages = [p for p in self.index.all() if thread_id in (None, p.thread_id)]
        assert dict(found) == {
            number: round(cosine, ROUNDED)
            for number, cosine in self.store.cosines(model, query, passages).items()
        }
        expected = [p.number for p in passages if p.tokens.strip() in self.known[model]]
        assert sorted(number for number, _ in found) == expected
        assert self.store.count(model) == len(self.known[model])


def rounded(found: Sequence[Nearest]) -> list[tuple[int, float]]:
    return [(one.number, round(one.cosine, ROUNDED)) for one in found]


def _texts(what: object) -> list[str]:
    return TEXTS_OF.validate_python(what)


def _embedder(how: object) -> DigestEmbedder:
    assert isinstance(how, DigestEmbedder)
    return how


@given(steps)
def test_vectors_made_from_nothing_find_what_grown_ones_find(
    drawn: list[tuple[str, object, object]],
) -> None:
    with TemporaryDirectory() as folder:
        desk = Desk(Path(folder) / "agent.vectors.db")
        try:
            for name, what, how in drawn:
                desk.act(name, what, how)
            for embedder in EMBEDDERS:
                for thread_id in (None, "t", "u"):
                    desk.check(thread_id, embedder)
        finally:
            desk.store.close()
            desk.other.close()
