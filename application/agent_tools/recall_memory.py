"""The tool ``recall_memory``, which searches the whole record."""

from refold.application.recall.hits import Neighbour, Recalled, RecallHit
from refold.application.recall.recall_query import LEAST_TOKENS, parse_query
from refold.application.recall.search import recall, search

from .answers import (
    ERASED,
    GUIDANCE,
    Answer,
    answer,
    describe_form,
    format_time,
    one_line,
    plural,
    quote,
    quote_name,
)
from .arguments import RecallAnywhere, RecallArguments, RecallOfAll
from .tool_names import QUERY_HISTORY, READ_OFFLOADED
from .tool_scope import Reach

DESCRIPTION = f"""\
Search the whole record of the conversation for what is no longer in your context: messages, decisions, tool \
calls and results that a summary stands for or a preview has cut. Call it before you say that you do not know, \
before you ask the user again, before you repeat work. Ask for one thing at a time; if nothing fits, ask once \
more in other words that the message may have used. With topic alone: what was said about a recallable topic.
Comes back: the passages that fit best, quoted word for word, each with position, role, time, address, why it \
was found, and the messages next to it. It finds text and answers no question; finding nothing does not prove \
that it was never said. {READ_OFFLOADED} reads a whole message by its address, {QUERY_HISTORY} what was said \
around a position."""

_MODES = {"keyword": "by words", "vector": "by meaning", "hybrid": "by words and meaning"}
FRAME = 120
"""Tokens that the text around one passage usually needs at most."""


def recall_memory(reach: Reach, arguments: RecallArguments) -> str:
    """Return the passages that answer a question, as text for the model.

    Raises:
        ToolRefusal: the conversation is out of reach.
        InvalidSetting: a time is invalid.
        LogError: the log cannot be read.
    """
    thread = _thread(reach, arguments)
    found = _recall(reach, arguments, thread)
    return _AnswerFormatter(reach, thread, found).text()


def _thread(reach: Reach, arguments: RecallArguments) -> str | None:
    """Return the conversation to search, or None for all."""
    wanted = arguments.thread if isinstance(arguments, RecallOfAll) else None
    everywhere = isinstance(arguments, RecallAnywhere) and arguments.all_conversations
    if wanted is None and reach.everywhere and (everywhere or reach.home is None):
        return None
    return reach.thread(wanted)


