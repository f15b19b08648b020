"""Marks of Markdown that have lost their partner go; those that have one, and code, stay."""

import pytest

from refold.domain.noting import headings, remove_lone_marks


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Never:** push to main", "Never: push to main"),
        ("ALWAYS** run the tests first", "ALWAYS run the tests first"),
        ("INSTEAD:**", "INSTEAD:"),
        ("Root cause**: it is **not** set.", "Root cause: it is **not** set."),
        ("Rule** one is **not** set.", "Rule one is **not** set."),
        ("Always ask.**", "Always ask."),
        ("Always ask**.", "Always ask."),
        ("We must **never push.", "We must never push."),
        ("Never*** do it", "Never do it"),
        ("NEVER__ push", "NEVER push"),
        ("Never push._", "Never push."),
        ("Never:** push **now** please", "Never: push **now** please"),
        ("One **bold** word and **half", "One **bold** word and half"),
        ("绝不：**推送到 main", "绝不：推送到 main"),
        ("绝不**推送", "绝不推送"),
        ("## Forbidden Responses", "Forbidden Responses"),
    ],
)
def test_what_has_no_partner_goes(text: str, left: str) -> None:
    assert remove_lone_marks(text) == left
    assert remove_lone_marks(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "We **decided** to use zstd.",
        "***Never*** do (**this**) or **that**.",
        "不要**推送**到 main",
        "*Never push.* ok",
        "Never touch src/** at all, nor **/*.ts, **.md or *.py.",
        "Pass **kwargs on, as 2**3 and 2 ** 3.",
        "Always `a**` and `**b`.",
        "Use __init__, my_var, class_ and char* here.",
        "#7 is no heading",
    ],
)
def test_what_has_a_partner_or_is_code_stays(text: str) -> None:
    assert remove_lone_marks(text) == text


def test_headings_are_marked_lines_and_lines_in_bold() -> None:
    text = "# Rules\nNever.\n**Forbidden Responses**\n**Say this.**\n## More ##\nnot **this**"
    assert headings(text) == {"Rules", "Forbidden Responses", "More"}
