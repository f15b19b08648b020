"""What speaks for a passage: its words, and the conversation around it."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from math import log, sqrt
from typing import NamedTuple

from .asking import Question
from .index import Found
from .passages import Passage

SATURATION = 0.8
"""``k1`` of BM25: how soon a word that is repeated counts no more. Its ``b`` is 0: length does not count."""
SHORT = 40
"""Tokens. A longer message with a question mark in it says something as well."""
FEW = 16
"""Tokens that are looked for one by one; more are looked up in the set of a passage's tokens."""
LABEL = 0.15
"""A word that begins at least this share of the passages names who speaks."""

Place = tuple[str, int]
"""A conversation, and the position of a message, or the number of a session, in it."""


class Features(NamedTuple):
    """What speaks for a passage, each in a measure of its own; and what the weights of ranking are of."""

    own: float
    """The words of the passage itself."""
    before: float
    """Those of the message before it."""
    after: float
    """Those of the message after it."""
    answers: float
    """Those of the message before it, where that is a question."""
    earlier: float
    """Those of the message before that one."""
    session: float
    """Those of the best message found of the same session."""
    asks: float
    """It is a question itself, and little else."""
    speaker: float
    """It is by whom the question means: by role, or by the name at the head of the message."""
    day: float
    """It is of the day that the question names."""
    cosine: float
    """Nearness in meaning."""


class Said:
    """How much of what a question asks for was said in each passage, message and session."""

    def __init__(self, question: Question, found: Found, passages: Sequence[Passage]) -> None:
        self.passages = passages
        rarity = _rarity(question, found)
        self.tokens: dict[int, frozenset[str]] = {}
        """By number of the passage: which tokens of the question it has."""
        self.words: dict[int, float] = {}
        """By number of the passage: BM25 without regard to length."""
        self.names = _names_at_heads(question, passages)
        """Those who speak and are named in the question."""
        self._messages: dict[Place, float] = {}
        self._questions: dict[Place, float] = {}
        self._sessions: dict[Place, float] = {}
        for passage in passages:
            self._count(passage, rarity)

    def at(self, passage: Passage, distance: int) -> float:
        """In the message so many places further."""
        return self._messages.get((passage.thread_id, passage.position + distance), 0.0)

    def asked_before(self, passage: Passage) -> float:
        """In the message before it, if that is a question."""
        return self._questions.get((passage.thread_id, passage.position - 1), 0.0)

    def in_session(self, passage: Passage) -> float:
        """In the best message of its session."""
        return self._sessions[passage.thread_id, passage.session]

    def by_name(self, passage: Passage) -> bool:
        """Whether it is by somebody who is named in the question."""
        return head(passage) in self.names

    def _count(self, passage: Passage, rarity: Mapping[str, float]) -> None:
        few = len(rarity) < FEW
        there: Container[str] = passage.tokens if few else frozenset(passage.tokens.split())
        found: list[str] = []
        score = 0.0
        for token, weight in rarity.items():
            padded = f" {token} "
            if (padded if few else token) in there:
                found.append(token)
                count = passage.tokens.count(padded)
                score += weight * count * (SATURATION + 1) / (count + SATURATION)
        self.tokens[passage.number] = frozenset(found)
        self.words[passage.number] = score
        place = passage.thread_id, passage.position
        _raise(self._messages, place, score)
        _raise(self._sessions, (passage.thread_id, passage.session), score)
        if passage.is_question:
            _raise(self._questions, place, score)


def features_of(question: Question, said: Said, cosines: Mapping[int, float]) -> list[Features]:
    """The features of each passage of ``said``, standardised: the mean over the passages is 0, the deviation 1.

    A feature that all passages have alike is 0. A passage without a cosine has the mean of the others.
    """
    mean = sum(cosines.values()) / len(cosines) if cosines else 0.0
    rows = [
        Features(
            own=said.words[passage.number],
            before=said.at(passage, -1),
            after=said.at(passage, 1),
            answers=said.asked_before(passage),
            earlier=said.at(passage, -2),
            session=said.in_session(passage),
            asks=passage.is_question and passage.tokens.count(" ") < SHORT,
            speaker=(passage.role in question.roles) + said.by_name(passage),
            day=any(day.fits(passage.at) for day in question.days),
            cosine=cosines.get(passage.number, mean),
        )
        for passage in said.passages
    ]
    return [
        Features(*row) for row in zip(*map(_standardised, zip(*rows, strict=True)), strict=True)
    ]


def head(passage: Passage) -> str:
    """The token at the head of a message; empty further down in it."""
    return passage.tokens[1 : passage.tokens.find(" ", 1)] if passage.part == 0 else ""


def _raise(scores: dict[Place, float], place: Place, score: float) -> None:
    scores[place] = max(score, scores.get(place, 0.0))


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
    heads = Counter(map(head, passages))
    return frozenset(n for n in question.names if heads[n] >= LABEL * len(passages))


def _standardised(values: Sequence[float]) -> list[float]:
    if min(values) == max(values):
        return [0.0] * len(values)
    mean = sum(values) / len(values)
    deviation = sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    return [(value - mean) / deviation for value in values]
