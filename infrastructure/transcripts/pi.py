"""Convert session files of the pi coding agent, which are JSON lines, to Anthropic shape."""

from typing import Any

from refold.application.conversation.transcripts import (
    RecordedConversation,
    RecordedMessage,
    RecordedSummary,
    Skipped,
)
from refold.domain.messages import Author, Block, Message, Role, readable

from .conversation_draft import image_block, tool_use
from .transcript_source import (
    Content,
    Names,
    Reading,
    Source,
    arguments_of,
    as_content,
    as_object,
    moment,
    not_a_message,
    text_block,
    text_or_none,
    thread_id,
    usable_id,
)

_ROLES = ("user", "assistant", "toolResult", "bashExecution", "custom")
_OTHER_RECORDS = {
    "session": "session header",
    "compaction": "compaction by the recording tool; the original is in the file",
    "branch_summary": "summary by the recording tool; the original is in the file",
    "model_change": "model change",
    "thinking_level_change": "thinking level change",
    "session_info": "title of a session",
    "label": "bookmark",
    "custom": "record of an extension",
}
_SIGNED_BY_ANTHROPIC = ("anthropic-messages", "bedrock-converse-stream")


def fits(source: Source) -> bool:
    """Return whether at least one record has the pi format."""
    signs = ("message", "cwd", "tokensBefore")
    return source.has_field(*signs) and any(_is_ours(record.value) for record in source.records)


def read(source: Source) -> Reading:
    """Read the conversation of a session in file order. Abandoned branches are kept."""
    session, label = source.stem, None
    names, messages, skipped = Names(), list[RecordedMessage](), list[Skipped]()
    summaries = list[RecordedSummary]()
    started = False
    for record in source.records:
        entry = as_object(record.value) or {}
        match entry:
            case {"type": "message" | "custom_message"}:
                _take(record.line, entry, names, messages, skipped)
                continue
            case {"type": "session", "id": str(given)} if not started:
                session, started = usable_id(given) or session, True
            case {"type": "session_info", "name": str(title)}:
                label = text_or_none(title) or label
            case {"type": "compaction", "summary": str(text)} if text.strip() and messages:
                summaries.append(_summary(entry, text, source, messages))
            case _:
                pass
        skipped.append(_skip(record.line, entry))
    conversation = RecordedConversation(
        thread_id=thread_id(session),
        label=label,
        messages=tuple(messages),
        summaries=tuple(summaries),
    )
    return Reading(conversations=(conversation,) if messages else (), skipped=tuple(skipped))


def _is_ours(given: Any) -> bool:
    value = as_object(given) or {}
    match value:
        case {"type": "message", "message": {"role": str(role)}}:
            return role in _ROLES
        case {"type": "session"}:
            return "id" in value and "cwd" in value
        case {"type": "compaction"}:
            return "summary" in value and "tokensBefore" in value
        case _:
            return False


def _summary(
    entry: dict[str, Any], text: str, source: Source, messages: list[RecordedMessage]
) -> RecordedSummary:
    """Return the summary of a compaction, with the messages that were kept in full before it."""
    first = entry.get("firstKeptEntryId")
    place = next((at for at, one in enumerate(messages) if one.message_id == first), len(messages))
    index = entry.get("firstKeptEntryIndex")
    if first is None and isinstance(index, int) and 0 <= index < len(source.records):
        line = source.records[index].line
        place = next((at for at, one in enumerate(messages) if (one.line or 0) >= line), place)
    kept = "\n".join(readable(one.message) for one in messages[place:])
    return RecordedSummary(
        position=len(messages),
        text=text,
        key=usable_id(entry.get("id")),
        at=moment(entry.get("timestamp")),
        kept=kept,
    )


def _skip(line: int, entry: dict[str, Any]) -> Skipped:
    kind = entry.get("type")
    if not isinstance(kind, str):
        return Skipped(line=line, reason="record without a type", damage=True)
    reason = _OTHER_RECORDS.get(kind, "record of another type")
    return Skipped(line=line, reason=reason, detail=ascii(kind)[1:-1][:80])


