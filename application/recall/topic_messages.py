"""Find the messages of a topic: those with its words, and the one that the topic list names."""

from collections.abc import Iterator, Sequence
from math import ceil

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.recall_index import Filters
from refold.application.projections.row_changes import utc
from refold.application.runtime.core import Core
from refold.application.topics.frequent_terms import topic_name
from refold.domain.events import MessageAppended
from refold.domain.messages import gist, readable

from .passages import Passage, first_number
from .ranking import LEAST, Ranked, accepts, messages_at
from .tokens import digest_of, pad, tokens_of

PASSAGES = 400
"""Number of best passages to check for the words of a topic."""
_SHOWN = 4_000
"""Number of characters to use of a message that the index lacks."""

_Place = tuple[str, int]


class TopicMessages:
    """The messages of one topic.

    A message belongs to the topic if it has all words of the name. If no message does, for instance
    because a model worded the name, half of the words are enough. The newest message of a listed
    topic always belongs to it.
    """

    def __init__(self, core: Core, topic: str) -> None:
        self._core = core
        self.name = topic_name(topic) or " ".join(topic.split())
        self._tokens = tuple(dict.fromkeys(tokens_of(self.name)))

    def narrow(self, found: Sequence[Ranked], filters: Filters) -> list[Ranked]:
        """Return the messages of the topic: first those found, in order, then the newest."""
        pieces = self._pieces(filters)
        first = [one for one in found if _place(one.passage) in pieces]
        for one in first:
            del pieces[_place(one.passage)]

        def explain(_: Passage) -> tuple[str, ...]:
            return (f"topic {self.name}",)

        rest = sorted(pieces.values(), key=lambda passage: -passage.number)
        return [*first, *(Ranked(passage, LEAST, explain) for passage in rest)]

    def notice(self, thread_id: str | None) -> str | None:
        """Return a notice if the conversation does not list this topic, else None."""
        if thread_id is None:
            return None
        listed = [seen.topic for seen in self._core.views.topics(thread_id)]
        if any(self._is_named(name) for name in listed):
            return None
        named = f"the topics are: {', '.join(listed)}" if listed else "there are no topics yet"
        return f"topic {self.name!r} is not listed, its words were looked for; {named}"

    def _pieces(self, filters: Filters) -> dict[_Place, Passage]:
        """Return one passage of each message, the one with most words of the name."""
        pieces = self._find_by_words(filters)
        for place in self._listed_places(filters, are_found=bool(pieces)):
            if place not in pieces and (piece := self._piece_at(place, filters)) is not None:
                pieces[place] = piece
        return pieces

    def _find_by_words(self, filters: Filters) -> dict[_Place, Passage]:
        messages: dict[_Place, list[Passage]] = {}
        found = self._core.recall.index.find(self._tokens, filters, limit=PASSAGES)
        for passage in found.candidates:
            messages.setdefault(_place(passage), []).append(passage)
        has = {
            place: sum(any(_has(p, token) for p in passages) for token in self._tokens)
            for place, passages in messages.items()
        }
        whole = len(self._tokens)
        least = whole if whole in has.values() else ceil(whole / 2)
        return {
            place: self._best(passages)
            for place, passages in messages.items()
            if has[place] >= least
        }

    def _listed_places(self, filters: Filters, *, are_found: bool) -> Iterator[_Place]:
        """Yield the places where the topic occurred last, according to the topic lists."""
        if filters.thread_id is not None:
            threads = [filters.thread_id]
        else:
            # Listing all conversations can take long, so do it only if the words found nothing.
            rows = () if are_found else self._core.views.conversations()
            threads = [row.thread_id for row in rows if row.compactions or row.erased_messages]
        for thread_id in threads:
            for seen in self._core.views.topics(thread_id):
                if self._is_named(seen.topic):
                    yield thread_id, seen.last_position

    def _piece_at(self, place: _Place, filters: Filters) -> Passage | None:
        thread_id, position = place
        only = filters._replace(thread_id=thread_id, positions=(position, position + 1))
        if pieces := self._core.recall.index.passages(filters=only):
            return self._best(pieces)
        for row in self._core.views.messages(thread_id, position, position + 1):
            version = (thread_id, row.version)
            logged = messages_at(self._core, [version]).get(version)
            if logged is not None and not logged.erased:
                piece = _from_log(logged)
                return piece if piece is not None and accepts(only, piece) else None
        return None

    def _best(self, pieces: Sequence[Passage]) -> Passage:
        return max(pieces, key=lambda piece: sum(_has(piece, token) for token in self._tokens))

    def _is_named(self, name: str) -> bool:
        return name.casefold() == self.name.casefold()


def _place(passage: Passage) -> _Place:
    return passage.thread_id, passage.position


def _has(passage: Passage, token: str) -> bool:
    return f" {token} " in passage.tokens


def _from_log(logged: LoggedEvent) -> Passage | None:
    """Return a passage of a message that the index lacks, such as an answer of the memory itself."""
    event = logged.event
    if not isinstance(event, MessageAppended):
        return None
    text, said = readable(event.message)[:_SHOWN], gist(event.message)
    tokens = tokens_of(text)
    is_result = bool(said.results) and not said.speaks
    return Passage(
        number=first_number(logged),
        thread_id=logged.thread_id,
        position=event.position,
        version=logged.version,
        part=0,
        role="tool" if is_result else event.message.role,
        kind="result" if is_result else "text",
        tool="",
        at=utc(event.written_at) if event.written_at else logged.at,
        session=0,
        start=0,
        stop=len(text),
        is_question=False,
        tokens=pad(tokens),
        token_count=len(tokens),
        digest=digest_of(text),
    )
