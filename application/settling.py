"""Use case: bring a conversation that outgrew its budget down to the target, step by step."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from refold.domain.budget import Budget
from refold.domain.calls import open_calls
from refold.domain.compacting import ABANDONED, fail_compaction, may_compact
from refold.domain.events import Event
from refold.domain.messages import Block, Message
from refold.domain.offloading import LargePart, enough, offload_parts, over

from .compaction import CompactionAttempt
from .core import Core
from .loaded import LoadedConversation
from .ports import Summariser
from .projections.window import Preview
from .rendering.preview import shortened
from .rendering.render import address_of, render
from .results import CompactionResult

MOST_ROUNDS = 4
"""At most so many compactions for one request; each must make the conversation smaller."""


def is_due(core: Core, loaded: LoadedConversation, budget: Budget, size: int) -> bool:
    """Whether a conversation whose request has ``size`` tokens must be made smaller first."""
    if size < budget.trigger:
        return False
    return size > budget.limit or may_compact(loaded.state, budget.window, core.settings.policy)


async def settle(core: Core, thread_id: str, budget: Budget) -> list[CompactionResult]:
    """Offload giant results, then summarise, then offload what is left over; stop when it fits.

    Never raises for a summariser: what could not be done is in the results.
    """
    results: list[CompactionResult] = []
    offloaded = await asyncio.to_thread(_offload_giants, core, thread_id, budget)
    summariser = core.summariser
    for _ in range(MOST_ROUNDS):
        now = await asyncio.to_thread(_measured, core, thread_id, budget)
        if not is_due(core, now.loaded, now.budget, now.size):
            break
        attempt = CompactionAttempt(
            core, thread_id, now.budget, trigger="size", summariser=summariser
        )
        result = await attempt.run()
        results.append(result)
        if result.outcome != "performed":
            helper = await _helper(core, thread_id, budget, summariser, result)
            if helper is None:
                break
            summariser = helper
    offloaded += await asyncio.to_thread(_offload_excess, core, thread_id, budget)
    if results:
        results[-1] = results[-1].replaced(results_offloaded=offloaded)
    return results


class _Measured(NamedTuple):
    """A conversation with the size of its request, and the budget for planning what to do."""

    loaded: LoadedConversation
    size: int
    budget: Budget


def _measured(core: Core, thread_id: str, budget: Budget) -> _Measured:
    # Rendering adds a little that is in no message: a note for each call without a result, say.
    loaded = core.log.load(thread_id)
    rendered = render(thread_id, loaded.window, None, core.counter.count_text)
    extra = max(0, rendered.tokens - loaded.state.tokens)
    return _Measured(loaded, rendered.tokens + budget.fixed, budget.carrying(extra))


async def _helper(
    core: Core,
    thread_id: str,
    budget: Budget,
    summariser: Summariser,
    result: CompactionResult,
) -> Summariser | None:
    # The embedded summariser steps in only where the next request would not fit otherwise.
    now = await asyncio.to_thread(_measured, core, thread_id, budget)
    if now.size <= budget.limit or summariser is core.fallback:
        return None
    if result.outcome == "nothing_to_do":
        return None
    if result.outcome == "in_flight":
        await asyncio.to_thread(_abandon, core, thread_id)
    return core.fallback


def _abandon(core: Core, thread_id: str) -> None:
    def decide(loaded: LoadedConversation) -> Sequence[Event]:
        attempt = loaded.state.attempt
        if attempt is None:
            return ()
        return fail_compaction(
            loaded.state, attempt.attempt_id, ABANDONED, "the next request could not wait for it"
        )

    core.log.transact(thread_id, decide, at=core.clock())


def _offload_giants(core: Core, thread_id: str, budget: Budget) -> int:
    policy = core.settings.policy
    preview = Preview(policy.preview_head, policy.preview_tail, 0)
    parts = _large_parts(core, core.log.load(thread_id), preview)
    return _offload(core, thread_id, over(parts, budget.room * policy.giant_share), preview)


def _offload_excess(core: Core, thread_id: str, budget: Budget) -> int:
    policy = core.settings.policy
    count = 0
    for head, tail in ((policy.preview_head, policy.preview_tail), (policy.tiny_preview, 0)):
        now = _measured(core, thread_id, budget)
        if now.size <= budget.limit:
            break
        preview = Preview(head, tail, 0)
        parts = enough(_large_parts(core, now.loaded, preview), now.size - budget.trigger)
        count += _offload(core, thread_id, parts, preview)
    return count


def _offload(core: Core, thread_id: str, parts: Sequence[LargePart], preview: Preview) -> int:
    if parts:
        core.log.transact(
            thread_id,
            lambda now: offload_parts(now.state, parts, head=preview.head, tail=preview.tail),
            at=core.clock(),
        )
    return len(parts)


def _large_parts(core: Core, loaded: LoadedConversation, preview: Preview) -> list[LargePart]:
    """The parts that such a preview would make much smaller than they are shown now."""
    found: list[LargePart] = []
    waiting = frozenset(open_calls(loaded.state))
    for entry in loaded.window.entries:
        address = address_of(loaded.thread_id, entry.position)
        for block in entry.message.blocks():
            side = _SIDES.get(str(block.get("type")))
            if side is None:
                continue
            call_id = str(block.get("id" if side == "call" else "tool_use_id"))
            if side == "call" and call_id in waiting:
                continue  # Somebody may be asked to approve it: it stays word for word.
            shown = loaded.window.previews.get((entry.position, call_id, side))
            if shown is not None and shown.head <= preview.head:
                continue
            now = _size(core, block) - (shown.tokens_freed if shown else 0)
            then = _size(core, shortened(block, preview, address))
            if then * 2 < now:
                found.append(LargePart(entry.position, call_id, side, now, then))
    return found


_SIDES: Mapping[str, Literal["call", "result"]] = {"tool_use": "call", "tool_result": "result"}


def _size(core: Core, block: Block) -> int:
    return core.counter.count_message(Message(role="user", content=(block,))).total
