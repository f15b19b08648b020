"""Use case: bring a conversation that outgrew its budget down to the target, step by step."""

from collections.abc import Sequence

from refold.domain.archiving import may_archive
from refold.domain.budget import Budget
from refold.domain.compacting import abandon_compaction, may_compact
from refold.domain.cuts.planner import CompactionPlan, plan_compaction
from refold.domain.events import Trigger

from .blocking import to_the_end
from .compaction import CompactionAttempt
from .core import Core
from .ladder.byte_rung import is_heavy, lighten
from .ladder.exceeding import is_out_of_reach
from .ladder.last_rung import clear_texts, shorten_texts
from .ladder.measuring import Measured, measured
from .ladder.rungs import Shortened, climb, make_fit
from .loaded import LoadedConversation
from .memories.choosing import choose_anew, give_up
from .notes.taking import take_notes_if_due
from .observing import tell_compaction
from .outcomes import outcome_of
from .ports import Summariser
from .results import CompactionResult
from .summarising.staging import first_stage, next_stage
from .waiting import Turn

MOST_ROUNDS = 4
"""At most so many compactions for one request; each must make the conversation smaller."""


def is_due(core: Core, loaded: LoadedConversation, budget: Budget, size: int) -> bool:
    """Whether a conversation whose request has ``size`` tokens must be made smaller first."""
    return _is_large(core, loaded, budget, size) or _is_long(core, loaded, budget)


def _is_large(core: Core, loaded: LoadedConversation, budget: Budget, size: int) -> bool:
    if size < budget.trigger:
        return False
    return size > budget.limit or may_compact(loaded.state, budget.window, core.settings.policy)


def _is_long(core: Core, loaded: LoadedConversation, budget: Budget) -> bool:
    """Whether it has so many messages that the oldest are archived, and some can be (requirement B7)."""
    policy = core.settings.policy
    if not may_archive(loaded.state, policy):
        return False
    return isinstance(plan_compaction(loaded.state, budget, policy, "size"), CompactionPlan)


async def settle(
    core: Core, thread_id: str, budget: Budget, *, trigger: Trigger = "size"
) -> list[CompactionResult]:
    """Offload large tool content, condense older results, summarise; stop as soon as it is enough.

    Against too many messages only a summary helps. Where the request still does not fit, more tool content
    is shown shorter. What was decided changes the prefix anyway: then the memories that are quoted are
    chosen anew. A compaction that somebody else is making is waited for where the request does not fit.
    No lock is held while a summariser works. Never raises for a summariser: what could not be done is in
    the results.
    """
    turn = Turn(core, thread_id)
    before = await turn.measured(budget)
    before.loaded.present()
    await take_notes_if_due(core, before.loaded, before.budget, before.size)
    if not is_heavy(before) and not is_due(core, before.loaded, before.budget, before.size):
        return []
    results = list[CompactionResult]()
    done = await to_the_end(clear_the_way, core, thread_id, budget)
    now = await turn.measured(budget) if done.decisions else before
    is_in_reach = not is_out_of_reach(now.loaded.state, budget)
    if is_in_reach and is_due(core, now.loaded, now.budget, now.size):
        climbed, results = await _made_smaller(core, now, budget, trigger, turn)
        done = done.plus(climbed)
    if done.decisions or _is_performed(results):
        await to_the_end(choose_anew, core, thread_id, budget, below=before.size)
    return await to_the_end(_reported, core, before, done, results, trigger)


