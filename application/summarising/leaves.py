"""Leaf summaries: extracts by code of what each compaction covered first, to build from anew."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from refold.application.containing import Contained
from refold.application.core import Core
from refold.application.loaded import LoadedConversation
from refold.application.ports import SourceMessage, SummaryRequest
from refold.domain.budget import SHORTEST_SUMMARY
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.events import CompactionPerformed, LeafSummary

from .cutting import cut
from .last_resort import NoteSummariser

logger = logging.getLogger(__name__)

_RANGE = "Extracted by code from messages {first} to {last}:"
_SHORTER = 3
"""What is older is shortened to a third (requirement B8)."""


async def leaf_of(
    core: Core,
    thread_id: str,
    messages: Sequence[SourceMessage],
    plan: CompactionPlan,
    ending: str = "",
) -> LeafSummary:
    """The leaf of just these messages, by the embedded summariser; a note where that fails.

    ``ending``: what its text says at its end.
    """
    target = min(core.settings.policy.leaf_tokens, plan.target_tokens)
    leaf = await leaf_within(core, thread_id, messages, target)
    if not ending:
        return leaf
    text = leaf.text + ending
    return leaf.replaced(text=text, tokens=core.counter.count_text(text))


async def leaf_within(
    core: Core, thread_id: str, messages: Sequence[SourceMessage], target: int
) -> LeafSummary:
    """The same of about ``target`` tokens."""
    count = core.counter.count_text
    limit = int(target * core.settings.policy.summary_slack)
    request = SummaryRequest(
        messages=tuple(messages), target_tokens=target, limit_tokens=max(1, limit)
    )
    text = cut(await _extract(core, thread_id, request), limit, count)
    positions = [source.position for source in messages]
    return LeafSummary(start=min(positions), stop=max(positions) + 1, text=text, tokens=count(text))


def stored_leaves(core: Core, loaded: LoadedConversation) -> tuple[LeafSummary, ...]:
    """The leaves that together stand for all that the active summary covers, from the log."""
    summary = loaded.state.summary
    found: list[LeafSummary] = []
    for version in summary.leaves if summary else ():
        [logged] = core.log.read(loaded.thread_id, version, version)
        if isinstance(logged.event, CompactionPerformed) and logged.event.leaf:
            found.append(logged.event.leaf)
    return tuple(found)


async def text_of_leaves(
    core: Core, thread_id: str, leaves: Sequence[LeafSummary], room: int
) -> str:
    """The leaves in order, headed by their ranges, in about ``room`` tokens: the newest whole, the
    older ones together shortened to a third or less where all are too much (requirement B8).
    """
    count = core.counter.count_text
    older, newest = await asyncio.to_thread(_apart, leaves, room, count)
    if not older:
        return "\n\n".join(newest)
    target = max(SHORTEST_SUMMARY, min(count(older) // _SHORTER, room // 2))
    limit = int(target * core.settings.policy.summary_slack)
    request = SummaryRequest(messages=(), previous=older, target_tokens=target, limit_tokens=limit)
    shortened = cut(await _extract(core, thread_id, request), limit, count)
    return "\n\n".join([shortened, *newest])


def _apart(
    leaves: Sequence[LeafSummary], room: int, count: Callable[[str], int]
) -> tuple[str, list[str]]:
    """The older ones together, nothing where all have room; and the newest, each whole."""
    texts = [headed(leaf) for leaf in leaves]
    if count("\n\n".join(texts)) <= room:
        return "", texts
    newest: list[str] = []
    while texts and count("\n\n".join([texts[-1], *newest])) <= room // 2:
        newest.insert(0, texts.pop())
    return "\n\n".join(texts), newest


def headed(leaf: LeafSummary) -> str:
    """The text of a leaf under a line that says what it was extracted from."""
    heading = _RANGE.format(first=leaf.start, last=leaf.stop - 1)
    return leaf.text if leaf.text.startswith(heading) else f"{heading}\n\n{leaf.text}"


async def _extract(core: Core, thread_id: str, request: SummaryRequest) -> str:
    try:
        with Contained():
            return (await core.fallback.summarise(request)).text
    except Exception:  # A summariser of the user's own may raise anything.
        logger.exception("the embedded summariser failed: a note stands for its extract")
        note = NoteSummariser(thread_id, core.counter.count_text)
        return (await note.summarise(request)).text
