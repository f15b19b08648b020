"""Use case: bring a conversation that outgrew its budget down to the target, step by step."""

import asyncio
import json
from collections.abc import Sequence

from refold.domain.budget import Budget
from refold.domain.compacting import ABANDONED, fail_compaction, may_try_again
from refold.domain.events import Event
from refold.domain.messages import Message
from refold.domain.offloading import (
    LargeResult,
    offload_giants,
    offload_results,
    offload_until,
)

from .compaction import CompactionAttempt
from .core import Core
from .loaded import LoadedConversation
from .ports import Summariser
from .projections.window import Preview
from .rendering.preview import shortened
from .rendering.render import address_of
from .results import CompactionResult

MOST_ROUNDS = 4
"""At most so many compactions for one request; each must make the conversation smaller."""


def is_due(core: Core, loaded: LoadedConversation, budget: Budget) -> bool:
    """Whether the conversation must be made smaller before the next request."""
    size = loaded.state.tokens + budget.fixed
    if size < budget.trigger:
        return False
    return size > budget.limit or may_try_again(
        loaded.state, budget.window, core.settings.policy
    )


async def settle(core: Core, thread_id: str, budget: Budget) -> list[CompactionResult]:
    """Offload giant results, then summarise, then offload what is left over; stop when it fits.

    Never raises for a summariser: what could not be done is in the results.
    """
    results: list[CompactionResult] = []
    loaded = await asyncio.to_thread(core.log.load, thread_id)
    offloaded = await asyncio.to_thread(_offload_giants, core, loaded, budget)
    summariser = core.summariser
    for _ in range(MOST_ROUNDS):
        loaded = await asyncio.to_thread(core.log.load, thread_id)
        if not is_due(core, loaded, budget):
            break
        attempt = CompactionAttempt(
            core, thread_id, budget, trigger="size", summariser=summariser
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


async def _helper(
    core: Core,
    thread_id: str,
    budget: Budget,
    summariser: Summariser,
    result: CompactionResult,
) -> Summariser | None:
    # The embedded summariser steps in only where the next request would not fit otherwise.
    loaded = await asyncio.to_thread(core.log.load, thread_id)
    if loaded.state.tokens + budget.fixed <= budget.limit or summariser is core.fallback:
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


def _offload_giants(core: Core, loaded: LoadedConversation, budget: Budget) -> int:
    chosen = offload_giants(_large_results(core, loaded), budget.room, core.settings.policy)
    return _offload(core, loaded.thread_id, chosen)


def _offload_excess(core: Core, thread_id: str, budget: Budget) -> int:
    loaded = core.log.load(thread_id)
    if loaded.state.tokens + budget.fixed <= budget.limit:
        return 0
    excess = loaded.state.tokens + budget.fixed - budget.target
    return _offload(core, thread_id, offload_until(_large_results(core, loaded), excess))


def _offload(core: Core, thread_id: str, chosen: Sequence[LargeResult]) -> int:
    if not chosen:
        return 0
    policy = core.settings.policy
    core.log.transact(
        thread_id, lambda now: offload_results(now.state, chosen, policy), at=core.clock()
    )
    return len(chosen)


def _large_results(core: Core, loaded: LoadedConversation) -> list[LargeResult]:
    window, policy = loaded.window, core.settings.policy
    preview = Preview(policy.preview_head, policy.preview_tail, 0)
    found: list[LargeResult] = []
    for entry in window.entries:
        for block in entry.message.blocks():
            call_id = str(block.get("tool_use_id"))
            if block.get("type") != "tool_result" or (entry.position, call_id) in window.previews:
                continue
            if _characters(block) <= 2 * (preview.head + preview.tail):
                continue
            short = shortened(block, preview, address_of(loaded.thread_id, entry.position))
            found.append(
                LargeResult(
                    position=entry.position,
                    call_id=call_id,
                    tokens=_size(core, block),
                    preview_tokens=_size(core, short),
                )
            )
    return found


def _characters(block: dict[str, object]) -> int:
    return len(json.dumps(block.get("content")))


def _size(core: Core, block: dict[str, object]) -> int:
    return core.counter.count_message(Message(role="user", content=(block,))).total


