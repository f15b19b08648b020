"""Look things up: recall and its options, pages of the history, summaries, and tools for a model."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, assert_type

import refold


def recall(memory: refold.Memory) -> None:
    """Every option, by name or put together before."""
    conversation = memory.conversation("thread", owner="user-1")
    found = conversation.recall(
        "the port number",
        mode="hybrid",
        limit=3,
        min_score=0.5,
        roles=("user", "tool"),
        kinds="text",
        since=datetime(2026, 1, 1, tzinfo=UTC),
        until="2026-02-01T00:00:00Z",
        in_context="leave_out",
        neighbours=0,
        scope="owner",
    )
    assert_type(found, refold.Recalled)
    assert_type(found[0], refold.RecallHit)
    assert_type(found[:2], tuple[refold.RecallHit, ...])
    for hit in found:
        assert_type(hit.address, str)
        assert_type(hit.neighbours, tuple[refold.Neighbour, ...])
        assert_type(hit.tool, str | None)
    how: refold.RecallOptions = {"limit": 2, "topic": "ports"}
    print(len(conversation.recall(**how)), len(memory.search("port", scope="all")))


def records(memory: refold.Memory, text: str) -> Iterator[refold.HistoryRecord]:
    """All records that contain a text, page by page."""
    conversation = memory.conversation("thread")
    start: int | None = 0
    while start is not None:
        page = conversation.query(text=text, start=start, limit=50)
        assert_type(page, refold.HistoryPage)
        yield from page.records
        start = page.next


def expand(memory: refold.Memory) -> None:
    """What the summaries were made of."""
    conversation = memory.conversation("thread")
    for row in conversation.summaries():
        assert_type(row, refold.SummaryRow)
        assert_type(conversation.expand(row.summary_id), refold.ExpandedSummary)
        sources = conversation.summary_sources(row.summary_id, stop=400)
        assert_type(sources, refold.SummarySources)
        assert_type(sources.lines[0], refold.SourcedLine)
        assert_type(sources.lines[0].sources, tuple[refold.LineSource, ...])
        assert_type(sources.missing, tuple[refold.MissingFact, ...])
    kept = conversation.ledger()
    assert_type(kept, refold.LedgerView)
    assert_type(kept.entries, tuple[refold.LedgerEntry, ...])
    part = conversation.read_part("0", max_characters=100)
    assert_type(part, refold.TextPart)
    assert_type(conversation.explain()[0], refold.MessageFate)


def answer_calls(memory: refold.Memory, reply: object) -> list[dict[str, Any]]:
    """Tools for a model, and the answers to its calls."""
    tools = memory.conversation("thread").tools(scope="owner")
    assert_type(tools, refold.Toolbox)
    assert_type(tools["recall_memory"], refold.Tool)
    assert_type(tools.names, tuple[str, ...])
    assert_type(tools.call("recall_memory", {"query": "port"}), refold.ToolOutput)
    for tool in tools:
        assert_type(tool(query="port"), str)
    print(tools.definitions, memory.tools(owner="user-1").names)
    return tools.results_for(reply)
