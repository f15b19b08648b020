"""Scenes for recall: conversations in a log in memory, with an index in a list and ports that can fail."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.errors import BackendError, EmbedderError
from refold.application.ports.conversation_log import ConversationLog, Damage, LoggedEvent
from refold.application.ports.embedder import Vector
from refold.application.ports.recall_index import NO_FILTERS, Filters, Found, Judge
from refold.application.ports.search_backend import BackendHit
from refold.application.ports.vectors import Nearest, always
from refold.application.recall.passages import BEGINNING, Passage, passages_of
from refold.application.runtime.core import Core, RecallParts
from refold.application.runtime.memory_settings import RecallMode
from refold.domain.events import Event
from tests.support.fake_ports import MemoryLog, core_of


class TimedLog(MemoryLog):
    """A log in lists whose events are logged a minute apart."""

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        found = super().read(thread_id, first, last)
        return [replace(logged, at=_minute(logged.version)) for logged in found]


def _minute(version: int) -> str:
    return f"2026-01-02T{version // 60 % 24:02}:{version % 60:02}:00.000000Z"


class ListedIndex:
    """An index in a list, folded anew at each question; it counts tokens. ``before_answering`` runs once,
    between finding and answering: a writer in between.
    """

    def __init__(self, log: ConversationLog) -> None:
        self._log = log
        self.before_answering: Callable[[], object] | None = None

    def edition(self) -> int:
        return 0

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
        judge: Judge | None = None,
    ) -> Found:
        everything = self._all()
        fitting = [p for p in everything if _fits(p, filters)]
        counted = [(sum(f" {t} " in p.tokens for t in tokens), p) for p in fitting]
        best = sorted((c for c in counted if c[0]), key=lambda c: -c[0])
        found = [p for _, p in best[:limit]]
        found += [p for p in fitting if p.number in also and p not in found]
        beside = {(p.thread_id, p.position + step) for p in found for step in (-1, 1)}
        frequencies = {t: sum(f" {t} " in p.tokens for p in everything) for t in tokens}
        between, self.before_answering = self.before_answering, None
        if between is not None:
            between()
        without = Found(found, {}, frequencies, len(everything))
        if judge is not None and not judge.wants_neighbours(without):
            return without
        return without._replace(neighbours=_by_message(everything, beside))

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        return [p for p in self._all() if p.number > after and _fits(p, filters)][:limit]

    def digests(self) -> set[str]:
        return {p.digest for p in self._all()}

    def check(self) -> Iterator[Damage]:
        return iter(())

    def rebuild(self) -> int:
        return 0

    def forget_erased(self) -> bool:
        return True

    def drop(self) -> bool:
        return True

    def close(self) -> None:
        pass

    def _all(self) -> list[Passage]:
        found: list[Passage] = []
        before = dict.fromkeys((logged.thread_id for logged in self._log.scan()), BEGINNING)
        for logged in self._log.scan():
            if (message := logged.message) is not None:
                made, before[logged.thread_id] = passages_of(
                    logged, message, before[logged.thread_id], len(found) + 1
                )
                found += made
        return found


def _by_message(
    passages: Sequence[Passage], wanted: set[tuple[str, int]]
) -> Mapping[tuple[str, int], Sequence[Passage]]:
    found: dict[tuple[str, int], list[Passage]] = {}
    for passage in passages:
        if (place := (passage.thread_id, passage.position)) in wanted:
            found.setdefault(place, []).append(passage)
    return found


def _fits(passage: Passage, filters: Filters) -> bool:
    first, last = filters.positions or (0, passage.position + 1)
    return (
        filters.thread_id in (None, passage.thread_id)
        and (not filters.roles or passage.role in filters.roles)
        and (not filters.kinds or passage.kind in filters.kinds)
        and (not filters.tools or passage.tool in filters.tools)
        and (filters.since is None or passage.at >= filters.since)
        and (filters.until is None or passage.at < filters.until)
        and first <= passage.position < last
        and passage.position not in filters.leave_out
    )


class Scene:
    """A memory on fakes, with whatever recall is given to work with."""

    def __init__(self, *events: Event, window: int = 8_000) -> None:
        self.log = TimedLog()
        self.log.streams["t"] = list(events)
        self.index = ListedIndex(self.log)
        self.core: Core = replace(
            core_of(self.log, window=window), recall=RecallParts(index=self.index)
        )

    def equipped(
        self,
        *,
        embedder: "TopicEmbedder | None" = None,
        backend: "ScriptedBackend | None" = None,
    ) -> "Scene":
        """The same with an embedder whose vectors are all made, or with a search program."""
        vectors = None if embedder is None else ListedVectors(self.index, embedder)
        parts = RecallParts(index=self.index, vectors=vectors, embedder=embedder, backend=backend)
        self.core = replace(self.core, recall=parts)
        return self

    @property
    def memory(self) -> Memory:
        return Memory(self.core)

    @property
    def conversation(self) -> ConversationMemory:
        return self.memory.conversation("t")


class TopicEmbedder:
    """Vectors by what a text is about: the first word of each topic that it has stands for all of them."""

    name = "topics"
    model = "topics-1"

    def __init__(self, *topics: str, fails: Exception | None = None) -> None:
        self._topics = [topic.split() for topic in topics]
        self._fails = fails

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        if self._fails is not None:
            raise self._fails
        return self._vector(text)

    def _vector(self, text: str) -> Vector:
        return [float(any(word in text for word in topic)) for topic in self._topics]


class ListedVectors:
    """The vectors of everything that is indexed, made whenever they are asked for."""

    def __init__(self, index: ListedIndex, embedder: TopicEmbedder) -> None:
        self._index = index
        self._embedder = embedder
        self.texts: dict[str, str] = {}
        """By digest: what each passage says; without one, it has no vector yet."""
        self.broken = False

    def missing(self, model: str, digests: Sequence[str]) -> Sequence[str]:
        del model
        return [digest for digest in digests if digest not in self.texts]

    def add(
        self, model: str, vectors: Mapping[str, Vector], *, still: Callable[[], bool] = always
    ) -> bool:
        raise AssertionError((model, vectors, still))

    def nearest(self, model: str, query: Vector, filters: Filters, limit: int) -> Sequence[Nearest]:
        if self.broken:
            raise EmbedderError("dimension", "the vectors have another dimension")
        passages = self._index.passages(filters=filters)
        near = self.cosines(model, query, passages)
        best = sorted(near.items(), key=lambda one: -one[1])[:limit]
        return [Nearest(number, cosine) for number, cosine in best]

    def cosines(
        self, model: str, query: Vector, passages: Sequence[Passage]
    ) -> Mapping[int, float]:
        del model
        known = [p for p in passages if p.digest in self.texts]
        made = self._embedder.embed_documents([self.texts[p.digest] for p in known])
        return {p.number: _cosine(query, vector) for p, vector in zip(known, made, strict=True)}

    def settle(self, model: str) -> None:
        raise AssertionError(model)

    def describe(self) -> str | None:
        return None

    def keep_only(self, model: str) -> int:
        del model
        return 0

    def prune(self, keep: Callable[[], Iterable[str]]) -> bool:
        del keep
        return True

    def count(self, model: str) -> int:
        del model
        return len(self.texts)

    def check(self) -> Iterator[Damage]:
        return iter(())

    def mend(self) -> None:
        pass

    def drop(self) -> bool:
        return True

    def close(self) -> None:
        pass


def _cosine(one: Vector, other: Vector) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    length = (sum(a * a for a in one) * sum(b * b for b in other)) ** 0.5
    return product / length if length else 0.0


class ScriptedBackend:
    """A search program that always finds the same, or fails."""

    name = "scripted"

    def __init__(self, *hits: BackendHit, fails: str = "") -> None:
        self._hits, self._fails = hits, fails
        self.asked: list[tuple[str, RecallMode, str | None]] = []

    def find(
        self, query: str, mode: RecallMode, thread_id: str | None, limit: int
    ) -> Sequence[BackendHit]:
        self.asked.append((query, mode, thread_id))
        if self._fails:
            raise BackendError("timeout", self._fails)
        return self._hits[:limit]

    def drop(self) -> bool:
        return True

    def close(self) -> None:
        pass
