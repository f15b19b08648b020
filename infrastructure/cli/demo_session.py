"""The demo's conversation, and the safe replacement of an earlier demo log."""

import json
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

from refold.application.conversation.transcripts import RecordedConversation, RecordedMessage
from refold.application.errors import TargetExists
from refold.domain.errors import RefoldError
from refold.domain.messages import Message
from refold.infrastructure.bootstrap import open_memory
from refold.infrastructure.files.private_files import refuse
from refold.infrastructure.maintenance.backup import files_of


def make_room(path: Path, recorded: RecordedConversation) -> None:
    """Remove the log of an earlier demo at ``path``.

    Raises:
        TargetExists: another file is there; it is not changed.
        LogNotFound: the folder does not exist.
    """
    refuse(path, replace=True)
    if not path.exists():
        return
    if not _is_of_a_demo(path, recorded):
        raise TargetExists(
            path,
            "exists and is not the log of a demo; give another path with --db",
        )
    for file in files_of(path):
        Path(file).unlink(missing_ok=True)


def _is_of_a_demo(path: Path, recorded: RecordedConversation) -> bool:
    """Return whether a log has only the demo's conversation."""
    try:
        with open_memory(path, create=False, background=False) as memory:
            rows = memory.conversations()
            if not rows:
                return memory.stats().events == 0
            if [row.thread_id for row in rows] != [recorded.thread_id]:
                return False
            said = memory.conversation(recorded.thread_id).messages()
    except (RefoldError, OSError):
        return False
    if len(said) > len(recorded.messages):
        return False
    known = (one.message for one in recorded.messages)
    return all(
        one.erased or one.message.role == stored.role
        for one, stored in zip(said, known, strict=False)
    )


THREAD_ID = "demo-teahouse"
LABEL = "teahouse: leases for the job queue, a ledger in fen"


def demo_conversation() -> RecordedConversation:
    """Return two days of a coding agent's work on a job queue: 330 messages, some 280,000 tokens.

    It is long enough for several compactions in a window of 32,000 to 64,000 tokens. The story and all its
    figures are fictional. ``examples/write_demo_session.py`` writes the file.
    """
    text = (
        resources.files("refold.infrastructure.cli")
        .joinpath("session.jsonl")
        .read_text(encoding="utf-8")
    )
    lines = enumerate(text.splitlines(), 1)
    return RecordedConversation(
        thread_id=THREAD_ID,
        label=LABEL,
        messages=tuple(_message(line, number) for number, line in lines),
        tools=_TOOLS,
    )


def _message(line: str, number: int) -> RecordedMessage:
    record: dict[str, Any] = json.loads(line)
    content = record["content"]
    if not isinstance(content, str):
        content = tuple(content)
    return RecordedMessage(
        message=Message(role=record["role"], content=content),
        key=record["id"],
        message_id=record["id"],
        at=datetime.fromisoformat(record["at"]),
        line=number,
    )


def _tool(name: str, about: str, required: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required.split()}
    return {"name": name, "description": about, "input_schema": schema}


_TEXT = {"type": "string"}
_NUMBER = {"type": "integer", "minimum": 1}
_STATUS = {"type": "string", "enum": ["pending", "in_progress", "completed"]}
_TODO = {
    "type": "object",
    "properties": {"content": _TEXT, "status": _STATUS},
    "required": ["content", "status"],
}
_TOOLS = (
    _tool(
        "bash",
        "Run a command in the project's folder and return what it prints.",
        "command description",
        {"command": _TEXT, "description": _TEXT},
    ),
    _tool(
        "read_file",
        "Read a text file, with line numbers; offset is the first line (from 1).",
        "path",
        {"path": _TEXT, "offset": _NUMBER, "limit": _NUMBER},
    ),
    _tool("write_file", "Write a whole file.", "path content", {"path": _TEXT, "content": _TEXT}),
    _tool(
        "edit_file",
        "Replace a text that occurs exactly once in a file.",
        "path old_string new_string",
        {"path": _TEXT, "old_string": _TEXT, "new_string": _TEXT},
    ),
    _tool(
        "grep",
        "Search files at or below a path with a regular expression.",
        "pattern path",
        {"pattern": _TEXT, "path": _TEXT},
    ),
    _tool(
        "todo_write",
        "Replace the list of things to do.",
        "todos",
        {"todos": {"type": "array", "items": _TODO}},
    ),
)
