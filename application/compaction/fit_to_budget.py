"""Fit to budget: reduce a conversation that exceeds its budget to the target, step by step."""

from collections.abc import Sequence
from functools import partial

from refold.application.api.blocking import in_thread, run_alone, run_to_end
from refold.application.api.results import CompactionResult, Context
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError, TokenCountError
from refold.application.notes.note_taking import take_notes_if_due
from refold.application.ports.summariser import Summariser
from refold.application.ports.token_counter import RequestCounter
from refold.application.recall.owner_memories import drop_memories, update_memories
from refold.application.runtime.core import Core, Extras
from refold.application.runtime.foreign_code import Contained
from refold.application.runtime.observers import CompactionNotifier, notify_compaction
from refold.application.runtime.opening_process import BRIEFLY, waiting_at_most
from refold.application.runtime.plain_lines import conversation, plain_logger, raised
from refold.application.summaries.leaves import first_stage, next_stage
from refold.domain.compaction.budget import Budget, is_out_of_reach, may_archive
from refold.domain.compaction.compacting import abandon_compaction
from refold.domain.events import Trigger
from refold.domain.value import replace

from .attempt import OVERTAKEN, CompactionAttempt, CompactionQueue, find_overtaking
from .attempt_ends import outcome_of, with_shortened
from .ladder import Measured, Shortened, climb, is_heavy, make_fit, measure
from .last_rung import reduce_uncoverable, shorten_before_summary, shorten_texts
from .next_request import (
    check_fits,
    is_due,
    is_large,
    is_long,
    notes_are_due,
    present_request,
    recall_lines,
    record_request,
)
from .overflow import window_exceeded
from .unwritten import reason_of, write_waiting

MOST_ROUNDS = 4
"""Maximum number of compactions for one request; each must make the conversation smaller."""


async def settle(
    core: Core, thread_id: str, budget: Budget, *, trigger: Trigger = "size"
) -> list[CompactionResult]:
    """Fit a conversation to its budget and return the results of its compactions."""
    fitter = FitToBudget(core, thread_id, budget, trigger)
    await fitter.run()
    return fitter.results


