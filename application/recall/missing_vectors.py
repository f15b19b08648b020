"""The passages without a vector are looked for, and embedded batch by batch, newest first."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from refold.application.errors import EmbedderError
from refold.application.ports.recall_index import RecallIndex
from refold.application.ports.vectors import Embedder, Vector, VectorStore
from refold.application.runtime.foreign_code import Contained, describe
from refold.application.runtime.plain_lines import plain_logger, raised

from .passages import Passage

PAGE = 500
"""Passages that are looked at together."""
BATCH = 32
"""Texts that are embedded together, so long as they have no more than ``CHARACTERS``."""
CHARACTERS = 16_000
OF_A_TEXT = frozenset({"bad_request", "too_large", "bad_answer", "raised"})
"""Reasons that may lie in one of the texts: the others are embedded without it."""

Words = Callable[[Sequence[Passage]], Mapping[int, str]]
"""Reads what passages say from the log, by their numbers; what was erased since is left out."""

logger = plain_logger(__name__)


class Stopped(Exception):
    """Nothing more is to be done."""


class Outdated(Exception):
    """Something was erased meanwhile: what is to be embedded is to be looked for anew."""


@dataclass(slots=True)
class Coverage:
    """How many passages there are, and how many of them have no vector, in one edition of the index."""

    edition: int = -1
    upto: int = 0
    """The number of the last passage that was looked at."""
    total: int = 0
    lacking: int = 0
    refused: int = 0
    """Those of which no vector can be made; they are not among the lacking."""
    made: int = 0
    """Texts that were embedded since it was last told."""
    counted: bool = False
    """Whether all passages were looked at once; until then the figures are of a part of them."""


class MissingVectors:
    """Finds the passages that have no vector of the embedder's model, and makes it."""

    def __init__(
        self,
        index: RecallIndex,
        vectors: VectorStore,
        embedder: Embedder,
        *,
        words: Words,
        stopped: Callable[[], bool] = lambda: False,
        counted: Callable[[], None] = lambda: None,
    ) -> None:
        """``stopped`` is asked again and again: whether nothing more is to be done. ``counted`` is told
        when it is known what is missing.
        """
        self._index = index
        self._vectors = vectors
        self._embedder = embedder
        self._words = words
        self._stopped = stopped
        self._counted = counted
        self._refused: set[str] = set()
        self.coverage = Coverage()

    def counted(self) -> Coverage:
        """How it is now, without making any.

        Raises:
            Stopped: it is to stop.
        """
        found = Coverage(self._index.edition())
        self._look(found)
        return found

    def make(self) -> None:
        """Make all that are missing.

        Raises:
            EmbedderError: they cannot be made now.
            Outdated: something was erased meanwhile; begin anew.
            Stopped: it is to stop.
        """
        edition = self._index.edition()
        if edition != self.coverage.edition or self.coverage.lacking:
            self.coverage = Coverage(edition, made=self.coverage.made)
        for after in reversed(self._look(self.coverage)):
            self._make_page(self._index.passages(after, PAGE))
        self._check_edition()

    def _look(self, coverage: Coverage) -> list[int]:
        """Count on, and tell where something is missing; the passages themselves may be too many to keep."""
        todo: list[int] = []
        while page := self._index.passages(coverage.upto, PAGE):
            lacking = self._lacking(page)
            wanted = [passage for passage in lacking if passage.digest not in self._refused]
            if wanted:
                todo.append(coverage.upto)
            coverage.total += len(page)
            coverage.lacking += len(wanted)
            coverage.refused += len(lacking) - len(wanted)
            coverage.upto = page[-1].number
            self._check_stopped()
        coverage.counted = True
        self._counted()
        return todo

    def _lacking(self, page: Sequence[Passage]) -> list[Passage]:
        digests = [passage.digest for passage in page]
        missing = frozenset(self._vectors.missing(self._embedder.model, digests))
        return [passage for passage in page if passage.digest in missing]

    def _make_page(self, page: Sequence[Passage]) -> None:
        lacking = [p for p in self._lacking(page) if p.digest not in self._refused]
        # Another process may have made some since they were counted.
        texts = {passage.digest: passage for passage in reversed(lacking)}
        for batch in _batches(list(texts.values())):
            self._check_stopped()
            refused = self._make_batch(batch)
            self._refused |= refused
            done = {passage.digest for passage in batch}
            self._count([passage for passage in lacking if passage.digest in done], refused)

    def _count(self, passages: Sequence[Passage], refused: frozenset[str]) -> None:
        without = sum(passage.digest in refused for passage in passages)
        self.coverage.refused += without
        self.coverage.lacking = max(0, self.coverage.lacking - len(passages))

    def _make_batch(self, batch: Sequence[Passage]) -> frozenset[str]:
        """Embed these; those that cannot be are returned."""
        words = self._words(batch)
        texts = {p.digest: words[p.number] for p in batch if p.number in words}
        if len(texts) < len(batch):
            self._check_edition()  # Else the log lacks them for good.
        refusals = dict(self._embed(texts))
        if refusals and len(refusals) == len(texts) and not self.coverage.made:
            raise next(iter(refusals.values()))  # Not the texts are to blame.
        return frozenset(p.digest for p in batch if p.digest not in texts or p.digest in refusals)

    def _embed(self, texts: Mapping[str, str]) -> Iterator[tuple[str, EmbedderError]]:
        """Embed these texts; those that are refused are told apart by halving."""
        if not texts:
            return
        try:
            self._add(texts)
        except EmbedderError as error:
            if error.reason not in OF_A_TEXT:
                raise
            if len(texts) == 1:
                yield next(iter(texts)), error
                return
            self._check_stopped()
            digests, half = list(texts), len(texts) // 2
            yield from self._embed({digest: texts[digest] for digest in digests[:half]})
            yield from self._embed({digest: texts[digest] for digest in digests[half:]})

    def _add(self, texts: Mapping[str, str]) -> None:
        try:
            with Contained():
                vectors = self._embedder.embed_documents(list(texts.values()))
        except Exception as raised:  # An embedder of the user's own may raise anything.
            raise understood(raised) from raised
        if len(vectors) != len(texts):
            raise EmbedderError(
                "bad_answer", f"the embedder gave {len(vectors)} vectors of {len(texts)} texts"
            )
        self._check_stopped()
        made = dict(zip(texts, vectors, strict=True))
        # A text may have been erased while its vector was made: then nothing of this is kept.
        if not self._vectors.add(self._embedder.model, made, still=self._is_current):
            raise Outdated
        self.coverage.made += len(made)

    def _is_current(self) -> bool:
        return self._index.edition() == self.coverage.edition

    def _check_edition(self) -> None:
        if not self._is_current():
            raise Outdated

    def _check_stopped(self) -> None:
        if self._stopped():
            raise Stopped


