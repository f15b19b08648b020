"""Recorded conversations as read from a transcript file."""

from datetime import datetime
from typing import Any

from refold.domain.messages import Message
from refold.domain.originals import Original
from refold.domain.value import Value


class RecordedMessage(Value, frozen=True):
    """One message of a transcript, with information about its origin."""

    message: Message
    key: str
    """Key of the message within its conversation, the same each time the file is read."""
    message_id: str | None = None
    """Id that the recording tool assigned, or None."""
    at: datetime | None = None
    """Time when it was written, with a time zone, or None if the file does not have it."""
    line: int | None = None
    """Line (JSON lines, from 1) or index (JSON list, from 0) where it begins."""
    model: str | None = None
    stop_reason: str | None = None
    original: Original | None = None
    """Form in which another API gave the message, or None. It is stored without what the message has."""


class Skipped(Value, frozen=True):
    """A record of a transcript that was skipped, with the reason."""

    line: int | None
    """Line (from 1) or list index (from 0) in the file, or None if it has neither."""
    reason: str
    """Reason as a short constant without data of the record, so that equal reasons can be counted."""
    detail: str = ""
    """Detail about this record, such as a parser's message or a record type."""
    damage: bool = False
    """True if content could not be read (a broken line), False if the record is not a message by design."""


class RecordedSummary(Value, frozen=True):
    """A summary that the recording tool had written when its context was full. It is not a message."""

    position: int
    """Number of messages before it. 0 if the file begins with the summary of another session."""
    text: str
    key: str | None = None
    """Id that the recording tool assigned. Copies of a session have the same, or None if it has no id."""
    at: datetime | None = None
    kept: str = ""
    """Texts of older messages that the tool kept in its context in full, next to the summary."""


class RecordedConversation(Value, frozen=True):
    """One conversation of a transcript file."""

    thread_id: str
    """Suggested thread id, stable and unique, from ids in the file or from the file name."""
    label: str | None = None
    messages: tuple[RecordedMessage, ...]
    tools: tuple[dict[str, Any], ...] = ()
    """Tool definitions in Anthropic format (name, description, input_schema), if recorded."""
    summaries: tuple[RecordedSummary, ...] = ()


class Transcript(Value, frozen=True):
    """The content of one file: its conversations, and everything that was skipped."""

    source: str
    format: str
    """Name of the detected format: claude-code, codex, gemini-cli, pi, openhands, inspect, agent-tars, langchain,
    openai, anthropic, langgraph.
    """
    conversations: tuple[RecordedConversation, ...]
    skipped: tuple[Skipped, ...] = ()
