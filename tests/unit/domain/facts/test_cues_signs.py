"""A pattern with signs finds what it finds without them."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.domain.facts import (
    cues,
    grounds,
    headings,
    lasting_facts,
    speech,
    statements,
    tool_calls,
)
from refold.domain.lazy_pattern import lazy_pattern
from tests.support.effort import one_in

MODULES = (cues, grounds, headings, lasting_facts, speech, statements, tool_calls)
SIGNED: dict[str, re.Pattern[str]] = {
    f"{module.__name__.rpartition('.')[2]}.{name}": pattern
    for module in MODULES
    for name, pattern in sorted(vars(module).items())
    if getattr(pattern, "signs", "")
}
_WORD = re.compile(r"[a-z']{2,}")


def words_of(pattern: re.Pattern[str]) -> list[str]:
    """Return the words in the source of a pattern, so that texts of them match often."""
    plain = re.sub(r"\[[^\]]*\]|\\.", "'", pattern.pattern.lower())
    return sorted(
        {*_WORD.findall(plain), "we'll", "i'll", "don't", "not", "it", "you", "the", "to", "in"}
    )


def texts(pattern: re.Pattern[str]) -> st.SearchStrategy[str]:
    joints = st.sampled_from((" ", " ", " ", ", ", ". ", "? ", "", ": "))
    parts = st.tuples(st.sampled_from(words_of(pattern)), joints)
    return st.lists(parts, max_size=12).map(lambda found: "".join(map("".join, found)))


def found_by(pattern: re.Pattern[str], text: str) -> Iterator[object]:
    for method in (pattern.search, pattern.match, pattern.fullmatch):
        found = method(text)
        yield found and found.span()
    yield pattern.sub("*", text)


def test_the_patterns_of_statements_have_signs() -> None:
    assert {
        "cues.PROHIBITION",
        "cues.DECISION",
        "headings._NEGATED",
        "lasting_facts._ORDER",
    } <= SIGNED.keys()


def check(pattern: re.Pattern[str], text: str) -> None:
    plain = re.compile(pattern.pattern, pattern.flags)
    assert list(found_by(pattern, text)) == list(found_by(plain, text))


@pytest.mark.parametrize("name", SIGNED)
@given(data=st.data())
def test_it_finds_what_it_finds_without_signs(name: str, data: st.DataObject) -> None:
    check(SIGNED[name], data.draw(texts(SIGNED[name])))


@pytest.mark.slow
@pytest.mark.parametrize("name", SIGNED)
@one_in(4)
@given(data=st.data())
def test_it_finds_each_text_that_its_source_describes(name: str, data: st.DataObject) -> None:
    matching = st.from_regex(re.compile(SIGNED[name].pattern, SIGNED[name].flags))
    check(SIGNED[name], data.draw(st.one_of(matching, matching.map(str.upper))))


def test_a_text_without_a_sign_is_not_searched() -> None:
    pattern = lazy_pattern(r"a+|b", signs="b|c")
    assert pattern.search("aaa") is None
    assert pattern.search("aaac") is not None
    assert pattern.sub("-", "ab") == "--"
    assert pattern.search("aé") is not None  # Signs say nothing about other characters.
