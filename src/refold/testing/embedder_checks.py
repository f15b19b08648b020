"""``check_embedder``: embed known texts, and find errors that would break search by meaning."""

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import cast

from refold.application.errors import EmbedderError
from refold.application.ports.embedder import Embedder, Vector
from refold.application.runtime.foreign_code import Contained
from refold.testing.findings import (
    Findings,
    NeverEnded,
    Report,
    describe_error,
    name_of,
    show_value,
)
from refold.testing.sample_texts import ODD
from refold.testing.watched_calls import run_within

SAME = 0.99
"""Minimum cosine of two vectors of the same text. Small quantised models vary a little."""
APART = 0.9999
"""Maximum cosine of two vectors of different texts."""
LONGEST, SHORTEST = 1e6, 1e-6
"""Vector lengths between which 32-bit floats can be multiplied."""
MANY = 150
THREADS = 4

TEXTS = (
    "How do I reset the password of the staging database?",
    "The invoice totals are off by one cent because floats are rounded.",
    "Watering must never start before 05:40, the neighbours complained.",
    "请检查昨天的对账结果,退款没有计入。",
    "def rounded(amount): return amount.quantize(CENT, ROUND_HALF_EVEN)",
    "Release 31 renames the option --fast to --quick.",
    "Der Bericht für Mai ist fertig und liegt im Ordner reports.",
    "👍 Thanks, that is all for now!",
)
_VECTORS = "Return one list of floats for each text, in the order of the texts."
_STATELESS = "Embed each text by itself: pad with a mask, and normalise no batch as a whole."


def check_embedder(embedder: Embedder, *, timeout: float = 120.0) -> Report:
    """Check that an embedder returns one valid vector for each text, regardless of other texts.

    Only the direction of a vector counts, so vectors need not be normalised.

    Args:
        embedder: your embedder, as for ``refold.open(embedder=…)``. It is called about thirty times.
        timeout: seconds within which a call must return.

    Returns:
        The report with the names of the probes.

    Raises:
        CheckFailed: rules are broken; the message has the expected and the seen result of each, and
            advice.

    >>> class Flat:
    ...     name = model = "flat"
    ...     def embed_documents(self, texts): return [[1.0, 0.0]] * len(texts)
    ...     def embed_query(self, text): return [1.0, 0.0]
    >>> check_embedder(Flat())
    Traceback (most recent call last):
    refold.testing.CheckFailed: Flat breaks 2 rules: …
    """
    findings = Findings(name_of(embedder))
    check = _Check(embedder, findings, timeout)
    if check.shape():
        check.everything()
    return findings.settle()


