"""``check_token_counter``: measure known texts, and find errors that would let a request not fit."""

import inspect
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from itertools import combinations, pairwise
from typing import Any

from refold.application.ports.token_counter import TokenCount, TokenCounter
from refold.domain.messages import Message
from refold.domain.value import replace
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.testing import sample_texts as samples
from refold.testing.findings import Findings, Report, name_of, show_value
from refold.testing.sample_talks import message, thought

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
_WHOLE = "Return int: round up with math.ceil where you divide."
_BLOCKS = "Go through message.blocks() and count every block, by its type; what is unknown as JSON."


def check_token_counter(counter: TokenCounter) -> Report:
    """Check that a token counter returns integers that are repeatable and grow with the content.

    Counts may be estimates. They are compared with the built-in estimate in seven scripts and kinds
    of text, and must be between 0.4 and 3 times that estimate.

    Args:
        counter: your counter, as for ``refold.open(counter=…)``. The check does not call
            ``count_request`` and uses no network.

    Returns:
        The report with the names of the probes.

    Raises:
        CheckFailed: rules are broken; the message has the expected and the seen result of each, and
            advice.

    >>> class Quarters:
    ...     def count_text(self, text): return len(text) / 4
    >>> check_token_counter(Quarters())
    Traceback (most recent call last):
    refold.testing.CheckFailed: Quarters breaks 2 rules: …
    """
    findings = Findings(name_of(counter))
    if _has_shape(counter, findings):
        for checks in (TextChecks(counter, findings), MessageChecks(counter, findings)):
            for name, probe in checks.probes():
                with findings.probe(name, advice="Count any content of a log; never raise."):
                    probe()
        _look_at_request(counter, findings)
    return findings.settle()


def _has_shape(counter: TokenCounter, findings: Findings) -> bool:
    """Check that the counter has its three methods."""
    methods = ("count_text", "count_message", "count_tools")
    missing = [m for m in methods if not callable(getattr(counter, m, None))]
    findings.require(
        not missing,
        "methods",
        expected="count_text(text), count_message(message) and count_tools(tools)",
        seen=f"no {', '.join(missing)}",
        advice="Add what is missing; refold.TokenCounter is the protocol.",
    )
    awaited = [m for m in methods if inspect.iscoroutinefunction(getattr(counter, m, None))]
    findings.require(
        not awaited,
        "type",
        expected="plain methods, which return a count at once",
        seen=f"async def {', '.join(awaited)}",
        advice="Estimate locally; an exact count over the network belongs in count_request.",
    )
    return not awaited and "count_text" not in missing


def _look_at_request(counter: TokenCounter, findings: Findings) -> None:
    count: object = getattr(counter, "count_request", None)
    findings.require(
        count is None or inspect.iscoroutinefunction(count),
        "count_request",
        expected="`async def count_request(self, *, model, system, messages, tools)`, or none",
        seen=show_value(count),
        advice="Write `async def`: it is awaited, because it uses the network.",
    )


class Counting:
    """A counter whose invalid results, of a wrong type or below 0, become findings."""

    def __init__(self, counter: TokenCounter, findings: Findings) -> None:
        self._counter = counter
        self._findings = findings

    def text(self, text: str, name: str) -> int:
        """Return the tokens of a text."""
        return self.whole(self._counter.count_text(text), f"count_text of {name}")

    def message(self, one: Message, name: str) -> TokenCount:
        """Return the tokens of a message."""
        counted: Any = self._counter.count_message(one)
        right = self._findings.require(
            isinstance(counted, TokenCount),
            "type",
            expected="count_message(message): a refold.TokenCount",
            seen=f"{type(counted).__name__}: {show_value(counted)} for {name}",
            advice="Return TokenCount(total=…, thinking=…).",
        )
        if not right:
            return TokenCount(total=counted if type(counted) is int else 0)
        self.whole(counted.total, f"total of {name}")
        self.whole(counted.thinking, f"thinking of {name}")
        whole: TokenCount = counted
        return whole

    def whole(self, counted: object, name: str) -> int:
        """Return a count as an integer, even if the counter returned something else."""
        right = type(counted) is int
        self._findings.require(
            right,
            "type",
            expected="a whole number (int)",
            seen=f"{type(counted).__name__}: {show_value(counted)} ({name})",
            advice=_WHOLE,
        )
        number = counted if isinstance(counted, int | float) else 0
        self._findings.require(
            number >= 0,
            "negative",
            expected="0 or more tokens",
            seen=f"{number} ({name})",
            advice="Do not take off more than was counted.",
        )
        return int(number)


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


