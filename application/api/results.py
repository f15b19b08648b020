"""Results of the API: requests to send, stored messages and compactions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_args

from refold.application.conversation.models import COMPACTION_BETA
from refold.application.rendering.request_blocks import opens_with_signed_summary
from refold.application.runtime.plain_lines import ShortRepr
from refold.domain.compaction.budget import Budget
from refold.domain.errors import EmptyConversation, InvalidSetting
from refold.domain.events import CompactionPerformed, OmittedMessage, Trigger
from refold.domain.messages import Block, Message, readable
from refold.domain.originals import Original
from refold.domain.value import Value

Outcome = Literal[
    "performed", "shortened", "nothing_to_do", "failed", "in_flight", "reverted", "waiting"
]
"""Outcome of a compaction.

``shortened``: tool content was offloaded or condensed, and no summary was needed. ``waiting``: the summary
is ready but the log could not be written; the next operation that can write stores it without another model
call.
"""

USUAL_CHARACTERS = 8_000
"""Longest part of a text that is read at once, unless a caller asks for another length."""


class CompactionMark(Value, frozen=True):
    """A mark on the first message after the active summary that describes the summary."""

    compression_triggered: bool = True
    summary_id: str
    compact_up_to_index: int
    """Last position that the summary covers: ``first_kept_index`` less 1."""
    first_kept_index: int
    """Position of the first message after the summary.

    ``messages[first_kept_index:]`` is the kept tail. Some earlier messages may be kept as well.
    """
    compacted_at: str
    """Time when the summary was made: ISO 8601, UTC."""
    message_count: int | None
    """Number of messages when the summary was made, or None if refold before 0.2 made it."""
    compacted_time: float
    """Time when the summary was made, in seconds since 1970."""
    is_split_turn: bool


class StoredMessage(ShortRepr, Value, frozen=True):
    """A message of a conversation as stored in the log."""

    position: int
    message_id: str
    version: int
    """Version of the conversation after the append; ``conversation.context(at=version)`` ends with this
    message.
    """
    message: Message
    at: str
    """Time when it was written, or else logged: ISO 8601, UTC."""
    tokens: int
    mark: CompactionMark | None = None
    """Mark of the active summary if this is the first message after it, or None."""
    summary_id: str | None = None
    """Id of the active summary if it covers the message, or None if the message is in the context."""
    erased: bool = False
    """True if its content was erased; ``message`` then has a marker instead."""
    original: Original | None = None
    """Form in which another API or a framework gave the message, exactly, or None."""

    @property
    def is_archived(self) -> bool:
        """True if the active summary covers it."""
        return self.summary_id is not None

    @property
    def text(self) -> str:
        """Readable text of the message: words and results in full, tool calls abbreviated."""
        return readable(self.message)


class AppendedMessage(Value, frozen=True):
    """The place of an appended message in the log."""

    position: int
    message_id: str
    tokens: int
    new: bool
    """True if the message was stored now, False if its key was stored before."""


class Appended(Value, frozen=True):
    """The result of an append; it is durable."""

    thread_id: str
    version: int
    """Version of the conversation after the append."""
    messages: tuple[AppendedMessage, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the messages, in the given order."""
        return tuple(m.position for m in self.messages)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the messages, in the given order."""
        return tuple(m.message_id for m in self.messages)


class CompactionResult(Value, frozen=True):
    """The result of a compaction. Sizes are tokens of the whole request."""

    outcome: Outcome
    tokens_before: int
    tokens_after: int
    reason: str = ""
    """Reason why nothing was done or the compaction failed: a short constant."""
    detail: str = ""
    summary_id: str | None = None
    summariser: str | None = None
    messages_covered: int = 0
    """Number of messages that the active summary covers."""
    messages_kept: int = 0
    """Number of messages in the context word for word."""
    results_offloaded: int = 0
    """Number of tool results and inputs that this compaction replaced by previews."""
    results_condensed: int = 0
    """Number of older tool results that this compaction shortened."""
    offloads_released: int = 0
    """Number of previews that were dropped because the summary covers their messages."""
    released: tuple[str, ...] = ()
    """Addresses of the messages whose previews were dropped; ``read`` returns each word for word."""
    thread_id: str = ""
    attempt_id: str | None = None
    trigger: Trigger | None = None
    effective: bool = True
    """True if the target was reached."""
    is_split_turn: bool = False
    rebuilt: bool = False
    """True if the summary was rebuilt from leaf summaries."""
    omitted: tuple[OmittedMessage, ...] = ()
    """Messages that this compaction omitted as too large. The summary names them, and recall finds them."""
    model_calls: int = 0
    """Number of model calls, including retries; 0 if code alone wrote the summary."""
    retries: int = 0
    seconds: float = 0.0
    """Duration in seconds, including the summariser."""
    breaker_open: bool = False
    """True if the circuit breaker is open afterwards; ``CompactionPolicy.breaker_after`` describes it."""
    blocked_since: int | None = None
    """Position of the message that prevents covering any messages, or None."""
    blocked_at: str | None = None
    """Time when the blocking message was logged: ISO 8601, UTC, or None."""

    @property
    def success(self) -> bool:
        """True if the context was made smaller or there was nothing to do."""
        return self.outcome in ("performed", "shortened", "nothing_to_do", "reverted")

    @property
    def freed(self) -> int:
        """Number of tokens that were freed."""
        return self.tokens_before - self.tokens_after


OpenAIAPI = Literal["chat", "responses"]
"""API of OpenAI that a request is for."""


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
    images: int = 0
    """Number of images and documents in the request."""
    compactions: tuple[CompactionResult, ...] = ()
    """Compactions that were run for this context, including failures."""
    originals: Mapping[int, Original] = field(default_factory=dict[int, Original])
    """Foreign forms of what is shown whole, by its index in ``messages``: of answers, and of items of OpenAI's."""
    is_whole: bool = False
    """True if all messages are shown, nothing of them is shortened, and nothing else is shown."""

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
        from refold.application.rendering.request_forms import text_form

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
            InvalidSetting: ``betas`` are not text.
        """
        if not self.messages:
            raise EmptyConversation(self.thread_id)
        request: dict[str, Any] = {"messages": self.messages}
        several = _several(betas)
        wanted = [beta for beta in several if isinstance(beta, str)]
        if len(wanted) < len(several):
            raise InvalidSetting(
                f"betas={betas!r:.60}: must be text, or several texts", setting="betas", value=betas
            )
        if named := dict.fromkeys([*wanted, *self.betas]):
            request["extra_headers"] = {"anthropic-beta": ",".join(named)}
        if self.system:
            request["system"] = self.system
        if self.tools:
            request["tools"] = self.tools
        return request

    def for_openai(self, *, api: OpenAIAPI = "chat") -> dict[str, Any]:
        """Return the keyword arguments for a request to the OpenAI API.

        They are those of ``client.chat.completions.create`` (messages, and tools if any), or with
        ``api="responses"`` those of ``client.responses.create`` (instructions, input, tools). Messages converted
        by ``refold.from_openai`` are returned as they were, in the order of the request; summary and ledger
        are part of the messages. Answers of the Responses API that are shown whole come back with their reasoning
        items. Thinking and calls of Anthropic's server tools are omitted.

        Raises:
            EmptyConversation: there are no messages.
            InvalidMessage: a tool runs on Anthropic's servers, or its name has more than 64 characters.
            InvalidSetting: there is no such API.
        """
        from refold.application.rendering.request_forms import openai_request, responses_request

        if not self.messages:
            raise EmptyConversation(self.thread_id)
        if api not in get_args(OpenAIAPI):
            names = " or ".join(map(repr, get_args(OpenAIAPI)))
            raise InvalidSetting(f"api={api!r} must be {names}", setting="api", value=api)
        if api == "chat":
            return openai_request(self.system, self.messages, self.tools)
        return responses_request(self.system, self.messages, self.tools, self.originals)


def _several(given: object) -> list[object]:
    """Return the items of a list or another iterable, or a value alone."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    return list(cast("Iterable[object]", given))
