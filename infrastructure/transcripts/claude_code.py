"""Read Claude Code sessions. The lines of one answer become one message."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from refold.application.conversation.transcripts import (
    RecordedConversation,
    RecordedMessage,
    RecordedSummary,
    Skipped,
)
from refold.domain.messages import Author, Block, Role, gist, said_content
from refold.domain.value import build_unvalidated

from .conversation_draft import author_of, message_of
from .transcript_source import (
    Content,
    Names,
    Reading,
    Source,
    as_blocks,
    as_content,
    as_list,
    as_object,
    moment,
    not_a_message,
    text_or_none,
    thread_id,
    usable_id,
)


@dataclass(slots=True)
class Draft:
    """A message that may get more blocks from later lines."""

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

    def build(self) -> RecordedMessage:
        """Return the message in its current state."""
        return build_unvalidated(
            RecordedMessage,
            message=message_of(self.role, self.content, self.author),
            key=self.key,
            message_id=self.message_id,
            at=self.at,
            line=self.line,
            model=self.model,
            stop_reason=self.stop_reason,
            original=None,
        )


@dataclass
class Thread:
    """The messages of one conversation in file order, mutable while the file is read."""

    thread_id: str
    drafts: list[Draft] = field(default_factory=list[Draft])
    uuids: set[str] = field(default_factory=set[str])
    label: str | None = None
    summaries: list[RecordedSummary] = field(default_factory=list[RecordedSummary])
    _names: Names = field(default_factory=Names)
    _answers: dict[str, list[Draft]] = field(default_factory=dict[str, list[Draft]])

    def add(self, draft: Draft) -> list[Skipped]:
        """Add the message of a record, or append its blocks to an answer that began earlier.

        Return the blocks that were skipped because they are duplicates.
        """
        earlier = self._answer_of(draft)
        if earlier is not None:
            return _join(earlier, draft)
        draft.key = self._names.take(draft.key)
        self.drafts.append(draft)
        if draft.role == "assistant" and draft.message_id is not None:
            self._answers.setdefault(draft.message_id, []).append(draft)
        return []

    def add_summary(self, draft: Draft) -> None:
        """Add a summary that the recording tool wrote of the messages so far."""
        text, place = said_content(draft.content), len(self.drafts)
        again = any(draft.key == one.key for one in self.summaries)
        if again or not text.strip() or (self.summaries and self.summaries[-1].text == text):
            return
        self.summaries.append(
            RecordedSummary(position=place, text=text, key=draft.key, at=draft.at)
        )

    def build(self) -> RecordedConversation:
        """Return the conversation in its current state."""
        return RecordedConversation(
            thread_id=self.thread_id,
            label=self.label,
            messages=tuple(draft.build() for draft in self.drafts),
            summaries=tuple(self.summaries),
        )

    def _answer_of(self, draft: Draft) -> Draft | None:
        """Find the answer that ``draft`` continues, by message id and request id.

        The request id is needed because some proxies give the same message id to every answer.
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


_OTHER_RECORDS = {
    "progress": "progress record",
    "file-history-snapshot": "file history snapshot",
    "summary": "title of a session",
    "custom-title": "title of a session",
    "ai-title": "title of a session",
    "queue-operation": "queue operation",
    "pr-link": "pull request link",
    "attachment": "attachment record",
    "last-prompt": "last prompt record",
}
_SESSION = ("sessionId", "session_id")
_SIGNS = (*_SESSION, "uuid", "parentUuid", "leafUuid", "snapshot")  # A record of ours has one.
_CALLER = "parent_tool_use_id"
"""Call that began a sub-agent, in what ``claude -p`` prints."""
_OF_OTHER_AGENTS = ("<teammate-message", "<channel ")
"""Beginnings of what other agents and programs write."""
_SYSTEM_RECORDS = {
    "compact_boundary": "compaction boundary",
    "microcompact_boundary": "micro compaction boundary",
    "api_error": "API error record",
}


def fits(source: Source) -> bool:
    """Return whether at least one record has the Claude Code format."""
    return source.has_field(*_SIGNS) and any(_is_ours(value) for _, value in _placed(source))


def read(source: Source) -> Reading:
    """Read the main conversation of each session in the file, and one for each sub-agent."""
    session = _Session(source.stem)
    for line, value in _placed(source):
        session.take(line, value)
    return session.build()


def _placed(source: Source) -> Iterable[tuple[int, Any]]:
    """Return the records with their places. ``claude -p`` prints them as JSON lines or as one list."""
    listed = as_list(source.document) if source.is_document else None
    if listed is None:
        return ((record.line, record.value) for record in source.records)
    return enumerate(listed)


