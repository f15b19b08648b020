"""Checks of a token counter on texts: integer, monotone, additive, repeatable and fast."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from itertools import combinations, pairwise

from refold.domain.messages import Message
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.testing import counted_samples as samples
from refold.testing.counting import Counting
from refold.testing.findings import show_value
from refold.testing.sample_talks import message

LEAST_SHARE, MOST_SHARE = 0.4, 3.0
"""Allowed ratio to the built-in estimate, which itself is up to a third too high."""
MERGED = 2
"""Number of tokens by which one more character may lower a count, because vocabularies merge characters."""
QUICK = 0.003
"""Maximum seconds for a text of a thousand characters."""
QUICK_FOR_LARGE = 0.5
"""Maximum seconds for a text of a hundred thousand characters."""
THREADS = 4

_SCRIPTS = (
    "Count by tokens of the model, or by classes of characters: an ideograph is a token or so."
)


class TextChecks(Counting):
    """The checks of ``count_text``."""

    def probes(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield the probes with their names."""
        yield "texts", self._texts
        yield "texts of all scripts", self._scripts
        yield "odd texts", self._odd_texts
        yield "texts that grow", self._growing_texts
        yield "texts that are joined", self._joined
        yield "the same again", self._again
        yield "several threads", self._threads
        yield "speed", self._speed

    def _texts(self) -> None:
        empty = self.text("", "an empty text")
        self._findings.require(
            empty == 0,
            "empty",
            expected="0 tokens for an empty text",
            seen=f"{empty}",
            advice="Count what a message costs besides its text in count_message.",
        )
        for name, text in {**samples.SHORT, **samples.KINDS}.items():
            self._findings.require(
                self.text(text, name) > 0,
                "zero",
                expected="at least one token for a text",
                seen=f"0 for {name}: {show_value(text)}",
                advice="Round up, and count every script and sign.",
            )

    def _scripts(self) -> None:
        reference = EstimatingTokenCounter()
        for name, text in samples.KINDS.items():
            counted, estimated = self.text(text, name), reference.count_text(text)
            self._findings.require(
                counted >= LEAST_SHARE * estimated,
                "too_low",
                expected=f"about {estimated} tokens for {len(text)} characters of {name}",
                seen=f"{counted}: requests would not fit",
                advice=_SCRIPTS,
            )
            self._findings.require(
                counted <= MOST_SHARE * estimated,
                "too_high",
                expected=f"about {estimated} tokens for {len(text)} characters of {name}",
                seen=f"{counted}: the window would be used to a part only",
                advice="Count tokens, not characters or bytes.",
            )

    def _odd_texts(self) -> None:
        for name, text in samples.ODD.items():
            with self._findings.probe(name, advice="Count any content of a log; never raise."):
                self._findings.require(
                    self.text(text, name) > 0,
                    "zero",
                    expected="at least one token for a text",
                    seen=f"0 for {name}",
                    advice="Round up, and count every script and sign.",
                )

    def _growing_texts(self) -> None:
        sizes = [self.text("".join(samples.STEPS[:n]), f"{n} sentences") for n in range(7)]
        for step, (fewer, more) in zip(samples.STEPS, pairwise(sizes), strict=True):
            self._report_lowered(
                fewer < more, f"{fewer}, then {more} with {show_value(step)} after it"
            )
        for name, text in samples.KINDS.items():
            sizes = [self.text(text[:n], f"a part of {name}") for n in range(len(text))]
            for n, (fewer, more) in enumerate(pairwise(sizes)):
                seen = f"{fewer} for {show_value(text[:n])}, {more} with one character more"
                self._report_lowered(more >= fewer - MERGED, seen)
            once, often = self.text(text, name), self.text(text * 64, name)
            self._findings.require(
                32 * once <= often <= 128 * once,
                "growth",
                expected=f"about 64 times the {once} tokens of {name} for 64 times that text",
                seen=f"{often}",
                advice="Count all of a text; put no limit on the count.",
            )

    def _report_lowered(self, holds: bool, seen: str) -> None:
        self._findings.require(
            holds,
            "monotone",
            expected="never fewer tokens for more content",
            seen=seen,
            advice="Add up the parts; let no part lower the count.",
        )

    def _joined(self) -> None:
        for (name, one), (other_name, other) in combinations(samples.KINDS.items(), 2):
            apart = self.text(one, name) + self.text(other, other_name)
            together = self.text(f"{one}\n{other}", f"{name} and {other_name}")
            self._findings.require(
                0.8 * apart - 3 <= together <= 1.2 * apart + 3,
                "additive",
                expected=f"about {apart} tokens for {name} with {other_name} after it",
                seen=f"{together}",
                advice="Let each part of a text count the same, regardless of the text around it.",
            )

    def _again(self) -> None:
        for name, text in reversed([*samples.KINDS.items()]):
            counts = {self.text(text, name) for _ in range(5)}
            counts |= {self.text("".join([*text]), name)}
            self._different(len(counts) == 1, f"{sorted(counts)} for {name}")
        one = samples.GROWING["thinking"][1]
        totals = {self._show_count(one) for _ in range(5)}
        self._different(len(totals) == 1, f"{len(totals)} different counts for one message")

    def _show_count(self, one: Message) -> str:
        return repr(self._counter.count_message(deepcopy(one)))

    def _different(self, holds: bool, seen: str) -> None:
        self._findings.require(
            holds,
            "deterministic",
            expected="the same count for the same content, every time and in every thread",
            seen=seen,
            advice="Keep no state that changes a count, and use no random numbers.",
        )

    def _threads(self) -> None:
        texts = [text * 3 for text in samples.KINDS.values()]
        alone = [self._counter.count_text(text) for text in texts]

        def count(_: int) -> list[int]:
            return [self._counter.count_text(text) for _ in range(20) for text in texts]

        with ThreadPoolExecutor(THREADS) as threads:
            for counts in threads.map(count, range(THREADS)):
                self._different(counts == alone * 20, f"other counts in {THREADS} threads at once")

    def _speed(self) -> None:
        text = samples.PROSE * 5
        small = _quickest(lambda: self._counter.count_text(text), 9)
        self._slow(small <= QUICK, f"{1000 * small:.1f} ms for {len(text):,} characters")
        if small <= QUICK:
            large = samples.PROSE * 400
            took = _quickest(lambda: self._counter.count_text(large), 3)
            self._slow(took <= QUICK_FOR_LARGE, f"{took:.2f} s for {len(large):,} characters")
        if callable(getattr(self._counter, "count_message", None)):
            one = message("user", text)
            took = _quickest(lambda: self._counter.count_message(one), 9)
            self._slow(took <= QUICK, f"{1000 * took:.1f} ms for a message of that length")

    def _slow(self, holds: bool, seen: str) -> None:
        self._findings.require(
            holds,
            "slow",
            expected=f"at most {1000 * QUICK:g} ms for a thousand characters: it runs on every append",
            seen=seen,
            advice="Estimate locally; an exact count over the network belongs in count_request.",
        )


def _quickest(work: Callable[[], object], times: int) -> float:
    """Return the shortest duration of several runs in seconds. A busy machine makes runs longer."""
    took: list[float] = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return min(took)