def _take(
    line: int,
    entry: dict[str, Any],
    names: Names,
    messages: list[RecordedMessage],
    skipped: list[Skipped],
) -> None:
    written = entry.get("message") if entry["type"] == "message" else {**entry, "role": "custom"}
    said = as_object(written)
    if said is None:
        skipped.append(not_a_message(line, "no message in the record"))
        return
    if said.get("excludeFromContext") is True:
        reason = "shell command that the model was not shown"
        skipped.append(Skipped(line=line, reason=reason))
        return
    message = _message(said)
    if message is None:
        skipped.append(not_a_message(line, "role or content of an unknown kind"))
        return
    entry_id = usable_id(entry.get("id"))
    messages.append(
        RecordedMessage(
            message=message,
            key=names.take(entry_id or f"line:{line}"),
            message_id=entry_id,
            at=moment(entry.get("timestamp")) or moment(said.get("timestamp")),
            line=line,
            model=text_or_none(said.get("model")),
            stop_reason=text_or_none(said.get("stopReason")),
        )
    )


def _message(said: dict[str, Any]) -> Message | None:
    role: Role = "user"
    content: Content | None
    match said.get("role"):
        case "user" | "custom":
            content = _content(said)
        case "assistant":
            role, content = "assistant", _content(said)
        case "toolResult":
            content = _tool_result(said)
        case "bashExecution":
            content = _shell_text(said)
        case _:
            content = None
    return None if content is None else Message(role=role, content=content, author=_author(said))


def _author(said: dict[str, Any]) -> Author | None:
    match said.get("role"):
        case "user":
            return "person"
        case "custom":
            return "program"
        case "bashExecution":
            return "tool"  # The user ran the command, but most of the text is its output.
        case _:
            return None


def _content(said: dict[str, Any]) -> Content | None:
    content = as_content(said.get("content"))
    if content is None or isinstance(content, str):
        return content
    signed = said.get("api") is None or said.get("api") in _SIGNED_BY_ANTHROPIC
    return tuple(_block(block, signed=signed) for block in content)


def _block(block: Block, *, signed: bool) -> Block:
    match block:
        case {"type": "toolCall"}:
            arguments = arguments_of(block.get("arguments"))
            return tool_use(_id_of(block.get("id")), _name_of(block.get("name")), arguments)
        case {"type": "thinking", "redacted": True, "thinkingSignature": str(data)} if signed:
            return {"type": "redacted_thinking", "data": data}
        case {"type": "thinking", "thinking": str(text)}:
            signature = block.get("thinkingSignature")
            if signed and isinstance(signature, str) and signature:
                return {"type": "thinking", "thinking": text, "signature": signature}
            return {"type": "thinking", "thinking": text}
        case {"type": "image", "data": str(data)}:
            return image_block(block.get("mimeType", "image/png"), data)
        case {"type": "text", "text": str(text)}:
            return text_block(text)
        case _:
            return block


def _tool_result(said: dict[str, Any]) -> Content | None:
    content = _content(said)
    if content is None:
        return None
    result: Block = {
        "type": "tool_result",
        "tool_use_id": _id_of(said.get("toolCallId")),
        "content": content if isinstance(content, str) else list(content),
    }
    if said.get("isError") is True:
        result["is_error"] = True
    return (result,)


def _shell_text(said: dict[str, Any]) -> str | None:
    """Return a command that the user ran, in the words that the model gets."""
    command, output = said.get("command"), said.get("output")
    if not isinstance(command, str):
        return None
    lines = ["I ran a shell command.", f"$ {command}"]
    if isinstance(output, str) and output:
        lines.append(output.rstrip("\n"))
    if said.get("cancelled") is True:
        lines.append("(cancelled)")
    elif (code := said.get("exitCode")) not in (0, None):
        lines.append(f"(exit code {code})")
    if said.get("truncated") is True:
        lines.append("(output cut off by the recording tool)")
    return "\n".join(lines)


def _id_of(value: Any) -> str:
    return value if isinstance(value, str) else "unknown"


def _name_of(value: Any) -> str:
    return value if isinstance(value, str) and value else "unknown"
