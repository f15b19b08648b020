"""What speaks for a passage: its words, and the conversation around it."""

from collections.abc import Mapping, Sequence
from math import log, sqrt
from operator import mul
from typing import Generic, NamedTuple, TypeVar

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
