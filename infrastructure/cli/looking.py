"""What several commands print of messages and requests, for programs."""

from refold.application.context import Context
from refold.application.results import StoredMessage


def as_request(made: Context) -> dict[str, object]:
    """A context as a JSON line: what goes to the Messages API, with its size."""
    line: dict[str, object] = {
        "model": made.model or "unknown",
        "system": made.system,
        "messages": made.messages,
    }
    if made.tools:
        line["tools"] = made.tools
    line["tokens"] = made.tokens
    line["summary_id"] = made.summary.summary_id if made.summary else None
    return line


def as_json(stored: StoredMessage) -> dict[str, object]:
    """A stored message for programs."""
    return {
        "position": stored.position,
        "version": stored.version,
        "message_id": stored.message_id,
        "role": stored.message.role,
        "author": stored.message.author,
        "content": stored.message.content,
        "at": stored.at,
        "tokens": stored.tokens,
        "summary_id": stored.summary_id,
        "mark": stored.mark.model_dump() if stored.mark else None,
    }
