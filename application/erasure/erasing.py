"""Erase messages or conversations, with everything that was copied or made from them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from refold.application.conversation.addresses import position_in
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError
from refold.application.frames.sent_request import record_quoting_frame
from refold.application.maintenance.maintenance_results import (
    ErasedAgain,
    ErasedPlace,
    RecordedErasure,
)
from refold.application.ports.conversation_log import Erasure, Loading
from refold.application.runtime.core import Core
from refold.domain.erasing import erase_conversation
from refold.domain.errors import ConversationGone, InvalidThreadId, UnknownMessage
from refold.domain.events import Event, MessageAppended, MessageErased
from refold.domain.notes import NotesFlushed, Rewritten
from refold.domain.value import replace

from .clean_up import clean_up, derived_places
from .erasing_plan import (
    Choices,
    Done,
    ErasurePlan,
    NotesRebuild,
    Quotations,
    find_erasable,
    is_known,
    messages_of_owner,
    rebuild_notes,
    withdraw_choices,
)
from .erasure_report import ErasureReport, Removed
from .lineage import Lineage, copies, descendants, trace, versions_at
from .rebuilt_summary import SummaryRebuild, rebuild_summary

Where = int | str | Sequence[int | str]

Positions = Mapping[str, frozenset[int]]
"""Positions of messages, by thread id."""

Carrying = Callable[[LoadedConversation], Sequence[Event]]
"""Function that returns the proposal and the decision that an erasure carries out.

