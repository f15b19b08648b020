"""Convert rollouts of the Codex CLI, which are JSON lines, to Anthropic shape."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from refold.application.conversation.transcripts import (
    RecordedConversation,
    RecordedMessage,
    RecordedSummary,
    Skipped,
)
from refold.domain.messages import Author, Block, Message, Role, said
from refold.domain.originals import Original
from refold.domain.value import replace

from .chats import why_no_role
from .conversation_draft import author_of, image_block, thinking_block, tool_use
from .openai import convert_content
from .transcript_source import (
    Content,
    Names,
    Reading,
    Source,
    arguments_of,
    as_blocks,
    as_content,
    as_list,
    as_object,
    moment,
    not_a_message,
    objects_in,
    text_or_none,
    thread_id,
    usable_id,
)

FORMAT = "codex"
"""Form of messages whose reasoning is sealed: its items."""
_RECORDS = ("session_meta", "turn_context", "event_msg", "response_item", "compacted")
_ITEMS = ("message", "reasoning", "function_call", "function_call_output")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
_OTHER = {
    "session_meta": "session header",
    "turn_context": "settings of a turn",
    "event_msg": "event, which an item has again",
    "thread_rolled_back": "step back; the messages that it took back are kept",
    "other_event": "event of the program",
    "reasoning": "reasoning that has no words and cannot be opened",
    "web_search_call": "web search without its result",
    "ghost_snapshot": "snapshot of the files",
    "compacted": "summary by the recording tool; the original is before it",
}
_TOLD_AGAIN = (
    *("user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content"),
    *("context_compacted", "mcp_tool_call_end", "exec_command_end", "patch_apply_end"),
    *("mcp_tool_call_begin", "exec_command_begin", "patch_apply_begin", "view_image_tool_call"),
    *("web_search_begin", "web_search_end", "item_started", "item_completed"),
)
# Texts that Codex itself sends as user messages.
_PROGRAM = (
    *(
        "<user_instructions>",
        "<environment_context>",
        "<INSTRUCTIONS>",
        "<turn_aborted>",
        "<skill>",
        "<user_action>",
        "<hook_prompt",
        "<goal_context>",
    ),
    *("# AGENTS.md instructions", "<permissions instructions>", "<subagent_notification>"),
)
_SHELL = "<user_shell_command>"
"""Beginning of a command that the user ran. Most of the text is its output."""
_ROLES = ("user", "assistant", "system", "developer")


def fits(source: Source) -> bool:
    """Return whether at least one record has the form of a rollout, with or without an envelope."""
    first = as_object(source.records[0].value) if source.records else None
    if first is not None and {"id", "timestamp", "instructions"} <= first.keys():
        return True
    if not source.has_field("record_type", "payload", "call_id"):
        return _whole(source) is not None
    return _whole(source) is not None or any(
        _is_ours(as_object(record.value) or {}) for record in source.records
    )


def _whole(source: Source) -> tuple[dict[str, Any], list[Any]] | None:
    """Return header and items of a session in one object, as the first versions wrote it, or None."""
    whole = as_object(source.document) or {}
    header, items = as_object(whole.get("session")), as_list(whole.get("items"))
    return None if header is None or "id" not in header or items is None else (header, items)


def _is_ours(value: dict[str, Any]) -> bool:
    if value.get("record_type") == "state":
        return True
    if value.get("type") in _RECORDS:
        return as_object(value.get("payload")) is not None
    # Items without a header. Messages have the same form in other APIs.
    is_call = value.get("type") in (*_CALLS, *_OUTPUTS) and "call_id" in value
    return is_call and "payload" not in value and "role" not in value


def read(source: Source) -> Reading:
    """Read the conversation of a rollout. Items of one answer become one message."""
    rollout = _Rollout(source.stem)
    if (whole := _whole(source)) is not None:
        header, items = whole
        rollout.take(0, {"instructions": None, **header})
        for index, item in enumerate(items):
            rollout.take(index, as_object(item))
        return rollout.build()
    for record in source.records:
        rollout.take(record.line, as_object(record.value))
    return rollout.build()


@dataclass
class _Rollout:
    """Builds the conversation from items in file order."""

    name: str
    model: str | None = None
    has_header: bool = False
    is_of_agent: bool = False
    """True for a sub-agent, to which another agent writes what a person writes elsewhere."""
    messages: list[RecordedMessage] = field(default_factory=list[RecordedMessage])
    summaries: list[RecordedSummary] = field(default_factory=list[RecordedSummary])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    _names: Names = field(default_factory=Names)
    _is_open: bool = False
    """True if the next item of the same kind belongs to the last message."""
    _thoughts: list[Block] = field(default_factory=list[Block])
    """Reasoning before the next part of an answer."""
    _sealed: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The items of it that only the model can read."""
    _thought_at: int = 0
    """Line of the newest reasoning."""

    def take(self, line: int, record: dict[str, Any] | None) -> None:
        """Add one record."""
        if record is None:
            damage = "record that is no object"
            self.skipped.append(Skipped(line=line, reason=damage, damage=True))
            return
        at, payload = moment(record.get("timestamp")), as_object(record.get("payload"))
        match record.get("type"):
            case "session_meta" if payload is not None:
                self._take_header(payload)
                self._skip(line, "session_meta")
            case "turn_context" if payload is not None:
                self.model = text_or_none(payload.get("model")) or self.model
                self._skip(line, "turn_context")
            case "compacted" if payload is not None:
                self._take_summary(at, payload)
                self._skip(line, "compacted")
            case "event_msg" if payload is not None and payload.get("type") not in _TOLD_AGAIN:
                event = str(payload.get("type"))
                self._skip(line, event if event == "thread_rolled_back" else "other_event", event)
            case "response_item" if payload is not None:
                self._take_item(line, at, payload)
            case _ if payload is None and record.get("type") in (*_ITEMS, *_CALLS, *_OUTPUTS):
                self._take_item(line, at, record)
            case None if record.get("role") in _ROLES and "content" in record:
                self._take_item(line, at, {**record, "type": "message"})
            case None if "instructions" in record and "id" in record:
                self._take_header(record)
                self._skip(line, "session_meta")
            case kind:
                self._skip(line, str(kind or record.get("record_type") or ""))

    def build(self) -> Reading:
        """Return the conversation, if it has messages, and everything that was skipped."""
        conversation = RecordedConversation(
            thread_id=thread_id(self.name),
            messages=tuple(self.messages),
            summaries=tuple(self.summaries),
        )
        found = (conversation,) if self.messages else ()
        return Reading(conversations=found, skipped=tuple(self.skipped))

    def _take_header(self, header: dict[str, Any]) -> None:
        # A forked session repeats the header of its origin after its own.
        if not self.has_header:
            self.name, self.has_header = usable_id(header.get("id")) or self.name, True
            is_agent = "subagent" in (as_object(header.get("source")) or {})
            self.is_of_agent = is_agent or header.get("thread_source") == "subagent"

    def _take_summary(self, at: datetime | None, payload: dict[str, Any]) -> None:
        text = text_or_none(payload.get("message")) or ""
        history = as_list(payload.get("replacement_history"))
        # Without its new history a rollout of an older version keeps the words of the person.
        kept = _person_words(self.messages) if history is None else _item_texts(history)
        if self.messages and (text or kept):
            place = len(self.messages)
            self.summaries.append(RecordedSummary(position=place, text=text, at=at, kept=kept))
        self._is_open = False

    def _take_item(self, line: int, at: datetime | None, item: dict[str, Any]) -> None:
        match item.get("type"):
            case "message":
                self._take_message(line, at, item)
            case "reasoning":
                self._take_reasoning(line, item)
            case "web_search_call" | "ghost_snapshot" as kind:
                self._skip(line, kind)
            case "image_generation_call":
                self._take_image(line, at, item)
            case kind if kind in _CALLS:
                self._add(line, at, "assistant", (_call(item, line),))
            case kind if kind in _OUTPUTS:
                self._add(line, at, "user", (_output(item),))
            case kind:
                self._skip(line, str(kind))

    def _end_answer(self, at: datetime | None) -> None:
        """Add the reasoning of an answer that was interrupted."""
        if self._thoughts:
            self._add(self._thought_at, at, "assistant", ())
        elif self._sealed:
            self._skip(self._thought_at, "reasoning")
            self._sealed = []

    def _take_reasoning(self, line: int, item: dict[str, Any]) -> None:
        texts = [
            str(part.get("text") or "")
            for name in ("summary", "content")
            for part in objects_in(item.get(name))
        ]
        self._thought_at = line
        if text := "\n\n".join(filter(str.strip, texts)):
            self._thoughts.append(thinking_block(text))
        if text_or_none(item.get("encrypted_content")):
            self._sealed.append(item)
        elif not text:
            self._skip(line, "reasoning")

    def _take_message(self, line: int, at: datetime | None, item: dict[str, Any]) -> None:
        content, role = convert_content(item.get("content")), item.get("role")
        if content is None or role not in _ROLES:
            problem = "content of an unknown kind" if role in _ROLES else why_no_role(item, _ROLES)
            self.skipped.append(not_a_message(line, problem))
            return
        if role == "assistant":
            self._add(line, at, "assistant", tuple(as_blocks(content)), usable_id(item.get("id")))
            return
        self._end_answer(at)
        made: Role = "user" if role == "user" else "system"
        author: Author | None = self._author(content) if made == "user" else None
        message = Message(role=made, content=content, author=author)
        self._append(line, at, message, usable_id(item.get("id")))
        self._is_open = False

    def _author(self, content: Content) -> Author:
        words = said(Message(role="user", content=content)).lstrip()
        if words.startswith(_SHELL):
            return "tool"
        is_sent = self.is_of_agent or words.startswith(_PROGRAM)
        return "program" if is_sent else author_of(content)

    def _take_image(self, line: int, at: datetime | None, item: dict[str, Any]) -> None:
        """Take an image that the model made. Call and result stand in one item."""
        call_id = usable_id(item.get("id")) or f"call_{line}"
        asked = {"prompt": text} if (text := text_or_none(item.get("revised_prompt"))) else {}
        self._add(line, at, "assistant", (tool_use(call_id, "image_generation", asked),))
        if (data := text_or_none(item.get("result"))) is not None:
            shown = [image_block("image/png", data)]
            made = {"type": "tool_result", "tool_use_id": call_id, "content": shown}
            self._add(line, at, "user", (made,))

    def _add(
        self,
        line: int,
        at: datetime | None,
        role: Role,
        blocks: tuple[Block, ...],
        message_id: str | None = None,
    ) -> None:
        """Add blocks to the last message if it is of the same role, or begin a new one."""
        sealed = list[dict[str, Any]]()
        if role == "assistant":
            blocks = (*self._thoughts, *blocks)
            sealed, self._thoughts, self._sealed = self._sealed, [], []
        last = self.messages[-1] if self.messages and self._is_open else None
        if last is not None and last.message.role == role:
            sealed = [*(last.original.data if last.original else ()), *sealed]
            message = Message(role=role, content=(*last.message.blocks(), *blocks))
            self.messages[-1] = replace(last, message=message, original=_original(sealed))
            return
        self._append(line, at, Message(role=role, content=blocks), message_id, _original(sealed))
        self._is_open = True

    def _append(
        self,
        line: int,
        at: datetime | None,
        message: Message,
        message_id: str | None,
        original: Original | None = None,
    ) -> None:
        self.messages.append(
            RecordedMessage(
                message=message,
                key=self._names.take(message_id or f"line:{line}"),
                message_id=message_id,
                at=at,
                line=line,
                model=self.model if message.role == "assistant" else None,
                original=original,
            )
        )

    def _skip(self, line: int, kind: str, detail: str | None = None) -> None:
        reason, shown = _OTHER.get(kind, "record of another type"), detail or kind
        self.skipped.append(Skipped(line=line, reason=reason, detail=ascii(shown)[1:-1][:80]))


