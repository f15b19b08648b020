"""Hits as they are shown: read from the log, with what became of each message and what stands beside it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from refold.application.addresses import address_of
from refold.application.core import Core
from refold.application.event_log import LoggedEvent
from refold.application.projections.messages import readable
from refold.application.projections.row_changes import utc
from refold.domain.events import MessageAppended
from refold.domain.messages import gist

from .ranking import Ranked
from .results import Neighbour, RecallHit
from .sight import Sight
from .words import Place, events_at, text_in

NEIGHBOUR_CHARACTERS = 300
CUT = "…"
BETWEEN = 3
"""Events that are looked through between two messages, before the read models are asked for the place."""

Message = tuple[str, int]
"""A conversation, and a position in it."""


@dataclass(frozen=True)
class Said:
    """A message as the log has it."""

    logged: LoggedEvent
    event: MessageAppended

    @property
    def at(self) -> str:
        """When it was written, or else logged: ISO 8601, UTC."""
        return utc(self.event.written_at) if self.event.written_at else self.logged.at

    @property
    def role(self) -> str:
        """Of the message; ``tool`` where it has nothing but results."""
        said = gist(self.event.message)
        return "tool" if said.results and not said.speaks else self.event.message.role


class Shower:
    """Makes hits of passages; remembers the conversations that it has looked at."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._sights: dict[str, Sight | None] = {}
        self._places: dict[Message, Place] = {}

    def hits(self, found: Sequence[Ranked]) -> Iterator[RecallHit]:
        """The hits, in their order, without neighbours. What is not in the log any more is left out; what
        was erased since it was found is named as that.

        Raises:
            LogError: the log cannot be read.
        """
        events = events_at(self._core, ((f.passage.thread_id, f.passage.version) for f in found))
        for one in found:
            logged = events.get((one.passage.thread_id, one.passage.version))
            sight = self._sight(one.passage.thread_id)
            if logged is None or sight is None:
                continue
            event = logged.event
            if isinstance(event, MessageAppended) and event.position == one.passage.position:
                text = text_in(one.passage, logged)
                if text or logged.erased:
                    self._places[logged.thread_id, event.position] = (
                        logged.thread_id,
                        logged.version,
                    )
                    yield _hit(one, Said(logged, event), text, sight)

    def with_neighbours(self, hits: Sequence[RecallHit], number: int) -> list[RecallHit]:
        """The hits with so many messages before and after each; hits that were made here."""
        if not number:
            return list(hits)
        said = self._around(hits, number)
        return [hit.replaced(neighbours=tuple(_neighbours(hit, number, said))) for hit in hits]

    def _around(self, hits: Sequence[RecallHit], number: int) -> Mapping[Message, Said]:
        """The messages around these, and they themselves."""
        reach = number + BETWEEN
        near: set[Place] = set()
        wanted: set[Message] = set()
        for hit in hits:
            thread_id, version = self._places[hit.thread_id, hit.position]
            near.update((thread_id, version + step) for step in range(-reach, reach + 1))
            last = min(hit.position + number, self._length(thread_id) - 1)
            wanted.update((thread_id, p) for p in range(max(0, hit.position - number), last + 1))
        said = _by_position(events_at(self._core, (place for place in near if place[1] > 0)))
        if far := wanted - said.keys():
            said.update(_by_position(events_at(self._core, self._places_of(far))))
        return said

    def _places_of(self, messages: Iterable[Message]) -> Iterator[Place]:
        """Where messages stand in the log, of which more happened in between than was looked through."""
        for thread_id, position in messages:
            for row in self._core.views.messages(thread_id, position, position + 1):
                yield thread_id, row.version

    def _length(self, thread_id: str) -> int:
        sight = self._sight(thread_id)
        return 0 if sight is None else sight.length

    def _sight(self, thread_id: str) -> Sight | None:
        """What the context of a conversation shows; None where it was erased as a whole."""
        if thread_id not in self._sights:
            loaded = self._core.log.load(thread_id)
            self._sights[thread_id] = None if loaded.state.erased else Sight(loaded)
        return self._sights[thread_id]


def _hit(found: Ranked, said: Said, text: str, sight: Sight) -> RecallHit:
    passage, erased = found.passage, said.logged.erased
    position = said.event.position
    return RecallHit(
        thread_id=passage.thread_id,
        position=position,
        message_id=said.event.message_id,
        address=address_of(passage.thread_id, position),
        role=passage.role,
        kind=passage.kind,
        tool=passage.tool or None,
        at=said.at,
        text=text,
        start=0 if erased else passage.start,
        stop=0 if erased else passage.start + len(text),
        score=found.score,
        why=("its content was erased since",) if erased else found.why,
        fate=sight.fate(position, erased=erased),
        in_context=not erased and sight.shows(position, text),
    )


def _by_position(events: Mapping[Place, LoggedEvent]) -> dict[Message, Said]:
    return {
        (logged.thread_id, logged.event.position): Said(logged, logged.event)
        for logged in events.values()
        if isinstance(logged.event, MessageAppended)
    }


def _neighbours(hit: RecallHit, number: int, said: Mapping[Message, Said]) -> Iterator[Neighbour]:
    for position in range(hit.position - number, hit.position + number + 1):
        found = said.get((hit.thread_id, position))
        if position == hit.position or found is None:
            continue
        text = readable(found.event.message)
        cut = len(text) > NEIGHBOUR_CHARACTERS
        yield Neighbour(
            position=position,
            role=found.role,
            text=text[: NEIGHBOUR_CHARACTERS - 1] + CUT if cut else text,
            at=found.at,
            erased=found.logged.erased,
        )
