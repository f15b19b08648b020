"""Small transcript files, as recording tools write them."""

import json
from pathlib import Path
from typing import Any

from refold.application.conversation.transcripts import RecordedConversation, Transcript
from refold.infrastructure.transcripts.read_transcript import read_transcript

Json = dict[str, Any]


def jsonl(*records: Any) -> str:
    """Records as JSON lines; a string is a line as it stands."""
    return "".join(f"{r if isinstance(r, str) else json.dumps(r)}\n" for r in records)


def read_text(
    folder: Path, text: str, *, name: str = "talk.jsonl", format: str = "auto"
) -> Transcript:
    """Write ``text`` to a file and read it as a transcript."""
    path = folder / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return read_transcript(path, format=format)


def read_records(folder: Path, *records: Any) -> Transcript:
    """Read records as a JSON lines file."""
    return read_text(folder, jsonl(*records))


def read_json(folder: Path, value: Any, *, format: str = "auto") -> Transcript:
    """Read one JSON value as a file."""
    return read_text(folder, json.dumps(value), name="talk.json", format=format)


def only(transcript: Transcript) -> RecordedConversation:
    """The one conversation that the file must have."""
    (conversation,) = transcript.conversations
    return conversation


def contents(conversation: RecordedConversation) -> list[Any]:
    """What the messages say, in order; blocks as a list."""
    said = [m.message.content for m in conversation.messages]
    return [c if isinstance(c, str) else list(c) for c in said]


def keys(conversation: RecordedConversation) -> list[str]:
    """The keys of the messages, in order."""
    return [m.key for m in conversation.messages]


def reasons(transcript: Transcript) -> list[str]:
    """Why things were left out, in the order of their places."""
    return [item.reason for item in transcript.skipped]


def claude_user(uuid: str, content: Any, **more: Any) -> Json:
    """A user record of Claude Code."""
    return {
        "type": "user",
        "uuid": uuid,
        "sessionId": "s1",
        "isSidechain": False,
        "timestamp": "2026-01-14T15:18:07.297Z",
        "message": {"role": "user", "content": content},
    } | more


def claude_answer(uuid: str, message_id: str, *blocks: Json, **more: Any) -> Json:
    """A line of an answer in Claude Code."""
    message = {"role": "assistant", "id": message_id, "model": "claude-x", "content": list(blocks)}
    return {"type": "assistant", "uuid": uuid, "sessionId": "s1", "message": message} | more


def text(words: str) -> Json:
    """A text block."""
    return {"type": "text", "text": words}


def call(call_id: str, **arguments: Any) -> Json:
    """A tool call in Anthropic shape."""
    return {"type": "tool_use", "id": call_id, "name": "look", "input": arguments}


def result(call_id: str, content: Any = "ok") -> Json:
    """A tool result in Anthropic shape."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}
