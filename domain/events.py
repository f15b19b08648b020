"""What can happen to a conversation. Names and fields here are the storage format: see tests/golden."""

from datetime import datetime
from typing import Literal

from .coverage import Coverage
from .messages import Message
from .policy import CompactionPolicy
from .value import Value

Trigger = Literal["size", "manual"]


class MessageAppended(Value, frozen=True):
    """A message was said."""

    position: int
    """Its place among the conversation's messages, from 0."""
    message_id: str
    message: Message
    tokens: int
    thinking_tokens: int = 0
    key: str | None = None
    """The idempotency key under which it was delivered, if any."""
    written_at: datetime | None = None
    """When it was written, where a recording says so; the envelope has when it was logged."""
    model: str | None = None
    stop_reason: str | None = None


class CompactionRequested(Value, frozen=True):
    """A compaction was begun; performed or failed must follow."""

    attempt_id: str
    requested_at: datetime
    trigger: Trigger
    coverage: Coverage
    supersedes: str | None
    """The summary that was active when the plan was made."""
    source_digest: str
    """Of everything handed to the summariser: covered messages and the previous summary."""
    summariser: str
    policy: CompactionPolicy
    tokens_before: int
    focus: str | None = None


class CompactionPerformed(Value, frozen=True):
    """A summary was accepted and stands for what it covers from now on."""

    attempt_id: str
    summary_id: str
    text: str
    tokens: int
    """The size of the summary as rendered."""
    coverage: Coverage
    source_digest: str
    trigger: Trigger
    policy: CompactionPolicy
    summariser: str
    model: str
    prompt_fingerprint: str
    tokens_before: int
    tokens_after: int
    focus: str | None = None
    is_split_turn: bool = False
    split_turn_prefix: str | None = None


class CompactionFailed(Value, frozen=True):
    """A compaction ended without a summary; the context is as it was."""

    attempt_id: str
    reason: str
    detail: str = ""
    live_tokens: int = 0
    """The size of the conversation when it failed; the guard against useless repetition counts from it."""


class SummarySuperseded(Value, frozen=True):
    """A newer summary took over; the old one stays for audit."""

    summary_id: str
    by: str


class OffloadedPart(Value, frozen=True):
    """One side of a tool call that is shown as a preview from now on."""

    position: int
    call_id: str
    side: Literal["call", "result"]
    """The call's input, or its result."""
    tokens_freed: int
    """What this decision saved; a later one may shorten the same part further."""


class ToolContentOffloaded(Value, frozen=True):
    """Large tool results or inputs were replaced by previews; their content stays in the log."""

    parts: tuple[OffloadedPart, ...]
    head: int
    tail: int
    """Characters shown from the beginning and from the end of each text."""


class ConversationLabelled(Value, frozen=True):
    """The conversation was given a name for people."""

    label: str


Event = (
    MessageAppended
    | CompactionRequested
    | CompactionPerformed
    | CompactionFailed
    | SummarySuperseded
    | ToolContentOffloaded
    | ConversationLabelled
)
