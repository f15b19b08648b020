"""A joined text is parted again exactly where it was joined, whatever the two texts say."""

from hypothesis import given
from hypothesis import strategies as st

from refold.application.summaries.chunking import omission_note
from refold.application.summaries.leaves import (
    DIVIDER,
    TURN_HEADING,
    history_text,
    join_parts,
    whole_text,
)
from refold.application.summaries.writer import share_of
from refold.domain.compaction.budget import SHORTEST_SUMMARY
from refold.domain.events import OmittedMessage
from tests.support.builders import performed

WORDS = st.text(min_size=1).filter(str.strip)
TEXTS = st.one_of(WORDS, st.tuples(WORDS, WORDS).map(lambda two: f"{two[0]}{DIVIDER}{two[1]}"))
HISTORIES = st.one_of(st.just(""), TEXTS, TEXTS.map(lambda text: DIVIDER + TURN_HEADING + text))
OMITTED = st.lists(
    st.builds(OmittedMessage, position=st.integers(0, 10**6), tokens=st.integers(1, 10**6)),
    max_size=30,
).map(tuple)


@given(HISTORIES, TEXTS)
def test_history_is_what_stands_before_the_divided_turn(history: str, prefix: str) -> None:
    text = join_parts(history, prefix)
    assert text.endswith(prefix)
    summary = performed(4, text=text, is_split_turn=True, split_turn_prefix=prefix)
    assert history_text(summary) == history
    assert whole_text(summary) == text


@given(HISTORIES, TEXTS, OMITTED, st.integers(0, 400))
def test_naming_what_was_left_out_is_taken_off_again(
    history: str, prefix: str, omitted: tuple[OmittedMessage, ...], room: int
) -> None:
    text = join_parts(history, prefix)
    named = text + omission_note("t", omitted, room, lambda words: len(words) // 4)
    summary = performed(
        4, text=named, is_split_turn=True, split_turn_prefix=prefix, omitted=omitted
    )
    assert whole_text(summary) == text
    assert history_text(summary) == history


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(2, 20_000))
def test_two_shares_are_no_more_than_the_whole_and_neither_is_too_small(
    size: int, other: int, room: int
) -> None:
    mine, theirs = share_of(size, other, room), share_of(other, size, room)
    least = min(SHORTEST_SUMMARY, room // 2)
    assert least <= mine <= room - least
    assert mine + theirs <= room + 1