Their events come first in the same commit. If there are none, because others were faster, nothing is erased.
"""


def erase(
    core: Core,
    thread_id: str,
    where: Where,
    reason: str = "",
    carries: Carrying | None = None,
) -> ErasureReport:
    """Erase messages in all conversations that have them, in one transaction.

    Blocks, and runs an event loop of its own: call it from a thread without one.

    Raises:
        UnknownMessage, InvalidAddress, ForeignAddress: there is no such message; nothing was erased.
        ConversationGone: the whole conversation was erased.
    """
    positions = _positions(core, thread_id, where)
    erasing = _Erasing(core, reason, carries={thread_id: carries} if carries else {})
    reached = erasing.begin_messages(thread_id, positions)
    done = erasing.finish()
    erased = tuple(m.position for m in done[thread_id].messages) if thread_id in done else ()
    return replace(
        _report(core, done.values()),
        thread_id=thread_id,
        positions=erased,
        already_erased=tuple(sorted(positions.difference(erased))),
        copies=tuple(sorted(reached.keys() - {thread_id})),
    )


def erase_all(core: Core, thread_id: str, reason: str = "") -> ErasureReport:
    """Erase a conversation, and its messages in its forks.

    Messages added to the forks later stay, and so does the conversation that it was forked from.

    Raises:
        InvalidThreadId: there is no such conversation.
    """
    state = core.log.load(thread_id).state
    if not state.version:
        raise InvalidThreadId(f"there is no conversation {thread_id!r}: nothing was erased")
    core.unwritten.forget(thread_id)
    erasing = _Erasing(core, reason, whole=thread_id)
    reached = erasing.begin_whole(thread_id)
    noted = [thread_id] if state.notes_at is not None else []
    return replace(
        _report(core, erasing.finish().values(), noted),
        thread_id=thread_id,
        copies=tuple(sorted(reached)),
        conversation=True,
    )


def erase_owner(core: Core, owner: str, reason: str = "") -> ErasureReport:
    """Erase every message of an owner in all conversations, in one transaction."""
    erasing = _Erasing(core, reason, owner=owner)
    erasing.begin(lambda load: messages_of_owner(core, load, owner))
    known = is_known(core, owner)
    return replace(_report(core, erasing.finish().values()), owner=owner, known=known)


def shared_with(core: Core, thread_id: str, where: Where | None = None) -> tuple[str, ...]:
    """Return the other conversations that erasing these messages affects.

    Without ``where``, the whole conversation is meant.

    Raises:
        UnknownMessage, InvalidAddress, ForeignAddress: there is no such message.
        ConversationGone: the whole conversation was erased.
    """
    if where is None:
        return tuple(sorted(_positions_in_forks(core, core.log.load(thread_id).present())))
    positions = _positions(core, thread_id, where)
    loaded = core.log.load(thread_id)
    return tuple(_in_copies(core, thread_id, versions_at(core, loaded, positions)))


def _report(core: Core, done: Iterable[Done], noted: Iterable[str] = ()) -> ErasureReport:
    """Clean up and return the report; ``noted`` are conversations whose notes are gone completely."""
    parts = list(done)
    removed = tuple(one for part in parts for one in part.removed)
    cleaned = clean_up(core)
    gone = {*noted, *(one.thread_id for one in removed if one.place == "notes")}
    in_files = sorted(gone) if removed else []
    if core.notes_folder is not None:
        removed += tuple(Removed(thread_id=t, place="notes files") for t in in_files)
    if removed:
        threads = sorted({one.thread_id for one in removed})
        derived = derived_places(core)
        removed += tuple(Removed(thread_id=t, place=p) for t in threads for p in derived)
    return ErasureReport(
        thread_id="",
        positions=(),
        already_erased=(),
        copies=(),
        removed=removed,
        rebuilt=tuple(one for part in parts for one in part.rebuilt),
        complete=cleaned.complete,
        damaged_copies=cleaned.damaged_copies,
        earlier_logs=cleaned.earlier_logs,
        places=cleaned.places,
        notes_elsewhere=bool(in_files) and core.notes_folder is None,
    )


def _positions(core: Core, thread_id: str, where: Where) -> frozenset[int]:
    state = core.log.load(thread_id).state
    if state.erased:
        raise ConversationGone(thread_id)
    given = [where] if isinstance(where, int | str) else where
    positions = frozenset(position_in(thread_id, one) for one in given)
    for position in sorted(positions):
        if not 0 <= position < state.length:
            raise UnknownMessage(position, state.length)
    return positions


def _positions_in_copies(
    core: Core, erasing: "_Erasing", loaded: LoadedConversation, positions: frozenset[int]
) -> Positions:
    """Return the positions of the messages in every conversation that has them, first in ``loaded``."""
    known = erasing.trace_messages(loaded, positions)
    versions = {p: logged.version for p, (logged, _) in known.messages.items()}
    return {loaded.thread_id: positions, **_in_copies(core, loaded.thread_id, versions)}


def _in_copies(core: Core, thread_id: str, versions: Mapping[int, int]) -> Positions:
    """Return the positions of messages in the other conversations that have them, given their versions by position."""
    others = copies(core, thread_id, versions)
    return {t: others[t] for t in sorted(others) if not core.log.load(t).state.erased}


def _positions_in_forks(core: Core, loaded: LoadedConversation) -> Positions:
    """Return, for each fork, the positions that it shares with a conversation that is not erased."""
    if loaded.state.erased:
        return {}
    shared = sorted(descendants(core, loaded.thread_id).items())
    return {
        thread_id: frozenset(range(core.log.load(thread_id, at=version).state.length))
        for thread_id, version in shared
        if not core.log.load(thread_id).state.erased
    }


class _Erasing:
    """One erasure in all conversations that it affects."""

    def __init__(
        self,
        core: Core,
        reason: str,
        whole: str | None = None,
        owner: str | None = None,
        carries: Mapping[str, Carrying] = MappingProxyType({}),
    ) -> None:
        self._carries = carries
        """Edits that the erasure carries out, by thread id."""
        self._carried: Mapping[str, Sequence[Event]] = {}
        self._owner = owner
        """Owner of the messages to erase, if all of an owner's are erased."""
        self._core = core
        self._reason = reason
        self._whole = whole
        """Thread id of the conversation to erase completely, or None."""
        self._lineages: dict[str, Lineage] = {}
        self._prepared: dict[str, SummaryRebuild | None] = {}
        self._noted: dict[str, tuple[frozenset[int], NotesRebuild]] = {}
        """New notes of each conversation, with the positions that were erased when they were written."""
        self._reach: Callable[[Loading], Positions] = lambda _: {}
        self._done: dict[str, Done] = {}
        self._emptied: set[str] = set()
        """Conversations of which nothing is left."""
        self._quotations = Quotations(core)

    def begin(self, reach: Callable[[Loading], Positions]) -> Positions:
        """Prepare the erasure in the conversations that ``reach`` returns.

        This is the slow part of the work, done before the log is locked.
        """
        self._reach = reach
        core, load = self._core, self._core.log.load
        found = reach(load)
        for thread_id, positions in found.items():
            loaded = load(thread_id)
            known = self.trace_messages(loaded, positions)
            if known.fresh and record_quoting_frame(core, loaded, known.is_quoted(known.fresh)):
                loaded = load(thread_id)
                known = self.trace_messages(loaded, positions)
            self._prepared[thread_id] = self._rebuild_summary(loaded, known)
            self._noted[thread_id] = known.erased, self._rebuild_notes(known)
        self._quotations.find(load, self._erased_positions(load, found))
        return found

    def begin_messages(self, thread_id: str, positions: frozenset[int]) -> Positions:
        """Prepare the erasure of messages in every conversation that has them."""
        return self.begin(
            lambda load: _positions_in_copies(self._core, self, load(thread_id), positions)
        )

    def begin_whole(self, thread_id: str) -> Positions:
        """Prepare the erasure of a conversation, and of its messages in its forks."""
        return self.begin(lambda load: _positions_in_forks(self._core, load(thread_id)))

    def finish(self) -> Mapping[str, Done]:
        """Apply the erasure and return what was done, by thread id."""
        self._core.log.erase(self._decide, at=self._core.clock())
        for thread_id in self._done:
            self._core.last_requests.forget(thread_id)
            self._core.recalled.forget(thread_id)
            self._core.kept_turns.forget(thread_id)
            self._core.forget_read()
            self._core.asked.recall(thread_id, None)
        for thread_id in self._emptied:
            self._core.asked.forget(thread_id)
        return self._done

    def trace_messages(self, loaded: LoadedConversation, positions: frozenset[int]) -> Lineage:
        """Return the stored events of a conversation that concern these messages."""
        thread_id = loaded.thread_id
        known = self._lineages.get(thread_id)
        if known is None or known.positions != positions:
            own = self._owner is not None and loaded.state.owner == self._owner
            known = Lineage(thread_id, positions, takes_all=own)
        known = trace(self._core, loaded, known)
        self._lineages[thread_id] = known
        return known

    def _decide(self, load: Loading) -> Mapping[str, Erasure]:
        # Others may have forked, appended or compacted since the preparation.
        self._done.clear()
        self._emptied.clear()
        self._carried = {t: carry(load(t)) for t, carry in self._carries.items()}
        if not all(self._carried.values()):
            return {}
        erasures: dict[str, Erasure] = {}
        reached = self._reach(load)
        lost = {t: self.trace_messages(load(t), ps).withdrawn for t, ps in reached.items()}
        quoting = dict(self._quotations.find(load, self._erased_positions(load, reached), lost))
        for thread_id, positions in reached.items():
            now = load(thread_id)
            if now.state.erased:
                continue
            known = self.trace_messages(now, positions)
            plan = self._plan(now, known, quoting.get(thread_id, {}))
            if plan.messages:
                quoting.pop(thread_id, None)
                self._done[thread_id] = plan.done()
                erasures[thread_id] = plan.erasure()
            elif known.has_only_texts(now.state):
                quoting.pop(thread_id, None)
                erasures.update(self._erase_whole(now))
        if self._whole is not None:
            quoting.pop(self._whole, None)
            erasures.update(self._erase_whole(load(self._whole)))
        for thread_id, choices in quoting.items():
            erasures[thread_id], self._done[thread_id] = withdraw_choices(load(thread_id), choices)
        return erasures

    def _erased_positions(self, load: Loading, reached: Positions) -> Mapping[str, Collection[int]]:
        """Return all positions that are erased, by thread id."""
        if self._whole is None:
            return reached
        return {**reached, self._whole: range(load(self._whole).state.length)}

    def _plan(self, now: LoadedConversation, known: Lineage, quoting: Choices) -> ErasurePlan:
        messages = find_erasable(self._core, now, known)
        prepared = self._prepared.get(now.thread_id)
        active = now.window.summary.summary_id if now.window.summary else None
        if messages and (prepared is None or prepared.replaces != active):
            prepared = self._rebuild_summary(now, known)
        erased, noted = self._noted.get(now.thread_id, (None, NotesRebuild()))
        withdrawn = frozenset(flush.flush_id for flush in known.withdrawn_notes.values())
        if erased != known.erased or noted.replaces != withdrawn:
            noted = self._rebuild_notes(known)
        carried = self._carried.get(now.thread_id, ())
        return ErasurePlan(now, known, messages, prepared, noted, self._reason, quoting, carried)

    def _rebuild_summary(self, loaded: LoadedConversation, known: Lineage) -> SummaryRebuild | None:
        active = loaded.state.summary
        if active is None or all(v != active.version for v, _ in known.made_from(known.fresh)):
            return None
        return rebuild_summary(self._core, loaded, known.fresh, quoting=known.quoting)

    def _rebuild_notes(self, known: Lineage) -> NotesRebuild:
        withdrawn, version = known.withdrawn_notes, known.version
        flushes = [(at, e) for at, e in known.decisions if isinstance(e, NotesFlushed)]
        kept = [note for at, flush in flushes if at not in withdrawn for note in flush.notes]
        return rebuild_notes(self._core, known.thread_id, withdrawn, known.positions, version, kept)

    def _erase_whole(self, now: LoadedConversation) -> Mapping[str, Erasure]:
        events = erase_conversation(now.state, self._reason)
        if not events:
            return {}
        thread_id = now.thread_id
        all_of_it = Removed(thread_id=thread_id, place="event", count=now.state.version)
        self._done[thread_id] = Done((), (all_of_it,))
        self._emptied.add(thread_id)

        def happened(_: Sequence[Rewritten]) -> Sequence[Event]:
            return events

        return {thread_id: Erasure(None, happened)}


