"""Ranking: which of the passages found answer a question best, judged by the conversation around them."""

from collections.abc import Mapping, Sequence
from math import exp
from typing import NamedTuple

from .asking import Question
from .features import Features, features_of
from .index import NO_FILTERS, Filters, Found
from .passages import Passage
from .weights import WEIGHTS

NO_COSINES: Mapping[int, float] = {}


class Ranked(NamedTuple):
    """A passage and how well it answers."""

    passage: Passage
    score: float
    """Relative to the best one's: over 0, at most 1."""
    why: tuple[str, ...]
    """In short phrases for people."""


def ranked(
    question: Question,
    found: Found,
    cosines: Mapping[int, float] = NO_COSINES,
    filters: Filters = NO_FILTERS,
) -> list[Ranked]:
    """The best passage of each message, best first; messages beside those found are among them.

    ``cosines`` by number of the passage. ``filters`` are those that were asked with: what stands beside
    a passage need not pass them.
    """
    passages = sorted(
        {p.number: p for p in (*found.candidates, *(p for ps in found.neighbours.values() for p in ps))}.values(),
        key=lambda p: p.number,
    )
    rows = features_of(question, found, passages, cosines)
    scored = sorted(
        ((sum(w * v for w, v in zip(WEIGHTS, row, strict=True)), -p.number, p) for row, p in zip(rows, passages, strict=True)),
        reverse=True,
    )
    best: dict[tuple[str, int], Ranked] = {}
    for score, _, passage in scored:
        key = (passage.thread_id, passage.position)
        if key not in best:
            best[key] = Ranked(passage, exp(score - scored[0][0]), ())
    return list(best.values())
