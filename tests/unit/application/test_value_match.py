"""A value is found in the forms that texts of messages have it, and little of its line is shown."""

import json

import pytest

from refold.application.history.value_match import LONGEST_VALUE, ValueMatch, read_value
from refold.domain.errors import InvalidSetting


def test_a_value_is_found_as_it_is() -> None:
    assert "6390" in ValueMatch("6390").line("the port is 6390 now")
    assert "639O" not in ValueMatch("6390")
    assert ValueMatch("Port").span("the port") is None


@pytest.mark.parametrize("value", ['say "hi"', "two\nlines", "C:\\temp", "端口 6390"])
def test_a_value_is_found_inside_json(value: str) -> None:
    assert json.dumps({"a": value}) in ValueMatch(value)
    assert json.dumps({"a": value}, ensure_ascii=False) in ValueMatch(value)
    inner = json.dumps({"a": value}, ensure_ascii=False)
    assert json.dumps({"b": inner}, ensure_ascii=False) in ValueMatch(value)


def test_case_and_spacing_are_ignored_on_request() -> None:
    alike = ValueMatch("never push to main").ignore_case()
    assert "Never push\n  to MAIN." in alike
    assert "never pushed to main" not in alike
    assert alike.span("! never push to main") == (2, 20)


def test_only_the_line_of_the_value_is_shown() -> None:
    assert ValueMatch("6390").line("first\nport 6390 here\nlast") == "port 6390 here"
    assert ValueMatch("6390").line('{"a": "first\\nport 6390"}') == 'port 6390"}'
    assert ValueMatch("6390").line("nothing") == ""


def test_a_long_line_is_cut_on_both_sides() -> None:
    line = ValueMatch("6390").line("x" * 500 + " 6390 " + "y" * 500)
    assert len(line) < 120
    assert "6390" in line
    assert line.startswith("…")
    assert line.endswith("…")


def test_the_middle_of_a_long_value_is_left_out() -> None:
    value = "begin " + "word " * 300 + "end"
    assert len(ValueMatch(value).line(value)) < 100


def test_a_credential_on_the_line_is_not_shown() -> None:
    key = "sk-ant-api03-" + "a1B2c3D4e5" * 4
    line = ValueMatch("port 6390").line(f"port 6390, ANTHROPIC_API_KEY={key}")
    assert "port 6390" in line
    assert key[:20] not in line
    assert "[redacted]" in line


@pytest.mark.parametrize("value", ["", " \n", "x" * (LONGEST_VALUE + 1), "half \ud800", 6390, None])
def test_what_cannot_be_searched_for_is_refused(value: object) -> None:
    with pytest.raises(InvalidSetting, match="value"):
        read_value(value)
