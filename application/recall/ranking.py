"""Rank passages, and read their words from the log."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from math import exp, inf
from typing import NamedTuple

from refold.application.ports.conversation_log import ConversationLog, LoggedEvent
from refold.application.ports.recall_index import NO_FILTERS, Filters, Found
from refold.application.runtime.core import Core
from refold.domain.events import MessageAppended
from refold.domain.lazy_pattern import lazy_pattern, lazy_property
from refold.domain.messages import readable_content

from .features import BY_WORDS, BY_WORDS_AND_MEANING, Features, Matches, weigh
from .passages import Passage
from .recall_query import Question
from .tokens import CJK, digest_of, tokens_of

WordPlace = tuple[str, int]
"""Thread id and version of an event."""


def words_of(core: Core, passages: Sequence[Passage]) -> Mapping[int, str]:
    """Return the words of passages from the log of this core."""
    return words_in(core.log, passages)


def words_in(log: ConversationLog, passages: Sequence[Passage]) -> Mapping[int, str]:
    """Return the words of passages by ``Passage.number``.

    A passage is left out if its message was erased or is not where the index says.

    Raises:
        LogError: the log cannot be read.
    """
    events = messages_in(log, ((p.thread_id, p.version) for p in passages))
    found: dict[int, str] = {}
    for passage in passages:
        logged = events.get((passage.thread_id, passage.version))
        if logged is not None and (text := text_in(passage, logged)):
            found[passage.number] = text
    return found


def text_in(passage: Passage, logged: LoggedEvent) -> str:
    """Return the words of a passage in its event, or an empty string if they are missing."""
    message = None if logged.erased else logged.message
    if message is None or message["position"] != passage.position:
        return ""
    text = readable_content(message["message"]["content"])[passage.start : passage.stop]
    return text if digest_of(text) == passage.digest else ""


def messages_at(core: Core, places: Iterable[WordPlace]) -> Mapping[WordPlace, LoggedEvent]:
    """Return the messages at these places from the log of this core."""
    return messages_in(core.log, places)


def messages_in(
    log: ConversationLog, places: Iterable[WordPlace]
) -> Mapping[WordPlace, LoggedEvent]:
    """Return the messages at these places as they are now; missing ones and other events are left out."""
    wanted = sorted(set(places))
    found: dict[WordPlace, LoggedEvent] = {}
    for thread_id, same in groupby(wanted, lambda place: place[0]):
        versions = {version for _, version in same}
        for logged in log.read_at(thread_id, versions):
            if logged.kind is MessageAppended:
                found[thread_id, logged.version] = logged
    return found


SHOWN = 6
"""Number of words to name in a reason."""
LONGEST = 40
"""Number of characters of a word to show."""

_WORD = lazy_pattern(rf"[{CJK}]+|(?:(?![{CJK}])\S)+")
_CJK = lazy_pattern(f"[{CJK}]")
_EDGES = lazy_pattern(r"^\W+|\W+$")


class Reasons:
    """Reasons for the passages found for one question."""

    def __init__(self, question: Question, said: Matches, cosines: Mapping[int, float]) -> None:
        self._question = question
        self._said = said
        self._cosines = cosines
        self._spelled: dict[frozenset[str], str] = {}

    @lazy_property
    def _words(self) -> Sequence[tuple[str, str, frozenset[str]]]:
        """Words of the question that have tokens, as they are and without marks, read only if a hit is shown."""
        asked, text = frozenset(self._question.tokens), self._question.text
        words = dict.fromkeys(text.split() if text.isascii() else _WORD.findall(text))
        strip = _EDGES.sub
        return [
            (word, word if word.isalnum() else strip("", word), tokens)
            for word in words
            if (tokens := asked.intersection(tokens_of(word)))
        ]

    def explain(self, passage: Passage) -> tuple[str, ...]:
        """Return the reasons for a passage, at least one phrase."""
        return tuple(self._phrases(passage)) or ("next to a match",)

    def _phrases(self, passage: Passage) -> Iterator[str]:
        said = self._said
        if words := self._words_in(passage):
            yield f"words: {words}"
        if said.question_before(passage):
            yield "answers the question before it"
        elif said.before(passage) > said.own(passage):
            yield "after a message with words of the question"
        if said.after(passage) > said.own(passage):
            yield "before a message with words of the question"
        if passage.role in self._question.roles:
            yield f"by the {passage.role}"
        if said.names_speaker(passage):
            yield "by the person named in the question"
        if any(day.fits(passage.at) for day in self._question.days):
            yield f"of {passage.at[:10]}"
        if (cosine := self._cosines.get(passage.number, 0.0)) > 0:
            yield f"near in meaning ({cosine:.2f})"

    def _words_in(self, passage: Passage) -> str:
        found = self._said.tokens(passage)
        if found not in self._spelled:
            self._spelled[found] = self._spell(found)
        return self._spelled[found]

    def _spell(self, found: frozenset[str]) -> str:
        """Return the words of the question that a passage contains, as they were asked."""
        words: list[str] = []
        for word, bare, tokens in self._words:
            if tokens & found:
                words += _runs(word, found) if _CJK.match(word) else [bare]
        return ", ".join(word[:LONGEST] for word in dict.fromkeys(words[:SHOWN]))


def _runs(word: str, found: frozenset[str]) -> list[str]:
    """Return the longest runs of Chinese characters whose pairs all match."""
    runs: list[str] = []
    last = -2
    for at in range(len(word) - 1):
        if word[at : at + 2] in found:
            if at - 1 == last:
                runs[-1] += word[at + 1]
            else:
                runs.append(word[at : at + 2])
            last = at
    return runs or [character for character in word if character in found]


NO_COSINES: Mapping[int, float] = {}
LEAST = 1e-6
"""Smallest score of a hit."""


class Ranked(NamedTuple):
    """A passage with its score."""

    passage: Passage
    score: float
    """Likelihood of an answer relative to the best passage: over 0, at most 1."""
    explain: Callable[[Passage], tuple[str, ...]]
    """Returns the reasons in short phrases; called only for the hits that are shown."""
    is_neighbour: bool = False
    """True if it only stands next to a match."""

    def why(self) -> tuple[str, ...]:
        """Return the reasons."""
        return self.explain(self.passage)


def rank(
    question: Question,
    found: Found,
    cosines: Mapping[int, float] = NO_COSINES,
    filters: Filters = NO_FILTERS,
    weights: Features[float] | None = None,
    limit: int = 50,
) -> list[Ranked]:
    """Return the best passage of each message, best first, for at most ``limit`` messages.

    Neighbours of the candidates are ranked as well, if ``filters`` accepts them: after all passages
    with words of the question and all other candidates. The result does not depend on the order of
    the passages; newer passages win ties. ``cosines`` are by passage number. By default, the weights
    are those for words, and with cosines those for words and meaning.
    """
    passages = all_passages(found)
    accepted = _accepted(filters, passages)
    if not accepted:
        return []
    said = Matches(question, found, passages)
    weights = weights or (BY_WORDS_AND_MEANING if cosines else BY_WORDS)
    scores = weigh(question, said, cosines, weights)
    explain = Reasons(question, said, cosines).explain
    direct = {*said.which(found.candidates), *chain.from_iterable(said.having.values())}
    return [
        Ranked(passages[at], likelihood, explain, at not in direct)
        for at, likelihood in islice(_best_of_each(said.places, accepted, scores, direct), limit)
    ]


def _best_of_each(
    places: Sequence[int], accepted: Sequence[int], scores: Sequence[float], direct: set[int]
) -> Iterator[tuple[int, float]]:
    """Yield the best passage of each message and its likelihood: first those that are no neighbours, best first.

    ``places`` has the message of each passage.
    """
    # Equal scores stay in their order.
    order = sorted(accepted, key=scores.__getitem__, reverse=True)
    order = [at for at in order if at in direct] + [at for at in order if at not in direct]
    best, least, seen = scores[order[0]], 1.0, set[int]()
    for at in order:
        if places[at] in seen:
            continue
        seen.add(places[at])
        # A neighbour comes last, even if its own score is higher.
        if (gap := scores[at] - best) < 0:
            least = min(least, max(exp(gap), LEAST))
        yield at, least


def _accepted(filters: Filters, passages: Sequence[Passage]) -> Sequence[int]:
    """Return which passages the filters accept, the last one first."""
    is_accepted = accepting(filters)
    return [at for at in range(len(passages) - 1, -1, -1) if is_accepted(passages[at])]


def all_passages(found: Found) -> list[Passage]:
    """Return the candidates and their neighbours without repetitions, in the order of the log."""
    every = [*chain.from_iterable(found.neighbours.values()), *found.candidates]
    by_number = {passage.number: passage for passage in every}
    return [*map(by_number.__getitem__, sorted(by_number))]


def accepts(filters: Filters, passage: Passage) -> bool:
    """Return whether the filters accept a passage."""
    return accepting(filters)(passage)


def accepting(filters: Filters) -> Callable[[Passage], bool]:
    """Return a function that returns whether the filters accept a passage."""
    only, roles, kinds, tools, since, until, positions, leave_out, _ = filters
    first, stop = positions or (0, inf)
    if is_only_by_thread(filters):
        return lambda passage: only is None or passage.thread_id == only

    def is_accepted(passage: Passage) -> bool:
        return (
            (only is None or passage.thread_id == only)
            and (not roles or passage.role in roles)
            and (not kinds or passage.kind in kinds)
            and (not tools or passage.tool in tools)
            and (since is None or passage.at >= since)
            and (until is None or passage.at < until)
            and (positions is None or first <= passage.position < stop)
            and passage.position not in leave_out
        )

    return is_accepted


def is_only_by_thread(filters: Filters) -> bool:
    """Return whether the filters refuse nothing but other conversations and what is not visible."""
    return filters._replace(thread_id=None, visible=None) == NO_FILTERS
