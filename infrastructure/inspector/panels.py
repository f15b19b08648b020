"""The panels of a conversation: summaries, recall, comparison, health and the raw request."""

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .reader import request_at

if TYPE_CHECKING:
    from .conversation_page import Scene

MOST_JSON = 200_000
"""Characters of a request that a page shows; the rest is in the file."""


def summaries_panel(scene: "Scene") -> Mapping[str, Any]:
    """Return all summaries, the newest first."""
    return {
        "summaries": list(reversed(scene.conversation.summaries())),
        "compactions": list(reversed(scene.conversation.compactions())),
    }


def recall_panel(scene: "Scene") -> Mapping[str, Any]:
    """Return what a search in the conversation finds."""
    query = scene.query.get("q", "").strip()
    found = scene.conversation.recall(query, limit=20) if query else None
    return {"query": query, "found": found}


def compare_panel(scene: "Scene") -> Mapping[str, Any]:
    """Return the difference of the requests at two versions."""
    newest = scene.row.version
    after = scene.number("after") or scene.at or newest
    before = scene.number("before")
    if before is None:
        before = max(1, after - 1)
    found = scene.conversation.diff(before, after)
    return {"before": before, "after": after, "newest": newest, "difference": found}


def health_panel(scene: "Scene") -> Mapping[str, Any]:
    """Return failed compactions, and the result of a check of the whole log if it is asked for."""
    compactions = scene.conversation.compactions()
    failed = [one for one in reversed(compactions) if one.outcome == "failed"]
    check = scene.reader.verify() if scene.query.get("check") else None
    return {"failed": failed, "attempts": len(compactions), "check": check}


def request_panel(scene: "Scene") -> Mapping[str, Any]:
    """Return the raw request as JSON, and a command that sends it."""
    context = request_at(scene.conversation, scene.at)
    request = context.for_anthropic()
    text = json.dumps(request, ensure_ascii=False, indent=2)
    return {
        "context": context,
        "json": text[:MOST_JSON],
        "left_out": max(0, len(text) - MOST_JSON),
        "curl": _curl(context.model or "MODEL"),
    }


def _curl(model: str) -> str:
    lines = (
        "jq '. + {model: $model, max_tokens: 1024} | del(.extra_headers)' "
        f"--arg model {shlex.quote(model)} request.json",
        "  | curl https://api.anthropic.com/v1/messages --data-binary @-",
        '      -H "x-api-key: $ANTHROPIC_API_KEY" -H "anthropic-version: 2023-06-01"',
        '      -H "content-type: application/json"',
    )
    return " \\\n".join(lines)
