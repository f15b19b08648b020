"""Credentials are found where names of secrets stand, as if the whole text was searched for them."""

import re
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from refold.domain.facts import cues

KNOWN: Mapping[str, Any] = vars(cues)
NAMES = (
    "password",
    "PassWord",
    "passwd",
    "secret_key",
    "secret",
    "token",
    "API-key",
    "apikey",
    "api",
)
PARTS = (
    *NAMES,
    *(
        "access_key",
        "private key",
        "key",
        "密码",
        "口令",
        "=",
        ":=",
        ":",
        "：",
        " ",
        '"',
        "'",
        "⏎",
        ",",
    ),
    *(
        "abc12345",
        "x1",
        "hunter22",
        "[redacted]",
        "\n",
        "ſ",
        "@",
        "://u:",
        "ghp_0123456789abcdefgh",
    ),
)
NAMED = st.tuples(st.sampled_from(NAMES), st.sampled_from(("=", ": ")), st.just("abc12345"))
PIECES = st.sampled_from(PARTS) | NAMED.map("".join)
TEXTS = st.lists(PIECES, max_size=20).map("".join)


def searched(text: str, name: str) -> str:
    """What is left of a text if every character of it may begin a credential with a name."""

    def hide(found: re.Match[str]) -> str:
        return found[1] + "\0" * (len(found[0]) - len(found[1]))

    return str(KNOWN[name].sub(hide, text))


@given(TEXTS)
def test_named_credentials_are_masked_as_by_a_search_of_the_whole_text(text: str) -> None:
    expected = searched(searched(text, "_ASSIGNED"), "_LABELLED")
    assert cues.mask(text) == cues.mask(expected)
    if "\0" in expected:
        assert cues.mask(text) != text


@given(TEXTS)
def test_a_short_text_is_redacted_as_a_long_one(text: str) -> None:
    """A short one is first asked whether it can have a credential at all."""
    filler = ";\n" + "word " * 80
    assert cues.redact(text + filler) == cues.redact(text) + filler


def test_a_value_is_hidden_although_its_name_follows_a_key_without_a_blank() -> None:
    for text in ("ghp_0123456789abcdefghpassword=abc12345", "sk-0123456789abcdefgh_token=abc12345"):
        assert "abc12345" not in cues.redact(text)
        assert "abc12345" not in cues.mask(text)


def test_all_of_a_private_key_is_hidden_after_a_name() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----"
    assert cues.redact(f"private_key={key}\nend") == "private_key=[redacted]\nend"
