"""The panels of a conversation: summaries, recall, comparison, health and the raw request."""

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .message_views import message_views
from .reader import PAGE, request_at, timeline_page
from .scene import Scene

TEXT_BUDGET = 100_000
"""Bytes of HTML that the texts of a page take at most, about."""
MOST_CHANGES, MOST_LINES, MOST_MOMENTS = 200, 300, 12
"""Rows of changed messages, lines of a difference and compactions that a page shows."""
LONGEST_LINE = 500
"""Characters of a line of a difference that a page shows."""
MOST_JSON = 200_000
"""Characters of a request that a page shows; the rest is in the file."""


def timeline_panel(scene: Scene) -> Mapping[str, Any]:
    """Return a page of the messages."""
    length, wanted = scene.length, scene.number("position")
    start = scene.number("start")
    if start is None:
        at = length - 1 if wanted is None else wanted
        start = max(0, at // PAGE * PAGE)
    page = timeline_page(scene.conversation, length, start, PAGE, scene.at)
    views = message_views(page.messages, page.fates, budget=TEXT_BUDGET, around=page.around)
    return {"timeline": page, "messages": views, "PAGE": PAGE}


def summaries_panel(scene: Scene) -> Mapping[str, Any]:
    """Return all summaries, the newest first."""
    return {
        "summaries": list(reversed(scene.conversation.summaries())),
        "compactions": list(reversed(scene.conversation.compactions())),
    }


def recall_panel(scene: Scene) -> Mapping[str, Any]:
    """Return what a search in the conversation finds."""
    query = scene.query.get("q", "").strip()
    found = scene.conversation.recall(query, limit=20) if query else None
    return {"query": query, "found": found}


class Moment(NamedTuple):
    """A decision that changed the request."""

    name: str
    version: int


def compare_panel(scene: Scene) -> Mapping[str, Any]:
    """Return the difference of the requests at two versions, by default around the newest compaction."""
    newest, moments = scene.row.version, _moments(scene)
    around = moments[0].version if moments and scene.at is None else scene.at or newest
    after = scene.number("after") or around
    before = scene.number("before") or max(1, after - 1)
    found = scene.conversation.diff(before, after)
    lines = found.unified.splitlines()
    return {
        "before": before,
        "after": after,
        "newest": newest,
        "moments": moments,
        "difference": found,
        "changes": found.changes[:MOST_CHANGES],
        "lines": [_diff_line(line) for line in lines[:MOST_LINES]],
        "unseen": max(0, len(lines) - MOST_LINES),
    }


def _moments(scene: Scene) -> list[Moment]:
    """Return the newest compactions, the newest first."""
    made = reversed(scene.conversation.summaries())
    return [Moment(f"summary {one.summary_id[:8]}", one.version) for one in made][:MOST_MOMENTS]


def _diff_line(line: str) -> tuple[str, str, int]:
    """Return the kind of a line, its beginning, and how many characters follow."""
    kind = {"+": "add", "-": "del", "@": "place"}.get(line[:1], "same")
    return kind, line[:LONGEST_LINE], max(0, len(line) - LONGEST_LINE)


def health_panel(scene: Scene) -> Mapping[str, Any]:
    """Return failed compactions, and the result of a check of the whole log if it is asked for."""
    compactions = scene.conversation.compactions()
    failed = [one for one in reversed(compactions) if one.outcome == "failed"]
    check = scene.reader.memory.verify() if scene.query.get("check") else None
    return {"failed": failed, "attempts": len(compactions), "check": check}


def request_panel(scene: Scene) -> Mapping[str, Any]:
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


Panel = Callable[[Scene], Mapping[str, Any]]
PANELS: Mapping[str, tuple[str, Panel]] = {
    "timeline": ("Timeline", timeline_panel),
    "summaries": ("Summaries", summaries_panel),
    "recall": ("Recall", recall_panel),
    "compare": ("Compare", compare_panel),
    "health": ("Health", health_panel),
    "request": ("Request", request_panel),
}