def erase_again(core: Core, known: Iterable[RecordedErasure]) -> tuple[ErasedAgain, ...]:
    """Apply erasures that another log of the same conversations records; return those applied.

    An erasure is applied only if the message or conversation is the same, since a backup may have
    another history.

    Raises:
        LogError: erased content could not be removed from a file.
    """
    threads: dict[str, list[RecordedErasure]] = {}
    for recorded in dict.fromkeys(known):
        threads.setdefault(recorded.thread_id, []).append(recorded)
    done: list[ErasedAgain] = []
    for thread_id, erasures in threads.items():
        done.extend(_erase_in_conversation(core, thread_id, erasures))
    if done:
        # Once for all of them, because it writes all files again.
        _require_clean(clean_up(core).places)
    return tuple(done)


def _erase_in_conversation(
    core: Core, thread_id: str, erasures: Iterable[RecordedErasure]
) -> Iterable[ErasedAgain]:
    """Apply erasures in one conversation. Their content may stay in files until ``clean_up``."""
    state = core.log.load(thread_id).state
    if not state.version or state.erased:
        return
    logged = core.log.read(thread_id, 1, state.version)
    whole = next((e for e in erasures if e.position is None and e.identity == logged[0].at), None)
    if whole is not None:
        core.unwritten.forget(thread_id)
        erasing = _Erasing(core, whole.reason, whole=thread_id)
        erasing.begin_whole(thread_id)
        erasing.finish()
        yield ErasedAgain(thread_id=thread_id, position=None)
        return
    there = _readable(item.event for item in logged)
    positions: dict[str, list[int]] = {}
    for recorded in erasures:
        position = recorded.position
        if position is not None and there.get(position) == recorded.identity:
            del there[position]
            positions.setdefault(recorded.reason, []).append(position)
    for reason, found in positions.items():
        erasing = _Erasing(core, reason)
        erasing.begin_messages(thread_id, frozenset(found))
        erasing.finish()
        yield from (ErasedAgain(thread_id=thread_id, position=position) for position in found)


def _require_clean(places: Iterable[ErasedPlace]) -> None:
    for place in places:
        if place.state == "pending":
            raise LogError(f"{place.place}: {place.detail}")


def _readable(events: Iterable[Event]) -> dict[int, str]:
    """Return the ids of the messages that were not erased, by position."""
    found: dict[int, str] = {}
    for event in events:
        match event:
            case MessageAppended(position=position, message_id=message_id):
                found[position] = message_id
            case MessageErased(position=position):
                found.pop(position, None)
            case _:
                pass
    return found
