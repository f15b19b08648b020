"""Cut texts keep the part and the size that was asked for."""

from hypothesis import given
from hypothesis import strategies as st

from refold.domain.text_cuts import (
    beginning,
    encodable,
    ends,
    ends_within,
    fitting_length,
    last_mark,
    longest_beginning,
)

MARK = " [cut] "


def test_a_beginning_counts_its_ellipsis() -> None:
    assert beginning("one two", 7) == "one two"
    assert beginning("one two", 5) == "one …"
    assert beginning("one two", 5, trim=True) == "one…"


def test_both_ends_stand_around_the_mark() -> None:
    assert ends("0123456789", 3, 2, "…") == "012…89"
    assert ends("0123456789", 3, 0, "…") == "012…"
    assert ends("012  56  9", 4, 3, "…", trim=True) == "012…9"


def test_both_ends_share_the_room_two_to_one() -> None:
    text = "a" * 100 + "b" * 100
    shown = ends_within(text, 80, len, MARK)
    head, _, tail = shown.partition(MARK)
    assert len(shown) <= 80
    assert set(head) == {"a"}
    assert set(tail) == {"b"}
    assert 1.8 < len(head) / len(tail) < 2.2
    assert ends_within(text, 200, len, MARK) == text
    assert ends_within(text, 10, len, MARK) == ""


@given(st.text(alphabet="ab\n", max_size=60), st.integers(0, 60))
def test_the_longest_beginning_fits_and_prefers_whole_lines(text: str, most: int) -> None:
    shown = longest_beginning(text, most, len)
    assert text.startswith(shown)
    assert len(shown) <= most
    if shown != text[:most]:
        assert shown.endswith("\n")
        assert "\n" not in text[len(shown) : most]
        assert len(shown) > most // 2 + 1


def test_a_line_is_left_whole_only_where_half_of_the_room_is_used() -> None:
    assert longest_beginning("aaaaaaa\nbbbb", 10, len) == "aaaaaaa\n"
    assert longest_beginning("aaaa\nbbbbbbbbbbbb", 12, len) == "aaaa\nbbbbbbb"


def test_a_length_begins_with_its_share_and_falls_by_tenths() -> None:
    tried: list[int] = []

    def fits(length: int) -> bool:
        tried.append(length)
        return length < 45

    assert fitting_length(20, 100, 10, fits) == 40
    assert tried == [50, 45, 40]
    assert fitting_length(20, 100, 10, lambda _: False) == 1
    assert fitting_length(0, 0, 10, lambda _: True) == 1


def test_the_first_mark_that_is_there_is_found_at_its_last_place() -> None:
    text = "one. two. three four"
    assert last_mark(text, (". ", " "), 0, 15) == (8, 10)
    assert last_mark(text, ("\n", " "), 0, 20) == (15, 16)
    assert last_mark(text, (". ",), 10, 18) == (18, 18)


def test_half_a_character_is_encoded_as_a_question_mark() -> None:
    assert encodable("ab\ud83dcd", 4) == "ab?c"
