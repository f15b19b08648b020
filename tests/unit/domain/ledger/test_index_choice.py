"""Which entries the index shows: what is likely to be used again, for its size and within its room."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.domain.ledger import EntryKind, IndexEntry
from refold.domain.ledger.index import (
    MOST_KEPT,
    Shown,
    choose_entries,
    has_whole,
    whole_words,
)


def names(count: int, *, calls: int = 0) -> list[IndexEntry]:
    return [IndexEntry("name", f"some_name_{n:04}", n, calls=calls) for n in range(count)]


def choose(entries: list[IndexEntry], room: int, visible: str = "") -> Shown:
    return choose_entries(entries, room, len, visible)


def shown(found: Shown) -> list[str]:
    return [entry.text for entry in found.entries[: found.shown]]


def test_what_calls_used_comes_before_what_results_mention() -> None:
    used = IndexEntry("name", "used_in_a_call", 0, 3, 3, 0, "call")
    assert shown(choose([*names(50), used], 40)) == ["used_in_a_call", "some_name_0049"]


def test_a_short_value_comes_before_a_long_one_of_the_same_use() -> None:
    entries = [IndexEntry("name", "a_name_" + "x" * 50, 5), IndexEntry("name", "a_name", 5)]
    assert shown(choose(entries, 30)) == ["a_name"]


def test_where_the_work_stood_comes_first() -> None:
    decision = IndexEntry("decision", "because it is so", 0, by="model")
    assert shown(choose([*names(50, calls=9), decision], 60))[0] == "because it is so"


def test_what_the_request_shows_anyway_is_left_out_and_kept() -> None:
    entries = names(3)
    found = choose(entries, 1_000, "\n".join(e.text for e in entries if e.text.endswith("1")))
    assert sorted(shown(found)) == ["some_name_0000", "some_name_0002"]
    assert set(found.entries) == set(entries)


def test_a_step_of_a_shown_command_is_not_shown_again() -> None:
    whole = IndexEntry("command", "cd app && npm ci", 4, 1, 1, 4, "call")
    step = IndexEntry("command", "npm ci", 4, 1, 1, 4, "call")
    assert sum("npm ci" in text for text in shown(choose([whole, step], 1_000))) <= 2
    assert shown(choose([whole], 1_000)) == ["cd app && npm ci"]


@pytest.mark.parametrize("kind", list(MOST_KEPT))
def test_the_kept_entries_of_a_kind_are_limited(kind: EntryKind) -> None:
    entries = [IndexEntry(kind, f"text {n}", n) for n in range(1_000)]
    assert len(choose(entries, 0).entries) == MOST_KEPT[kind]


@given(st.text(st.sampled_from("ab_-/ \n.:(–é文²\u3000\ud800"), max_size=40))
def test_the_words_of_a_text_are_its_runs_of_characters_that_go_on(text: str) -> None:
    assert whole_words(text) == set(re.findall(r"[\w/-]+", text))


ENTRIES = st.builds(
    IndexEntry,
    st.sampled_from(["decision", "file", "said", "path", "command", "name", "value"]),
    st.text("ab/_ ", min_size=1, max_size=12),
    st.integers(0, 99),
    st.integers(1, 9),
    st.integers(0, 9),
)


@given(st.lists(ENTRIES, unique_by=lambda e: (e.kind, e.text)), st.integers(-5, 300))
def test_the_shown_entries_fit_their_room_and_none_is_doubled(
    entries: list[IndexEntry], room: int
) -> None:
    found = choose(entries, room)
    assert sum(len(e.text) + 1 for e in found.entries[: found.shown]) <= max(0, room)
    assert len(set(found.entries)) == len(found.entries)
    assert set(found.entries) <= set(entries)
    assert shown(found) == shown(choose(sorted(entries), room))


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("see src/a.py now", "src/a.py", True),
        ("see src/a.pyc now", "src/a.py", False),
        ("see lib/src/a.py now", "src/a.py", False),
        ("src/a.pyc and src/a.py", "src/a.py", True),
        ("", "a", False),
    ],
)
def test_a_value_stands_as_whole_words(text: str, value: str, expected: bool) -> None:
    assert has_whole(text, value) == expected


PARTS = st.lists(st.sampled_from(("abcd", "a_b", "-", "/", " ", ".", ":", "...."))).map("".join)


@given(PARTS, st.lists(PARTS.filter(bool), unique=True))
def test_an_entry_is_left_out_if_what_is_shown_has_it_as_whole_words(
    visible: str, texts: list[str]
) -> None:
    entries = [IndexEntry("value", text, n) for n, text in enumerate(texts)]
    found = choose(entries, 10_000, visible)
    seen = {entry.text for entry in found.entries[: found.shown]}
    for text in texts:
        others = "\n".join(["", *(other for other in seen if other != text)])
        if has_whole(visible, text):
            assert text not in seen
        elif not has_whole(others, text):
            assert text in seen
