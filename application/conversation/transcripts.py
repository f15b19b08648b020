"""Recorded conversations, as an importer hands them over: what a transcript file holds."""

from datetime import datetime
from typing import Any

from refold.domain.messages import Message
from refold.domain.value import Value


class RecordedMessage(Value, frozen=True):
    """One message of a transcript, with what is known about its origin."""

    message: Message
    key: str
    """Names the message within its conversation: the same at every reading of the same file."""
    message_id: str | None = None
    """The id that the recording tool gave, if it gave one."""
    at: datetime | None = None
    """When it was written (time zone aware), if the file says so."""
    line: int | None = None
    """The line (JSON lines, from 1) or index (JSON list, from 0) where it begins."""
    model: str | None = None
    stop_reason: str | None = None


class Skipped(Value, frozen=True):
    """Something of a transcript that is not a message of the conversation, and why it was left out."""

    line: int | None
    """The line (from 1) or list index (from 0) in the file; None where it has no place."""
    reason: str
    """A short constant text without data of the record, so that equal reasons can be counted."""
    detail: str = ""
    """What is particular to this record: a parser's message, a record type."""
    damage: bool = False
    """True where content could not be read (a broken line); False where it is by design no message."""


class RecordedConversation(Value, frozen=True):
    """One conversation of a transcript file."""

    thread_id: str
    """A stable, unique suggestion for the thread id, from ids in the file or else the file's name."""
    label: str | None = None
    messages: tuple[RecordedMessage, ...]
    tools: tuple[dict[str, Any], ...] = ()
    """Tool definitions in Anthropic shape (name, description, input_schema), where recorded."""


class Transcript(Value, frozen=True):
    """What one file holds: its conversations, and everything that was left out."""

    source: str
    format: str
    """The name of the format that read it: claude-code, anthropic, openai, pi."""
    conversations: tuple[RecordedConversation, ...]
    skipped: tuple[Skipped, ...] = ()
