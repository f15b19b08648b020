"""Our part of a file that a person writes as well: whatever he does, his own text stays."""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from refold.infrastructure.notes.notes_folder import BEGIN, END, with_block

NOTE = "- a note (refold://t/1)"
OURS = BEGIN + b"\n" + NOTE.encode() + b"\n" + END + b"\n"

# Lines as a person writes them; none of them is one of ours.
own_lines = st.lists(
    st.binary(max_size=30).filter(
        lambda line: not {b"\n", b"\r"} & {bytes([c]) for c in line} and b"refold" not in line
    ),
    max_size=8,
)


def text_of(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def test_in_a_new_file_it_stands_alone() -> None:
    assert with_block(b"", NOTE) == OURS


@given(before=own_lines, after=own_lines, text=st.sampled_from(("", NOTE, "# Memory\n\n" + NOTE)))
def test_what_stands_around_it_stays_byte_for_byte(
    before: list[bytes], after: list[bytes], text: str
) -> None:
    made = with_block(text_of(before) + OURS + text_of(after), text)
    assert made.startswith(text_of(before))
    assert made.endswith(text_of(after))
    inner = made[len(text_of(before)) : len(made) - len(text_of(after))]
    assert inner == (BEGIN + b"\n" + text.encode() + b"\n" + END + b"\n" if text else b"")


def is_utf_16(content: bytes) -> bool:
    """Return whether a file says that it is of UTF-16. Our part of it is, too."""
    return content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))


@given(own=st.binary(max_size=60).filter(lambda b: b"refold" not in b and not is_utf_16(b)))
def test_without_marks_it_comes_last_and_a_second_time_changes_nothing(own: bytes) -> None:
    made = with_block(own, NOTE)
    assert made.startswith(own)
    assert made.endswith(OURS)
    assert with_block(made, NOTE) == made
    assert with_block(made, "").startswith(own)


marks = st.sampled_from((BEGIN, END, NOTE.encode(), b"# Memory", b"### t"))


@given(st.lists(st.one_of(marks, own_lines.map(lambda lines: b" ".join(lines))), max_size=12))
def test_of_a_broken_file_every_line_of_a_person_that_cannot_be_ours_stays(
    lines: list[bytes],
) -> None:
    assume(not is_utf_16(text_of(lines)))
    made = with_block(text_of(lines), NOTE)
    assert made.count(BEGIN) == made.count(END) == 1
    assert with_block(made, NOTE) == made
    kept = made.split(b"\n")
    pairs = _between_pairs(lines)
    for at, line in enumerate(lines):
        if line not in (BEGIN, END, NOTE.encode(), b"# Memory", b"### t") and at not in pairs:
            assert line in kept, f"{line!r} was lost"


def _between_pairs(lines: list[bytes]) -> set[int]:
    """The lines between a first mark and the last one right after it: those are ours."""
    found: set[int] = set()
    begun: int | None = None
    for at, line in enumerate(lines):
        if line == BEGIN:
            begun = at
        elif line == END:
            if begun is not None:
                found |= set(range(begun, at))
            begun = None
    return found


@pytest.mark.parametrize(
    "broken",
    [
        b"mine\n" + BEGIN + b"\n" + NOTE.encode() + b"\nalso mine\n",
        b"mine\n" + NOTE.encode() + b"\n" + END + b"\nalso mine\n",
        b"mine\n" + OURS + OURS + b"also mine\n",
        b"mine\n" + BEGIN + b"\n" + OURS + b"also mine\n",
        OURS + b"mine\n" + END + b"\nalso mine\n",
    ],
)
def test_broken_marks_are_mended_and_old_notes_are_not_left_behind(broken: bytes) -> None:
    made = with_block(broken, "- new (refold://t/2)")
    assert b"mine\n" in made
    assert b"also mine\n" in made
    assert made.count(BEGIN) == made.count(END) == 1
    assert NOTE.encode() not in made


REMEMBERED = "- a secret (remembered by ann)"


@pytest.mark.parametrize("end", [END + b"\n", b""])
def test_a_note_that_was_asked_for_is_ours_in_a_broken_part(end: bytes) -> None:
    broken = BEGIN + b"\n" + REMEMBERED.encode() + b"\nmine\n" + end
    if end:
        broken = broken.removeprefix(BEGIN + b"\n")
    made = with_block(broken, NOTE)
    assert made.count(b"secret") == 0
    assert b"mine\n" in made
    assert with_block(broken, "") == b"mine\n"


def test_a_byte_order_mark_before_our_part_does_not_hide_it() -> None:
    saved = b"\xef\xbb\xbf" + with_block(b"", REMEMBERED) + b"mine\n"
    assert with_block(saved, NOTE) == OURS + b"mine\n"
    assert with_block(saved, "") == b"mine\n"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("own", ["", "mine \U0001f600\r\n"])
def test_in_a_file_of_utf_16_it_is_utf_16(codec: str, own: str) -> None:
    saved = ("\ufeff" + own + OURS.decode()).encode(codec)
    made = with_block(saved, "- new (refold://t/2)")
    assert made.decode(codec) == "\ufeff" + own + with_block(b"", "- new (refold://t/2)").decode()
    assert with_block(made, "- new (refold://t/2)") == made
    assert with_block(saved, "") == (("\ufeff" + own).encode(codec) if own else b"")


@pytest.mark.parametrize("broken", [b"\xff\xfea", b"\xff\xfe\x00\xd8\x61\x00"])
def test_a_file_that_is_no_valid_utf_16_keeps_its_bytes(broken: bytes) -> None:
    made = with_block(broken, NOTE)
    assert made.startswith(broken)
    assert with_block(made, NOTE) == made
    assert with_block(made, "").startswith(broken)


def test_lone_surrogates_are_written_as_something() -> None:
    assert b"a ? b" in with_block(b"", "a \ud800 b")
