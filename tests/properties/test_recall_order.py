"""Postings of the recall index: the best passages are those of a plain definition, and nothing else is read."""

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.recall.passages import PARTS, Passage
from refold.application.recall.tokens import line_of, tokens_of
from refold.infrastructure.projection_store.checkpoint import Total
from refold.infrastructure.projection_store.tables import SQLiteTables
from refold.infrastructure.recall import index_search as finding
from refold.infrastructure.recall import index_tables, passage_texts
from refold.infrastructure.recall.index_search import Postings
from refold.infrastructure.recall.index_tables import (
    LOCAL_BITS,
    create_tables,
    term_of,
)
from refold.infrastructure.recall.passage_texts import NumberedTexts, PlainTexts
from refold.infrastructure.recall.posted_runs import PostedRuns, group_by_segment
from refold.infrastructure.recall.posting_runs import Grouped, merged
from refold.infrastructure.recall.segments import SegmentPostings, group_tokens
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite
from tests.support.effort import one_in

TOKENS = "abcdefg"
NUMBERS = [
    segment << LOCAL_BITS | event * PARTS for segment in range(4) for event in range(0, 90, 3)
]
having_tokens = st.sets(st.sampled_from(TOKENS), min_size=1)


@st.composite
def passages(draw: st.DrawFn) -> dict[int, set[str]]:
    """Draw passages of which many have the same tokens, so that the rarest token is not always among the best."""
    kinds = draw(st.lists(having_tokens, min_size=1, max_size=5))
    chosen = draw(st.lists(st.sampled_from(kinds), max_size=len(NUMBERS)))
    return dict(zip(draw(st.permutations(NUMBERS)), chosen, strict=False))


def check_lines(lines: Sequence[tuple[str, int]], said: Sequence[tuple[str, str]]) -> None:
    assert [line for line, _ in lines] == [line_of(words, date) for words, date in said]
    assert all(count == len(line.split()) for line, count in lines if line)


def in_utf8(said: Sequence[tuple[str, str]]) -> list[tuple[bytes, str]]:
    return [(words.encode("utf-8", "surrogatepass"), date) for words, date in said]


def passage_with(number: int, line: str) -> Passage:
    return Passage(number, "t", 0, 1, 0, "user", "text", "", "", 0, 0, 0, False, line, 1, "")


def rows(db: SQLiteTables) -> list[object]:
    """All runs and postings."""
    return [db.execute(f"SELECT * FROM {name}").fetchall() for name in ("runs", "postings")]


@contextmanager
def postings(having: Mapping[int, set[str]], stops: Sequence[int]) -> Generator[SQLiteTables]:
    """Yield tables with the postings of the passages before the last stop, written up to one after another."""
    with closing(SQLiteTables(open_sqlite(":memory:", isolation_level=None))) as db:
        create_tables(db)
        begin = 0
        for stop in stops:
            written = SegmentPostings()
            for number in sorted(having):
                if begin <= number < stop:
                    words = " ".join(sorted(having[number]))
                    ((line, _),) = written.lines_of([(words.encode(), "2026 May 7")])
                    written.take([(*passage_with(number, line), "t", number + 1)])
            written.write(db, begin, stop)
            begin = stop
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
    stops=st.sets(st.sampled_from(NUMBERS), min_size=1).map(sorted),
)
def test_the_best_are_those_of_the_plain_definition(
    having: Mapping[int, set[str]],
    scope: set[int] | None,
    common: int,
    wanted: int,
    at_once: int,
    stops: Sequence[int],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_tables, "WAITING", 1)
        patch.setattr(index_tables, "MERGED", 16)
        with postings(having, stops) as db:
            compare(db, patch, having, scope, common, wanted, at_once, stops[-1])


@one_in(3)
@given(
    having=passages().filter(bool),
    stops=st.sets(st.sampled_from(NUMBERS), min_size=1).map(sorted),
    data=st.data(),
)
def test_runs_that_grew_are_those_that_are_written_at_once(
    having: dict[int, set[str]], stops: Sequence[int], data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_tables, "WAITING", 1)
        patch.setattr(index_tables, "MERGED", 16)
        with postings(having, stops) as grown, postings(having, stops[-1:]) as made:
            assert rows(grown) == rows(made)
            erased = data.draw(st.sets(st.sampled_from(sorted(having))))
            for number in erased:
                line = line_of(" ".join(sorted(having[number])), "2026 May 7")
                gone = Total(1, number + 1)
                SegmentPostings().remove(grown, [passage_with(number, line)], gone, stops[-1])
            left = {number: its for number, its in having.items() if number not in erased}
            with postings(left, stops) as without:
                assert rows(grown) == rows(without)


