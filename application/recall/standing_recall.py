"""Standing recall: lines of earlier messages out of sight that match what the user says now."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import log
from typing import NamedTuple

from refold.application.api.results import Context
from refold.application.conversation.entries import Entry
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.recalled_texts import RecalledText
from refold.application.ports.recall_index import Filters, Found
from refold.application.rendering.render import recalled_text
from refold.application.rendering.turn_builder import FRAME_TOKENS
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import conversation, plain_logger, raised
from refold.domain.events import LinesRecalled, RecalledLine, Speaker
from refold.domain.facts.cues import redact
from refold.domain.facts.speech import is_program_text, user_words
from refold.domain.lazy_pattern import lazy_pattern, lazy_property
from refold.domain.messages import Message, readable, said
from refold.domain.value import build_unvalidated

from .hits import ContextVisibility, excerpt
from .passages import Passage, with_white_space
from .ranking import accepting, all_passages, messages_at, rank, text_in
from .recall_query import Question, ask
from .tokens import digest_of, pieces_with, wanted_in

MOST_LINES = 8
MOST_TRIED = 4 * MOST_LINES
"""Lines that are tried, because the best ones may say the same or be too long."""
LONGEST_LINE = 60
"""Tokens of a line; a longer one is cut around the words that match."""
LONGEST_QUESTION = 2_000
"""Characters of a message to search for; of a longer one, the beginning and the end are used."""
CANDIDATES = 50
RANKED = 30
"""Messages whose lines come first, if several match as well."""
LEAST_ROOM = 80
"""Tokens below which nothing is looked up."""

MOST_BYTES = 40_000
"""Bytes of the recalled lines of a message, at most."""

RELATED = 0.6
"""Share of the weight of a question's words that a line must have, and of the best line's weight."""
FEW_WORDS = 4.0
"""Number of rare words whose weight is enough at any length of the question."""
LEAST_WORDS = 2
"""Tokens of the question that a line must have."""
ROUNDING = 1e-6
"""Difference of equal weights that were added in another order, at most."""

logger = plain_logger(__name__)


class _Line(NamedTuple):
    """A line that matches, and how well."""

    weight: float
    rank: int
    """Place of its message among the hits, 0 for the best."""
    found: RecalledText


def look_up_lines(
    core: Core, loaded: LoadedConversation, entry: Entry, context: Context
) -> LinesRecalled | None:
    """Return the lines to add to the newest message of the user, or None if nothing is clearly related.

    ``entry`` is that message. Failures of the search are logged and ignored, because no turn may fail for
    them. ``context`` is the request without lines, of the stored version.
    """
    room = min(core.settings.standing_recall, context.budget.limit - context.tokens)
    if room < LEAST_ROOM or context.bytes + MOST_BYTES > context.budget.byte_limit:
        return None
    if not core.asked.looks_up(loaded.thread_id, entry.position, loaded.state):
        return None
    if is_program_text(said(entry.message)):
        return None
    try:
        lines = _Search(core, loaded, entry, context).lines(room)
    except Exception as error:  # The request can be sent without lines after any error.
        logger.warning(
            "%s: no lines could be recalled: %s", conversation(loaded.thread_id), raised(error)
        )
        return None
    if not lines:
        return None
    core.recalled.remember(loaded.thread_id, lines)
    return LinesRecalled(
        position=entry.position,
        message_id=entry.message_id,
        lines=tuple(one.line for one in lines),
        tokens=core.counter.count_text(recalled_text(lines)) + FRAME_TOKENS,
        asked_at=context.version,
    )


def lines_for(
    core: Core, loaded: LoadedConversation, words: str, context: Context
) -> Sequence[RecalledText]:
    """Return the lines that a next message of the user with these words would get. Nothing is recorded.

    ``context`` is the request without that message.

    Raises:
        LogError: the log cannot be read.
    """
    room = min(core.settings.standing_recall, context.budget.limit - context.tokens)
    if room < LEAST_ROOM:
        return ()
    message = Message(role="user", content=words)
    entry = Entry(loaded.state.length, "", message, tokens=0, thinking=0, stop_reason=None)
    return _Search(core, loaded, entry, context).lines(room)


class _Search:
    """The search for the lines of one request."""

    def __init__(
        self, core: Core, loaded: LoadedConversation, entry: Entry, context: Context
    ) -> None:
        self._core = core
        self._count = core.counter.count_text
        self._visible = ContextVisibility(loaded)
        words = user_words(said(entry.message))
        half = LONGEST_QUESTION // 2
        words = words if len(words) <= 2 * half else f"{words[:half]} {words[-half:]}"
        self._question: Question = ask(words)
        self._before = entry.position
        self._thread_id = loaded.thread_id
        self._loaded = loaded
        self._context = context

    @lazy_property
    def _shown(self) -> str:
        """Everything that refold shows already: summary, ledger, index, and lines of earlier messages."""
        earlier = self._core.recalled.find(self._core.log, self._loaded).values()
        return "\n".join([*self._context.memory, *(o.text for found in earlier for o in found)])

    def lines(self, room: int) -> list[RecalledText]:
        """Return the best lines that fit ``room`` tokens, the oldest first."""
        if not self._question.has_words or not self._question.tokens:
            return []
        best = sorted(
            self._matches(), key=lambda one: (-one.weight, one.rank, one.found.line.start)
        )
        chosen: list[RecalledText] = []
        known = set[str]()
        for weight, _, found in best[:MOST_TRIED]:
            if len(chosen) == MOST_LINES or weight < RELATED * best[0].weight:
                break
            words = _words_alone(found.text)
            size = self._count(recalled_text([*chosen, found])) + FRAME_TOKENS
            if words not in known and size <= room:
                chosen.append(found)
                known.add(words)
        return sorted(chosen, key=lambda one: (one.line.position, one.line.start))

    def _matches(self) -> Sequence[_Line]:
        filters = self._out_of_sight()
        judge = _Judge(self._question)
        found = self._core.recall.index.find(
            self._question.tokens, filters, limit=CANDIDATES, judge=judge
        )
        # Most questions match no line. For these, no neighbours are read and nothing is ranked.
        if not judge.is_any_related:
            return ()
        weights, is_accepted = _Weights(self._question, found), accepting(filters)
        related = [
            passage
            for passage in all_passages(found)
            if is_accepted(passage) and weights.may_relate(passage)
        ]
        lines = list(self._lines_of(related, weights))
        if not lines:
            return ()
        ranked = [one.passage for one in rank(self._question, found, filters=filters, limit=RANKED)]
        # Of a long message only the best passage is ranked, and another one may have the line.
        listed = dict.fromkeys(passage.number for passage in [*ranked, *found.candidates])
        places = {number: place for place, number in enumerate(listed)}
        return [
            _Line(weight, places[number], line)
            for weight, number, line in lines
            if number in places
        ]

    def _out_of_sight(self) -> Filters:
        """Return filters that leave out what the request shows in full."""
        # The newest messages are a run, and need not be looked at one by one.
        stop = self._visible.start_of_run(self._before)
        leave_out = self._visible.full_positions(stop)
        return Filters(self._thread_id, positions=(0, stop), leave_out=leave_out)

    def _lines_of(
        self, passages: Sequence[Passage], weights: "_Weights"
    ) -> Iterator[tuple[float, int, RecalledText]]:
        """Yield the lines of these passages that match: weight, number of the passage, and the line."""
        events = messages_at(self._core, ((p.thread_id, p.version) for p in passages))
        for passage in passages:
            logged = events.get((passage.thread_id, passage.version))
            words = "" if logged is None else text_in(passage, logged)
            stretches = list(self._stretches(passage, words, weights))
            message = logged.said if logged is not None and stretches else None
            if message is None:
                continue
            safe, speaker = redact(readable(message)[_around(passage)]), _speaker(passage, message)
            for start, stop in stretches:
                text = words[start:stop]
                if text not in safe or text in self._shown:
                    continue  # Alone, a line does not show that it has a credential.
                if self._visible.shows(passage.position, text):
                    continue
                line = build_unvalidated(
                    RecalledLine,
                    position=passage.position,
                    version=passage.version,
                    start=passage.start + start,
                    stop=passage.start + stop,
                    digest=digest_of(text),
                    speaker=speaker,
                )
                yield weights.of(text), passage.number, RecalledText(line, text)

    def _stretches(
        self, passage: Passage, words: str, weights: "_Weights"
    ) -> Iterator[tuple[int, int]]:
        """Yield the lines of a passage that are clearly related, cut around their matches."""
        if passage.kind == "call":
            words = with_white_space(words)
        for start, stop in lines_with(pieces_with(weights.needed, words), words):
            line = words[start:stop]
            if not weights.is_related(line):
                continue
            if self._count(line) > LONGEST_LINE:
                tokens = self._question.tokens
                cut = excerpt(line, tokens, LONGEST_LINE, self._count, passage.kind)
                start, stop = start + cut[0], start + cut[1]
            text = words[start:stop]
            start += len(text) - len(text.lstrip())
            stop -= len(text) - len(text.rstrip())
            if weights.is_related(words[start:stop]):
                yield start, stop


_CREDENTIAL = 400
"""Characters around a passage that are read to recognise a credential."""


def _around(passage: Passage) -> slice:
    """Return the place of a passage with as much text around it as a credential may need."""
    return slice(max(0, passage.start - _CREDENTIAL), passage.stop + _CREDENTIAL)


def lines_with(marks: Iterable[str], text: str) -> Sequence[tuple[int, int]]:
    """Return where the lines that have one of the marks begin and end, in their order."""
    found = set[tuple[int, int]]()
    for mark in marks:
        place = text.find(mark)
        while place >= 0:
            stop = text.find("\n", place)
            stop = len(text) if stop < 0 else stop
            found.add((text.rfind("\n", 0, place) + 1, stop))
            place = text.find(mark, stop)
    return sorted(found)


_NUMBERED = lazy_pattern(r"^\W*\d+\W*")


def _words_alone(text: str) -> str:
    """Return a text without its line number, white space and marks, to find lines that say the same."""
    return "".join(filter(str.isalnum, _NUMBERED.sub("", text).casefold()))


def _speaker(passage: Passage, message: Message) -> Speaker:
    if passage.kind == "result":
        return "tool"
    if message.role == "user" and message.author in ("program", "tool"):
        return "program"
    return message.role


_NOTHING: Sequence[float] = ()


class _Weights:
    """Weights of a question's words: rare words weigh more."""

    def __init__(self, question: Question, found: Found) -> None:
        self._weights = {t: log(1 + found.total / (1 + n)) for t, n in found.frequencies.items()}
        self._there: dict[int, Sequence[float]] = {}
        """Weights of the tokens that a passage may have, by its number, as far as the index knows them."""
        for token, numbers in found.having.items():
            weight = self._weights[token]
            for number in numbers:
                self._there[number] = (*self._there.get(number, _NOTHING), weight)
        self._others = [
            (f" {token} ", weight)
            for token, weight in self._weights.items()
            if token not in found.having
        ]
        rare = log(1 + found.total / 2)
        known = sum(self._weights.get(token, rare) for token in question.tokens)
        self._least = max(rare, RELATED * min(known, FEW_WORDS * rare))
        self._wanted = frozenset(self._weights)
        self.needed = frozenset(self._heaviest())
        """Tokens of which each related line has one, because the others together weigh too little.

        Without any, no line is related.
        """
        self._known: tuple[str, tuple[str, ...]] = "", ()
        """The text that was read last, with its tokens, because a line is judged and then weighed."""

    def _heaviest(self) -> Iterator[str]:
        left = self._least - ROUNDING
        if len(self._weights) < LEAST_WORDS:
            return
        for token in sorted(self._weights, key=self._weights.__getitem__):
            left -= self._weights[token]
            if left <= 0:
                yield token

    def of(self, text: str) -> float:
        """Return the weight of the question's words in a text."""
        return sum(self._weights[token] for token in self._tokens(text))

    def is_related(self, text: str) -> bool:
        """Return whether a text has so many of the words that it is clearly about the same."""
        return len(self._tokens(text)) >= LEAST_WORDS and self.of(text) >= self._least

    def may_relate_without(self, absent: Collection[str]) -> bool:
        """Return whether a line without these tokens may be related."""
        there = [weight for token, weight in self._weights.items() if token not in absent]
        return len(there) >= LEAST_WORDS and sum(there) >= self._least - ROUNDING

    def may_relate(self, passage: Passage) -> bool:
        """Return whether a line of a passage may be about the same. No line has more words than all of them."""
        there = self._there.get(passage.number, _NOTHING)
        if self._others:
            line = passage.tokens
            there = [*there, *(weight for token, weight in self._others if token in line)]
        return len(there) >= LEAST_WORDS and sum(there) >= self._least - ROUNDING

    def _tokens(self, text: str) -> tuple[str, ...]:
        """Return the tokens of the question that a text has, sorted, so that equal texts weigh the same."""
        if self._known[0] != text:
            self._known = text, tuple(sorted(wanted_in(self._wanted, text)))
        return self._known[1]


class _Judge:
    """Ends a search that will find no related line, as most do."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.is_any_related = False
        """True if a candidate may have a related line."""

    def may_match(self, found: Found, absent: Collection[str]) -> bool:
        """Return whether any passage may have a related line."""
        return _Weights(self._question, found).may_relate_without(absent)

    def wants_neighbours(self, found: Found) -> bool:
        """Return whether a candidate may have a related line."""
        weights = _Weights(self._question, found)
        self.is_any_related = any(map(weights.may_relate, found.candidates))
        return self.is_any_related