async def _made_smaller(
    core: Core, before: Measured, budget: Budget, trigger: Trigger, turn: Turn
) -> tuple[Shortened, list[CompactionResult]]:
    """One rung after the other, the last ones only where the request needs them."""
    thread_id = before.loaded.thread_id
    done, results = Shortened(), list[CompactionResult]()
    if before.size > budget.limit:
        # The least that can be missed; they are looked up again later, if there is room for any.
        done = Shortened(decisions=await to_the_end(give_up, core, thread_id))
    if _may_shorten(core, before):
        done = done.plus(await to_the_end(climb, core, thread_id, budget))
    if not done.enough or _is_long(core, before.loaded, before.budget):
        results = await _summarised(core, before, budget, trigger, turn)
        if not done.enough and not _is_performed(results) and _may_shorten(core, before):
            more = await to_the_end(climb, core, thread_id, budget, all_of_it=True)
            done = done.plus(more)
    done = done.plus(await to_the_end(make_fit, core, thread_id, budget))
    summarised = _is_performed(results)
    last = await to_the_end(shorten_texts, core, thread_id, budget, to_target=summarised)
    return done.plus(last), results


def _is_performed(results: Sequence[CompactionResult]) -> bool:
    return any(result.outcome == "performed" for result in results)


def clear_the_way(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """Take out what no summary helps against: too many bytes, and texts that leave no room for anything."""
    return lighten(core, thread_id, budget).plus(clear_texts(core, thread_id, budget))


def _may_shorten(core: Core, before: Measured) -> bool:
    if not _is_large(core, before.loaded, before.budget, before.size):
        return False
    # What is being summarised right now is not shortened, unless the request cannot wait.
    return before.loaded.state.attempt is None or before.size > before.budget.limit


async def _summarised(
    core: Core, before: Measured, budget: Budget, trigger: Trigger, turn: Turn
) -> list[CompactionResult]:
    thread_id, known = before.loaded.thread_id, before.loaded.state.summary
    results: list[CompactionResult] = []
    summariser: Summariser | None = None
    for number in range(MOST_ROUNDS):
        now = await turn.measured(budget)
        summariser = summariser or first_stage(core, now.loaded, budget.window)
        # Somebody else may have made the summary that was due.
        is_other = number > 0 or now.loaded.state.summary != known
        if is_other and not is_due(core, now.loaded, now.budget, now.size):
            break
        attempt = CompactionAttempt(
            core, thread_id, now.budget, trigger=trigger, summariser=summariser
        )
        result = await attempt.run()
        needed = now.size > budget.limit
        if result.outcome == "in_flight" and needed and await turn.comes():
            continue  # Somebody else had begun in this very moment.
        results.append(result)
        if result.outcome != "performed":
            helper = await _helper(core, thread_id, budget, summariser, result)
            if helper is None:
                break
            summariser = helper
    return results


async def _helper(
    core: Core,
    thread_id: str,
    budget: Budget,
    summariser: Summariser,
    result: CompactionResult,
) -> Summariser | None:
    # Code steps in for a model only where the next request would not fit otherwise.
    now = await to_the_end(measured, core, thread_id, budget)
    if now.size <= budget.limit or result.outcome == "nothing_to_do":
        return None
    if result.outcome == "in_flight":
        await to_the_end(_abandon, core, thread_id)
        return core.fallback
    if result.reason == "overtaken":
        return summariser  # It did not fail.
    return next_stage(core, thread_id, summariser)


def _abandon(core: Core, thread_id: str) -> None:
    core.log.transact(
        thread_id,
        lambda now: abandon_compaction(now.state, "the next request could not wait for it"),
        at=core.clock(),
    )


def _reported(
    core: Core,
    before: Measured,
    done: Shortened,
    results: list[CompactionResult],
    trigger: Trigger,
) -> list[CompactionResult]:
    """The results, with what was shown shorter on the way; one of its own where that was all."""
    now = measured(core, before.loaded.thread_id, before.plain)
    told = results
    if done.decisions:
        told = [result for result in results if result.outcome != "nothing_to_do"]
        enough = outcome_of(core, before.plain, before.loaded, now.loaded, "shortened")
        told = told or [enough.replaced(trigger=trigger)]
    if not told:
        return []  # What others did was enough.
    told[0] = told[0].replaced(tokens_before=before.size)
    told[-1] = told[-1].replaced(
        tokens_after=now.size,
        results_offloaded=done.offloaded,
        results_condensed=done.condensed,
    )
    if told[-1].outcome == "shortened":
        tell_compaction(core, told[-1])
    return told