class FitToBudget:
    """A run that fits one request to its budget: offload large content, condense old results, summarise.

    It stops as soon as the request is small enough. Too many messages need a summary. If the request still
    does not fit, more tool content is shortened. Because the prefix changes anyway, the quoted memories are
    chosen again. If the request does not fit, it waits for compactions of other callers. No lock is held
    while a summariser works. Failures of a summariser are never raised, nor are failures of the log while
    the request fits: they are in the results.
    """

    def __init__(self, core: Core, thread_id: str, budget: Budget, trigger: Trigger) -> None:
        self._core = core
        self._thread_id = thread_id
        self._budget = budget
        self._trigger: Trigger = trigger
        self._turn = CompactionQueue(core, thread_id)
        self.results: list[CompactionResult] = []
        """Results of the compactions, for the caller of the request."""
        self.version = 0
        """Last version that was read."""
        self.length = 0
        """Number of messages at the last decision."""

    async def run(self, now: Measured | None = None) -> None:
        """Fit the conversation to its budget if necessary. ``now`` is its newest version if that was measured.

        Raises:
            LogError: the request does not fit, and the log cannot be written.
        """
        now = self._note_version(now) if now else await self._measure()
        while True:
            # Nothing depends on decisions for a request that already fits.
            is_patient = now.size > self._budget.limit
            try:
                with waiting_at_most(None if is_patient else BRIEFLY):
                    await self._fit(now)
                return
            except LogError as error:
                now = await self._measure()
                if now.size <= self._budget.limit:
                    self._note_unwritten(now, error)
                    return
                if is_patient:
                    raise

    async def _measure(self) -> Measured:
        return self._note_version(
            await run_to_end(measure, self._core, self._thread_id, self._budget)
        )

    async def _measure_after_others(self, now: Measured | None = None) -> Measured:
        return self._note_version(await self._turn.measure(self._budget, now))

    def _note_version(self, now: Measured) -> Measured:
        state = now.loaded.present().state
        self.version, self.length = state.version, state.length
        return now

    async def _fit(self, now: Measured) -> None:
        core = self._core
        if core.unwritten.find(self._thread_id):
            self.results += await run_to_end(
                write_waiting, core.log, core.unwritten, self._thread_id, at=core.clock()
            )
            now = await self._measure()
        before = await self._measure_after_others(now)
        if notes_are_due(core, before.loaded.state, before.budget, before.size):
            await take_notes_if_due(core, before.loaded, before.budget, before.size)
            before = (
                await self._measure_after_others()
            )  # Other callers continue while a model takes notes.
        is_due_now = await _is_due_now(core, before)
        if not is_heavy(before) and not is_due_now:
            return
        results: list[CompactionResult] = []
        with CompactionNotifier(core, self._thread_id, self._trigger) as notifier:
            try:
                results = await self._make_smaller(before, results, notifier, is_due=is_due_now)
            finally:
                self.results += results

    async def _make_smaller(
        self,
        before: Measured,
        results: list[CompactionResult],
        notifier: CompactionNotifier,
        *,
        is_due: bool,
    ) -> list[CompactionResult]:
        core, thread_id, budget = self._core, self._thread_id, self._budget
        done, now = await run_to_end(reduce_uncoverable, core, thread_id, budget), before
        if done.decisions:
            now = await self._turn.measure(budget)
            is_due = await _is_due_now(core, now)
        if is_due and not is_out_of_reach(now.loaded.state, budget):
            done = done.plus(await self._take_rungs(now, results, notifier))
        changed = bool(done.decisions) or _is_performed(results)
        now = await run_to_end(_choose_memories, core, before, budget, changed=changed)
        self.version = now.loaded.state.version
        results = with_shortened(core, before, now, done, results, self._trigger)
        notifier.finish(results[-1] if results else None)
        return results

    async def _take_rungs(
        self, before: Measured, results: list[CompactionResult], notifier: CompactionNotifier
    ) -> Shortened:
        """Take one rung after the other, the last ones only if the request needs them."""
        core, thread_id, budget = self._core, self._thread_id, self._budget
        done, now, is_left = await run_to_end(_take_first_rungs, core, before, budget)
        if is_left:
            await self._summarise(before, done, results, notifier, now=now)
            if not done.enough and not _is_performed(results) and _may_shorten(core, before):
                more = await run_to_end(climb, core, thread_id, budget, all_of_it=True)
                done = done.plus(more)
        summarised = _is_performed(results)
        fitted, last = await run_to_end(
            _shorten_more, core, thread_id, budget, to_target=summarised
        )
        done = done.plus(fitted)
        if last.decisions and (await self._measure()).size > budget.limit:
            # A summary may fit now that the texts around it are shorter. No model is called again.
            await self._summarise(before, done, results, notifier, core.fallback)
        return done.plus(last)

    async def _summarise(
        self,
        before: Measured,
        done: Shortened,
        results: list[CompactionResult],
        notifier: CompactionNotifier,
        summariser: Summariser | None = None,
        now: Measured | None = None,
    ) -> None:
        core, known = self._core, before.loaded.state.summary
        for number in range(MOST_ROUNDS):
            now = await self._measure_after_others(None if number else now)
            summariser = summariser or first_stage(core, now.loaded, self._budget.window)
            # Another caller may have made the due summary; shortening here was not enough.
            is_own = number == 0 and bool(done.decisions)
            is_other = not is_own or now.loaded.state.summary != known
            if is_other and not await _is_due_now(core, now):
                break
            attempt = self._attempt(now, summariser)
            if bool(results) and await run_to_end(attempt.would_rest, now.loaded.state):
                break
            notifier.begin()
            result = await attempt.work()
            if result.outcome == "in_flight" and await self._wait_for_others():
                continue  # Another caller began at the same moment.
            if (result.outcome, result.reason) == ("nothing_to_do", OVERTAKEN):
                continue
            if not results:
                result = replace(result, tokens_before=before.size)
            results.append(result)
            notifier.ended(result)
            if result.outcome == "performed":
                continue
            helper = None
            if result.outcome != "waiting":
                helper = await self._helper(summariser, result)
            if helper is None:
                break
            summariser = helper

    def _attempt(self, now: Measured, summariser: Summariser) -> CompactionAttempt:
        return CompactionAttempt(
            self._core,
            self._thread_id,
            now.budget,
            trigger=self._trigger,
            summariser=summariser,
            idle=partial(find_overtaking, now),
            seen=now.loaded.state,
        )

    async def _wait_for_others(self) -> bool:
        """Wait for other callers' compactions if the request does not fit. Return whether they ended."""
        now = await run_to_end(measure, self._core, self._thread_id, self._budget)
        if now.loaded.state.attempt is None:
            return True  # They ended in the meantime.
        return now.size > self._budget.limit and await self._turn.wait()

    async def _helper(self, summariser: Summariser, result: CompactionResult) -> Summariser | None:
        # Code replaces a model only if the next request would not fit otherwise.
        core, thread_id = self._core, self._thread_id
        now = await run_to_end(measure, core, thread_id, self._budget)
        if now.size <= self._budget.limit or result.outcome == "nothing_to_do":
            return None
        if result.outcome == "in_flight":
            if await self._turn.wait():
                return summariser
            await run_to_end(_abandon, core, thread_id)
            return core.fallback
        if result.reason == "overtaken":
            return summariser  # It did not fail.
        return next_stage(core, thread_id, summariser)

    def _note_unwritten(self, now: Measured, error: LogError) -> None:
        """Record that the log could not be written. The request fits without the decision."""
        core, reason = self._core, reason_of(error)
        logger.warning(
            "%s: the context was not made smaller, but fits: %s",
            conversation(self._thread_id),
            error,
        )
        waiting = [one.waiting for one in core.unwritten.find(self._thread_id) if one.waiting]
        if not waiting:
            left = outcome_of(
                core, self._budget, now.loaded, now.loaded, "failed", reason, str(error)
            )
            waiting = [replace(left, trigger=self._trigger)]
            notify_compaction(core, waiting[0])
        known = {result.attempt_id for result in self.results if result.outcome == "waiting"}
        self.results += [one for one in waiting if one.attempt_id not in known]


