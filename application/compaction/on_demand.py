"""Compact on demand with options for one run, and revert the newest compaction."""

from collections.abc import Sequence
from typing import NamedTuple

from refold.application.api.blocking import in_thread, run_alone, run_to_end
from refold.application.api.results import CompactionResult
from refold.application.conversation.loaded import LoadedConversation
from refold.application.frames.sent_request import expect_extras
from refold.application.recall.owner_memories import update_memories
from refold.application.runtime.core import Core, Extras
from refold.application.runtime.observers import CompactionNotifier, notify_compaction
from refold.application.summaries.leaves import chosen_stage
from refold.domain.compaction.budget import Budget
from refold.domain.compaction.compacting import revert_compaction
from refold.domain.cuts.planner import CompactionWish
from refold.domain.errors import InvalidSetting
from refold.domain.events import Event
from refold.domain.value import replace

from .attempt import CompactionAttempt
from .attempt_ends import outcome_of, with_sizes
from .ladder import Shortened
from .last_rung import reduce_uncoverable, shorten_before_summary, take_all_rungs


def revert(core: Core, thread_id: str, reason: str, extras: Extras) -> CompactionResult:
    """Revert the active summary; if none exists, the call succeeds.

    If the request no longer fits, the next context shortens it. The quoted memories are chosen again:
    content that is back in the context needs no quotation.
    """
    was: LoadedConversation = LoadedConversation(thread_id)

    def decide(loaded: LoadedConversation) -> Sequence[Event]:
        nonlocal was
        was = loaded.present()
        if loaded.state.summary is None or _is_final(loaded):
            return ()
        before = core.log.load(thread_id, at=loaded.state.summary.version - 1)
        return revert_compaction(loaded.state, before.state, reason.strip())

    now, events = core.log.transact(thread_id, decide, at=core.clock())
    extras = expect_extras(core, thread_id, extras)
    core = core.for_model(extras.model)
    budget = core.budget(extras)
    if not events and _is_final(now):
        why = (
            "the active summary was made because messages were erased: the one before is withdrawn"
        )
        return outcome_of(core, budget, was, now, "nothing_to_do", "erased", why)
    if not events:
        return outcome_of(
            core, budget, was, now, "nothing_to_do", "no_summary", "no summary is active"
        )
    result = outcome_of(core, budget, was, now, "reverted")
    if update_memories(core, thread_id, budget):
        now = core.log.load(thread_id)
    result = with_sizes(core, budget, was, now, result)
    notify_compaction(core, result)
    return result


def _is_final(loaded: LoadedConversation) -> bool:
    summary = loaded.window.summary
    return summary is not None and summary.trigger == "erasure"


class Demand(NamedTuple):
    """Options of one compaction."""

    focus: str | None = None
    force: bool = False
    target: int | None = None
    """Size of the whole request to aim at, or None for that of the settings."""
    keep_last: int | None = None
    model: str | None = None
    """Model for the summary, or None for that of the settings."""
    everything: bool = False
    """True to cover everything that the keep rules allow, regardless of the target."""

    @property
    def wish(self) -> CompactionWish:
        """Options in addition to the settings."""
        return CompactionWish(self.everything, self.target is not None, self.keep_last is not None)


async def compact_on_demand(
    core: Core, thread_id: str, demand: Demand, extras: Extras
) -> CompactionResult:
    """Compact now; if the request still does not fit, shorten the remaining content.

    The quoted memories are then chosen again, because the prefix has changed.

    Raises:
        InvalidSetting: an option is invalid; names it.
    """
    compacting = _compact(core, thread_id, demand, extras)
    return await (run_alone(compacting) if core.needs_no_loop else compacting)


async def _compact(core: Core, thread_id: str, demand: Demand, extras: Extras) -> CompactionResult:
    extras = await in_thread(expect_extras, core, thread_id, extras)
    attempt = manual_attempt(core, thread_id, demand, extras)
    with CompactionNotifier(core, thread_id, "manual") as notifier:
        notifier.begin()
        was = await run_to_end(core.log.load, thread_id)
        core = core.for_model(extras.model)
        budget = core.budget(extras)
        done = await run_to_end(_make_room, core, thread_id, budget)
        result = await attempt.work()
        notifier.ended(result)
        if result.outcome not in ("performed", "nothing_to_do"):
            return _count_shortened(result, done)
        below = result.tokens_before
        done = done.plus(await run_to_end(take_all_rungs, core, thread_id, budget))
        if result.outcome == "performed" or done.decisions:
            await run_to_end(update_memories, core, thread_id, budget, below=below)
        now = await run_to_end(core.log.load, thread_id)
        result = await run_to_end(with_sizes, core, budget, was, now, result)
        if done.decisions:
            result = _add_shortened(result, done)
        notifier.ended(result)
        return result


def _make_room(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """Shorten what no summary can make smaller, so that the summary is planned with the room that this frees.

    A text that would fit is shortened only if the next request would need a compaction again.
    """
    if core.log.load(thread_id).state.attempt is not None:
        return Shortened()  # Another caller works on the content.
    done = reduce_uncoverable(core, thread_id, budget)
    return done.plus(shorten_before_summary(core, thread_id, budget, most=budget.trigger))


def _count_shortened(result: CompactionResult, done: Shortened) -> CompactionResult:
    return replace(result, results_offloaded=done.offloaded, results_condensed=done.condensed)


def _add_shortened(result: CompactionResult, done: Shortened) -> CompactionResult:
    """Return the result of a compaction with the content that was shortened before and after it."""
    result = _count_shortened(result, done)
    if result.outcome == "performed":
        return result
    return replace(
        result, outcome="shortened", reason="", detail="", blocked_since=None, blocked_at=None
    )


def manual_attempt(core: Core, thread_id: str, demand: Demand, extras: Extras) -> CompactionAttempt:
    """Return a compaction on demand that has not begun.

    Raises:
        InvalidSetting: an option is invalid; names it.
    """
    core = _set_keep_last(core.for_model(extras.model), demand.keep_last)
    core = core.with_answering_model(extras.model, _read_model(demand.model))
    return CompactionAttempt(
        core,
        thread_id,
        _set_target(core.budget(extras), demand.target),
        trigger="manual",
        summariser=chosen_stage(core, thread_id),
        focus=_focus(demand.focus),
        force=demand.force,
        wish=demand.wish,
    )


def _focus(given: object) -> str | None:
    if given is not None and not isinstance(given, str):
        raise _invalid("focus", given, "a text")
    return given.strip() or None if given else None


def _read_model(given: object) -> str | None:
    if given is not None and (not isinstance(given, str) or not given.strip()):
        raise _invalid("model", given, "the name of a model")
    return given if isinstance(given, str) else None


def _set_keep_last(core: Core, keep_last: object) -> Core:
    if keep_last is None:
        return core
    policy = replace(core.settings.policy, keep_last=_integer("keep_last", keep_last, 1))
    return core.with_policy(policy)


def _set_target(budget: Budget, target: object) -> Budget:
    if target is None:
        return budget
    aimed = _integer("target", target, 1)
    if aimed <= budget.fixed:
        raise _invalid(
            "target", target, f"more than the {budget.fixed:,} tokens of system text and tools"
        )
    return replace(budget, target=min(aimed, budget.limit))


def _integer(name: str, given: object, least: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise _invalid(name, given, f"an integer of at least {least}")
    return given


def _invalid(name: str, given: object, must: str) -> InvalidSetting:
    return InvalidSetting(
        f"compact: {name} is {given!r}, but must be {must}", setting=name, value=given
    )
