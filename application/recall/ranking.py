"""Ranking: which of the passages found answer a question best, judged by the conversation around them."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from math import exp, inf
from typing import NamedTuple

from .asking import Question
from .features import Said, features_of
from .index import NO_FILTERS, Filters, Found
from .passages import Passage
from .reasons import Reasons
from .weights import BY_WORDS, BY_WORDS_AND_MEANING

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