def understood(error: Exception) -> EmbedderError:
    """What an exception means for search by meaning."""
    if isinstance(error, EmbedderError):
        return error
    kind = type(error).__name__
    if kind not in _told:  # Each text is tried again by itself.
        _told.add(kind)
        logger.warning("making vectors failed: %s", raised(error))
    return EmbedderError("raised", describe(error))


_told: set[str] = set()
"""The kinds of exceptions that the log has been told of."""


def _batches(passages: Sequence[Passage]) -> Iterator[list[Passage]]:
    batch: list[Passage] = []
    characters = 0
    for passage in passages:
        length = passage.stop - passage.start
        if batch and (len(batch) == BATCH or characters + length > CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(passage)
        characters += length
    if batch:
        yield batch


QUESTIONS_PAUSE, LONGEST_QUESTIONS_PAUSE = 10.0, 300.0
"""Seconds for which no question is embedded after one could not be, for each may take long to fail; twice as
long after each."""

Figures = Mapping[str, str | int | float]
Told = Callable[[str, Figures], None]
"""Is told what happened: a name and figures, never a text."""


class Asked:
    """An embedder that is asked for the vectors of questions."""

    def __init__(
        self, embedder: Embedder, vectors: VectorStore, told: Told = lambda name, figures: None
    ) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self._told = told
        self._has_any = False
        self._questions_failed = 0
        self._refused: tuple[float, EmbedderError] | None = None
        """When the last question was not embedded, and why."""
        self.losses = 0
        """How often vectors turned out to be damaged while they were searched."""

    def has_any(self) -> bool:
        """Whether there is a vector of this model at all.

        Raises:
            EmbedderError: vectors cannot be kept.
        """
        if not self._has_any:
            self._has_any = self._vectors.count(self._embedder.model) > 0
        return self._has_any

    def of_question(self, text: str) -> Vector:
        """The vector of a question.

        Raises:
            EmbedderError: there is none; for some seconds afterwards it is not even tried.
        """
        if self._refused is not None:
            refused_at, error = self._refused
            pause = QUESTIONS_PAUSE * 2 ** (self._questions_failed - 1)
            if time.monotonic() < refused_at + min(pause, LONGEST_QUESTIONS_PAUSE):
                raise EmbedderError(error.reason, str(error))
        try:
            with Contained():
                vector = self._embedder.embed_query(text)
            if not any(vector):
                raise EmbedderError("bad_answer", "the embedder gave nothing but zeros")
        except Exception as raised:  # An embedder of the user's own may raise anything.
            error = understood(raised)
            self._questions_failed += 1
            self._refused = (time.monotonic(), error)
            self._told("embedder.failed", self._reason(error))
            raise error from raised
        self._questions_failed, self._refused = 0, None
        return vector

    def lacks(self) -> str | None:
        """What results by meaning do not cover yet, in a few words; None: nothing that is known."""
        return None

    def _reason(self, error: EmbedderError) -> Figures:
        return {"embedder": self._embedder.name, "reason": error.reason}