class MessageChecks(Counting):
    """The checks of ``count_message`` and ``count_tools``."""

    def probes(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield the probes with their names."""
        if callable(getattr(self._counter, "count_message", None)):
            yield "messages", self._messages
            yield "messages that grow", self._growing_messages
            yield "pictures", self._pictures
            yield "thinking", self._thinking
            yield "what is not sent", self._unsent
        if callable(getattr(self._counter, "count_tools", None)):
            yield "tools", self._tools

    def _messages(self) -> None:
        for name, text in samples.KINDS.items():
            alone = self.text(text, name)
            block = self.message(message("user", text), f"a message of {name}").total
            plain = self.message(Message(role="user", content=text), f"a message of {name}").total
            self._findings.require(
                block > alone and plain > alone,
                "frame",
                expected=f"more for a message than the {alone} tokens of its text ({name})",
                seen=f"{plain} as a text, {block} as a block",
                advice="Add the few tokens that the API puts around each message.",
            )
            self._findings.require(
                abs(block - plain) <= max(8, alone // 10),
                "forms",
                expected="the same for a text and for a block with that text",
                seen=f"{plain} as a text, {block} as a block ({name})",
                advice="Go through message.blocks(), which makes a block of a text.",
            )
        self.message(Message(role="user", content=""), "an empty message")
        self.message(Message(role="user", content=()), "a message without blocks")

    def _growing_messages(self) -> None:
        for name, (fewer, more) in samples.GROWING.items():
            given = deepcopy(more)
            small, large = self.message(fewer, f"without {name}"), self.message(given, name)
            self._findings.require(
                large.total > small.total,
                "ignores",
                expected=f"more tokens with {name} than without",
                seen=f"{small.total} without, {large.total} with",
                advice=_BLOCKS,
            )
            self._findings.require(
                given == more,
                "mutates",
                expected="an unchanged message",
                seen=f"another one ({name})",
                advice="Copy what you change.",
            )

    def _pictures(self) -> None:
        loose, tight = (samples.image(samples.png(200, level=level)) for level in (0, 9))
        sizes = [self.message(message("user", one), "a picture").total for one in (loose, tight)]
        self._findings.require(
            abs(sizes[0] - sizes[1]) <= max(sizes) // 10,
            "pictures",
            expected="the same for a picture in any encoding: it is paid by its pixels",
            seen=f"{sizes[0]} and {sizes[1]} for two files of the same picture",
            advice="Count width times height over 750, or a fixed number; never the base64 text.",
        )

    def _thinking(self) -> None:
        without = self.message(message("assistant", samples.PROSE), "an answer")
        with_it = message("assistant", thought(samples.CODE), samples.PROSE)
        counted = self.message(with_it, "an answer with thinking")
        left = counted.total - counted.thinking
        self._findings.require(
            without.thinking == 0 < counted.thinking <= counted.total
            and abs(left - without.total) <= 10,
            "thinking",
            expected="TokenCount.thinking: the share of the total that dropping thinking saves",
            seen=f"{without.thinking} of {without.total} without thinking, {counted.thinking} of "
            f"{counted.total} with it",
            advice="Add up the blocks of the types thinking and redacted_thinking apart as well.",
        )

    def _unsent(self) -> None:
        plain = Message(role="user", content=samples.PROSE)
        more = replace(plain, author="person", extra={"name": "Ana", "usage": {"input_tokens": 9}})
        sizes = [self.message(one, "a message").total for one in (plain, more)]
        self._findings.require(
            sizes[0] == sizes[1],
            "unsent",
            expected="the same with author and metadata, which are not sent to a provider",
            seen=f"{sizes[0]} without them, {sizes[1]} with them",
            advice="Count role and content alone.",
        )

    def _tools(self) -> None:
        plain, none = (samples.PLAIN_TOOL,), self.whole(self._counter.count_tools(()), "no tools")
        size = self.whole(self._counter.count_tools(plain), "a tool")
        self._findings.require(
            none == 0 < size,
            "tools",
            expected="0 tokens without tools, more than 0 for one",
            seen=f"{none} without, {size} for one",
            advice="Count the JSON of every definition, and what the API adds to the first.",
        )
        larger = {
            "a longer description": (samples.WORDY_TOOL,),
            "a longer description in Chinese": (samples.CHINESE_TOOL,),
            "a larger schema": (samples.LARGE_TOOL,),
            "a second tool": (*plain, samples.tool("read_file", "Reads a file.")),
        }
        for name, tools in larger.items():
            given = deepcopy(tools)
            counted = self.whole(self._counter.count_tools(given), name)
            self._findings.require(
                counted > size and given == tools,
                "tools",
                expected=f"more than the {size} tokens of a plain tool, with {name}; the same definitions",
                seen=f"{counted}" if given == tools else "definitions that were changed",
                advice="Count names, descriptions and schemas of all tools; change none.",
            )
