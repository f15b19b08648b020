"""Use cases: erase messages, or a conversation, with everything that was copied or made from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from refold.domain.erasing import (
    ErasedMessage,
    covers_any,
    erase_conversation,
    erase_messages,
    remains_of,
    stub_of,
)
from refold.domain.errors import ConversationGone, InvalidThreadId, UnknownMessage
from refold.domain.events import (
    CompactionPerformed,
    Event,
    MessageAppended,
    MessagePinned,
    Rewritten,
)

from .addresses import address_of, position_in
from .core import Core
from .erasure_report import ErasureReport, Place, RebuiltSummary, Removed
from .event_log import Erasure
from .lineage import Lineage, copies, descendants, trace
from .loaded import LoadedConversation
from .projections.window import Entry
from .remaking import Remade, remade

Where = int | str | Sequence[int | str]


class _Done(NamedTuple):
    """What was erased in one conversation."""

    messages: Sequence[ErasedMessage] = ()
    removed: tuple[Removed, ...] = ()
    rebuilt: tuple[RebuiltSummary, ...] = ()


def erase(core: Core, thread_id: str, where: Where, reason: str = "") -> ErasureReport:
    """Erase messages in every conversation that has them; what is erased already stays so.

    Blocks, and runs a loop of its own: call it from a thread without one.

    Raises:
        UnknownMessage, InvalidAddress, ForeignAddress: there is no such message; nothing was erased.
        ConversationGone: the conversation was erased as a whole.
    """
    positions = _positions(core, thread_id, where)
    known = trace(core, thread_id, Lineage(positions), core.log.load(thread_id).state.version)
    versions = {p: logged.version for p, (logged, _) in known.messages.items()}
    elsewhere = copies(core, thread_id, versions)
    done = [_erase_here(core, thread_id, known, reason)]
    for other, shared in sorted(elsewhere.items()):
        done.append(_erase_here(core, other, Lineage(shared), reason))
    erased = tuple(message.position for message in done[0].messages)
    return _report(core, done).replaced(
        thread_id=thread_id,
        positions=erased,
        already_erased=tuple(sorted(positions.difference(erased))),
        copies=tuple(sorted(elsewhere)),
    )


def erase_all(core: Core, thread_id: str, reason: str = "") -> ErasureReport:
    """Erase a conversation, and its messages in the conversations that were forked from it.

    What was said in those after they were forked stays, and so does what it was itself forked from.

    Raises:
        InvalidThreadId: there is no such conversation.
    """
    now = core.log.load(thread_id).state
    if not now.version:
        raise InvalidThreadId(f"there is no conversation {thread_id!r}: nothing was erased")
    forked = {} if now.erased else descendants(core, thread_id)
    done: list[_Done] = []
    for other, version in sorted(forked.items()):
        shared = core.log.load(other, at=version).state.length
        done.append(_erase_here(core, other, Lineage(frozenset(range(shared))), reason))
    _, events = core.log.erase_all(
        thread_id, lambda loaded: erase_conversation(loaded.state, reason), at=core.clock()
    )
    if events:
        core.last_requests.forget(thread_id)
        all_of_it = Removed(thread_id=thread_id, place="event", count=now.version)
        done.append(_Done((), (all_of_it,)))
    return _report(core, done).replaced(
        thread_id=thread_id, copies=tuple(sorted(forked)), conversation=True
    )


def finish(core: Core) -> bool:
    """Remove what earlier erasures may have left in files; whether nothing is left."""
    return core.log.finish_erasures(core.views.drop)


def _report(core: Core, done: Iterable[_Done]) -> ErasureReport:
    removed = tuple(one for part in done for one in part.removed)
    complete = finish(core)
    if removed:
        views = {one.thread_id for one in removed}
        removed += tuple(Removed(thread_id=t, place="read models") for t in sorted(views))
    return ErasureReport(
        thread_id="",
        positions=(),
        already_erased=(),
        copies=(),
        removed=removed,
        rebuilt=tuple(one for part in done for one in part.rebuilt),
        complete=complete,
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


def _erase_here(core: Core, thread_id: str, known: Lineage, reason: str) -> _Done:
    loaded = core.log.load(thread_id)
    known = trace(core, thread_id, known, loaded.state.version)
    # The long part of the work is done before anybody has to wait for it.
    prepared = _prepared(core, loaded, known)
    done = _Done()

    def decide(now: LoadedConversation) -> Erasure | None:
        nonlocal done, prepared
        if now.state.erased:
            return None
        last = trace(core, thread_id, known, now.state.version)
        messages = _erasable(core, now, last)
        if not messages:
            return None
        active = now.window.summary.summary_id if now.window.summary else None
        if prepared is None or prepared.replaces != active:
            prepared = _prepared(core, now, last)
        plan = _Plan(core, now, last, messages, prepared, reason)
        done = plan.done()
        return plan.erasure()

    core.log.erase(thread_id, decide, at=core.clock())
    core.last_requests.forget(thread_id)
    return done


def _prepared(core: Core, loaded: LoadedConversation, known: Lineage) -> Remade | None:
    summary = loaded.window.summary
    fresh = known.positions & known.messages.keys() - known.erased
    if summary is None or not covers_any(summary.coverage, fresh):
        return None
    return remade(core, loaded, fresh)


def _erasable(core: Core, now: LoadedConversation, known: Lineage) -> list[ErasedMessage]:
    entries = {entry.position: entry for entry in now.window.entries}
    messages: list[ErasedMessage] = []
    for position in sorted(known.positions - known.erased):
        if position not in known.messages:
            continue  # Of a message that was lost nothing is left either.
        _, event = known.messages[position]
        stub = stub_of(event.message, _marker(now.thread_id, position))
        tokens = core.counter.count_message(stub).total
        freed = _shown(now, entries[position]) - tokens if position in entries else 0
        messages.append(ErasedMessage(position, event.message_id, tokens, freed))
    return messages


def _shown(now: LoadedConversation, entry: Entry) -> int:
    live = (m.tokens for m in now.state.live if m.position == entry.position)
    shortened = (p for key, p in now.window.previews.items() if key[0] == entry.position)
    less = entry.thinking if entry.position < now.window.thinking_from else 0
    return next(live, entry.tokens - sum(p.tokens_freed for p in shortened) - less)


def _marker(thread_id: str, position: int) -> str:
    return f"[Content unavailable: {address_of(thread_id, position)}]"


@dataclass(frozen=True)
class _Plan:
    """What is removed from one conversation, and what happens with that."""

    core: Core
    now: LoadedConversation
    known: Lineage
    messages: Sequence[ErasedMessage]
    prepared: Remade | None
    reason: str

    def erasure(self) -> Erasure:
        """As the log takes it."""
        return Erasure({version: left for version, _, left, _ in self._lost}, self._events)

    def done(self) -> _Done:
        """As it is reported."""
        thread_id = self.now.thread_id
        removed = [one for version, event, _, _ in self._lost for one in _places(event, version)]
        remade = self.prepared
        rebuilt = () if remade is None or self.now.window.summary is None else (
            RebuiltSummary(
                thread_id=thread_id,
                summary_id=remade.summary.summary_id,
                replaces=remade.replaces,
                tokens_before=self.now.window.summary.tokens,
                tokens_after=remade.summary.tokens,
            ),
        )  # fmt: skip
        return _Done(
            self.messages, tuple(one.replaced(thread_id=thread_id) for one in removed), rebuilt
        )

    @cached_property
    def _lost(self) -> list[tuple[int, Event, Event, int]]:
        """Each event that loses content: version, event, what is left, and for which message."""
        lost: dict[int, tuple[int, Event, Event, int]] = {}
        for message in self.messages:
            marker = _marker(self.now.thread_id, message.position)
            for version, event in self.known.made_from(frozenset((message.position,))):
                left = remains_of(event, marker)
                # The message itself is marked as erased even where it holds nothing but calls.
                if left != event or isinstance(event, MessageAppended):
                    lost.setdefault(version, (version, event, left, message.position))
        return [lost[version] for version in sorted(lost)]

    def _events(self, rewritten: Sequence[Rewritten]) -> Sequence[Event]:
        cause = {version: position for version, _, _, position in self._lost}
        by_position: dict[int, list[Rewritten]] = {}
        for one in rewritten:
            by_position.setdefault(cause[one.version], []).append(one)
        remade = self.prepared.events if self.prepared else ()
        return erase_messages(self.now.state, self.messages, by_position, remade, self.reason)


def _places(event: Event, version: int) -> Iterable[Removed]:
    counts: Mapping[Place, int]
    match event:
        case MessageAppended():
            counts = {"message": 1}
        case CompactionPerformed():
            leaf = 1 if event.leaf else 0
            counts = {"summary": 1, "leaf": leaf, "ledger": len(event.ledger)}
        case MessagePinned():
            counts = {"pin": 1}
        case _:
            counts = {"attempt": 1}
    for place, count in counts.items():
        if count:
            yield Removed(thread_id="", place=place, version=version, count=count)