class _Check:
    """The checks of one embedder."""

    def __init__(self, embedder: Embedder, findings: Findings, timeout: float) -> None:
        self._embedder = embedder
        self._findings = findings
        self._timeout = timeout
        self._dimension = 0

    def shape(self) -> bool:
        """Check names and methods, and return whether the embedder can be called."""
        for name in ("name", "model"):
            with self._findings.probe(name, advice=f"Make `{name}` a plain attribute."):
                values: list[object] = [getattr(self._embedder, name, None) for _ in range(2)]
                self._findings.require(
                    isinstance(values[0], str)
                    and bool(values[0].strip())
                    and values[0] == values[1],
                    "names",
                    expected=f"an attribute `{name}`: a text, always the same",
                    seen=f"{show_value(values[0])}, then {show_value(values[1])}",
                    advice="Name the model exactly: vectors of two models are never compared.",
                )
        methods = ("embed_documents", "embed_query")
        found = [getattr(self._embedder, method, None) for method in methods]
        return self._findings.require(
            all(callable(f) and not inspect.iscoroutinefunction(f) for f in found),
            "methods",
            expected="embed_documents(texts) and embed_query(text), which block and return vectors",
            seen=", ".join(f"{m}: {show_value(f)}" for m, f in zip(methods, found, strict=True)),
            advice="Add what is missing; write no `async def`: refold calls it in a thread.",
        )

    def everything(self) -> None:
        """Embed all texts. Stop after a call that never returns."""
        probes: tuple[tuple[str, Callable[[], None]], ...] = (
            ("documents", self._documents),
            ("questions", self._questions),
            ("other orders and batches", self._batches),
            ("many texts at once", self._many),
            ("long and odd texts", self._odd),
            ("vectors that are kept", self._kept),
            ("several threads", self._threads),
        )
        try:
            for name, probe in probes:
                with self._findings.probe(
                    name, advice="Raise EmbedderError where it cannot answer."
                ):
                    probe()
        except NeverEnded as error:
            self._findings.add(
                "timeout",
                expected=f"vectors, or an EmbedderError, within {self._timeout:g} s",
                seen=str(error),
                advice="Give the call of the model a time-out, and raise EmbedderError('timeout', …).",
            )

    def _embed(self, texts: Sequence[str], name: str) -> list[list[float]]:
        """Return valid vectors of documents, or an empty list."""
        given = list(texts)
        answer = run_within(lambda: self._embedder.embed_documents(given), self._timeout)
        self._findings.require(
            given == list(texts),
            "mutates",
            expected="an unchanged list of texts",
            seen=f"{show_value(given)} ({name})",
            advice="Copy the list before you sort or shorten it.",
        )
        return self._sound(answer, len(texts), name)

    def _embed_query(self, text: str, name: str) -> list[float]:
        answer = run_within(lambda: self._embedder.embed_query(text), self._timeout)
        sound = self._sound([answer], 1, name)
        return sound[0] if sound else []

    def _sound(self, answer: object, count: int, name: str) -> list[list[float]]:
        if not self._findings.require(
            hasattr(answer, "__len__") and hasattr(answer, "__getitem__"),
            "type",
            expected="a sequence of vectors",
            seen=f"{type(answer).__name__} ({name})",
            advice=_VECTORS,
        ):
            return []
        vectors = cast("Sequence[object]", answer)
        if not self._findings.require(
            len(vectors) == count,
            "count",
            expected=f"{count} vectors for {count} texts",
            seen=f"{len(vectors)} ({name})",
            advice="Go through all texts, in batches where the model takes a few at a time only.",
        ):
            return []
        read = [self._numbers(vector, name) for vector in vectors]
        return [] if any(not numbers for numbers in read) else read

    def _numbers(self, vector: object, name: str) -> list[float]:
        try:
            raw = list(cast("Iterable[object]", vector))
            if any(isinstance(x, str | bytes | bool) for x in raw):
                raise TypeError("a text or a boolean is not a number")
            numbers = [float(cast("float", x)) for x in raw]
        except Exception as error:
            self._findings.add(
                "type",
                expected="a vector of numbers",
                seen=f"{show_value(vector)}: {describe_error(error)} ({name})",
                advice=_VECTORS,
            )
            return []
        self._dimension = self._dimension or len(numbers)
        holds = self._findings.require(
            len(numbers) == self._dimension > 1,
            "dimension",
            expected=f"vectors of one dimension, such as the first one with {self._dimension}, over 1",
            seen=f"{len(numbers)} ({name})",
            advice="Return the whole vector of the model, for questions and for documents.",
        )
        holds &= self._findings.require(
            all(math.isfinite(x) for x in numbers),
            "finite",
            expected="finite numbers",
            seen=f"{show_value(numbers)} ({name})",
            advice="Do not divide by a length of 0; check what the model returned.",
        )
        return numbers if holds else []

    def _documents(self) -> None:
        vectors = self._embed(TEXTS, "eight texts")
        lengths = [math.hypot(*vector) for vector in vectors]
        self._findings.require(
            all(SHORTEST <= length <= LONGEST for length in lengths),
            "length",
            expected=f"vectors with a direction, of lengths between {SHORTEST:g} and {LONGEST:g}",
            seen=f"lengths {show_value(lengths)}",
            advice="Normalise vectors to the length 1.",
        )
        if all(lengths):
            self._distinct(vectors)

    def _distinct(self, vectors: Sequence[Sequence[float]]) -> None:
        for n, one in enumerate(vectors):
            for m, other in enumerate(vectors[:n]):
                self._findings.require(
                    cosine(one, other) < APART,
                    "distinct",
                    expected="different directions for different texts",
                    seen=f"cosine {cosine(one, other):.5f} of {show_value(TEXTS[n])} and {show_value(TEXTS[m])}",
                    advice="Embed the text itself, in every script; cut it at its end.",
                )

    def _questions(self) -> None:
        vectors = self._embed(TEXTS, "eight texts")
        for n, text in enumerate(TEXTS if vectors else ()):
            query = self._embed_query(text, "a question")
            again = self._embed_query(text, "the same question again")
            if not (query and again):
                return
            self._same(query, again, f"a question twice: {show_value(text)}")
            nearest = max(range(len(vectors)), key=lambda m: cosine(query, vectors[m]))
            self._findings.require(
                nearest == n,
                "question",
                expected=f"a question nearest to the document of the same words: {show_value(text)}",
                seen=f"it is nearer to {show_value(TEXTS[nearest])}",
                advice="Use one model for both, with its own prefix for questions where it has one.",
            )

    def _same(self, one: Sequence[float], other: Sequence[float], name: str) -> None:
        self._findings.require(
            cosine(one, other) >= SAME,
            "deterministic",
            expected="the same direction for the same text, every time",
            seen=f"cosine {cosine(one, other):.3f} ({name})",
            advice="Turn dropout off (model.eval()), use no random numbers, and keep no state.",
        )

    def _batches(self) -> None:
        together = self._embed(TEXTS, "eight texts")
        if not together:
            return
        self._compare(together, self._embed(TEXTS, "eight texts again"), "again", "deterministic")
        turned = self._embed(TEXTS[::-1], "eight texts in another order")
        self._compare(together, turned[::-1], "in another order", "order")
        alone = [v for text in TEXTS for v in self._embed([text], "a text alone")]
        self._compare(together, alone, "one by one", "batch")
        padded = self._embed([*TEXTS, "word " * 300], "eight texts with a long one")
        self._compare(together, padded[:-1], "next to a long one", "batch")
        twice = self._embed([TEXTS[0], TEXTS[1], TEXTS[0]], "a text twice")
        self._compare([together[n] for n in (0, 1, 0)], twice, "where one is there twice", "batch")

    def _compare(
        self,
        expected: Sequence[Sequence[float]],
        seen: Sequence[Sequence[float]],
        how: str,
        rule: str,
    ) -> None:
        for text, one, other in zip(TEXTS, expected, seen, strict=False):
            self._findings.require(
                cosine(one, other) >= SAME,
                rule,
                expected=f"the same direction for a text {how}",
                seen=f"cosine {cosine(one, other):.3f} for {show_value(text)}",
                advice=_STATELESS if rule == "batch" else _VECTORS,
            )

    def _many(self) -> None:
        texts = [f"{TEXTS[n % 8]} Number {n}." for n in range(MANY)]
        vectors = self._embed(texts, f"{MANY} texts at once")
        for n in (0, MANY // 2, MANY - 1) if vectors else ():
            for alone in self._embed([texts[n]], "a text alone"):
                self._findings.require(
                    cosine(alone, vectors[n]) >= SAME,
                    "order",
                    expected="the vector of each text at the place of the text",
                    seen=f"text {n} of {MANY} has another vector than by itself",
                    advice=_VECTORS,
                )

    def _odd(self) -> None:
        odd = {**ODD, "an empty text": "", "a blank text": " \n", "a long text": "word " * 20_000}
        for name, text in odd.items():
            asking = (partial(self._embed, [text], name), partial(self._embed_query, text, name))
            for ask in asking:
                self._refusing(ask, name)

    def _refusing(self, ask: Callable[[], object], name: str) -> None:
        try:
            with Contained():
                ask()
        except (EmbedderError, NeverEnded) as error:
            if isinstance(error, NeverEnded):
                raise
        except Exception as error:
            self._findings.add(
                "raises",
                expected="a vector, or an EmbedderError",
                seen=f"{describe_error(error)} ({name})",
                advice="Cut what is too long, and raise EmbedderError('bad_request', …) for what the "
                "model does not take.",
            )

    def _kept(self) -> None:
        first = self._embedder.embed_documents(TEXTS[:2])
        kept = [list(vector) for vector in first]
        self._embedder.embed_documents(TEXTS[2:4])
        self._findings.require(
            [list(vector) for vector in first] == kept,
            "reuses",
            expected="vectors that stay as they are when others are made",
            seen="the second call changed the vectors of the first one",
            advice="Copy vectors out of the buffer of the model before you return them.",
        )

    def _threads(self) -> None:
        alone = self._embed(TEXTS, "eight texts")
        if not alone:
            return

        def embed(n: int) -> list[list[float]]:
            some = TEXTS[n:] + TEXTS[:n]
            answer = self._embedder.embed_documents(some)
            vectors = [[float(x) for x in vector] for vector in answer]
            return vectors[len(vectors) - n :] + vectors[: len(vectors) - n]

        with ThreadPoolExecutor(THREADS) as threads:
            for vectors in threads.map(embed, [*range(THREADS)] * 3):
                for one, other in zip(alone, vectors, strict=True):
                    self._findings.require(
                        cosine(one, other) >= SAME,
                        "threads",
                        expected="the same vectors when several threads ask at a time",
                        seen=f"cosine {cosine(one, other):.3f} in {THREADS} threads",
                        advice="Guard what the model shares between calls with a lock.",
                    )


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of two vectors, or 0 if one has length zero or their dimensions differ."""
    lengths = math.hypot(*one) * math.hypot(*other)
    if not lengths or len(one) != len(other):
        return 0.0
    return sum(x * y for x, y in zip(one, other, strict=True)) / lengths
