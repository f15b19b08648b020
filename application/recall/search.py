"""Recall messages that are out of sight, in one conversation or in all of them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, cast

from refold.application.conversation.addresses import address_of
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.owner_scope import OwnerScope
from refold.application.ports.conversation_log import LoggedEvent, MessageFields
from refold.application.ports.recall_index import Filters, Visible
from refold.application.projections.row_changes import listed_time
from refold.application.runtime.core import Core
from refold.domain.events import MessageAppended
from refold.domain.messages import gist, readable_content
from refold.domain.value import build_unvalidated, replace

from .candidates_search import CandidateSearch
from .hits import ContextVisibility, Neighbour, Recalled, RecallHit, fit_hits
from .passages import PassageKind
from .ranking import Ranked, WordPlace, messages_at, text_in
from .recall_query import Question, RecallOptions, RecallQuery, ask, parse_query
from .topic_messages import TopicMessages

NEIGHBOUR_CHARACTERS = 300
BETWEEN = 8
"""Number of events to look through for the message next to a hit. A compaction stores five or six."""
CUT = "…"
Message = tuple[str, int]
"""Thread id and position of a message."""


class FoundMessage(NamedTuple):
    """A message as the log has it."""

    logged: LoggedEvent
    fields: MessageFields

    @property
    def at(self) -> str:
        """Time when the message was written or, if unknown, logged: ISO 8601, UTC."""
        is_written = "written_at" in self.fields
        return listed_time(self.logged, self.fields) if is_written else self.logged.at

    @property
    def role(self) -> str:
        """Role of the message, or ``tool`` if it contains only results."""
        role, content = self.fields["message"]["role"], self.fields["message"]["content"]
        if isinstance(content, str) or not isinstance(event := self.logged.event, MessageAppended):
            return role
        said = gist(event.message)
        return "tool" if said.results and not said.speaks else role


class HitBuilder:
    """Builds hits from passages, with ``neighbours`` messages on each side, and caches what it reads.

    Only messages that are ``visible`` are shown, even if the index has others.
    """

    def __init__(
        self,
        core: Core,
        neighbours: int,
        visible: Visible | None = None,
        loaded: LoadedConversation | None = None,
    ) -> None:
        """Create the builder. ``loaded`` is a conversation that need not be loaded again."""
        self._visible = visible
        self._core = core
        self._number = neighbours
        self._visibilities: dict[str, ContextVisibility | None] = {}
        if loaded is not None:
            self._visibilities[loaded.thread_id] = ContextVisibility(loaded)
        self._said: dict[Message, FoundMessage] = {}
        self._were_read = set[Message]()
        """Messages that were read, also those that are not visible."""

    def hits(self, found: Sequence[Ranked]) -> Iterator[RecallHit]:
        """Yield the hits in order, without neighbours.

        Messages that are missing from the log are left out; those erased since are marked as
        erased.

        Raises:
            LogError: the log cannot be read.
        """
        self._read(self._places_near(found))
        for one in found:
            passage = one.passage
            said = self._said.get((passage.thread_id, passage.position))
            visibility = self._visibility(passage.thread_id, passage.position)
            if said is None or visibility is None or said.logged.version != passage.version:
                continue
            text = text_in(passage, said.logged)
            if text or said.logged.erased:
                yield _hit(one, said, text, visibility)

    def add_neighbours(self, hits: Sequence[RecallHit]) -> list[RecallHit]:
        """Return the hits with their neighbours."""
        if not self._number:
            return list(hits)
        lacking = [hit for hit in hits if self._lacking(hit)]
        self._read(self._places_around(lacking))
        self._read(self._places_of(chain.from_iterable(map(self._lacking, lacking))))
        return [replace(hit, neighbours=tuple(self._neighbours(hit))) for hit in hits]

    def _places_near(self, found: Sequence[Ranked]) -> Iterator[WordPlace]:
        """Yield the places of the passages and of the events around them, which are usually messages."""
        for one in found:
            thread_id, version = one.passage.thread_id, one.passage.version
            first = max(1, version - self._number)
            yield from ((thread_id, v) for v in range(first, version + self._number + 1))

    def _lacking(self, hit: RecallHit) -> list[Message]:
        """Return the neighbours of a hit that were not read."""
        around = ((hit.thread_id, p) for p in self._neighbour_positions(hit))
        return [message for message in around if message not in self._were_read]

    def _places_around(self, hits: Sequence[RecallHit]) -> Iterator[WordPlace]:
        """Yield the places of further events around hits, because a compaction may stand between messages."""
        for hit in hits:
            version = self._said[hit.thread_id, hit.position].logged.version
            near, far = self._number, self._number + BETWEEN
            before = range(max(1, version - far), version - near)
            for v in chain(before, range(version + near + 1, version + far + 1)):
                yield hit.thread_id, v

    def _read(self, places: Iterable[WordPlace]) -> None:
        visible = self._visible
        for logged in messages_at(self._core, places).values():
            fields = logged.message
            if fields is None:
                continue
            message = logged.thread_id, fields["position"]
            self._were_read.add(message)
            if visible is None or visible.lets(fields.get("owner"), logged.thread_id):
                self._said[message] = FoundMessage(logged, fields)

    def _neighbour_positions(self, hit: RecallHit) -> Iterator[int]:
        visibility = self._visibility(hit.thread_id)
        length = 0 if visibility is None else visibility.length
        first, last = hit.position - self._number, hit.position + self._number
        return (p for p in range(max(0, first), min(last + 1, length)) if p != hit.position)

    def _neighbours(self, hit: RecallHit) -> Iterator[Neighbour]:
        for position in self._neighbour_positions(hit):
            found = self._said.get((hit.thread_id, position))
            if found is not None:
                yield _neighbour(found)

    def _places_of(self, messages: Iterable[Message]) -> Iterator[WordPlace]:
        """Yield the places of messages that are far from their hits, from the read models."""
        for thread_id, position in messages:
            for row in self._core.views.messages(thread_id, position, position + 1):
                yield thread_id, row.version

    def _visibility(self, thread_id: str, position: int = 0) -> ContextVisibility | None:
        """Return the visibility of a conversation that has this position, or None if it was erased."""
        known = self._visibilities.get(thread_id)
        is_longer = known is not None and position >= known.length
        if thread_id not in self._visibilities or is_longer:
            loaded = self._core.log.load(thread_id)
            self._visibilities[thread_id] = (
                None if loaded.state.erased else ContextVisibility(loaded)
            )
        return self._visibilities[thread_id]


def _hit(found: Ranked, said: FoundMessage, text: str, visibility: ContextVisibility) -> RecallHit:
    passage, erased = found.passage, said.logged.erased
    position = said.fields["position"]
    return build_unvalidated(
        RecallHit,
        thread_id=passage.thread_id,
        position=position,
        version=said.logged.version,
        message_id=said.fields["message_id"],
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
        fate=visibility.fate(position, erased=erased),
        in_context=not erased and visibility.shows(position, text),
        neighbours=(),
    )


def _neighbour(said: FoundMessage) -> Neighbour:
    text = readable_content(said.fields["message"]["content"])
    cut = len(text) > NEIGHBOUR_CHARACTERS
    return build_unvalidated(
        Neighbour,
        position=said.fields["position"],
        role=said.role,
        text=text[: NEIGHBOUR_CHARACTERS - 1] + CUT if cut else text,
        at=said.at,
        erased=said.logged.erased,
    )


SAME_WORDS = 2
"""Maximum number of hits with the same words. Further ones come after all other hits."""
MOST_TOOLS = 20
"""Number of tools to name if the requested one was never used."""
NO_WORDS = "the question has no words to look for"


def recall(core: Core, thread_id: str, query: RecallQuery) -> Recalled:
    """Return the passages of one conversation, or of its owner's scope, that answer best.

    Raises:
        ConversationGone: it was erased as a whole.
        LogError: the log cannot be read.
    """
    loaded = core.log.load(thread_id).present()
    if not loaded.state.version:
        return _empty_answer(query, f"there is no conversation {thread_id!r} in this log")
    scope = query.scope or "conversation"
    if scope == "conversation":
        run = _RecallRun(core, query, loaded)
        answer = run.answer(ContextVisibility(loaded) if query.leave_out else None)
    else:
        visible = OwnerScope(core, scope, thread_id).visible()
        filters = query.filters._replace(thread_id=None, visible=visible)
        # Without an owner, only this conversation is visible.
        answer = _RecallRun(core, query._replace(filters=filters)).answer(None)
    if not _proves_presence(answer, thread_id):
        # If the conversation was erased in the meantime, return nothing of it.
        core.log.load(thread_id).present()
    return answer


def _proves_presence(answer: Recalled, thread_id: str) -> bool:
    """Return whether the log had words of a conversation after the search, so that it was not erased before."""
    return any(hit.thread_id == thread_id and hit.fate != "erased" for hit in answer.hits)


def search(core: Core, query: RecallQuery, visible: Visible | None = None) -> Recalled:
    """Return the best passages of all visible conversations; each hit names its conversation.

    Raises:
        LogError: the log cannot be read.
    """
    filters = query.filters._replace(visible=visible)
    return _RecallRun(core, query._replace(filters=filters)).answer(None)


class _Selected(NamedTuple):
    """The hits of an answer, and how many of them the context shows already."""

    hits: list[RecallHit]
    left_out: int
    """Number of the best hits that were left out."""


class _RecallRun:
    """Answers one query."""

    def __init__(
        self, core: Core, query: RecallQuery, loaded: LoadedConversation | None = None
    ) -> None:
        self._core = core
        self._query = query
        asked: Question = ask(query.query)
        self._question = asked if asked.tokens or not query.topic else ask(query.topic)
        self._topic = TopicMessages(core, query.topic) if query.topic else None
        self._builder = HitBuilder(core, query.neighbours, query.filters.visible, loaded)

    def answer(self, visibility: ContextVisibility | None) -> Recalled:
        """Return the answer.

        ``visibility`` is that of the searched conversation, or None if several are searched. Hits that the
        context shows are left out if the query says so.
        """
        query = self._query
        if not self._question.tokens:
            return _empty_answer(query, NO_WORDS)
        candidates = CandidateSearch(self._core, query, self._question)
        selected = self._select(self._rank(candidates, query.filters))
        left_out = selected.left_out
        if left_out and visibility is not None:
            # Messages that the context shows take no place among the candidates now.
            hidden = query.filters._replace(leave_out=visibility.full_positions())
            selected = self._select(self._rank(candidates, hidden))
        notices = [*candidates.notices(), *self._unknown_tools(selected)]
        if self._topic and (unlisted := self._topic.notice(query.filters.thread_id)):
            notices.append(unlisted)
        hits = self._builder.add_neighbours(selected.hits)
        room = query.max_tokens or self._core.settings.recall_tokens
        shown, tokens = fit_hits(hits, self._question.tokens, room, self._core.counter.count_text)
        return Recalled(
            query=query.query,
            hits=shown,
            mode=candidates.mode,
            notice="; ".join(dict.fromkeys(notices)) or None,
            left_out=left_out,
            tokens=tokens,
            topic=query.topic or None,
        )

    def _rank(self, candidates: CandidateSearch, filters: Filters) -> Sequence[Ranked]:
        found = candidates.ranked(filters)
        return found if self._topic is None else self._topic.narrow(found, filters)

    def _select(self, found: Sequence[Ranked]) -> _Selected:
        """Return the best hits that the query accepts."""
        query = self._query
        order = _move_repetitions_last(found)
        chosen: list[RecallHit] = []
        left_out = 0
        for begin in range(0, len(order), query.limit):
            hits = list(self._builder.hits(order[begin : begin + query.limit]))
            wanted = [hit for hit in hits if not (query.leave_out and hit.in_context)]
            left_out += len(hits) - len(wanted) if begin == 0 else 0
            chosen += wanted
            if len(chosen) >= query.limit:
                break
        best = sorted(chosen[: query.limit], key=lambda hit: -hit.score)
        return _Selected(_rescale(best, query.min_score), left_out)

    def _unknown_tools(self, selected: _Selected) -> Iterator[str]:
        """Yield a notice with the known tools if a requested tool was never used."""
        filters = self._query.filters
        if selected.hits or selected.left_out or not filters.tools:
            return
        kinds = frozenset[PassageKind](("call", "result"))
        of_tools = Filters(filters.thread_id, kinds=kinds, visible=filters.visible)
        passages = self._core.recall.index.passages
        # Only the first passages are read below, and the tool may have been used after them.
        if not passages(limit=1, filters=of_tools._replace(tools=filters.tools)):
            known = sorted({one.tool for one in passages(filters=of_tools) if one.tool})
            there = ", ".join(known[:MOST_TOOLS]) or "none"
            yield f"no tool {', '.join(sorted(filters.tools))} was used; there are: {there}"


def _move_repetitions_last(found: Sequence[Ranked]) -> list[Ranked]:
    """Move passages to the end if ``SAME_WORDS`` better ones have the same words, as in forks."""
    seen: dict[str, int] = {}
    first: list[Ranked] = []
    again: list[Ranked] = []
    for one in found:
        digest = one.passage.digest
        seen[digest] = times = seen.get(digest, 0) + 1
        (first if times <= SAME_WORDS else again).append(one)
    return first + again


def _rescale(hits: Sequence[RecallHit], least: float) -> list[RecallHit]:
    """Return the hits with scores relative to the best of them."""
    if not hits:
        return []
    best = hits[0].score
    scored = [
        hit if best == 1.0 else replace(hit, score=hit.score / best)  # Most often it is 1.
        for hit in hits
    ]
    return [hit for hit in scored if hit.score >= least]


def _empty_answer(query: RecallQuery, notice: str) -> Recalled:
    mode, topic = query.mode or "keyword", query.topic or None
    return Recalled(query=query.query, hits=(), mode=mode, notice=notice, topic=topic)


def query_with_defaults(
    core: Core, query: str, options: RecallOptions, thread_id: str | None = None
) -> RecallQuery:
    """Return a query with its options; the settings provide defaults.

    Raises:
        InvalidSetting: an option is invalid; the error names the valid values.
    """
    settings = core.settings
    defaults: RecallOptions = {
        "limit": settings.recall_hits,
        "min_score": settings.recall_least_score,
        "mode": settings.recall_mode,
    }
    return parse_query(query, thread_id=thread_id, **cast("RecallOptions", {**defaults, **options}))
