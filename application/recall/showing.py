"""Hits as they are shown: read from the log, with what became of each message and what stands beside it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from refold.application.addresses import address_of
from refold.application.core import Core
from refold.application.event_log import LoggedEvent
from refold.application.owners.visible import Visible
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
    """Makes hits of passages, with so many ``neighbours`` on each side; remembers what it has read.

    Nothing is shown that is not ``visible``, whatever the index says.
    """

    def __init__(self, core: Core, neighbours: int, visible: Visible | None = None) -> None:
        self._visible = visible
        self._core = core
        self._number = neighbours
        self._sights: dict[str, Sight | None] = {}
        self._said: dict[Message, Said] = {}

    def hits(self, found: Sequence[Ranked]) -> Iterator[RecallHit]:
        """The hits, in their order, without neighbours. What is not in the log any more is left out; what
        was erased since it was found is named as that.

        Raises:
            LogError: the log cannot be read.
        """
        self._read(self._near(found))
        for one in found:
            passage = one.passage
            said = self._said.get((passage.thread_id, passage.position))
            sight = self._sight(passage.thread_id)
            if said is None or sight is None or said.logged.version != passage.version:
                continue
            text = text_in(passage, said.logged)
            if text or said.logged.erased:
                yield _hit(one, said, text, sight)

    def with_neighbours(self, hits: Sequence[RecallHit]) -> list[RecallHit]:
        """The same hits with the messages beside them."""
        if not self._number:
            return list(hits)
        wanted = {(hit.thread_id, p) for hit in hits for p in self._beside(hit)}
        self._read(self._places_of(wanted - self._said.keys()))
        return [hit.replaced(neighbours=tuple(self._neighbours(hit))) for hit in hits]

    def _near(self, found: Sequence[Ranked]) -> Iterator[Place]:
        """Where these stand, and what was logged right before and after: most often their neighbours."""
        for one in found:
            thread_id, version = one.passage.thread_id, one.passage.version
            first = max(1, version - self._number)
            yield from ((thread_id, v) for v in range(first, version + self._number + 1))

    def _read(self, places: Iterable[Place]) -> None:
        for logged in events_at(self._core, places).values():
            if isinstance(logged.event, MessageAppended) and self._lets(logged, logged.event):
                said = Said(logged, logged.event)
                self._said[logged.thread_id, logged.event.position] = said

    def _lets(self, logged: LoggedEvent, event: MessageAppended) -> bool:
        return self._visible is None or self._visible.lets(event.owner, logged.thread_id)

    def _beside(self, hit: RecallHit) -> Iterator[int]:
        sight = self._sight(hit.thread_id)
        length = 0 if sight is None else sight.length
        first, last = hit.position - self._number, hit.position + self._number
        return (p for p in range(max(0, first), min(last + 1, length)) if p != hit.position)

    def _neighbours(self, hit: RecallHit) -> Iterator[Neighbour]:
        for position in self._beside(hit):
            found = self._said.get((hit.thread_id, position))
            if found is not None:
                yield _neighbour(found)

    def _places_of(self, messages: Iterable[Message]) -> Iterator[Place]:
        """Where messages stand in the log between which something else happened."""
        for thread_id, position in messages:
            for row in self._core.views.messages(thread_id, position, position + 1):
                yield thread_id, row.version

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
        version=said.logged.version,
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
        why=("its content was erased since",) if erased else found.why(),
        fate=sight.fate(position, erased=erased),
        in_context=not erased and sight.shows(position, text),
    )


def _neighbour(said: Said) -> Neighbour:
    text = readable(said.event.message)
    cut = len(text) > NEIGHBOUR_CHARACTERS
    return Neighbour(
        position=said.event.position,
        role=said.role,
        text=text[: NEIGHBOUR_CHARACTERS - 1] + CUT if cut else text,
        at=said.at,
        erased=said.logged.erased,
    )
