"""A token counter during a check. Its results are validated before they are compared."""

from typing import Any

from refold.application.ports.summariser import TokenCount, TokenCounter
from refold.domain.messages import Message
from refold.testing.findings import Findings, show_value

_WHOLE = "Return int: round up with math.ceil where you divide."


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
