"""The context: the request that an agent sends next, with its budget."""

from dataclasses import dataclass, replace
from typing import Any

from refold.domain.budget import Budget
from refold.domain.events import CompactionPerformed
from refold.domain.messages import Block

from .results import CompactionResult


@dataclass(frozen=True, slots=True)
class Context:
    """What the model is to see now. The lists are the caller's own: changing them harms nothing."""

    thread_id: str
    version: int
    """The version of the conversation that it shows; ``chat.context(at=version)`` gives it again."""
    model: str | None
    system: str | list[Block]
    """The system prompt; an empty string where there is none."""
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    tokens: int
    """The estimated size of the whole request, system and tools included."""
    budget: Budget
    summary: CompactionPerformed | None
    """The active summary, which stands for everything that it covers."""
    compactions: tuple[CompactionResult, ...] = ()
    """What was compacted to make this context, with every failure on the way."""

    def settled(
        self, compactions: tuple[CompactionResult, ...], tokens: int, budget: Budget
    ) -> "Context":
        """This context, saying what was compacted for it, and its size as counted then."""
        return replace(self, compactions=compactions, tokens=tokens, budget=budget)

    def for_anthropic(self) -> dict[str, Any]:
        """Keyword arguments for ``client.messages.create``: messages, and system and tools if any."""
        request: dict[str, Any] = {"messages": self.messages}
        if self.system:
            request["system"] = self.system
        if self.tools:
            request["tools"] = self.tools
        return request