async def _is_due_now(core: Core, now: Measured) -> bool:
    if not may_archive(now.loaded.state, core.settings.policy):
        return is_large(core, now.loaded, now.budget, now.size)
    # Checking whether messages can be archived takes longer the more there are.
    return await run_to_end(is_due, core, now.loaded, now.budget, now.size)


def _take_first_rungs(
    core: Core, before: Measured, budget: Budget
) -> tuple[Shortened, Measured | None, bool]:
    """Take the rungs below a summary. Return the size then if it is known, and whether a summary is needed."""
    thread_id, done = before.loaded.thread_id, Shortened()
    now: Measured | None = None
    if before.size > budget.limit:
        # Memories are the least important content; they are looked up again later if there is room.
        done = Shortened(decisions=drop_memories(core, thread_id))
    if _may_shorten(core, before):
        done = done.plus(climb(core, thread_id, budget))
        now = measure(core, thread_id, budget)
    if done.enough and not is_long(core, before.loaded, before.budget):
        return done, now, False
    shortened = shorten_before_summary(core, thread_id, budget, most=budget.target)
    return done.plus(shortened), None if shortened.decisions else now, True


def _choose_memories(core: Core, before: Measured, budget: Budget, *, changed: bool) -> Measured:
    """Choose the quoted memories again if the prefix changed, and return the size of the request then."""
    thread_id = before.loaded.thread_id
    if changed:
        update_memories(core, thread_id, budget, below=before.size)
    return measure(core, thread_id, before.plain)


def _shorten_more(
    core: Core, thread_id: str, budget: Budget, *, to_target: bool
) -> tuple[Shortened, Shortened]:
    """Return the tool content, then the texts that were shortened because the request did not fit."""
    fitted = make_fit(core, thread_id, budget)
    return fitted, shorten_texts(core, thread_id, budget, to_target=to_target)


def _is_performed(results: Sequence[CompactionResult]) -> bool:
    return any(result.outcome == "performed" for result in results)


def _may_shorten(core: Core, before: Measured) -> bool:
    if not is_large(core, before.loaded, before.budget, before.size):
        return False
    # Content that is being summarised is not shortened, unless the request cannot wait.
    return before.loaded.state.attempt is None or before.size > before.budget.limit


def _abandon(core: Core, thread_id: str) -> None:
    core.log.transact(
        thread_id,
        lambda now: abandon_compaction(now.state, "the next request could not wait for it"),
        at=core.clock(),
    )


logger = plain_logger(__name__)

