"""Lines that standing recall adds: those that are passed over could not be related to the question."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from refold.application.ports.recall_index import Found
from refold.application.recall import standing_recall
from refold.application.recall.recall_query import ask
from refold.application.recall.tokens import pieces_with

WORDS = [f"word{letter}" for letter in "abcdefgh"] + ["src/a.py", "端口", "NAÏVE", "the"]
LINES = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


@given(
    question=st.lists(st.sampled_from(WORDS), min_size=1, max_size=10).map(" ".join),
    counts=st.dictionaries(st.sampled_from(WORDS), st.integers(1, 1_000)),
    lines=st.lists(LINES, max_size=6),
)
def test_a_related_line_has_a_word_that_is_needed(
    question: str, counts: Mapping[str, int], lines: list[str]
) -> None:
    asked = ask(question)
    frequencies = {token: counts.get(word, 3) for word in WORDS for token in ask(word).tokens}
    found = Found((), {}, {t: frequencies[t] for t in asked.tokens if t in frequencies}, 1_000)
    weights = standing_recall._Weights(asked, found)  # pyright: ignore[reportPrivateUsage]
    marks = pieces_with(weights.needed, "\n".join(lines))
    for line in lines:
        assert any(mark in line for mark in marks) or not weights.is_related(line)
