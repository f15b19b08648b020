"""Find passages without vectors and embed them in batches, newest first."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from refold.application.errors import EmbedderError
from refold.application.ports.embedder import Embedder, Vector
from refold.application.ports.recall_index import RecallIndex
from refold.application.ports.vectors import VectorStore
from refold.application.runtime.foreign_code import Contained, describe
from refold.application.runtime.plain_lines import plain_logger, raised

from .passages import Passage

PAGE = 500
"""Number of passages to check at a time."""
BATCH = 32
"""Number of texts to embed at a time, unless they exceed ``CHARACTERS``."""
CHARACTERS = 16_000
OF_A_TEXT = frozenset({"bad_request", "too_large", "bad_answer", "raised"})
"""Failure reasons that a single text can cause; the other texts are then embedded without it."""

Words = Callable[[Sequence[Passage]], Mapping[int, str]]
"""Reads the words of passages from the log, by passage number; erased ones are left out."""

logger = plain_logger(__name__)


class Stopped(Exception):
    """The work was cancelled."""


class Outdated(Exception):
    """Something was erased in the meantime, so missing vectors must be searched for again."""


@dataclass(slots=True)
class Coverage:
    """Number of passages with and without vectors, in one edition of the index."""

    edition: int = -1
    upto: int = 0
    """Number of the last passage that was checked."""
    total: int = 0
    lacking: int = 0
    refused: int = 0
    """Passages that cannot have a vector; ``lacking`` excludes them."""
    made: int = 0
    """Texts that were embedded since the last report."""
    counted: bool = False
    """True once all passages were checked; before that, the figures cover only some of them."""


@dataclass(frozen=True, slots=True)
class _Page:
    """Passages of the index that were counted together."""

    after: int
    """Number of the last passage before the page."""
    wanted: int
    """Number of its passages that were counted as lacking."""
    refused: int
    """Number of its passages that were counted as refused."""


class MissingVectors:
    """Finds passages without a vector of the embedder's model, and makes the vectors."""

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
        """Prepare the search.

        ``stopped`` is called repeatedly and returns true to cancel. ``counted`` is called when the
        missing vectors are known.
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
        """Count the passages with and without vectors.

        Raises:
            Stopped: the work was cancelled.
        """
        found = Coverage(self._index.edition())
        self._count_missing(found)
        return found

    def make(self) -> None:
        """Make all missing vectors.

        Raises:
            EmbedderError: they cannot be made now.
            Outdated: something was erased in the meantime; start again.
            Stopped: the work was cancelled.
        """
        edition = self._index.edition()
        if edition != self.coverage.edition or self.coverage.lacking:
            self.coverage = Coverage(edition, made=self.coverage.made)
        for page in reversed(self._count_missing(self.coverage)):
            self._embed_page(page)
        self._check_edition()

    def _count_missing(self, coverage: Coverage) -> list[_Page]:
        """Continue to count. Return the pages of passages with missing vectors.

        The passages themselves would need too much memory.
        """
        todo: list[_Page] = []
        while page := self._index.passages(coverage.upto, PAGE):
            lacking = self._lacking(page)
            wanted = [passage for passage in lacking if passage.digest not in self._refused]
            refused = len(lacking) - len(wanted)
            if wanted:
                todo.append(_Page(coverage.upto, len(wanted), refused))
            coverage.total += len(page)
            coverage.lacking += len(wanted)
            coverage.refused += refused
            coverage.upto = page[-1].number
            self._check_stopped()
        coverage.counted = True
        self._counted()
        return todo

    def _lacking(self, page: Sequence[Passage]) -> list[Passage]:
        digests = [passage.digest for passage in page]
        missing = frozenset(self._vectors.missing(self._embedder.model, digests))
        return [passage for passage in page if passage.digest in missing]

    def _embed_page(self, page: _Page) -> None:
        without = self._lacking(self._index.passages(page.after, PAGE))
        lacking = [p for p in without if p.digest not in self._refused]
        # The same texts on newer pages, or another process, settled some since they were counted.
        newly_refused = len(without) - len(lacking) - page.refused
        self._count(page.wanted - len(lacking), max(0, newly_refused))
        texts = {passage.digest: passage for passage in reversed(lacking)}
        for batch in _batches(list(texts.values())):
            self._check_stopped()
            refused = self._embed_batch(batch)
            self._refused |= refused
            done = {passage.digest for passage in batch}
            settled = [passage.digest for passage in lacking if passage.digest in done]
            self._count(len(settled), sum(digest in refused for digest in settled))

    def _count(self, settled: int, refused: int) -> None:
        """Count passages that lack no vector any more; of these, ``refused`` cannot have one."""
        self.coverage.refused += refused
        self.coverage.lacking = max(0, self.coverage.lacking - settled)

    def _embed_batch(self, batch: Sequence[Passage]) -> frozenset[str]:
        """Embed these passages and return the digests of those that were refused."""
        words = self._words(batch)
        texts = {p.digest: words[p.number] for p in batch if p.number in words}
        if len(texts) < len(batch):
            self._check_edition()  # Otherwise the log lost them for good.
        refusals = dict(self._embed(texts))
        if refusals and len(refusals) == len(texts) and not self.coverage.made:
            raise next(iter(refusals.values()))  # The texts are not the cause.
        return frozenset(p.digest for p in batch if p.digest not in texts or p.digest in refusals)

    def _embed(self, texts: Mapping[str, str]) -> Iterator[tuple[str, EmbedderError]]:
        """Embed these texts and yield those that are refused, found by bisection."""
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
        except Exception as raised:  # An embedder of the user may raise anything.
            raise to_embedder_error(raised) from raised
        if len(vectors) != len(texts):
            raise EmbedderError(
                "bad_answer", f"the embedder returned {len(vectors)} vectors for {len(texts)} texts"
            )
        self._check_stopped()
        made = dict(zip(texts, vectors, strict=True))
        # If a text may have been erased while its vector was made, discard all of these vectors.
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


def to_embedder_error(error: Exception) -> EmbedderError:
    """Return the exception as an embedder error."""
    if isinstance(error, EmbedderError):
        return error
    kind = type(error).__name__
    if kind not in _logged_kinds:  # Every text is retried alone, so log each kind only once.
        _logged_kinds.add(kind)
        logger.warning("making vectors failed: %s", raised(error))
    return EmbedderError("raised", describe(error))


_logged_kinds: set[str] = set()
"""Kinds of exceptions that were logged."""


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
"""Shortest and longest seconds without embedding after a question failed. Each failure doubles the pause."""

Figures = Mapping[str, str | int | float]
Report = Callable[[str, Figures], None]
"""Reports an event by name with figures, never with a text."""


class QuestionEmbedder:
    """Embedder of questions."""

    def __init__(
        self, embedder: Embedder, vectors: VectorStore, report: Report = lambda name, figures: None
    ) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self._report = report
        self._has_any = False
        self._questions_failed = 0
        self._refused: tuple[float, EmbedderError] | None = None
        """Time and reason of the last failure to embed a question, or None."""
        self.losses = 0
        """Number of times that damaged vectors were found during searches."""

    def has_any(self) -> bool:
        """Return whether any vector of this model exists.

        Raises:
            EmbedderError: the vectors cannot be stored.
        """
        if not self._has_any:
            self._has_any = self._vectors.count(self._embedder.model) > 0
        return self._has_any

    def embed_question(self, text: str) -> Vector:
        """Return the vector of a question.

        Raises:
            EmbedderError: it cannot be made; for some seconds, further calls fail at once.
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
                raise EmbedderError("bad_answer", "the embedder returned only zeros")
        except Exception as raised:  # An embedder of the user may raise anything.
            error = to_embedder_error(raised)
            self._questions_failed += 1
            self._refused = (time.monotonic(), error)
            self._report("embedder.failed", self._reason(error))
            raise error from raised
        self._questions_failed, self._refused = 0, None
        return vector

    def describe_missing(self) -> str | None:
        """Describe missing vectors, or return None if none are known."""
        return None

    def _reason(self, error: EmbedderError) -> Figures:
        return {"embedder": self._embedder.name, "reason": error.reason}
