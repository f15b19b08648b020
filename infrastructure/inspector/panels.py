"""The panels of a conversation: timeline, ledger, recall, comparison, health and the raw request."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from refold.application.errors import LogError
from refold.application.inspection.ledger_view import LedgerEntry
from refold.application.rendering.request_blocks import RECALLED_HEADING
from refold.domain.messages import Block, text_of
from refold.domain.value import is_list
from refold.infrastructure import value_words
from refold.infrastructure.files.log_place import typed_command

from .cache_panel import cache_panel
from .message_views import html_size, message_views, sent_views
from .reader import PAGE, request_at, timeline_page
from .request_view import gauge_of
from .scene import Scene
from .summaries_panel import summaries_panel

TEXT_BUDGET = 60_000
"""Bytes of HTML that the texts of a page take at most, about."""
MOST_CHANGES, MOST_LINES, MOST_MOMENTS = 200, 300, 12
"""Rows of changed messages, lines of a difference and compactions that a page shows."""
LONGEST_LINE = 500
"""Characters of a line of a difference that a page shows."""
MOST_SEEN, MOST_UNSEEN = 30, 60
"""Entries of the ledger under each heading that a page shows, and that it shows folded."""
MOST_ATTEMPTS = 100
"""Compactions that a page lists."""
LARGEST = 10
"""Messages that are named as the largest."""
MOST_SENT, MOST_JSON = 100_000, 60_000
"""Bytes of HTML that the messages of a request take, about, and that its JSON takes; the rest is in the file."""


def timeline_panel(scene: Scene) -> Mapping[str, Any]:
    """Return a page of the messages."""
    length, wanted = scene.length, scene.number("position")
    start = scene.number("start")
    newest = length - 1 if wanted is None else wanted
    first = max(0, newest // PAGE * PAGE) if start is None else start
    page = timeline_page(scene.conversation, length, first, PAGE, scene.at)
    # Without a place in its address, a page shows other messages once the conversation has grown.
    is_fixed = start is not None or wanted is not None
    near = range(page.start, page.stop) if is_fixed else range(0)
    views = message_views(
        page.messages, page.fates, budget=TEXT_BUDGET, around=page.around, near=near
    )
    return {"timeline": page, "messages": views, "PAGE": PAGE}


def ledger_panel(scene: Scene) -> Mapping[str, Any]:
    """Return what code keeps word for word, by heading."""
    entries = scene.conversation.ledger(at=scene.at).entries
    groups: dict[str, tuple[list[LedgerEntry], list[LedgerEntry]]] = {}
    for one in entries:
        seen, unseen = groups.setdefault(one.heading.lstrip("# "), ([], []))
        (seen if one.is_shown else unseen).append(one)
    return {
        "groups": [(heading, *some) for heading, some in groups.items()],
        "counts": {"all": len(entries), "shown": sum(one.is_shown for one in entries)},
        "seen_most": MOST_SEEN,
        "most": MOST_UNSEEN,
    }


def recall_panel(scene: Scene) -> Mapping[str, Any]:
    """Return what a search in the conversation finds, and the lines that standing recall added."""
    query = scene.query.get("q", "").strip()
    found = scene.conversation.recall(query, limit=20) if query else None
    later = 0
    if found is not None:
        hits = tuple(hit for hit in found.hits if scene.has(hit.version))
        later, found = len(found.hits) - len(hits), replace(found, hits=hits)
    added = list(_added_by_recall(scene))
    return {"query": query, "found": found, "later": later, "added": added}


def _added_by_recall(scene: Scene) -> Iterator[str]:
    """Yield the texts that standing recall added to the request, as the model sees them."""
    for message in request_at(scene.conversation, scene.at).messages:
        content = message["content"]
        blocks: Sequence[Block] = content if is_list(content) else ()
        texts = map(text_of, blocks)
        yield from (text for text in texts if text.startswith(RECALLED_HEADING))


def why_panel(scene: Scene) -> Mapping[str, Any]:
    """Return the history of a value: when it came in, when it left, and what brings it back."""
    value = scene.query.get("q", "").strip()
    found = scene.conversation.why(value, at=scene.at) if value else None
    return {
        "query": value,
        "history": found,
        "words": value_words,
        "typed": typed_command,
    }


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
    """Return all compactions, the anchor, and the result of a check of the whole log if it is asked for."""
    made = list(reversed(scene.conversation.compactions()))
    values: dict[str, Any] = {
        "compactions": made[:MOST_ATTEMPTS],
        "attempts": len(made),
        "failed": sum(one.outcome == "failed" for one in made),
        "whole_log": scene.reader.sees_all,
        "anchor": None,
        "anchor_problem": "",
        "check": None,
    }
    if scene.reader.sees_all:
        memory = scene.reader.memory
        try:
            values["anchor"] = memory.anchor()
        except LogError as error:
            values["anchor_problem"] = str(error)
    if scene.query.get("check"):
        values["check"] = scene.reader.verify()
    return values


def request_panel(scene: Scene) -> Mapping[str, Any]:
    """Return the content of the request, its largest messages, the raw JSON and a command that sends it."""
    context = request_at(scene.conversation, scene.at)
    request = context.for_anthropic()
    system = context.system
    text = json.dumps(request, ensure_ascii=False, indent=2)
    shown = text[:MOST_JSON]
    shown = shown[: len(shown) * MOST_JSON // max(MOST_JSON, html_size(shown))]
    first = context.summary.coverage.stop if context.summary else 0
    fates = scene.conversation.explain(first, at=context.version)
    sent = sent_views(context, budget=MOST_SENT)
    return {
        "context": context,
        "parts": gauge_of(scene.conversation, context).segments,
        "largest_of_all": scene.conversation.message_strip(at=scene.at).largest,
        "largest": sorted(fates, key=lambda fate: -fate.shown_tokens)[:LARGEST],
        "system": system if isinstance(system, str) else "\n\n".join(map(text_of, system)),
        "tools": [str(tool.get("name")) for tool in context.tools],
        "sent": sent,
        "is_cut": any(block.left_out for one in sent for block in one.blocks),
        "json": shown,
        "left_out": len(text) - len(shown),
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
    "request": ("Request", request_panel),
    "summaries": ("Summaries", summaries_panel),
    "ledger": ("Ledger", ledger_panel),
    "recall": ("Recall", recall_panel),
    "why": ("Why", why_panel),
    "compare": ("Compare", compare_panel),
    "cache": ("Cache and cost", cache_panel),
    "health": ("Health", health_panel),
}
