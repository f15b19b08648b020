"""Take notes of messages before they leave the context."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from refold.application.api.blocking import in_thread, run_to_end
from refold.application.compaction.next_request import notes_are_due
from refold.application.compaction.unwritten import Unwritten
from refold.application.conversation.entries import entries_between
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError, SummariserError
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.summariser import (
    NotesDraft,
    NotesRequest,
    SourceMessage,
    Summariser,
    TakeNotes,
    note_taking,
    source_message,
)
from refold.application.runtime.core import Core
from refold.application.runtime.foreign_code import Contained
from refold.application.runtime.plain_lines import conversation, plain_logger, raised
from refold.domain.compaction.budget import Budget
from refold.domain.events import Event, MessageAppended, MessageErased
from refold.domain.notes import Note, NotesFlushed
from refold.domain.noting import (
    LEDGER,
    MOST_NOTES,
    fitting_notes,
    flush_notes,
    notes_by_code,
    notes_start,
)
from refold.domain.value import build_in_order

from .note_files import write_notes

AT_ONCE = 1_000
"""Number of events to read at a time."""


def messages_to_note(
    core: Core, loaded: LoadedConversation, start: int, stop: int
) -> tuple[SourceMessage, ...]:
    """Return the messages at positions ``start`` up to but not including ``stop``, oldest first.

    Messages that a summary already covers are included, because notes may be taken later than the
    compaction.
    """
    found = {
        entry.position: source_message(entry.position, entry.message)
        for entry in entries_between(loaded.window.entries, start, stop)
    }
    if start < loaded.state.covered_to:
        # The version of a message is at least the number of messages up to it.
        for logged in _read(core, loaded.thread_id, start + 1, loaded.state.version):
            event = logged.event
            if not isinstance(event, MessageAppended) or event.position < start:
                continue
            if event.position >= min(stop, loaded.state.covered_to):
                break
            if not logged.erased:
                found.setdefault(event.position, source_message(event.position, event.message))
    return tuple(found[position] for position in sorted(found))


def earlier_notes(core: Core, loaded: LoadedConversation) -> tuple[Note, ...]:
    """Return the newest earlier notes, to avoid repeating them."""
    return tuple(note for flush in earlier_flushes(core, loaded) for note in flush.notes)


def earlier_flushes(core: Core, loaded: LoadedConversation) -> Sequence[NotesFlushed]:
    """Return the newest flushes of notes, without those that were withdrawn on demand."""
    events = core.log.read_at(loaded.thread_id, loaded.state.notes_versions)
    flushes = [logged.event for logged in events if isinstance(logged.event, NotesFlushed)]
    withdrawn = {flush.replaces for flush in flushes if flush.is_on_demand}
    return [flush for flush in flushes if flush.flush_id not in withdrawn]


def is_erased_since(core: Core, then: LoadedConversation, now: LoadedConversation) -> bool:
    """Return whether a message was erased between two states, so that notes may quote erased content."""
    if then.state.first_message_id not in ("", now.state.first_message_id):
        return True  # The conversation was erased and a new one started.
    events = _read(core, then.thread_id, then.state.version + 1, now.state.version)
    return any(isinstance(logged.event, MessageErased) for logged in events)


def _read(core: Core, thread_id: str, first: int, last: int) -> Iterator[LoggedEvent]:
    for version in range(first, last + 1, AT_ONCE):
        yield from core.log.read(thread_id, version, min(version + AT_ONCE - 1, last))


logger = plain_logger(__name__)
T = TypeVar("T")

PATIENCE = 5
"""Divisor of the lease of a compaction. The result is the time for notes while a summary is written."""


async def take_notes_if_due(
    core: Core, loaded: LoadedConversation, budget: Budget, size: int
) -> None:
    """Take notes of all messages if a request of ``size`` tokens triggers that."""
    if notes_are_due(core, loaded.state, budget, size):
        taking = NoteTaking(core, loaded.thread_id, core.summariser)
        await taking.take(loaded, loaded.state.length)


class _Taken(NamedTuple):
    """The result of asking a model for notes."""

    draft: NotesDraft | None = None
    """The model's notes, or None if they are extracted without a model."""
    calls: int = 0
    reason: str = ""


