"""Collect the messages of a conversation while a file of events is read."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from refold.application.conversation.transcripts import (
    RecordedConversation,
    RecordedMessage,
    RecordedSummary,
    Skipped,
)
from refold.domain.facts.speech import is_program_text
from refold.domain.messages import SHOWN, Author, Block, Message, Role, said_content
from refold.domain.originals import Original
from refold.domain.value import build_unvalidated, replace

from .transcript_source import Content, Names, Reading, as_blocks, thread_id


class ConversationDraft:
    """The messages of one conversation so far, and what was left out."""

    def __init__(self, *name: str) -> None:
        """Create an empty draft. The parts of ``name`` become the thread id."""
        self.name = name
        self.label: str | None = None
        self.tools: tuple[dict[str, Any], ...] = ()
        self.messages: list[RecordedMessage] = []
        self.summaries: list[RecordedSummary] = []
        self.skipped: list[Skipped] = []
        self._names = Names()
        self._calls: dict[str, str] = {}
        self._call_names = Names()

    def append(
        self,
        place: int | None,
        role: Role,
        content: Content,
        *,
        given_id: str | None = None,
        key: str | None = None,
        at: datetime | None = None,
        author: Author | None = None,
        model: str | None = None,
        original: Original | None = None,
    ) -> None:
        """Add a message. Its key is ``key``, the id that the tool gave it, or its place."""
        wanted = key or given_id or f"place:{place}"
        self.messages.append(
            RecordedMessage(
                message=Message(role=role, content=content, author=author),
                key=self._names.take(wanted),
                message_id=given_id,
                at=at,
                line=place,
                model=model if role == "assistant" else None,
                original=original,
            )
        )

    def extend(self, blocks: Sequence[Block]) -> None:
        """Add blocks to the last message."""
        last = self.messages[-1]
        content = (*as_blocks(last.message.content), *blocks)
        self.messages[-1] = replace(last, message=replace(last.message, content=content))

    def call_id(self, given: str) -> str:
        """Return the id of a new call. A tool that gives the same id to several calls gets others."""
        self._calls[given] = self._call_names.take(given)
        return self._calls[given]

    def answered(self, given: str) -> str:
        """Return the id of the newest call to which the recording tool gave this id."""
        return self._calls.get(given, given)

    def has_call(self, given: str) -> bool:
        """Return whether a call has this id."""
        return given in self._calls

    def skip(self, place: int | None, reason: str, detail: object = "") -> None:
        """Note that a record was left out, which is no message."""
        self.skipped.append(
            Skipped(line=place, reason=reason, detail=ascii(str(detail))[1:-1][:80])
        )

    def build(self) -> RecordedConversation:
        """Return the conversation."""
        return RecordedConversation(
            thread_id=thread_id(*self.name),
            label=self.label,
            messages=tuple(self.messages),
            tools=self.tools,
            summaries=tuple(self.summaries),
        )


def reading_of(drafts: Iterable[ConversationDraft]) -> Reading:
    """Return the conversations that have messages, and all that was left out."""
    read = [*drafts]
    found = tuple(draft.build() for draft in read if draft.messages)
    return Reading(
        conversations=found, skipped=tuple(one for draft in read for one in draft.skipped)
    )


def message_of(role: Role, content: Content, author: Author | None = None) -> Message:
    """Return a message. Content of JSON needs no validation, and a file has many messages."""
    return build_unvalidated(
        Message, role=role, content=content, author=author, extra=None, unknown=()
    )


def author_of(content: Content) -> Author:
    """Return whether a person or the program wrote a user message."""
    words = said_content(content)
    if not words.strip() and any(block.get("type") in tuple(SHOWN) for block in as_blocks(content)):
        return "person"  # A picture without words.
    return "program" if is_program_text(words) else "person"


def thinking_block(text: str) -> Block:
    """Return reasoning that has no signature. No request shows it."""
    return {"type": "thinking", "thinking": text}


def image_block(media_type: Any, data: Any) -> Block:
    """Return an image block with base64 data."""
    source = {"type": "base64", "media_type": str(media_type), "data": str(data)}
    return {"type": "image", "source": source}


def tool_use(call_id: str, name: str, arguments: dict[str, Any]) -> Block:
    """Return a tool call block."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result_block(call_id: str, content: Content, *, is_error: bool) -> Block:
    """Return the result of a call."""
    said = content if isinstance(content, str) else list(content)
    block: Block = {"type": "tool_result", "tool_use_id": call_id, "content": said}
    return {**block, "is_error": True} if is_error else block


def joined(parts: Iterable[str]) -> str:
    """Return the texts that say something, one after another."""
    return "\n\n".join(part for part in parts if part.strip())