def _is_ours(given: Any) -> bool:
    value = as_object(given) or {}
    match value:
        case {"type": "user" | "assistant", "message": dict()}:
            return any(key in value for key in ("uuid", "parentUuid", *_SESSION))
        case {"type": "system"}:
            return "sessionId" in value
        case {"type": "summary"}:
            return "leafUuid" in value
        case {"type": "file-history-snapshot"}:
            return "snapshot" in value
        case {
            "type": "progress"
            | "queue-operation"
            | "pr-link"
            | "custom-title"
            | "ai-title"
            | "attachment"
        }:
            return "sessionId" in value
        case _:
            return False


class _Title(NamedTuple):
    """A title that the recording gives to a session."""

    weight: int
    """Priority of the title. On a tie, the last title wins."""
    line: int
    leaf: str | None
    """Message that the title refers to, or None for the session of the file."""
    text: str


class _Session:
    """Builds conversations from records in file order. Abandoned branches are kept."""

    def __init__(self, stem: str) -> None:
        self._session = stem
        self._threads: dict[str, Thread] = {}
        self._roots: dict[str, str] = {}
        self._seen: dict[str, Any] = {}
        self._titles: list[_Title] = []
        self._skipped: list[Skipped] = []

    def take(self, line: int, given: Any) -> None:
        """Add one record."""
        value = as_object(given)
        if value is None:
            self._skip(line, "record that is no object", damage=True)
            return
        names = (usable_id(value.get(key)) for key in _SESSION)
        self._session = next(filter(None, names), self._session)
        agent = self._agent(value)
        match value.get("type"):
            case "user" | "assistant" as kind:
                self._take_message(kind, value, line, agent)
            case "progress" if (said := _said_by_agent(value)) is not None:
                self._take_progress(said, line)
            case "attachment" if (queued := _queued(value)) is not None:
                self._take_queued(queued, line, agent)
            case "system":
                subtype = value.get("subtype")
                reason = _lookup(_SYSTEM_RECORDS, subtype, "system record")
                self._skip(line, reason, str(subtype or ""))
            case kind:
                if not self._take_title(value, line):
                    reason = _lookup(_OTHER_RECORDS, kind, "record of another type")
                    self._skip(line, reason, str(kind))

    def build(self) -> Reading:
        """Return the conversations that have messages, and everything that was skipped."""
        for title in sorted(self._titles, key=lambda title: title.weight):
            self._name(title)
        conversations = tuple(t.build() for t in self._threads.values() if t.drafts)
        return Reading(conversations=conversations, skipped=tuple(self._skipped))

    def _main(self) -> Thread | None:
        return next(iter(self._threads.values()), None)

    def _agent(self, value: dict[str, Any]) -> str | None:
        """Return the side chain of a record, named by the agent id or the first record, or None.

        Only earlier records are considered, so that a longer file gives the same result.
        """
        if (caller := usable_id(value.get(_CALLER))) is not None:
            return caller
        if value.get("isSidechain") is not True:
            return None
        uuid, parent = usable_id(value.get("uuid")), usable_id(value.get("parentUuid"))
        agent = usable_id(value.get("agentId")) or self._roots.get(parent or "")
        root = agent or uuid or parent or "sidechain"
        if uuid is not None:
            self._roots.setdefault(uuid, root)
        return root

    def _take_message(
        self, kind: Role, value: dict[str, Any], line: int, agent: str | None
    ) -> None:
        parts = (self._session,) if agent is None else (self._session, agent)
        thread = self._threads.setdefault(":".join(parts), Thread(thread_id(*parts)))
        message = as_object(value.get("message"))
        if message is None:
            self._skipped.append(not_a_message(line, "no message in the record"))
            return
        reason = self._why_not(value, message, thread)
        draft = _draft(kind, value, message, line)
        if draft is not None and value.get("isCompactSummary") is True:
            thread.add_summary(draft)
        if reason is not None:
            self._skip(line, reason)
            return
        if draft is None:
            self._skipped.append(not_a_message(line, "role or content of an unknown kind"))
            return
        if (uuid := usable_id(value.get("uuid"))) is not None:
            thread.uuids.add(uuid)
            self._seen.setdefault(uuid, message)
        self._skipped.extend(thread.add(draft))

    def _take_queued(self, record: dict[str, Any], line: int, agent: str | None) -> None:
        """Take a message out of an attachment, unless it has a record of its own as well."""
        source = usable_id((as_object(record.get("attachment")) or {}).get("source_uuid"))
        if source in self._seen:
            self._skip(line, "record that came before, with the same uuid")
            return
        self._take_message("user", record, line, agent)
        if source is not None:
            self._seen[source] = record["message"]

    def _take_progress(self, record: dict[str, Any], line: int) -> None:
        """Take the message of a sub-agent out of a record of its progress."""
        match record.get("type"):
            case "user" | "assistant" as kind:
                self._take_message(kind, record, line, usable_id(record.get("agentId")))
            case _:
                self._skip(line, "progress record")

    def _why_not(
        self, value: dict[str, Any], message: dict[str, Any], thread: Thread
    ) -> str | None:
        if value.get("isApiErrorMessage") is True:
            return "API error shown as a message"
        if message.get("model") == "<synthetic>":
            return "message made up by the recording tool"
        if value.get("isCompactSummary") is True and thread.drafts:
            return "summary by the recording tool; the original is before it"
        uuid = usable_id(value.get("uuid"))
        if uuid in self._seen and self._seen[uuid] == message:
            return "record that came before, with the same uuid"
        return None

    def _name(self, title: "_Title") -> None:
        """Apply a title to its conversation. Titles that are replaced or unknown are recorded as skipped."""
        named = False
        for thread in self._threads.values():
            if title.leaf in thread.uuids or (title.leaf is None and thread is self._main()):
                thread.label, named = title.text, True
        if not named:
            self._skip(title.line, "title of another session")

    def _take_title(self, value: dict[str, Any], line: int) -> bool:
        """Record a title. Titles by people have priority over those by models, and those over summaries."""
        match value:
            case {"type": "summary", "summary": str(text), "leafUuid": str(leaf)}:
                title = _Title(0, line, leaf, text)
            case {"type": "ai-title", "aiTitle": str(text)}:
                title = _Title(1, line, None, text)
            case {"type": "custom-title", "customTitle": str(text)}:
                title = _Title(2, line, None, text)
            case _:
                return False
        if text.strip():
            self._titles.append(title)
        return bool(text.strip())

    def _skip(self, line: int, reason: str, detail: str = "", *, damage: bool = False) -> None:
        detail = ascii(detail)[1:-1][:80]
        self._skipped.append(Skipped(line=line, reason=reason, detail=detail, damage=damage))