MOST_TRIES = 8
"""Maximum number of attempts to shrink a request that other callers enlarge meanwhile."""


async def make_context(
    core: Core, thread_id: str, extras: Extras, *, trigger: Trigger = "size"
) -> Context:
    """Compact if due, then return the context.

    Raises:
        ContextWindowExceeded: content that must be included does not fit.
    """
    core = core.for_model(extras.model).with_answering_model(extras.model)
    making = _make_context(core, thread_id, extras, trigger)
    return await (run_alone(making) if core.needs_no_loop else making)


async def _make_context(core: Core, thread_id: str, extras: Extras, trigger: Trigger) -> Context:
    budget = core.budget(extras)
    now: Measured | None = None
    if trigger == "size":  # A background run does not send the request.
        now = await in_thread(_expect, core, thread_id, budget, extras)
    results: list[CompactionResult] = []
    loaded, context = await _make(core, thread_id, budget, budget, extras, trigger, results, now)
    check_fits(loaded, context, core.settings.shorten_texts)
    exact = await _exact_tokens(core, context)
    if exact > budget.limit:
        # The estimate was too low: fit once more to a budget reduced by the same ratio.
        tighter = budget.tightened(context.tokens / exact)
        loaded, context = await _make(core, thread_id, tighter, budget, extras, trigger, results)
        exact = await _exact_tokens(core, context)
        if exact > budget.limit:
            raise window_exceeded(loaded, exact, budget, may_shorten=core.settings.shorten_texts)
    context = context.with_compactions(tuple(results), exact, budget)
    if trigger == "size":
        await in_thread(record_request, core, loaded, context, extras)
    return context


async def _make(
    core: Core,
    thread_id: str,
    aim: Budget,
    budget: Budget,
    extras: Extras,
    trigger: Trigger,
    results: list[CompactionResult],
    measured: Measured | None = None,
) -> tuple[LoadedConversation, Context]:
    """Fit to ``aim`` and return the context; repeat if messages were appended in between.

    ``measured`` is the newest version with its size, if it has just been measured.
    """
    tries = 0
    while True:
        tries += 1
        fitter = FitToBudget(core, thread_id, aim, trigger)
        await fitter.run(measured if tries == 1 else None)
        results += fitter.results
        is_sent = trigger == "size"
        loaded, context, fits = await in_thread(
            _present, core, thread_id, budget, extras, is_sent=is_sent
        )
        if fits:
            return loaded, context
        now = loaded.state
        # Messages may have been appended since the last check: fit once more.
        is_newest = (now.version, now.length) == (fitter.version, fitter.length)
        if is_newest or tries == MOST_TRIES:
            break
    if trigger != "size":
        return loaded, context
    return await in_thread(recall_lines, core, loaded, context, budget, extras)


def _expect(core: Core, thread_id: str, budget: Budget, extras: Extras) -> Measured:
    """Note that a request with these extras will be sent, and measure it as it is."""
    core.asked.expect(thread_id, core.frame(extras), core.log.load(thread_id).state)
    return measure(core, thread_id, budget)


def _present(
    core: Core, thread_id: str, budget: Budget, extras: Extras, *, is_sent: bool
) -> tuple[LoadedConversation, Context, bool]:
    """Return the newest version of a conversation with its request, and whether that fits.

    A request that fits and is sent has recalled lines.
    """
    stored = core.log.load(thread_id)
    loaded = core.asked.framed(stored)
    context = present_request(core, loaded, budget, extras, stored.state.version)
    fits = context.tokens <= budget.limit
    if fits and is_sent:
        loaded, context = recall_lines(core, loaded, context, budget, extras)
    return loaded, context, fits


async def _exact_tokens(core: Core, context: Context) -> int:
    if not isinstance(core.counter, RequestCounter) or context.model is None:
        return context.tokens
    try:
        with Contained():
            return await core.counter.count_request(
                model=context.model,
                system=context.system,
                messages=context.messages,
                tools=context.tools,
            )
    except TokenCountError as error:
        logger.warning("the request was not counted exactly, the estimate is used: %s", error)
        return context.tokens
    except Exception as error:  # A user's counter may raise anything.
        logger.warning(
            "the request was not counted exactly, the estimate is used: %s", raised(error)
        )
        return context.tokens
