"""Ways to bring a value back into the request, as commands and calls."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from refold.application.api.results import Context
from refold.application.compaction.pinning import words_to_pin
from refold.application.conversation.addresses import SCHEME, address_of
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.stream_places import stored_messages
from refold.application.recall.hits import Recalled, RecallHit
from refold.application.recall.recall_query import RecallOptions
from refold.application.recall.search import query_with_defaults, recall
from refold.application.recall.standing_recall import LEAST_WORDS, lines_for
from refold.application.runtime.core import Core
from refold.domain.compaction.compacting import revert_compaction
from refold.domain.evolve import fold
from refold.domain.text_cuts import beginning
from refold.domain.value import Value, replace

from .value_match import ValueMatch
from .value_timeline import Occurrences, Timeline

MOST_HITS = 10
_LONGEST_QUESTION = 300
"""Characters of a value that recall is asked for."""
_LONGEST_WORDS = 120
"""Characters of a value that a command contains."""
_SHORT_MESSAGE = 300
"""Tokens of a message that is pinned as a whole; of a longer one, the value is pinned as a text."""
_SHOWN_LINE = 60
"""Characters of a line that a sentence quotes."""
_SIMILAR = 3

WayKind = Literal["recall", "query", "standing recall", "read", "pin", "focus", "revert", "fork"]
"""A way to bring a value back.

