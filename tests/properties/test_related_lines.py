"""Lines that standing recall adds: those that are passed over could not be related to the question."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from refold.application.ports.recall_index import Found
from refold.application.recall import standing_recall
from refold.application.recall.recall_query import ask
from refold.application.recall.standing_recall import lines_with
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
    text = "\n".join(lines)
    marked = [
        text[start:stop] for start, stop in lines_with(pieces_with(weights.needed, text), text)
    ]
    related = [line for line in lines if weights.is_related(line)]
    assert [line for line in marked if weights.is_related(line)] == related


@given(st.lists(st.text("ab\n", min_size=1, max_size=3), max_size=4), st.text("ab \n"))
def test_lines_with_marks_are_found_in_their_order(marks: list[str], text: str) -> None:
    marks = [mark for mark in marks if "\n" not in mark]
    lines, start = list[tuple[int, int]](), 0
    for line in text.split("\n"):
        if any(mark in line for mark in marks):
            lines.append((start, start + len(line)))
        start += len(line) + 1
    assert lines_with(marks, text) == lines
