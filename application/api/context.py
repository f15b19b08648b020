"""The context: the request that an agent sends next, with its budget."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from refold.application.conversation.models import COMPACTION_BETA
from refold.application.rendering.request_blocks import opens_with_signed_summary
from refold.application.rendering.request_forms import openai_request, text_form
from refold.domain.compaction.budget import Budget
from refold.domain.errors import EmptyConversation, InvalidSetting
from refold.domain.events import CompactionPerformed
from refold.domain.messages import Block

from .results import CompactionResult


@dataclass(frozen=True, slots=True, repr=False)
class Context:
    """The request for the model. Its lists are copies: changing them has no effect on the memory."""

    thread_id: str
    version: int
    """Version of the conversation; ``conversation.context(at=version)`` returns this context again."""
    model: str | None
    system: str | list[Block]
    """System prompt; an empty string if none exists."""
    messages: list[dict[str, Any]]
    """Messages to send. Empty if the conversation has no messages; the API refuses such a request."""
    tools: list[dict[str, Any]]
    tokens: int
    """Estimated tokens of the whole request, including system text and tools."""
    budget: Budget
    """Limits of the request in tokens and bytes."""
    summary: CompactionPerformed | None
    """Active summary, or None if none exists."""
    memory: tuple[str, ...] = ()
    """Texts that replace older messages: the summary, then the ledger, if they exist."""
    opening: int = 0
    """Number of ``memory`` blocks at the start of the first message; 0 if they are in the system text."""
    bytes: int = 0
    """Size of the whole request as JSON in bytes; at most slightly overestimated."""
    compactions: tuple[CompactionResult, ...] = ()
    """Compactions that were run for this context, including failures."""

    def __repr__(self) -> str:
        held = f"{len(self.messages)} messages, {self.tokens:,} of {self.budget.limit:,} tokens"
        summary = f", summary {self.summary.summary_id}" if self.summary else ""
        return f"<Context of {self.thread_id!r} at version {self.version}: {held}{summary}>"

    def with_compactions(
        self, compactions: tuple[CompactionResult, ...], tokens: int, budget: Budget
    ) -> "Context":
        """Return this context with the compactions that were run for it, and with this size and budget."""
        return replace(self, compactions=compactions, tokens=tokens, budget=budget)

    def with_version(self, version: int) -> "Context":
        """Return this context with another version number."""
        return self if version == self.version else replace(self, version=version)

    def as_text(self, limit: int | None = None) -> str:
        """Return the conversation as one string, for agents that do not take messages.

        Texts that replace older messages are under ``## PREVIOUS CONTEXT SUMMARY``, the newest ``limit``
        messages under ``## RECENT MESSAGES``. Content that refold adds only to keep a request valid is
        omitted. The system prompt is not included: read ``system``.

        Raises:
            InvalidSetting: ``limit`` is not an integer, or is negative.
        """
        # A caller without a type checker may pass anything.
        given = cast("object", limit)
        if given is not None and (type(given) is not int or given < 0):
            raise InvalidSetting(
                f"limit={given!r}: must be an integer of 0 or more",
                setting="limit",
                value=given,
            )
        return text_form(self.messages, self.opening, self.memory, limit)

    @property
    def betas(self) -> tuple[str, ...]:
        """Betas of the Messages API that the request requires."""
        return (COMPACTION_BETA,) if opens_with_signed_summary(self.messages) else ()

    def for_anthropic(self, *, betas: str | Sequence[str] = ()) -> dict[str, Any]:
        """Return the keyword arguments for ``client.messages.create``: messages, and system and tools if
        any.

        ``betas``: additional betas to use, as one string or several. They are sent in ``extra_headers``
        together with those that the request requires, such as the beta of a provider's own compaction
        block.

        Raises:
            EmptyConversation: there are no messages.
        """
        if not self.messages:
            raise EmptyConversation(self.thread_id)
        request: dict[str, Any] = {"messages": self.messages}
        wanted = [betas] if isinstance(betas, str) else betas
        if named := dict.fromkeys([*wanted, *self.betas]):
            request["extra_headers"] = {"anthropic-beta": ",".join(named)}
        if self.system:
            request["system"] = self.system
        if self.tools:
            request["tools"] = self.tools
        return request

    def for_openai(self) -> dict[str, Any]:
        """Return the keyword arguments for ``client.chat.completions.create`` of the OpenAI API.

        The arguments are the messages, and tools if any. Messages converted by ``refold.from_openai`` are
        returned as they were, in the order of the request; summary and ledger are part of the messages.
        Thinking and calls of Anthropic's server tools are omitted.

        Raises:
            EmptyConversation: there are no messages.
            InvalidMessage: a tool runs on Anthropic's servers, or its name has more than 64 characters.
        """
        if not self.messages:
            raise EmptyConversation(self.thread_id)
        return openai_request(self.system, self.messages, self.tools)
