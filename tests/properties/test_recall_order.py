"""Postings of the recall index: the best passages are those of a plain definition, and nothing else is read."""

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.recall.tokens import line_of, tokens_of
from refold.infrastructure.projection_store.tables import SQLiteTables
from refold.infrastructure.recall import index_search as finding
from refold.infrastructure.recall import index_tables as folding
from refold.infrastructure.recall.index_tables import (
    LOCAL_BITS,
    POSTINGS,
    SEGMENTS,
    BatchTexts,
    create_tables,
    local_of,
    pack_posting,
    place_of,
    segment_of,
    term_of,
)
from refold.infrastructure.recall.proved_counts import group_by_segment
from refold.infrastructure.recall.segments import Growth
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite

TOKENS = "abcdefg"
NUMBERS = [segment << LOCAL_BITS | local for segment in range(4) for local in range(0, 90, 3)]
having_tokens = st.sets(st.sampled_from(TOKENS), min_size=1)


@st.composite
def passages(draw: st.DrawFn) -> dict[int, set[str]]:
    """Draw passages of which many have the same tokens, so that the rarest token is not always among the best."""
    kinds = draw(st.lists(having_tokens, min_size=1, max_size=5))
    chosen = draw(st.lists(st.sampled_from(kinds), max_size=len(NUMBERS)))
    return dict(zip(draw(st.permutations(NUMBERS)), chosen, strict=False))


@contextmanager
def postings(having: Mapping[int, set[str]], stop: int) -> Generator[SQLiteTables]:
    """Yield tables with the postings of the passages before ``stop``."""
    with closing(SQLiteTables(open_sqlite(":memory:", isolation_level=None))) as db:
        create_tables(db)
        for segment in sorted({segment_of(number) for number in having if number < stop}):
            db.insert(SEGMENTS, [(segment, 0, 0, 0, 0, 0)])
            for token in TOKENS:
                found = [n for n in sorted(having) if segment_of(n) == segment and n < stop]
                places = [local_of(number) for number in found if token in having[number]]
                if places:
                    row = pack_posting(place_of(segment, term_of(token)), places)
                    db.insert(POSTINGS, [row])
        yield db


def plain(having: Mapping[int, set[str]], scope: set[int], wanted: int) -> list[int]:
    """Return the passages in their order, by one token after another, the rarest first."""
    counts = {token: sum(token in its for its in having.values()) for token in TOKENS}
    weights: dict[int, float] = {}
    for token in sorted(filter(counts.get, TOKENS), key=counts.__getitem__):
        is_common = counts[token] > finding.COMMON and len(weights) > wanted * finding.ENOUGH
        for number, its in having.items():
            if token in its and number in (weights if is_common else scope):
                more = math.log(1 + len(having) / counts[token])
                weights[number] = weights.get(number, 0.0) + more
    return sorted(weights, key=lambda number: (-weights[number], -number))


@given(
    having=passages(),
    scope=st.none() | st.sets(st.sampled_from(NUMBERS)),
    common=st.integers(0, 20),
    wanted=st.integers(1, 6),
    at_once=st.integers(1, 4),
    stop=st.sampled_from(NUMBERS),
)
def test_the_best_are_those_of_the_plain_definition(
    having: Mapping[int, set[str]],
    scope: set[int] | None,
    common: int,
    wanted: int,
    at_once: int,
    stop: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch, postings(having, stop) as db:
        patch.setattr(finding, "COMMON", common)
        patch.setattr(finding, "ENOUGH", 2)
        patch.setattr(finding, "AT_ONCE", at_once)
        expected = plain(having, set(having) if scope is None else scope, wanted)
        places: dict[int, set[int]] | None = None
        if scope is not None:
            places = {}
            group_by_segment(scope, places)
        counts = {token: sum(token in its for its in having.values()) for token in TOKENS}
        frequencies = {token: count for token, count in counts.items() if count}
        late = [number for number in sorted(having) if number >= stop]
        waiting = {term_of(token): [n for n in late if token in having[n]] for token in TOKENS}

        def found(most: int | None) -> Sequence[int]:
            total = len(having)
            return [*finding.best_first(db, frequencies, places, total, wanted, most, waiting)]

        assert found(None) == expected
        for most in (1, wanted, 2 * wanted):
            assert found(most)[:most] == expected[:most]


WORDS = st.lists(
    st.sampled_from(["port", "Port", "a/b.c", "don't", "--", "5,433", "端口", "é", "x" * 70, "a"])
).map(" ".join)
DATES = st.sampled_from(["2026 March 7", "2025 December 24"])


@given(st.lists(st.lists(st.tuples(WORDS | st.text(max_size=9), DATES), max_size=9), max_size=3))
def test_tokens_grouped_at_once_are_those_of_each_passage(
    segments: list[list[tuple[str, str]]],
) -> None:
    pytest.importorskip("numpy")
    texts, growths = BatchTexts(), list[Growth]()
    for segment, said in enumerate(segments):
        growths.append(Growth(segment))
        for number, (words, date) in enumerate(said):
            line = texts.line_of(words, date)
            assert line == line_of(words, date)
            if line:
                growths[-1].take(segment << LOCAL_BITS | 3 * number, line, 1)
    first = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "MANY", 1)
        for growth in growths:
            places = growth.places
            expected = {term: [*found] for term, found in growth.places_by_term().items()}
            found = texts.places_by_term(first, places)
            assert (found is not None) == bool(places)
            assert {term: [*these] for term, these in (found or {}).items()} == expected
            assert [*(found or {})] == sorted(expected)
            first += len(places)
    texts.done()


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_a_line_has_no_token_that_its_text_lacks(lines: list[str]) -> None:
    """Standing recall passes over texts that have too few words of the question for any line."""
    whole = set(tokens_of("\n".join(lines)))
    assert all(whole.issuperset(tokens_of(line)) for line in lines)
