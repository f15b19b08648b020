"""Rows of postings: the terms of a row and their places."""

import sys
from array import array

from hypothesis import given
from hypothesis import strategies as st

from refold.infrastructure.recall.index_tables import TERM, Bucket

terms = st.integers(0, TERM)


def bucket_of(counts: dict[int, int]) -> Bucket:
    """A row with these terms and how many places each has."""
    ordered = sorted(counts)
    content = array("Q", ordered).tobytes() + array("I", [counts[t] for t in ordered]).tobytes()
    return Bucket(0, content)


@given(st.dictionaries(terms, st.integers(1, 1_000), max_size=60), st.lists(terms, max_size=20))
def test_each_term_is_found_where_its_places_are(counts: dict[int, int], others: list[int]) -> None:
    bucket, begin = bucket_of(counts), 0
    for term in sorted(counts):
        assert bucket.find(term) == (begin, begin + counts[term])
        begin += counts[term]
    for other in set(others) - counts.keys():
        assert bucket.find(other) == (0, 0)
        assert not bucket.has(other)


def test_bytes_across_two_terms_are_no_term() -> None:
    low, high = 0x0102_0304_0506, 0x0A0B_0C0D_0E0F
    stored = low.to_bytes(8, sys.byteorder) + high.to_bytes(8, sys.byteorder)
    across = int.from_bytes(stored[4:12], sys.byteorder)
    assert low < high < across
    assert bucket_of({low: 1, high: 2}).find(across) == (0, 0)
    # Behind it, the same bytes are a term.
    assert bucket_of({low: 1, high: 2, across: 3}).find(across) == (3, 6)
