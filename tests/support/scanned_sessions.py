"""Session files with compactions, as Claude Code writes them, and the counts that a scan must find in them."""

from pathlib import Path
from typing import Any

from .transcript_files import claude_answer, claude_user, jsonl, result, text

RULE = "Never touch the generated files of the compiler."
SECRET = "sk-" + "a1b2" * 8
MASKED = "[redacted]"
AT = "2026-02-01T{:02}:00:00.000Z"


def _call(name: str, number: int, tool: str, **fields: Any) -> list[dict[str, Any]]:
    used = {"type": "tool_use", "id": f"{name}-c{number}", "name": tool, "input": fields}
    answer = claude_answer(f"{name}-a{number}", f"{name}-m{number}", used, sessionId=name)
    found = claude_user(
        f"{name}-r{number}", [result(f"{name}-c{number}", "a line of text " * 20)], sessionId=name
    )
    return [answer, found]


def compacted_session(
    name: str, *, asked: str = RULE, path: str = "/w/parser.py", hour: int = 10
) -> str:
    """A session with two compactions.

    Lost at the first: a request, a rule and a file. Calls before the first edit: 1, and no edit. Read again: one
    file after each.
    """
    records = [
        claude_user(f"{name}-u1", f"Start with the parser. {asked}", sessionId=name),
        *_call(name, 1, "Read", file_path=path),
        claude_user(
            f"{name}-k1", "We read some things.", sessionId=name, isCompactSummary=True,
            timestamp=AT.format(hour),
        ),
        *_call(name, 2, "Read", file_path=path),
        *_call(name, 3, "Edit", file_path="/w/other.py", old_string="a", new_string="b"),
        claude_user(
            f"{name}-k2", f"We read {path}.", sessionId=name, isCompactSummary=True,
            timestamp=AT.format(hour + 1),
        ),
        *_call(name, 4, "Read", file_path=path),
        claude_answer(f"{name}-z", f"{name}-mz", text("Done."), sessionId=name),
    ]  # fmt: skip
    return jsonl(*records)


def quiet_session(name: str) -> str:
    """A session without a compaction."""
    answer = claude_answer(f"{name}-a1", f"{name}-m1", text("Yes."), sessionId=name)
    return jsonl(claude_user(f"{name}-u1", "Is this a test?", sessionId=name), answer)


def home_with_sessions(home: Path) -> Path:
    """A home folder with a session of each tool, two of them compacted."""
    files = {
        ".claude/projects/-w/one.jsonl": compacted_session("one"),
        ".claude/projects/-w/two.jsonl": quiet_session("two"),
        ".codex/sessions/2026/02/01/rollout-x.jsonl": _rollout(),
        ".gemini/tmp/h/chats/session-g.json": (
            '{"sessionId": "g", "projectHash": "h", "messages": '
            '[{"id": "1", "type": "user", "content": "hi"}]}'
        ),
    }
    for name, content in files.items():
        place = home / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, "utf-8")
    return home


def _rollout() -> str:
    def item(hour: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": AT.format(hour), "type": kind, "payload": payload}

    def words(role: str, said: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": said}]}

    return jsonl(
        item(8, "session_meta", {"id": "rollout", "cwd": "/w"}),
        item(8, "response_item", words("user", "Go on with the server.")),
        item(9, "compacted", {"message": "A summary."}),
        item(9, "response_item", words("assistant", "I go on.")),
    )