``recall``: a search by words, as the agent's tool or for people. ``query``: the same by exact text. ``standing
recall``: lines that refold adds to the next message of the user by itself. ``read``: the whole message by its address.
``pin``: kept word for word from now on. ``focus``: the next summary preserves it. ``revert``: undo the newest
compaction. ``fork``: a copy of the conversation as it was before the value left.
"""


class WayBack(Value, frozen=True):
    """A way to bring the value back, and whether it does now."""

    kind: WayKind
    works: bool
    why: str
    """Its effect, or the reason why it does not help, in words."""
    command: tuple[str, ...]
    """Words of a command of ``refold`` that uses it, or empty."""
    call: str
    """The same in Python, with ``conversation``, or empty."""
    score: float | None = None
    """Score of the hit of recall relative to its best one, or None."""


class SimilarLine(Value, frozen=True):
    """A line that recall finds for a value that no message has."""

    position: int
    role: str
    score: float
    line: str


class _Place(NamedTuple):
    """The newest message that has the value."""

    position: int
    tokens: int
    line: str
    has_exactly: bool
    """True if it has the value but for case."""
    is_kept_by_pin: bool
    """True if the words that a pin keeps of it have the value."""


def ways_back(
    core: Core,
    timeline: Timeline,
    match: ValueMatch,
    found: Occurrences,
    context: Context,
    left_at: int | None,
) -> tuple[WayBack, ...]:
    """Return every way to bring the value back, and whether it works.

    ``context``: the request without it. ``left_at``: version of the event after which no message showed it.
    """
    thread_id, position = context.thread_id, found.positions[-1]
    stored = stored_messages(core, thread_id, position, position + 1)
    newest = _Place(position, 0, "", has_exactly=False, is_kept_by_pin=False)
    if stored:
        text = stored[0].text
        exactly = match.value.casefold() in text.casefold()
        kept = words_to_pin(stored[0].message) in match
        newest = _Place(position, stored[0].tokens, match.line(text), exactly, kept)
    ways = _Ways(core, core.log.load(thread_id), match, newest)
    return (
        ways.recall(found),
        *ways.query(),
        ways.standing_recall(context),
        ways.read(),
        ways.pin(),
        ways.focus(),
        *ways.revert(timeline, found, context),
        *ways.fork(left_at),
    )


class _Ways:
    """The ways for one conversation, and the newest message that has the value."""

    def __init__(
        self, core: Core, loaded: LoadedConversation, match: ValueMatch, newest: _Place
    ) -> None:
        self._core, self._loaded, self._match, self._newest = core, loaded, match, newest
        self._thread_id = loaded.thread_id
        self._words = match.value if len(match.value) <= _LONGEST_WORDS else ""
        """The value, if it is short enough for a command."""
        self._line = newest.line.strip("…")

    def recall(self, found: Occurrences) -> WayBack:
        words = beginning(self._match.value, _LONGEST_WORDS)
        way = WayBack(
            kind="recall",
            works=False,
            why=f"a search for it does not find it among the first {MOST_HITS} hits, nor one for its line",
            command=("recall", self._thread_id, words),
            call=f"conversation.recall({words!r})",
        )
        for words, what in ((self._match.value, "it"), (self._line, "its line")):
            for place, hit in enumerate(ask(self._core, self._thread_id, words), 1):
                if found.has(hit.position):
                    return self._found_by_recall(
                        way, beginning(words, _LONGEST_WORDS), what, place, hit
                    )
        return way

    def _found_by_recall(
        self, way: WayBack, words: str, what: str, place: int, hit: RecallHit
    ) -> WayBack:
        rank = "first" if place == 1 else f"as hit {place}"
        why = f"a search for {what} finds message {hit.position} {rank}, with score {hit.score:.2f}"
        return replace(
            way,
            works=True,
            why=why,
            command=("recall", self._thread_id, words),
            call=f"conversation.recall({words!r})",
            score=hit.score,
        )

    def query(self) -> Iterator[WayBack]:
        if self._newest.has_exactly and self._words:
            yield WayBack(
                kind="query",
                works=True,
                why="lists every message with this text; the agent's tool query_history does the same",
                command=("query", self._thread_id, "--text", self._words),
                call=f"conversation.query(text={self._words!r})",
            )

    def standing_recall(self, context: Context) -> WayBack:
        most = self._core.settings.standing_recall
        if not most:
            why = (
                "off (`standing_recall = 0`); on, it adds lines that match the user's next message"
            )
            return self._without_command("standing recall", why, works=False)
        line = self._line
        quoted = f"“{beginning(line, _SHOWN_LINE)}”"
        for words, said in ((self._match.value, "just that"), (line, quoted)):
            lines = lines_for(self._core, self._loaded, words[:2_000], context) if words else ()
            if any(one.text in self._match for one in lines):
                why = f"on; it would add the line to a message of the user that says {said}"
                return self._without_command("standing recall", why, works=True)
        why = (
            f"on, but it would not add it, even to a message with the words of its line: it needs a line that is "
            f"out of sight and shares {LEAST_WORDS} or more rare words with the message"
        )
        return self._without_command("standing recall", why, works=False)

    def read(self) -> WayBack:
        position = self._newest.position
        address = address_of(self._thread_id, position)
        why = f"the log has message {position} word for word; the agent's tool read_offloaded takes {address}"
        command = ("read", self._place_of(position))
        call = f"conversation.read({position})"
        return WayBack(kind="read", works=True, why=why, command=command, call=call)

    def pin(self) -> WayBack:
        position, thread_id = self._newest.position, self._thread_id
        command: tuple[str, ...] = ("pin", self._place_of(position))
        what: int | str = position
        why = f"pinned, the words of message {position} are in every later request"
        works = self._newest.is_kept_by_pin
        if self._words and (self._newest.tokens > _SHORT_MESSAGE or not works):
            why = "pinned as a text, it is word for word in every later request"
            command, what, works = ("pin", thread_id, "--text", self._words), self._words, True
        elif not works:
            why = f"a pin of message {position} keeps its words, and they do not have the value"
        call = f"conversation.pin({what!r})"
        return WayBack(kind="pin", works=works, why=why, command=command, call=call)

    def _place_of(self, position: int) -> str:
        """Return the message for a command: by its address, if there is a conversation whose id reads the same."""
        place = f"{self._thread_id}/{position}"
        if place.startswith(SCHEME) or self._core.log.existing({place}):
            return address_of(self._thread_id, position)
        return place

    def focus(self) -> WayBack:
        words = self._words or beginning(self._newest.line, _LONGEST_WORDS)
        why = "a summary with this focus preserves it if the summariser follows the focus"
        command = ("compact", self._thread_id, "--focus", words)
        call = f"conversation.compact(focus={words!r})"
        works = bool(self._loaded.state.summary)
        if not works:
            why = "nothing is summarised, so a focus changes nothing"
        return WayBack(kind="focus", works=works, why=why, command=command, call=call)

    def revert(self, timeline: Timeline, found: Occurrences, context: Context) -> Iterator[WayBack]:
        if not timeline.summaries:
            return
        newest, *older = reversed(timeline.summaries)
        before = older[0] if older else None
        back = [p for p in found.positions if newest.coverage.covers(p)]
        shown = [p for p in back if before is None or not before.coverage.covers(p)]
        older_has = before is not None and before.has_value and not newest.has_value
        works = bool(shown) or older_has
        if shown:
            why = f"undoing the newest compaction puts message {shown[-1]} back into the request"
        elif works:
            why = "undoing the newest compaction brings back an older summary, which has it"
        else:
            why = "undoing the newest compaction does not help: an older one covers these messages too"
        if works:
            why += self._due_after_revert(context)
        command = ("revert", self._thread_id)
        yield WayBack(
            kind="revert",
            works=works,
            why=why,
            command=command,
            call="conversation.revert_compaction()",
        )

    def _due_after_revert(self, context: Context) -> str:
        """Return a warning that the next request is compacted again, or an empty text."""
        state = self._loaded.state
        if state.summary is None or context.version != state.version:
            return ""
        before = self._core.log.load(self._thread_id, at=state.summary.version - 1)
        after = fold(revert_compaction(state, before.state, ""), state)
        tokens = context.tokens - state.tokens + after.tokens
        if tokens < context.budget.trigger:
            return ""
        return f"; with {tokens:,} tokens, the next request is due for another one, which may take it out again"

    def fork(self, left_at: int | None) -> Iterator[WayBack]:
        if left_at is None or left_at < 2:
            return
        at = left_at - 1
        why = f"a copy of the conversation at version {at}, when a message still showed it"
        command = ("fork", self._thread_id, "--at", str(at))
        yield WayBack(
            kind="fork", works=True, why=why, command=command, call=f"conversation.fork(at={at})"
        )

    @staticmethod
    def _without_command(kind: WayKind, why: str, *, works: bool) -> WayBack:
        return WayBack(kind=kind, works=works, why=why, command=(), call="")


def similar_lines(core: Core, thread_id: str, match: ValueMatch) -> tuple[SimilarLine, ...]:
    """Return the best lines that recall finds for the words of a value."""
    hits = ask(core, thread_id, match.value).hits[:_SIMILAR]
    return tuple(
        SimilarLine(
            position=hit.position,
            role=hit.role,
            score=hit.score,
            line=ValueMatch(_best_word(match.value, hit.text)).ignore_case().line(hit.text),
        )
        for hit in hits
    )


def _best_word(value: str, text: str) -> str:
    """Return the longest word of the value that a text has, or else the first word of the text."""
    there = [word for word in value.split() if word.casefold() in text.casefold()]
    return max(there, key=len, default=(text.split() or ["?"])[0])


def ask(core: Core, thread_id: str, words: str) -> Recalled:
    """Return what recall finds for these words."""
    options: RecallOptions = {"limit": MOST_HITS, "neighbours": 0}
    query = query_with_defaults(core, words[:_LONGEST_QUESTION], options, thread_id)
    return recall(core, thread_id, query)
