"""The templates of the inspector: everything is escaped, nothing of a page runs, no character hides another."""

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from refold.infrastructure.inspector import rendering_pages
from refold.infrastructure.inspector.rendering_pages import (
    render,
    short_number,
    shown_time,
    static_file,
    templates,
)
from tests.support.hostile_texts import HIDDEN, TERMINAL
from tests.support.inspected import HOSTILE, unsafe_markup

SOURCES = sorted((Path(rendering_pages.__file__).parent / "templates").iterdir())
FORBIDDEN = {
    "a style attribute": r"\sstyle\s*=",
    "a style element": r"<style",
    "a script in the page": r"<script(?![^>]*\bsrc=)",
    "an event attribute": r"[\s\"']on[a-z]+\s*=",
    "an event attribute of htmx": r"hx-on",
    "an expression of htmx": r"\bjs:|hx-vars|hx-headers|hx-eval",
    "a script address": r"javascript:",
    "text that is not escaped": r"\|\s*safe\b|Markup|autoescape",
    "an address elsewhere": r"(src|href|action|hx-get)\s*=\s*[\"']?(https?:)?//",
    "a request that changes something": r"hx-(post|put|patch|delete)|method\s*=",
    "an attribute without quotation marks": r"=\{\{",
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_no_template_has(name: str) -> None:
    rule = re.compile(FORBIDDEN[name], re.IGNORECASE)
    texts = {one.name: one.read_text("utf-8") for one in SOURCES}
    if name == "a style element":
        del texts["file_head.html"]  # A file has its style in it, and names its digest.
    found = [(file, match[0]) for file, text in texts.items() for match in rule.finditer(text)]
    assert found == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a style attribute", '<p style="x">'),
        ("a style element", "<style>"),
        ("a script in the page", "<script defer>"),
        ("an event attribute", '<p onclick="x">'),
        ("an event attribute of htmx", "<p hx-on:click=x>"),
        ("an expression of htmx", "hx-vals='js:{}'"),
        ("a script address", "href='javascript:x'"),
        ("text that is not escaped", "{{ x | safe }}"),
        ("an address elsewhere", 'src="//evil.example"'),
        ("a request that changes something", '<form method="post">'),
        ("an attribute without quotation marks", "<p id={{ x }}>"),
    ],
)
def test_the_rules_for_templates_find_what_they_forbid(name: str, text: str) -> None:
    assert re.search(FORBIDDEN[name], text, re.IGNORECASE)


@pytest.mark.parametrize(
    "page",
    [
        "<p style=x>",
        "<p ONCLICK=x>",
        "<p hx-on::load=x>",
        "<script>x</script>",
        "<a href='javascript:x'>",
        "<a href=' JavaScript:x'>",
        "<img src=//evil.example>",
        "<img src=https://evil.example>",
        "<a href='/\\evil.example'>",
        "<iframe>",
        "<base href=/>",
        "<meta http-equiv=refresh>",
        "<style>",
    ],
)
def test_the_judge_of_pages_finds_what_must_not_be_there(page: str) -> None:
    assert unsafe_markup(page)


def test_a_text_of_a_page_is_always_escaped() -> None:
    assert templates().from_string("{{ a }}").render(a=HOSTILE).count("<") == 0
    assert templates().from_string('<p title="{{ a }}">').render(a='" onclick="x').count('"') == 2
    assert (
        unsafe_markup(
            render("error.html", {"links": _Links(), "title": HOSTILE, "message": HOSTILE})
        )
        == []
    )


def test_no_character_of_a_text_hides_or_reorders_others_or_has_no_utf8_form() -> None:
    given = f"{TERMINAL}{HIDDEN}\ud83d"
    found = templates().from_string("{{ a }}{{ a|upper }}<p title='{{ a }}'>").render(a=given)
    found.encode()
    assert not set(found) & {c for c in given if not c.isprintable()}
    assert set("redapart") <= set(found)


def test_markup_of_macros_is_not_escaped_twice() -> None:
    assert templates().from_string("{{ a }}").render(a=Markup("<b>")) == "<b>"


def test_a_name_that_a_template_does_not_get_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        templates().from_string("{{ missing }}").render()


@pytest.mark.parametrize(
    "name", ["", "..", "../site.py", "site.py", "style.css/", "htmx.LICENSE.txt", "/etc/passwd"]
)
def test_only_the_files_of_pages_are_given(name: str) -> None:
    assert static_file(name) is None


def test_the_script_of_pages_is_the_one_that_was_published() -> None:
    script = static_file("htmx.min.js")
    assert script is not None
    assert script[1].startswith("text/javascript")
    assert b'version:"2.0.11"' in script[0] or b"2.0.11" in script[0]


def test_the_style_loads_nothing() -> None:
    style = static_file("style.css")
    assert style is not None
    assert not re.search(rb"url\(|@import|expression|javascript", style[0], re.IGNORECASE)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (950, "950"), (1_200, "1.2k"), (35_400, "35k"), (1_200_000, "1.2M")],
)
def test_a_number_has_three_digits_at_most(value: int, text: str) -> None:
    assert short_number(value) == text


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ("2026-01-02T03:04:05.678Z", "2026-01-02 03:04:05"),
        ("", ""),
        (None, ""),
        ("\x1bodd", "\ufffdodd"),
    ],
)
def test_a_time_is_shown_to_the_second(at: str | None, text: str) -> None:
    assert shown_time(at) == text


class _Links:
    is_live = True

    def home(self) -> str:
        return "/"

    def page(self, name: str) -> str:
        return f"/{name}"