class NoteTaking:
    """Takes notes of one conversation, with a model or without.

    It raises no errors of its own: failures are logged, and the compaction continues.
    """

    def __init__(self, core: Core, thread_id: str, summariser: Summariser) -> None:
        self._core = core
        self._thread_id = thread_id
        self._summariser = summariser.name
        by_model = core.settings.notes.by == "auto"
        self._ask: TakeNotes | None = note_taking(summariser) if by_model else None
        self._work: asyncio.Future[Any] | None = None
        """The work that the turn waits for at the same time, or None."""

    async def take_during(
        self, loaded: LoadedConversation, stop: int, work: Callable[[], Awaitable[T]]
    ) -> T:
        """Do ``work`` and take notes of the messages before ``stop``.

        Without a model, notes are taken first; with a model, both run at the same time. Both have
        ended when this returns or raises. The time limit of notes is extended only while ``work``
        is running.
        """
        if self._ask is None:
            await self.take(loaded, stop)
            return await work()
        working = asyncio.ensure_future(_await_work(work))
        self._work = working
        done, _ = await asyncio.gather(working, self.take(loaded, stop), return_exceptions=True)
        if isinstance(done, BaseException):
            raise done
        return done

    async def take(self, loaded: LoadedConversation, stop: int) -> None:
        """Take notes of the messages before ``stop``, unless notes were taken since the last compaction."""
        if self._core.settings.notes.by == "off" or loaded.state.has_notes:
            return
        start = notes_start(loaded.state, stop)
        if start >= stop:
            return
        try:
            recorded = await self._take(loaded, range(start, stop))
        except LogError as error:
            logger.warning("%s: no notes were taken: %s", conversation(self._thread_id), error)
            return
        except Exception as error:  # A failure of notes must not stop the compaction or the turn.
            logger.warning(
                "%s: no notes were taken: %s", conversation(self._thread_id), raised(error)
            )
            return
        if recorded and self._core.notes_folder is not None:
            await run_to_end(write_notes, self._core)

    async def _take(self, loaded: LoadedConversation, span: range) -> bool:
        """Take notes of the messages at these positions, and return whether they were recorded."""

        def find() -> tuple[SourceMessage, ...]:
            return messages_to_note(self._core, loaded, span.start, span.stop)

        def record(messages: Sequence[SourceMessage], taken: _Taken) -> bool:
            return self._record(loaded, self._flush(loaded, span, messages, taken))

        if self._ask is None:
            return await run_to_end(lambda: record(find(), _Taken()))
        messages = await in_thread(find)
        return await run_to_end(record, messages, await self._ask_model(self._ask, messages))

    async def _ask_model(self, ask: TakeNotes, messages: Sequence[SourceMessage]) -> _Taken:
        request = NotesRequest(messages=tuple(messages), most=MOST_NOTES)
        logger.debug("%s: a model takes notes", conversation(self._thread_id))
        call = asyncio.ensure_future(_ask_contained(ask, request))
        try:
            await self._wait_for(call)
            if not call.done():
                logger.warning(
                    "%s: code takes notes: %s gave none in time, and its call is given up; "
                    "the setting notes_timeout can allow more",
                    conversation(self._thread_id),
                    self._summariser,
                )
                return _Taken(reason="timeout", calls=1)
            if call.cancelled():
                return _Taken(reason="error", calls=1)
            draft = call.result()
        except SummariserError as error:
            # The event has the reason, and summaries report the same problem.
            logger.info("%s: code takes notes: %s", conversation(self._thread_id), error)
            return _Taken(reason=error.reason, calls=error.attempts)
        except Exception as error:  # A summariser of the user may raise anything.
            logger.warning("%s: code takes notes: %s", conversation(self._thread_id), raised(error))
            return _Taken(reason="error", calls=1)
        finally:
            # Do not wait: a call that ignores its cancellation must not delay the turn.
            call.cancel()
            call.add_done_callback(_discard_result)
        return _Taken(draft, draft.attempts)

    async def _wait_for(self, call: asyncio.Future[NotesDraft]) -> None:
        """Wait until the call ends or its time is over.

        The call gets more time while a summary is being written, because the turn waits for that anyway.
        """
        settings = self._core.settings
        await asyncio.wait({call}, timeout=settings.notes.timeout)
        if not call.done() and self._work is not None:
            longest = settings.policy.lease_seconds / PATIENCE - settings.notes.timeout
            either: set[asyncio.Future[Any]] = {call, self._work}
            await asyncio.wait(
                either, timeout=max(0.0, longest), return_when=asyncio.FIRST_COMPLETED
            )

    def _flush(
        self,
        loaded: LoadedConversation,
        span: range,
        messages: Sequence[SourceMessage],
        taken: _Taken,
    ) -> NotesFlushed:
        draft = taken.draft
        sources = ((m.position, m.message) for m in messages)
        notes = draft.notes if draft else notes_by_code(sources, self._core.reading)
        known = earlier_notes(self._core, loaded)
        noted = frozenset(source.position for source in messages)
        return build_in_order(
            NotesFlushed,
            flush_id=self._core.new_id(),
            start=span.start,
            stop=span.stop,
            notes=fitting_notes(notes, known, noted),
            taken_by=self._summariser if draft else LEDGER,
            model=draft.model if draft else "",
            prompt_fingerprint=draft.prompt_fingerprint if draft else "",
            model_calls=taken.calls,
            reason=taken.reason,
        )

    def _record(self, then: LoadedConversation, flush: NotesFlushed) -> bool:
        """Record the notes, and return whether they were recorded.

        Notes of a model that cannot be written now are kept, and recorded when the log can be written
        again.
        """

        def decide(now: LoadedConversation) -> Sequence[Event]:
            if is_erased_since(self._core, then, now):
                return ()  # The next cycle takes notes of the remaining messages.
            return flush_notes(now.state, flush)

        def written(_: LoadedConversation, events: Sequence[Event]) -> None:
            if events:
                write_notes(self._core)

        try:
            _, events = self._core.log.transact(self._thread_id, decide, at=self._core.clock())
        except LogError as error:
            if flush.taken_by == LEDGER:
                raise  # Extracting the notes again is free.
            kept = Unwritten("notes of a model", decide, written)
            self._core.unwritten.keep(self._thread_id, kept, error)
            return False
        return bool(events)


async def _await_work(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


async def _ask_contained(ask: TakeNotes, request: NotesRequest) -> NotesDraft:
    with Contained():
        return await ask(request)


def _discard_result(call: asyncio.Future[NotesDraft]) -> None:
    """Retrieve the exception of an abandoned call, so that asyncio does not log it."""
    if not call.cancelled():
        call.exception()