def _recall(reach: Reach, arguments: RecallArguments, thread: str | None) -> Recalled:
    hits = min(arguments.limit, max(1, reach.room // 500))
    parsed = parse_query(
        arguments.query,
        topic=arguments.topic.strip() or None,
        thread_id=thread,
        mode=reach.core.settings.recall_mode,
        min_score=reach.core.settings.recall_least_score,
        limit=arguments.limit,
        roles=arguments.roles,
        tools=arguments.tools,
        since=arguments.since or None,
        until=arguments.until or None,
        # This model does not see the contexts of other conversations.
        in_context="leave_out" if thread and reach.sees_context_of(thread) else "mark",
        max_tokens=max(LEAST_TOKENS, reach.room - FRAME * (1 + hits)),
    )
    if thread is not None and thread == reach.home:
        return recall(reach.core, thread, parsed)
    return search(reach.core, parsed, reach.scope.visible())


class _AnswerFormatter:
    """A formatter of recall results for a model."""

    def __init__(self, reach: Reach, thread: str | None, found: Recalled) -> None:
        self._reach, self._found = reach, found
        hits = [hit for hit in found.hits if thread is None or hit.thread_id == thread]
        self._hits = [h for h in hits if not (h.in_context and reach.sees_context_of(h.thread_id))]
        self._left_out = found.left_out + len(hits) - len(self._hits)

    def text(self) -> str:
        """Return the whole answer within its room; neighbours are dropped first, then the last passages."""
        number = len(self._hits)
        for with_neighbours in range(number, 0, -1):
            made = self._answer(with_neighbours, least=number)
            if made.shown == number:
                return made.text
        return self._answer(0, least=1).text

    def _answer(self, with_neighbours: int, *, least: int) -> Answer:
        """Return an answer with neighbours for the first ``with_neighbours`` passages."""
        items = [self._item(n, hit, n < with_neighbours) for n, hit in enumerate(self._hits)]
        room, count = self._reach.room, self._reach.count
        return answer(self._head(), items, self._tail, room, count, least=least)

    def _head(self) -> str:
        asked = self._describe_question()
        notice = f" Note: {one_line(self._found.notice)}." if self._found.notice else ""
        if not self._hits:
            return f"Nothing was found for {asked}.{notice}"
        found = plural(len(self._hits), "passage")
        how = _MODES[self._found.mode]
        return f"{found} found for {asked}, {how}, best first.{notice} {GUIDANCE}"

    def _describe_question(self) -> str:
        query, topic = self._found.query, self._found.topic
        of_topic = f"topic {quote_name(topic, 120)}" if topic else ""
        asked = quote_name(query, 120) if query.strip() or not topic else ""
        return " in ".join(filter(None, (asked, of_topic)))

    def _item(self, number: int, hit: RecallHit, neighbours: bool) -> str:
        home = hit.thread_id == self._reach.home
        shown = describe_form(hit.fate, seen=self._reach.sees_context_of(hit.thread_id))
        whose = "" if home else f", conversation {quote_name(hit.thread_id, 120)}"
        lines = [
            f"{number + 1}. Message {hit.position}{whose}, {_role(hit)}, {format_time(hit.at)}, {hit.address}",
            "; ".join(filter(None, (_why(hit), f"score {hit.score:.2f}", shown))),
            ERASED if hit.fate == "erased" else quote(hit.text),
        ]
        if neighbours:
            lines += [_neighbour_text(hit, neighbour) for neighbour in hit.neighbours]
        return "\n".join(lines)

    def _tail(self, shown: int) -> str:
        return "\n".join(filter(None, (self._seen(), self._unshown(shown), self._next())))

    def _seen(self) -> str:
        if not self._left_out:
            return ""
        are = "is" if self._left_out == 1 else "are"
        what = plural(self._left_out, "passage")
        return f"{what} more that fit {are} in your context already and left out here."

    def _unshown(self, shown: int) -> str:
        if shown == len(self._hits):
            return ""
        return (
            f"{plural(len(self._hits) - shown, 'passage')} more did not fit into this answer: ask with a "
            "smaller limit or more exact words."
        )

    def _next(self) -> str:
        if not self._hits:
            return (
                "Next: other words that the message may have used, fewer filters, or "
                f"{QUERY_HISTORY} with an exact text or a range of positions."
            )
        best = self._hits[0]
        start = max(0, best.position - 5)
        whose = (
            ""
            if best.thread_id == self._reach.home
            else f", thread {quote_name(best.thread_id, 500)}"
        )
        return (
            f"Next: {READ_OFFLOADED} with an address reads a whole message; {QUERY_HISTORY} with start "
            f"{start}, stop {best.position + 6}{whose} reads what was said around the first."
        )


def _role(hit: RecallHit) -> str:
    match hit.kind:
        case "result":
            return f"result of tool {quote_name(hit.tool or '', 80)}"
        case "call":
            return f"{hit.role}, call of tool {quote_name(hit.tool or '', 80)}"
        case "text":
            return hit.role


def _why(hit: RecallHit) -> str:
    return f"found by: {one_line('; '.join(hit.why), 240)}" if hit.why else ""


def _neighbour_text(hit: RecallHit, neighbour: Neighbour) -> str:
    side = "before" if neighbour.position < hit.position else "after"
    where = f"{side} it, message {neighbour.position}, {neighbour.role}:"
    return f"{where} {ERASED}" if neighbour.erased else f"{where}\n{quote(neighbour.text)}"
