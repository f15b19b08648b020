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
    """What the model is to see now. The lists are the caller's own: changing them harms nothing."""

    thread_id: str
    version: int
    """The version of the conversation that it shows; ``conversation.context(at=version)`` gives it again."""
    model: str | None
    system: str | list[Block]
    """The system prompt; an empty string where there is none."""
    messages: list[dict[str, Any]]
    """Empty where nothing was appended yet: the API takes no such request."""
    tools: list[dict[str, Any]]
    tokens: int
    """The estimated size of the whole request, system and tools included."""
    budget: Budget
    """What may be sent, in tokens and in bytes."""
    summary: CompactionPerformed | None
    """The active summary, which stands for everything that it covers."""
    memory: tuple[str, ...] = ()
    """What stands for older messages, as texts: the summary, then the ledger; each where there is one."""
    opening: int = 0
    """With how many blocks of that the first message opens; 0 where it stands in the system text."""
    bytes: int = 0
    """The size of the whole request as JSON; at most a little too large."""
    compactions: tuple[CompactionResult, ...] = ()
    """What was compacted to make this context, with every failure on the way."""

    def __repr__(self) -> str:
        held = f"{len(self.messages)} messages, {self.tokens:,} of {self.budget.limit:,} tokens"
        summary = f", summary {self.summary.summary_id}" if self.summary else ""
        return f"<Context of {self.thread_id!r} at version {self.version}: {held}{summary}>"

    def settled(
        self, compactions: tuple[CompactionResult, ...], tokens: int, budget: Budget
    ) -> "Context":
        """This context, saying what was compacted for it, and its size as counted then."""
        return replace(self, compactions=compactions, tokens=tokens, budget=budget)

    def showing(self, version: int) -> "Context":
        """This context as the one of ``version``."""
        return self if version == self.version else replace(self, version=version)

    def as_text(self, limit: int | None = None) -> str:
        """The conversation as one string, for agents that take no messages.

        Under ``## PREVIOUS CONTEXT SUMMARY`` what stands for older messages, under ``## RECENT
        MESSAGES`` the others: ``limit`` of them at most, the newest. What refold adds to keep a request
        legal is left out. The system prompt is apart: ``system`` says what the summary is.

        Raises:
            InvalidSetting: the limit is no whole number, or below 0.
        """
        # A caller without a type checker may pass anything.
        given = cast("object", limit)
        if given is not None and (type(given) is not int or given < 0):
            raise InvalidSetting(
                f"limit={given!r}: it must be a whole number, 0 or more",
                setting="limit",
                value=given,
            )
        return text_form(self.messages, self.opening, self.memory, limit)

    @property
    def betas(self) -> tuple[str, ...]:
        """The betas of the Messages API that the request cannot do without."""
        return (COMPACTION_BETA,) if opens_with_signed_summary(self.messages) else ()

    def for_anthropic(self, *, betas: str | Sequence[str] = ()) -> dict[str, Any]:
        """Keyword arguments for ``client.messages.create``: messages, and system and tools if any.

        ``betas``: further ones that you use, or a single one. They go into ``extra_headers`` with those of the request:
        a provider's own compaction block is refused without its beta.

        Raises:
            EmptyConversation: there is no message in it.
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
        """Keyword arguments for ``client.chat.completions.create`` of the OpenAI API: messages, and tools if any.

        What ``refold.from_openai`` made of such messages comes out as it went in, in the request's order;
        summary and ledger are part of the messages. Thinking and the calls of Anthropic's own tools are
        left out.

        Raises:
            EmptyConversation: there is no message in it.
            InvalidMessage: one of the tools runs on Anthropic's servers, or its name has more than 64
                characters.
        """
        if not self.messages:
            raise EmptyConversation(self.thread_id)
        return openai_request(self.system, self.messages, self.tools)
