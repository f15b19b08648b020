"""What a search by meaning does not cover, and why, is in the answer; what it covers is not doubted."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.errors import EmbedderError
from refold.application.ports.embedder import Vector
from refold.application.ports.vectors import Nearest
from refold.application.recall import embedding as schedule
from refold.application.runtime.memory_settings import RecallMode
from refold.infrastructure.recall.vectors import SQLiteVectorStore
from tests.support.fake_embedders import DigestEmbedder, FailingEmbedder, HeldEmbedder

SAID = tuple(f"Postgres listens on {5433 + number}." for number in range(5))
WAIT = 30.0


class Zeros(DigestEmbedder):
    def embed_query(self, text: str) -> Vector:
        return [0.0] * self.dimension


class Wrong(FailingEmbedder):
    """A key that is not known."""

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        raise EmbedderError("authentication", "the key is not known")

    def embed_query(self, text: str) -> Vector:
        raise EmbedderError("authentication", "the key is not known")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "agent.db"
    with refold.open(path) as memory:
        memory.conversation("t").append([{"role": "user", "content": text} for text in SAID])
    return path


@pytest.fixture
def embedded(path: Path) -> Path:
    with refold.open(path, embedder=DigestEmbedder()) as memory:
        progress = memory.embed(WAIT)
        assert progress is not None
        assert progress.done == len(SAID)
    return path


def test_the_first_search_after_opening_doubts_nothing_that_is_there(
    embedded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "COUNTING", WAIT)  # A busy machine may take longer.
    for _ in range(5):
        with refold.open(embedded, embedder=DigestEmbedder()) as memory:
            found = memory.conversation("t").recall("postgres")
            assert (found.mode, found.notice) == ("hybrid", None)


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_the_first_search_says_why_an_embedder_fails(path: Path, mode: RecallMode) -> None:
    with refold.open(path, embedder=Wrong()) as memory:
        found = memory.conversation("t").recall("postgres", mode=mode)
        assert found.mode == "keyword"
        assert found.notice == "searched by words alone: the key is not known"
        assert found.hits


def test_vectors_of_another_dimension_are_told_and_made_anew(
    embedded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "COUNTING", WAIT)
    with refold.open(embedded, embedder=DigestEmbedder(dimension=24)) as memory:
        conversation = memory.conversation("t")
        found = conversation.recall("postgres", mode="vector")
        assert found.mode == "keyword"
        assert "computed again" in str(found.notice)
        assert found.hits
        progress = memory.embed(WAIT)
        assert progress is not None
        assert (progress.done, progress.error) == (len(SAID), None)
        again = conversation.recall(SAID[3], mode="vector")
        assert (again.mode, again.notice, again.hits[0].position) == ("vector", None, 3)


def test_the_answer_that_meets_a_damaged_vector_says_so(embedded: Path) -> None:
    with closing(sqlite3.connect(embedded.with_name("agent.vectors.db"))) as other, other:
        other.execute("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE id = 1")
    with refold.open(embedded, embedder=DigestEmbedder()) as memory:
        found = memory.conversation("t").recall("postgres")
        assert "damaged vectors were left out" in str(found.notice)


def test_a_question_without_a_direction_is_searched_by_words(embedded: Path) -> None:
    with refold.open(embedded, embedder=Zeros()) as memory:
        found = memory.conversation("t").recall("postgres", mode="vector")
        assert (found.mode, len(found.hits)) == ("keyword", 5)
        assert "only zeros" in str(found.notice)


def test_vectors_that_are_made_while_it_searches_do_not_vouch_for_the_answer(
    embedded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "COUNTING", WAIT)
    held, search = HeldEmbedder(), SQLiteVectorStore.nearest
    with refold.open(embedded, embedder=held) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "Postgres has a newer port"})

        def nearest(self: SQLiteVectorStore, *asked: Any) -> Sequence[Nearest]:
            found = search(self, *asked)
            held.let.set()
            memory.embed(WAIT)
            return found

        monkeypatch.setattr(SQLiteVectorStore, "nearest", nearest)
        assert "vectors are still being made (5 of 6)" in str(
            conversation.recall("postgres").notice
        )
        assert conversation.recall("postgres").notice is None
