"""The port of token counters."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from refold.domain.messages import Message
from refold.domain.value import Value


class TokenCount(Value, frozen=True):
    """The size of a message in tokens."""

    total: int
    """Tokens of the whole message, including what the API adds around it."""
    thinking: int = 0
    """Tokens of thinking blocks in ``total``, saved if they are dropped."""


class TokenCounter(Protocol):
    """A counter of tokens. Pure and fast: it runs on every append.

    Monotone: more content never lowers a count. An image costs the same in any encoding.
    """

    def count_text(self, text: str) -> int:
        """Return the tokens of a text alone."""
        ...

    def count_message(self, message: Message) -> TokenCount:
        """Return the tokens of a message in a request, including its frame."""
        ...

    def count_tools(self, tools: tuple[dict[str, object], ...]) -> int:
        """Return the tokens of tool definitions, including what the API adds if there are any."""
        ...


@runtime_checkable
class RequestCounter(Protocol):
    """A token counter that can also count a whole request exactly, over the network.

    It is used after a compaction, when an exact size matters most, and corrects later estimates. Raises
    ``TokenCountError`` on failure; the estimate is then used.
    """

    async def count_request(
        self,
        *,
        model: str,
        system: str | Sequence[Mapping[str, Any]],
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
    ) -> int:
        """Return the input tokens of a request."""
        ...