def _original(sealed: list[dict[str, Any]]) -> Original | None:
    return Original(format=FORMAT, data=sealed) if sealed else None


def _call(item: dict[str, Any], line: int) -> Block:
    call_id = usable_id(item.get("call_id")) or usable_id(item.get("id")) or f"call_{line}"
    if item["type"] == "local_shell_call":
        return tool_use(call_id, "local_shell", arguments_of(item.get("action")))
    if item["type"] == "tool_search_call":
        return tool_use(call_id, "tool_search", arguments_of(item.get("arguments")))
    given = item.get("arguments") if item["type"] == "function_call" else item.get("input")
    if item["type"] == "custom_tool_call" and isinstance(given, str):
        given = {"input": given}
    return tool_use(call_id, text_or_none(item.get("name")) or "unknown", arguments_of(given))


def _output(item: dict[str, Any]) -> Block:
    given = item.get("output")
    if item["type"] == "tool_search_output":
        given = json.dumps(item.get("tools"), ensure_ascii=False)
    whole = as_object(given) or {}
    content = convert_content(whole.get("content", given)) or as_content(given) or ""
    result: Block = {
        "type": "tool_result",
        "tool_use_id": usable_id(item.get("call_id")) or "unknown",
        "content": content if isinstance(content, str) else list(content),
    }
    if whole.get("success") is False:
        result["is_error"] = True
    return result


def _person_words(messages: list[RecordedMessage]) -> str:
    own = (one.message for one in messages if one.message.author == "person")
    return "\n".join(map(said, own))


def _item_texts(items: list[Any]) -> str:
    texts = [convert_content(item.get("content")) for item in objects_in(items)]
    made = [Message(role="user", content=text) for text in texts if text is not None]
    return "\n".join(map(said, made))