def compare(
    db: SQLiteTables,
    patch: pytest.MonkeyPatch,
    having: Mapping[int, set[str]],
    scope: set[int] | None,
    common: int,
    wanted: int,
    at_once: int,
    stop: int,
) -> None:
    """Compare the best passages with those of the definition."""
    patch.setattr(finding, "COMMON", common)
    patch.setattr(finding, "ENOUGH", 2)
    patch.setattr(finding, "AT_ONCE", at_once)
    expected = plain(having, set(having) if scope is None else scope, wanted)
    places: dict[int, set[float]] | None = None
    if scope is not None:
        places = {}
        group_by_segment(scope, places)
    counts = {token: sum(token in its for its in having.values()) for token in TOKENS}
    frequencies = {token: count for token, count in counts.items() if count}
    late = [number for number in sorted(having) if number >= stop]
    waiting = {term_of(token): [n for n in late if token in having[n]] for token in TOKENS}
    posted = PostedRuns()
    posted.read(db)
    counted = posted.counts(db, [term_of(token) for token in TOKENS])
    early = {token: counts[token] - len(waiting[term_of(token)]) for token in TOKENS}
    assert counted == {term_of(token): count for token, count in early.items()}

    def found(most: int | None) -> Sequence[int]:
        total, source = len(having), Postings(db, posted, waiting)
        return [*finding.best_first(source, frequencies, places, total, wanted, most)]

    assert found(None) == expected
    for most in (1, wanted, 2 * wanted):
        assert found(most)[:most] == expected[:most]


def test_the_passages_of_a_term_are_kept_from_the_second_time_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Most terms are asked for once. The garbage collector would look at all their passages."""
    monkeypatch.setattr(index_tables, "WAITING", 1)
    having = {number: {"a"} for number in NUMBERS[:5]}
    with postings(having, [NUMBERS[5]]) as db:
        posted = PostedRuns()
        posted.read(db)
        first, second, third = (posted.whole(db, term_of("a")) for _ in range(3))
    assert first == second == {number / PARTS for number in having}
    assert first is not second
    assert second is third


WORDS = st.lists(
    st.sampled_from(
        [
            "port",
            "Port",
            "a/b.c",
            "don't",
            "--",
            "5,433",
            "端口",
            "é",
            "x" * 70,
            "a",
            "eight.by",
            "y" * 16,
            "src/refold/tokens",
        ]
    )
).map(" ".join)
DATES = st.sampled_from(["2026 March 7", "2025 December 24"])


@given(st.lists(st.tuples(WORDS | st.text(max_size=90), DATES), max_size=9), st.integers(2, 6))
def test_texts_that_are_looked_up_at_once_have_the_same_tokens(
    said: list[tuple[str, str]], bits: int
) -> None:
    pytest.importorskip("numpy")
    with pytest.MonkeyPatch.context() as patch:
        # So few slots that most texts find none.
        patch.setattr(passage_texts, "BITS", bits)
        texts = NumberedTexts()
        for _ in range(3):
            check_lines(texts.lines_of(in_utf8(said)), said)
    read = [token for number in texts.read for token in texts.known.tokens[number]]
    assert read == 3 * [token for words, date in said for token in line_of(words, date).split()]


@given(
    st.lists(st.lists(st.tuples(WORDS | st.text(max_size=9), DATES), max_size=9), max_size=3),
    st.sampled_from([3, 44]),
    st.booleans(),
    st.sampled_from([0, 32]),
)
def test_tokens_grouped_at_once_are_those_of_each_passage(
    segments: list[list[tuple[str, str]]], term_bits: int, at_once: bool, narrow: int
) -> None:
    if at_once:
        pytest.importorskip("numpy")
    with pytest.MonkeyPatch.context() as patch:
        # So few bits that tokens share a term.
        patch.setattr(index_tables, "TERM", (1 << term_bits) - 1)
        patch.setattr(passage_texts, "NARROW", narrow)
        term_of.cache_clear()
        compare_groups(NumberedTexts() if at_once else PlainTexts(), segments)
    term_of.cache_clear()


def compare_groups(
    texts: NumberedTexts | PlainTexts, segments: list[list[tuple[str, str]]]
) -> None:
    batch = list[list[tuple[int, str]]]()
    for said in segments:
        lines = texts.lines_of(in_utf8(said))
        check_lines(lines, said)
        batch.append([(3 * number, line) for number, (line, _) in enumerate(lines) if line])
    first, parts = 0, list[Grouped]()
    for passages in batch:
        expected = group_tokens(passages)
        for _ in range(2):
            assert texts.grouped(first, [place for place, _ in passages]) == expected
        parts.append(group_tokens((place + 100 * len(parts), line) for place, line in passages))
        first += len(passages)
    moved = [(p + 100 * number, line) for number, said in enumerate(batch) for p, line in said]
    assert not parts or merged(parts) == group_tokens(moved)


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_a_line_has_no_token_that_its_text_lacks(lines: list[str]) -> None:
    """Standing recall passes over texts that have too few words of the question for any line."""
    whole = set(tokens_of("\n".join(lines)))
    assert all(whole.issuperset(tokens_of(line)) for line in lines)
