"""Use case: recall what was said and is out of sight, in one conversation or in all of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from refold.application.core import Core
from refold.application.owners.scope import OwnerScope
from refold.application.owners.visible import Visible

from .asking import Question, ask
from .finding import Finding
from .fitting import fitted
from .index import Filters
from .inquiry import Inquiry
from .passages import PassageKind
from .ranking import Ranked
from .results import Recalled, RecallHit
from .showing import Shower
from .sight import Sight
from .topical import TopicMessages

SAME_WORDS = 2
"""Hits with the very same words, as long as there are others."""
MOST_TOOLS = 20
"""That are named where none was used that was asked for."""
NO_WORDS = "the question has no words to look for"


def recall(core: Core, thread_id: str, inquiry: Inquiry) -> Recalled:
    """The passages that answer best: of one conversation, or as far as its owner asks for.

    Raises:
        ConversationGone: it was erased as a whole.
        LogError: the log cannot be read.
    """
    loaded = core.log.load(thread_id).present()
    if not loaded.state.version:
        return _nothing(inquiry, f"there is no conversation {thread_id!r} in this log")
    scope = inquiry.scope or "conversation"
    if scope == "conversation":
        asking = _Asking(core, inquiry)
        answer = asking.answer(Sight(loaded) if inquiry.leave_out else None)
    else:
        visible = OwnerScope(core, scope, thread_id).visible()
        filters = inquiry.filters._replace(thread_id=None, visible=visible)
        # Without an owner it is this conversation alone: nothing else is its own.
        answer = _Asking(core, inquiry._replace(filters=filters)).answer(None)
    core.log.load(thread_id).present()  # Nothing of it is told if it was erased meanwhile.
    return answer


def search(core: Core, inquiry: Inquiry, visible: Visible | None = None) -> Recalled:
    """The passages of all conversations that answer best, as far as they are ``visible``; each hit names
    its own.

    Raises:
        LogError: the log cannot be read.
    """
    filters = inquiry.filters._replace(visible=visible)
    return _Asking(core, inquiry._replace(filters=filters)).answer(None)


class _Selected(NamedTuple):
    """The hits of an answer, and how many the context shows already."""

    hits: list[RecallHit]
    left_out: int
    """Of those that would have been among the first."""


class _Asking:
    """One question, from its text to the hits."""

    def __init__(self, core: Core, inquiry: Inquiry) -> None:
        self._core = core
        self._inquiry = inquiry
        asked: Question = ask(inquiry.query)
        self._question = asked if asked.tokens or not inquiry.topic else ask(inquiry.topic)
        self._topic = TopicMessages(core, inquiry.topic) if inquiry.topic else None
        self._shower = Shower(core, inquiry.neighbours, inquiry.filters.visible)

    def answer(self, sight: Sight | None) -> Recalled:
        """The answer; ``sight`` of the only conversation, where what it shows is left out."""
        inquiry = self._inquiry
        if not self._question.tokens:
            return _nothing(inquiry, NO_WORDS)
        finding = Finding(self._core, inquiry, self._question)
        selected = self._select(self._ranked(finding, inquiry.filters))
        left_out = selected.left_out
        if left_out and sight is not None:
            # What the context shows takes no place among the candidates any more.
            hidden = inquiry.filters._replace(leave_out=sight.in_full())
            selected = self._select(self._ranked(finding, hidden))
        notices = [*finding.notices(), *self._unknown_tools(selected)]
        if self._topic and (unlisted := self._topic.notice(inquiry.filters.thread_id)):
            notices.append(unlisted)
        hits = self._shower.with_neighbours(selected.hits)
        room = inquiry.max_tokens or self._core.settings.recall_tokens
        shown, tokens = fitted(hits, self._question.tokens, room, self._core.counter.count_text)
        return Recalled(
            query=inquiry.query,
            hits=shown,
            mode=finding.mode,
            notice="; ".join(dict.fromkeys(notices)) or None,
            left_out=left_out,
            tokens=tokens,
            topic=inquiry.topic or None,
        )

    def _ranked(self, finding: Finding, filters: Filters) -> Sequence[Ranked]:
        found = finding.ranked(filters)
        return found if self._topic is None else self._topic.narrowed(found, filters)

    def _select(self, found: Sequence[Ranked]) -> _Selected:
        """The best that are wanted."""
        inquiry = self._inquiry
        order = _unlike_first(found)
        chosen: list[RecallHit] = []
        left_out = 0
        for begin in range(0, len(order), inquiry.limit):
            hits = list(self._shower.hits(order[begin : begin + inquiry.limit]))
            wanted = [hit for hit in hits if not (inquiry.leave_out and hit.in_context)]
            left_out += len(hits) - len(wanted) if begin == 0 else 0
            chosen += wanted
            if len(chosen) >= inquiry.limit:
                break
        best = sorted(chosen[: inquiry.limit], key=lambda hit: -hit.score)
        return _Selected(_relative(best, inquiry.min_score), left_out)

    def _unknown_tools(self, selected: _Selected) -> Iterator[str]:
        """What tools there are, where nothing was found of those that were named."""
        filters = self._inquiry.filters
        if selected.hits or selected.left_out or not filters.tools:
            return
        kinds = frozenset[PassageKind](("call", "result"))
        of_tools = Filters(filters.thread_id, kinds=kinds, visible=filters.visible)
        passages = self._core.recall.index.passages(filters=of_tools)
        known = sorted({passage.tool for passage in passages if passage.tool})
        if filters.tools.isdisjoint(known):
            there = ", ".join(known[:MOST_TOOLS]) or "none"
            yield f"no tool {', '.join(sorted(filters.tools))} was used; there are: {there}"


def _unlike_first(found: Sequence[Ranked]) -> list[Ranked]:
    """The same, those last whose words stand further in front often enough already: in forks, in files
    that were read again and again."""
    seen = Counter[str]()
    first: list[Ranked] = []
    again: list[Ranked] = []
    for one in found:
        seen[one.passage.digest] += 1
        (first if seen[one.passage.digest] <= SAME_WORDS else again).append(one)
    return first + again


def _relative(hits: Sequence[RecallHit], least: float) -> list[RecallHit]:
    """Scores relative to the best of these."""
    if not hits:
        return []
    best = hits[0].score
    scored = [hit.replaced(score=hit.score / best) for hit in hits]
    return [hit for hit in scored if hit.score >= least]


def _nothing(inquiry: Inquiry, notice: str) -> Recalled:
    mode, topic = inquiry.mode or "keyword", inquiry.topic or None
    return Recalled(query=inquiry.query, hits=(), mode=mode, notice=notice, topic=topic)