def _said_by_agent(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return the record of a sub-agent in a record of its progress, or None."""
    data = as_object(value.get("data")) or {}
    record, agent = as_object(data.get("message")), usable_id(data.get("agentId"))
    if data.get("type") != "agent_progress" or record is None or agent is None:
        return None
    return {**record, "agentId": agent, "isSidechain": True}


def _draft(kind: Role, value: dict[str, Any], message: dict[str, Any], line: int) -> Draft | None:
    content = as_content(message.get("content"))
    role: Role
    match message.get("role", kind):
        case "user" | "assistant" | "system" as role:
            pass
        case _:
            return None
    if content is None:
        return None
    uuid = usable_id(value.get("uuid"))
    message_id = usable_id(message.get("id")) if role == "assistant" else uuid
    return Draft(
        role=role,
        content=content,
        key=message_id or uuid or f"line:{line}",
        line=line,
        message_id=message_id,
        request_id=usable_id(value.get("requestId")),
        at=moment(value.get("timestamp")),
        model=text_or_none(message.get("model")),
        stop_reason=text_or_none(message.get("stop_reason")),
        author=_author(role, value, content),
    )


def _author(role: Role, value: dict[str, Any], content: Content) -> Author | None:
    """Return the author of a user message. Loaded skills, summaries and sub-agent tasks are marked."""
    if not isinstance(content, str):  # A block without a type carries no information.
        content = tuple(block for block in content if isinstance(block.get("type"), str))
    if role != "user" or not gist(message_of(role, content)).speaks:
        return None
    marks = ("isMeta", "isCompactSummary", "isSidechain", "isVisibleInTranscriptOnly")
    if any(value.get(mark) is True for mark in marks) or value.get(_CALLER):
        return "program"
    if (as_object(value.get("origin")) or {}).get("kind") not in (None, "human"):
        return "program"  # Another session, a channel, or a task that has ended.
    words = said_content(content).lstrip()
    return "program" if words.startswith(_OF_OTHER_AGENTS) else author_of(content)


def _queued(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return the record of a message that was typed while the agent worked, or None.

    Claude Code gives it to the model within the running turn, and records it as an attachment only.
    """
    attachment = as_object(value.get("attachment")) or {}
    prompt = attachment.get("prompt")
    if attachment.get("type") != "queued_command" or not prompt:
        return None
    is_meta = (
        attachment.get("isMeta") is True or attachment.get("commandMode", "prompt") != "prompt"
    )
    message = {"role": "user", "content": prompt}
    origin = attachment.get("origin") or value.get("origin")
    return {**value, "message": message, "isMeta": is_meta, "origin": origin}


def _lookup(reasons: dict[str, str], kind: Any, otherwise: str) -> str:
    return reasons.get(kind, otherwise) if isinstance(kind, str) else otherwise
