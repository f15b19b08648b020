"""What was said, message by message, as people read it?"""

import json
from collections.abc import Sequence
from typing import assert_never

from refold.application.event_log import LoggedEvent
from refold.application.read_models import MessageRow
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    ConversationLabelled,
    MessageAppended,
    SummarySuperseded,
    ToolContentOffloaded,
)
from refold.domain.messages import THINKING, Block, Message, text_of

from .row_changes import Added, Change, utc

VERSION = 1
"""Grows when the fold or the row changes: stored rows of another version are dropped and replayed."""

CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def changes(logged: LoggedEvent) -> Sequence[Change]:
    """Each message is one row, which never changes: summaries and offloads do not touch it."""
    event = logged.event
    match event:
        case MessageAppended():
            return (Added(_said(logged, event)),)
        case (
            CompactionRequested()
            | CompactionPerformed()
            | CompactionFailed()
            | SummarySuperseded()
            | ToolContentOffloaded()
            | ConversationLabelled()
        ):
            return ()
        case _:
            assert_never(event)


def readable(message: Message) -> str:
    """Words in full, tool calls as ``→ name {input}``, results as text; thinking is left out."""
    if isinstance(message.content, str):
        return message.content
    parts = (_readable(block) for block in message.content if block.get("type") not in THINKING)
    return "\n".join(part for part in parts if part.strip())


def _readable(block: Block) -> str:
    kind = block.get("type")
    if kind in CALLS:
        arguments = json.dumps(block.get("input"), ensure_ascii=False, default=str)
        return f"→ {block.get('name')} {arguments}"
    # Blank text says nothing; a block without text (an image) is at least named.
    return text_of(block) or ("" if kind == "text" else f"[{kind}]")


def _said(logged: LoggedEvent, event: MessageAppended) -> MessageRow:
    # Complete and valid as the event is; validating each would cost as much as storing it.
    return MessageRow.trusted(
        {
            "thread_id": logged.thread_id,
            "position": event.position,
            "version": logged.version,
            "message_id": event.message_id,
            "role": event.message.role,
            "at": utc(event.written_at) if event.written_at else logged.at,
            "tokens": event.tokens,
            "text": readable(event.message),
        }
    )
