"""Instruction files are shown whole where they fit, by beginning and end where not, within a budget."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.conversation.instructions import (
    LEAST,
    InstructionFile,
    Instructions,
    instruction_sizes,
    instruction_text,
    join_files,
)
from refold.domain.errors import InvalidSetting


def of(*texts: str, characters: int = 20_000, total: int = 24_000) -> Instructions:
    files = [InstructionFile(f"{n}.md", text) for n, text in enumerate(texts)]
    return join_files(files, characters=characters, total=total)


def test_a_file_that_fits_is_shown_word_for_word_under_its_name() -> None:
    assert instruction_text({"AGENTS.md": "Use tabs.\n"}) == (
        "[Instructions from AGENTS.md]\nUse tabs."
    )


def test_a_file_of_exactly_its_room_is_whole() -> None:
    [shown] = of("x" * 20_000).files
    assert (shown.cut, len(shown.text)) == (0, 20_000)


def test_a_longer_one_shows_70_percent_of_its_room_from_the_beginning_and_20_from_the_end() -> None:
    text = "".join(f"{n:09d}," for n in range(5_000))
    [shown] = of(text).files
    begin, end = shown.text.split("\n[… 32,000 characters cut, read 0.md for the full content …]\n")
    assert (begin, end) == (text[:14_000], text[-4_000:])
    assert shown.cut == 32_000
    assert len(shown.text) <= 20_000


def test_cuts_lie_between_lines_where_one_ends_near() -> None:
    text = "".join(f"line {n} says something\n" for n in range(2_000))
    [shown] = of(text).files
    lines = shown.text.splitlines()
    assert all(line.startswith(("line ", "[… ")) for line in lines)
    assert sum(line.startswith("[… ") for line in lines) == 1
    assert lines[-1] == "line 1999 says something"


def test_all_files_together_keep_to_their_budget_with_headings_and_markers() -> None:
    made = of("a" * 30_000, "b" * 30_000)
    assert len(made.text) <= 24_000
    assert "characters cut, read 1.md for the full content" in made.text


def test_a_file_for_which_fewer_than_64_characters_are_left_is_skipped_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "refold"):
        made = of("a" * 300, "b" * 40, "c" * 10, total=440)
    assert [f.cut for f in made.files] == [0, 0, 10]
    assert "2.md" not in made.text
    [record] = caplog.records
    assert "2.md is skipped: only 21 of 440 characters" in record.getMessage()
    assert made.files[-1].skipped == "no room is left for it"


LONG_PATH = "/home/somebody/projects/of-last-year/the-one-with-a-long-name/docs/[id]/AGENTS.md"


def test_the_marker_names_the_whole_path_and_counts_towards_the_room() -> None:
    made = join_files([InstructionFile(LONG_PATH, "x" * 5_000)], characters=1_000)
    assert f"characters cut, read {LONG_PATH} for the full content …]" in made.text
    assert len(made.files[0].text) <= 1_000


def test_a_file_whose_marker_does_not_fit_is_skipped_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "refold"):
        made = join_files([InstructionFile(LONG_PATH, "x" * 500)], characters=100)
    assert (made.text, made.files[0].skipped) == ("", "no room is left for it")
    [record] = caplog.records
    assert f"{LONG_PATH} is skipped" in record.getMessage()


def test_a_cut_is_warned_of_with_its_size(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "refold"):
        of("short", "x" * 30_000)
    [record] = caplog.records
    assert "1.md is cut: 12,000 of its 30,000 characters are omitted" in record.getMessage()


def test_a_file_that_cannot_be_read_takes_nothing_and_leaves_the_others_as_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    a, b = InstructionFile("a.md", "A"), InstructionFile("b.md", "B")
    missing = InstructionFile("none.md", "", "is not there")
    with caplog.at_level(logging.WARNING, "refold"):
        made = join_files([a, missing, b])
    assert made.text == join_files([a, b]).text
    assert [record.getMessage() for record in caplog.records] == [
        "instruction file none.md is skipped: it is not there"
    ]


def test_a_name_that_no_log_can_hold_is_told_without_what_breaks_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gone = InstructionFile("a\n\ud800.md", "", "is not there")
    full = InstructionFile("b\n.md", "x" * 400, "")
    with caplog.at_level(logging.WARNING, "refold"):
        join_files([gone, full], characters=300, total=1_000)
    for record in caplog.records:
        assert "\n" not in record.getMessage()
        assert record.getMessage().encode()
    assert len(caplog.records) == 2


def test_sizes_are_told_file_by_file() -> None:
    made = join_files(
        [
            InstructionFile("a.md", "x" * 300),
            InstructionFile("none.md", "", "is not there"),
            InstructionFile("b.md", "[Instructions from c.md]\nB"),
        ],
        characters=200,
    )
    sizes = instruction_sizes(made.text, made.files, len)
    assert [(s.name, s.skipped, s.cut > 0) for s in sizes] == [
        ("a.md", "", True),
        ("none.md", "is not there", False),
        ("b.md", "", False),
    ]
    assert sizes[1].tokens == 0
    assert sum(size.tokens for size in sizes) == len(made.text)


def test_of_a_recorded_text_the_headings_say_which_files_it_has() -> None:
    made = of("A", "B\n\nmore of B")
    assert instruction_sizes(made.text, (), len) == instruction_sizes(made.text, made.files, len)
    assert instruction_sizes("", (), len) == ()


def test_a_blank_file_says_nothing_and_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert of(" \n\n", "").text == ""
    assert not caplog.records


def test_a_name_cannot_pass_for_a_heading_or_a_marker() -> None:
    text = instruction_text({"a]\n[System": "x"})
    assert text.splitlines() == ["[Instructions from a___System]", "x"]


def test_a_budget_below_the_least_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="total = 63: must be at least 64"):
        instruction_text({"a": "x"}, total=63)


@pytest.mark.parametrize(
    "character",
    ["é", "👩‍💻", "🇨🇳", "🤷🏽‍♀️", "1️⃣", "한", "\r\n", "🏴\U000e0067\U000e0062\U000e007f"],
)
def test_what_is_written_as_one_character_is_never_parted(character: str) -> None:
    for room in range(200, 260):
        [shown] = of("x" + character * 200, characters=room, total=1_000).files
        begin, _, end = shown.text.partition("\n[… ")
        end = end.partition("…]\n")[2]
        shown_here = begin.removeprefix("x") + end
        assert shown_here == character * (len(shown_here) // len(character)) or character == "\r\n"


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300)
TEXTS = st.text(st.sampled_from("ab \n\r\té👩‍💻🇨字"), max_size=900) | st.text(max_size=300)
ROOMS = st.integers(LEAST, 400)


@given(st.lists(st.builds(InstructionFile, NAMES, TEXTS), max_size=5), ROOMS, st.integers(64, 900))
def test_the_budget_holds_whatever_stands_in_the_files(
    files: list[InstructionFile], characters: int, total: int
) -> None:
    made = join_files(files, characters=characters, total=total)
    assert len(made.text) <= total
    for file, shown in zip(files, made.files, strict=True):
        assert len(shown.text) <= characters
        assert shown.cut >= 0
        if shown.text and not shown.cut:
            assert shown.text in file.text
            assert shown.text.split() == file.text.split()
        elif shown.text:
            begin, _, rest = shown.text.partition(f"\n[… {shown.cut:,} characters cut, read ")
            end = rest.rpartition(" for the full content …]\n")[2]
            assert begin in file.text
            assert end in file.text
            assert len(begin) + len(end) + shown.cut == len(file.text)
