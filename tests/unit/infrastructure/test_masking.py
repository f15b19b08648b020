"""Credentials and names are masked in every text, in all the forms in which a file may show them."""

import json

import pytest
from markupsafe import Markup

from refold.application.api.results import StoredMessage
from refold.domain.errors import InvalidSetting
from refold.domain.messages import Message
from refold.domain.value import Value, replace
from refold.infrastructure.inspector.masking import Masked, Masker

KEY = "sk-" + "a1b2" * 6


def stored(content: str) -> StoredMessage:
    message = Message(role="user", content=content)
    return StoredMessage(
        position=0, message_id="m", version=1, message=message, at="2026-01-02", tokens=1
    )


def test_a_credential_is_replaced_wherever_it_stands() -> None:
    assert Masker().text(f"use {KEY} now") == "use [redacted] now"


def test_a_name_is_replaced_as_a_whole_word_in_any_case() -> None:
    masker = Masker(["Ada", "Jan"])
    shown = masker.text("ADA and jan_notes, /home/ada/x, ada@example.org; January, Adamant, Ada2")
    assert shown == (
        "[name 1] and [name 2]_notes, /home/[name 1]/x, [name 1]@example.org; January, Adamant, Ada2"
    )


def test_a_longer_name_goes_before_a_part_of_it() -> None:
    assert Masker(["Ada", "Ada Lovelace"]).text("Ada Lovelace, Ada") == "[name 2], [name 1]"


@pytest.mark.parametrize(
    "text", ["Ada  Lovelace", "Ada\nLovelace", "ada.lovelace", "ada-lovelace", "Ada%20Lovelace"]
)
def test_the_words_of_a_name_may_be_joined_in_several_ways(text: str) -> None:
    assert Masker(["Ada Lovelace"]).text(f"<{text}>") == "<[name 1]>"


@pytest.mark.parametrize("text", ["José", "Jose\u0301", json.dumps("José"), "Jos%C3%A9"])
def test_a_name_is_found_decomposed_and_escaped(text: str) -> None:
    assert "[name 1]" in Masker(["José"]).text(text)
    assert "Jos" not in Masker(["José"]).text(text)


def test_a_name_is_found_in_a_script_without_spaces() -> None:
    assert Masker(["张伟"]).text("昨天张伟写了这个文件") == "昨天[name 1]写了这个文件"
    assert Masker(["אדה"]).text("שלום אדה!") == "שלום [name 1]!"


def test_a_name_before_a_password_in_a_url_does_not_save_the_password() -> None:
    assert "hunter2" not in Masker(["ada"]).text("https://ada:hunter2@example.org/x")


def test_masking_twice_changes_nothing_more() -> None:
    masker = Masker(["name", "redacted"])
    once = masker.text(f"name {KEY} redacted")
    assert once == "[name 1] [redacted] [name 2]"
    assert masker.text(once) == once


def test_a_name_without_letters_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="a letter or a digit"):
        Masker([" "])


def test_what_a_name_of_json_data_says_to_be_secret_is_replaced() -> None:
    given = {"password": "correct horse", "deep": [{"api_key": "plain words"}], "path": "a", "n": 3}
    assert Masker().data(given) == {
        "password": "[redacted]",
        "deep": ({"api_key": "[redacted]"},),
        "path": "a",
        "n": 3,
    }


def test_the_names_of_json_data_are_masked_too() -> None:
    assert Masker(["Ada"]).data({"ada": KEY}) == {"[name 1]": "[redacted]"}


def test_json_in_a_text_is_read_with_its_escaped_quotation_marks() -> None:
    inner = json.dumps(json.dumps({"password": "correcthorse"}))
    assert "correcthorse" not in Masker().text(inner)


def test_everything_that_is_printed_is_masked_but_numbers_and_finished_html() -> None:
    masker = Masker(["Ada"])
    assert masker.printed("Ada") == "[name 1]"
    assert masker.printed(ValueError(KEY)) == "[redacted]"
    assert masker.printed(["Ada"]) == "['[name 1]']"
    assert masker.printed(17) == 17
    assert masker.printed(Markup("<b>Ada</b>")) == Markup("<b>Ada</b>")


def test_a_message_is_masked_before_it_is_cut() -> None:
    masked = Masker().message(stored("a" * 490 + " " + KEY))
    assert masked.message.content == "a" * 490 + " [redacted]"


def test_values_for_a_template_keep_their_shape() -> None:
    masker, value = Masker(["Ada"]), stored("Ada")
    given = {"a": ["Ada", 1], "b": ("Ada", None), "c": Masked(1, (2,)), "d": value}
    masked = masker.values(given)
    assert masked == {
        "a": ["[name 1]", 1],
        "b": ("[name 1]", None),
        "c": Masked(1, (2,)),
        "d": replace(value, message=Message(role="user", content="[name 1]")),
    }
    assert isinstance(masked["c"], Masked)


class Line(Value, frozen=True):
    """A line of a summary."""

    text: str


def test_no_line_of_a_key_is_left_where_each_line_is_a_value() -> None:
    key = ("-----BEGIN RSA PRIVATE KEY-----", "MIIEabcd", "efgh", "-----END RSA PRIVATE KEY-----")
    lines = [Line(text=text) for text in ("before", *key, "after")]
    shown = [line.text for line in Masker().values(lines)]
    assert shown == ["before", *["[redacted]"] * 4, "after"]


def test_a_cut_text_does_not_end_with_half_of_a_credential_or_of_a_name() -> None:
    masker = Masker(["Jonathan"])
    assert masker.cut_text("The key is sk-a1b…", stored(f"The key is {KEY}")) == (
        "The key is [redacted]"
    )
    assert masker.cut_text("I am Jona…", stored("I am Jonathan, hello")) == "I am [redacted]"
    assert masker.cut_text("I am hap…", stored("I am happy")) == "I am hap…"


def test_what_is_masked_is_counted() -> None:
    masker = Masker(["Ada", "Bo"])
    masked = masker.count("[redacted] [name 1] [name 1] [redacted] [name 12]")
    assert masked == Masked(2, (2, 0))
    assert masked + masked == Masked(4, (4, 0))
    assert masked.sentence() == "Masked: 2 credentials, [name 1] 2 ×, [name 2] 0 ×"
