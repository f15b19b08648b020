"""Compactions in the background: when they begin, who waits for them, how they end."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refold.application.api.blocking import GRACE, in_thread, run_to_end
from refold.application.conversation.entries import LongEntries
from refold.application.errors import LogError
from refold.application.runtime.core import Core, Extras
from refold.application.runtime.opening_process import keep_in_child
from refold.application.runtime.plain_lines import conversation, plain_logger, raised
from refold.domain.compaction.budget import Budget, archives_over, live_messages
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.errors import ContextWindowExceeded
from refold.domain.events import Event
from refold.domain.turns import open_calls

from .next_request import current_context, is_due, notes_from, record_request

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

    from refold.application.api.results import Appended, Context
from refold.application.conversation.loaded import LoadedConversation

logger = plain_logger(__name__)

REMEMBERED = 1_000
"""Number of conversations whose last request is remembered."""

READ_FROM = 0.5
"""Share of the trigger from which requests read messages ahead of the next compaction."""

READ_EACH = 0.1
"""Share of the trigger by which a request has grown when messages are read ahead again."""

CATCH_UP = 2
"""Number of messages that are read ahead for each one that was appended since the last time."""


@dataclass(slots=True, eq=False, repr=False)
class _Request:
    """The last request of a conversation, from which an append can tell the size of the next one."""

    extras: Extras
    budget: Budget
    overhead: int = 0
    """Tokens of the request in addition to the conversation itself."""
    size: int = 0
    """Tokens of the request, as far as known, including messages that this process appended since."""
    looked_at: int | None = None
    """Size when a compaction was last begun, or the smallest size since."""
    most: int | None = None
    """Maximum number of uncovered messages before the oldest are archived, or None."""
    messages: int = 0
    """Number of messages, as far as known."""
    counted_at: int | None = None
    """Number of messages when a compaction was last begun, or the smallest number since."""

    notes_from: int | None = None
    """Size at which notes are taken before any compaction, or None if they have been taken."""
    read_at: int | None = None
    """Size when messages were last read ahead of a compaction, or the smallest size since."""
    seen_to: int = 0
    """Position after the newest message at that time."""
    read_to: int = 0
    """Position after the last message that was read ahead. Those before the first request never are."""

    def is_large(self) -> bool:
        """Return whether the size reaches the trigger, there are too many messages, or notes are due."""
        if self.looked_at is not None:
            self.looked_at = min(self.looked_at, self.size)
        if self.counted_at is not None:
            self.counted_at = min(self.counted_at, self.messages)
        return self.size >= self.budget.trigger or self.is_long() or self.wants_notes()

    def is_long(self) -> bool:
        """Return whether there are too many messages."""
        return self.most is not None and self.messages > self.most

    def wants_notes(self) -> bool:
        """Return whether notes are due."""
        return self.notes_from is not None and self.size >= self.notes_from

    def read_next(self, length: int) -> range | None:
        """Return positions of messages to read ahead of a compaction, or None if the size has grown little.

        ``length`` is the position after the newest message. The number of positions is bounded by what was
        appended since the last time, so that no request takes much longer than others.
        """
        if self.read_at is None:
            self.read_at, self.seen_to, self.read_to = self.size, length, length
        self.read_at = min(self.read_at, self.size)
        if self.size < self.read_at + READ_EACH * self.budget.trigger:
            return None
        added, self.read_at, self.seen_to = length - self.seen_to, self.size, length
        if self.size < READ_FROM * self.budget.trigger:
            return None
        start, self.read_to = self.read_to, min(length, self.read_to + CATCH_UP * added)
        return range(start, self.read_to)

    def has_grown(self, policy: CompactionPolicy) -> bool:
        """Return whether size or number of messages has grown enough since a compaction was last begun."""
        if self.looked_at is None or self.counted_at is None:
            return True
        if self.size >= self.looked_at + policy.retry_growth * self.budget.window:
            return True
        return self.is_long() and self.messages >= self.counted_at + max(1, policy.archive_buffer)


@dataclass(slots=True, eq=False, repr=False)
class _Run:
    """A compaction of a conversation that runs in this process."""

    thread_id: str
    ended: Future[None]
    task: asyncio.Task[None] | None = None
    """Task of the compaction, or None if a caller waits for the compaction: the caller must not be cancelled.
    """


def _read_ahead(core: Core, loaded: LoadedConversation, span: range) -> None:
    """Read the facts of live messages now, so that the next compaction has fewer to read."""
    entries = loaded.window.entries
    held = entries.held if isinstance(entries, LongEntries) else entries
    try:
        core.reading.read_ahead(((entry.position, entry.message) for entry in held), span)
    except Exception as error:  # The compaction reads them again, and reports it.
        logger.debug(
            "%s: nothing was read ahead: %s", conversation(loaded.thread_id), raised(error)
        )


def _new_run(thread_id: str) -> _Run:
    from concurrent.futures import Future  # Imported on first use: many programs compact nothing.

    return _Run(thread_id, Future())


class Background:
    """The compactions of one memory, at most one for each conversation in this process.

    A request waits for one only if it would not fit otherwise. Between processes the log decides: a second
    attempt is refused while the first holds its lease.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        keep_in_child(self)
        self._runs: dict[str, _Run] = {}
        self._requests: OrderedDict[str, _Request] = OrderedDict()
        self._closing = False

    @property
    def enabled(self) -> bool:
        """True if compactions begin automatically."""
        return self._core.settings.background and not self._closing

    def ready_context(self, thread_id: str, extras: Extras) -> Context | None:
        """Return the context now, or None if a compaction must run first.

        Raises:
            ContextWindowExceeded: content that must be included does not fit.
        """
        if self._core.unwritten.find(thread_id):
            return None  # The waiting summary is written first.
        now = current_context(self._core, thread_id, extras)
        known = self._remember(thread_id, extras, now.context.budget, now.overhead)
        known.size, known.messages = now.context.tokens, live_messages(now.loaded.state)
        known.notes_from = notes_from(self._core, now.loaded.state, known.budget)
        others_do = self.enabled or thread_id in self._runs
        if now.is_due and not (now.fits and others_do):
            return None
        context = now.fitting()
        record_request(self._core, now.loaded, context, extras)
        span = None if others_do else known.read_next(now.loaded.state.length)
        if span is not None:
            _read_ahead(self._core, now.loaded, span)
        return context

    async def make_context(self, thread_id: str, extras: Extras) -> Context:
        """Wait for the running compaction, compact if still due, then return the context.

        Raises:
            ContextWindowExceeded: content that must be included does not fit.
        """
        from .fit_to_budget import make_context

        async with self._exclusive(thread_id):
            return await make_context(self._core, thread_id, extras)

    def falls_due(self, thread_id: str, stored: Appended | None = None) -> bool:
        """Return whether a compaction should begin in the background now.

        Once this is True, it is False until the conversation has grown.

        Cheap, because it runs after every append: nothing is rendered, and nothing is read until the known
        size of the last request and of later messages reaches the trigger.
        """
        if not self.enabled:
            return False
        known = self._requests.get(thread_id)
        if known is not None and stored is not None:
            new = [message.tokens for message in stored.messages if message.new]
            known.size, known.messages = known.size + sum(new), known.messages + len(new)
            if not known.is_large():
                return False
        if thread_id in self._runs:
            return False
        try:
            return self._falls_due(thread_id)
        except Exception as error:  # A stored append must not fail because of what follows it.
            logger.warning(
                "%s: could not check whether to compact: %s", conversation(thread_id), raised(error)
            )
            return False

    def begin(self, thread_id: str) -> None:
        """Begin a compaction in the running loop, unless one runs already."""
        import asyncio

        run = _new_run(thread_id)
        if self._closing or self._enter(run) is not run:
            return
        run.task = asyncio.get_running_loop().create_task(self._compact(thread_id))
        run.task.add_done_callback(lambda _: self._leave(run))

    async def drain(self, wait: float | None = None) -> bool:
        """Wait up to ``wait`` seconds until nothing runs. Return whether nothing runs."""
        import asyncio

        deadline = None if wait is None else time.monotonic() + wait
        while runs := self._running():
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            await asyncio.wait([asyncio.wrap_future(run.ended) for run in runs], timeout=left)
        return True

    async def finish(self, wait: float | None = None) -> None:
        """Stop beginning compactions, wait for the running ones, then cancel them, so that each has an end.

        ``wait``: maximum number of seconds, or None to use the setting.
        """
        from refold.application.runtime.observers import finish_observers

        self._closing = True
        if not await self.drain(self._core.settings.close_wait if wait is None else wait):
            await self._give_up_all()
        if wait != 0:
            await finish_observers(self._core)

    async def _give_up_all(self) -> None:
        for task in (run.task for run in self._running()):
            if task is not None:
                with suppress(RuntimeError):  # Its loop was closed.
                    task.get_loop().call_soon_threadsafe(task.cancel)
        if not await self.drain(GRACE):
            for run in self._running():
                await run_to_end(self._give_up, run.thread_id)

    def _falls_due(self, thread_id: str) -> bool:
        from refold.domain.compaction.compacting import holds_lease

        loaded, known = self._core.log.load(thread_id), self._known_request(thread_id)
        core, state = self._core.for_model(known.extras.model), loaded.state
        policy = core.settings.policy
        known.size, known.messages = state.tokens + known.overhead, live_messages(state)
        known.notes_from = notes_from(core, state, known.budget)
        if not known.is_large():
            return False
        if state.attempt is not None and holds_lease(state.attempt, core.clock(), policy):
            return False
        if open_calls(state) and known.size <= known.budget.limit:
            return False  # Their results may have to be made smaller as well: once is enough.
        due = is_due(core, loaded, known.budget, known.size) or known.wants_notes()
        if not due or not known.has_grown(policy):
            return False
        known.looked_at, known.counted_at = known.size, known.messages
        return True

    async def _compact(self, thread_id: str) -> None:
        from .fit_to_budget import make_context

        try:
            extras = (await in_thread(self._known_request, thread_id)).extras
            await make_context(self._core, thread_id, extras, trigger="background")
        except ContextWindowExceeded as error:
            # The next request raises this error to a caller that can act on it.
            logger.info("%s: %s", conversation(thread_id), error)
        except Exception as error:
            logger.warning(
                "%s: compacting in the background failed: %s",
                conversation(thread_id),
                raised(error),
            )

    @asynccontextmanager
    async def _exclusive(self, thread_id: str) -> AsyncGenerator[None]:
        import asyncio

        mine, lease = _new_run(thread_id), self._core.settings.policy.lease_seconds
        while (other := self._enter(mine)) is not mine:
            done, _ = await asyncio.wait({asyncio.wrap_future(other.ended)}, timeout=lease)
            if not done:
                break  # It counts as abandoned now.
        try:
            yield
        finally:
            self._leave(mine)

    def _enter(self, run: _Run) -> _Run:
        with self._lock:
            return self._runs.setdefault(run.thread_id, run)

    def _leave(self, run: _Run) -> None:
        with self._lock:
            if self._runs.get(run.thread_id) is run:
                del self._runs[run.thread_id]
        run.ended.set_result(None)

    def _running(self) -> list[_Run]:
        if not self._core.process.is_this:
            return []  # These run in the process from which this one was forked.
        with self._lock:
            return list(self._runs.values())

    def _known_request(self, thread_id: str) -> _Request:
        from refold.application.frames.sent_request import expect_extras

        known = self._requests.get(thread_id)
        if known is not None:
            return known
        # After a restart, requests continue with the same extras.
        extras = expect_extras(self._core, thread_id, Extras())
        budget = self._core.for_model(extras.model).budget(extras)
        return self._remember(thread_id, extras, budget, budget.fixed)

    def _remember(self, thread_id: str, extras: Extras, budget: Budget, overhead: int) -> _Request:
        with self._lock:
            known = self._requests.setdefault(thread_id, _Request(extras, budget))
            known.extras, known.budget, known.overhead = extras, budget, overhead
            known.most = archives_over(self._core.for_model(extras.model).settings.policy)
            self._requests.move_to_end(thread_id)
            if len(self._requests) > REMEMBERED:
                self._requests.popitem(last=False)
            return known

    def _give_up(self, thread_id: str) -> None:
        from refold.domain.compaction.compacting import abandon_compaction

        def decide(now: LoadedConversation) -> Sequence[Event]:
            attempt = now.state.attempt
            if attempt is None or (attempt.owner or "") != self._core.owner.name:
                return ()
            return abandon_compaction(now.state, "the memory was closed while it ran")

        try:
            self._core.log.transact(thread_id, decide, at=self._core.clock())
        except LogError as error:
            logger.warning("%s: the end was not recorded: %s", conversation(thread_id), error)
