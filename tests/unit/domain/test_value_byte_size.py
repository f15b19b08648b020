"""How many bytes a value takes in a request: as many as its JSON, or a few more."""

import json

from hypothesis import given
from hypothesis import strategies as st

from refold.domain.value import byte_size


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_takes_no_more_bytes_than_counted(text: str) -> None:
    assert byte_size(text) >= len(json.dumps(text, ensure_ascii=False).encode())


def test_control_characters_count_as_they_are_escaped() -> None:
    for character in map(chr, range(32)):
        assert byte_size(character * 1_000) == len(json.dumps(character * 1_000)), character
