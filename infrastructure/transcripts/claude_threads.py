"""One Claude Code conversation while it is read: the lines of one answer become one message."""

from dataclasses import dataclass, field
from datetime import datetime

from refold.application.recordings.transcripts import RecordedConversation, RecordedMessage, Skipped
from refold.domain.messages import Author, Block, Message, Role

from .content import Content, as_blocks
from .naming import Names


@dataclass
class Draft:
    """A message that later lines may still add blocks to."""

    role: Role
    content: Content
    key: str
    line: int
    message_id: str | None = None
    request_id: str | None = None
    at: datetime | None = None
    model: str | None = None
    stop_reason: str | None = None
    author: Author | None = None

    def finished(self) -> RecordedMessage:
        """The message as it stands."""
        return RecordedMessage(
            message=Message(role=self.role, content=self.content, author=self.author),
            key=self.key,
            message_id=self.message_id,
            at=self.at,
            line=self.line,
            model=self.model,
            stop_reason=self.stop_reason,
        )


@dataclass
class Thread:
    """The messages of one conversation in file order; mutable while the file is read."""

    thread_id: str
    drafts: list[Draft] = field(default_factory=list[Draft])
    uuids: set[str] = field(default_factory=set[str])
    label: str | None = None
    _names: Names = field(default_factory=Names)
    _answers: dict[str, list[Draft]] = field(default_factory=dict[str, list[Draft]])

    def add(self, draft: Draft) -> list[Skipped]:
        """Take a record's message: a new one, or more blocks of an answer that began before.

        Returns what was left out because it stood there already.
        """
        earlier = self._answer_of(draft)
        if earlier is not None:
            return _join(earlier, draft)
        draft.key = self._names.take(draft.key)
        self.drafts.append(draft)
        if draft.role == "assistant" and draft.message_id is not None:
            self._answers.setdefault(draft.message_id, []).append(draft)
        return []

    def finished(self) -> RecordedConversation:
        """The conversation as it stands."""
        return RecordedConversation(
            thread_id=self.thread_id,
            label=self.label,
            messages=tuple(draft.finished() for draft in self.drafts),
        )

    def _answer_of(self, draft: Draft) -> Draft | None:
        """The answer that ``draft`` belongs to: the same message id, and no other request.

        The request counts because proxies are known to give one message id to every answer.
        """
        if draft.role != "assistant" or draft.message_id is None:
            return None
        for earlier in reversed(self._answers.get(draft.message_id, [])):
            if None in (earlier.request_id, draft.request_id):
                return earlier
            if earlier.request_id == draft.request_id:
                return earlier
        return None


def _join(earlier: Draft, later: Draft) -> list[Skipped]:
    skipped: list[Skipped] = []
    known = as_blocks(earlier.content)
    blocks = list(known)
    for block in as_blocks(later.content):
        if block in known:
            reason = "block repeated by a later line"
            skipped.append(Skipped(line=later.line, reason=reason))
        elif (place := _same_call(blocks, block)) is not None:
            blocks[place] = block
            reason = "earlier form of a tool call, written again later"
            skipped.append(Skipped(line=earlier.line, reason=reason))
        else:
            blocks.append(block)
    earlier.content = tuple(blocks)
    earlier.request_id = earlier.request_id or later.request_id
    earlier.model = earlier.model or later.model
    earlier.stop_reason = later.stop_reason or earlier.stop_reason
    return skipped


def _same_call(blocks: list[Block], block: Block) -> int | None:
    if block.get("type") != "tool_use" or not isinstance(block.get("id"), str):
        return None
    for place, earlier in enumerate(blocks):
        if earlier.get("type") == "tool_use" and earlier.get("id") == block["id"]:
            return place
    return None
