"""A summary that says nothing is refused, whatever it is made of."""

import pytest

from refold.domain.compaction.summary_rules import SummaryRefused, judge_text


def refusal(text: str) -> str:
    with pytest.raises(SummaryRefused) as refused:
        judge_text(text, complete=True)
    return refused.value.reason


@pytest.mark.parametrize(
    "text",
    [
        "\u200b" * 900,
        "\u200b\u200c\u200d\u2060\ufeff \n" * 40,
        "\u00ad\u034f\u115f\u1160\u3164\u2800" * 9,
        "\u2028\u00a0\u3000",
        "...",
        "---\n***\n___",
        "## \n\n- \n- ",
        "…" * 300,
        "\ufffd" * 20,
        "\U000e0041\U000e0042",
    ],
)
def test_a_text_without_a_letter_or_digit_is_empty(text: str) -> None:
    assert refusal(text) == "empty"


EIGHT = (
    *("Technical Context", "Project Overview", "Code Changes", "Debugging & Issues"),
    *("Current Status", "Pending Tasks", "User Preferences", "Key Decisions"),
)


@pytest.mark.parametrize("form", ["## {}", "# {} #", "**{}**", "- **{}:**", "1. {}:", "【{}】"])
@pytest.mark.parametrize("under", ["", "\u200b", "None", "N/A", "- None.", "无", "<br/>"])
def test_headings_over_nothing_are_empty(form: str, under: str) -> None:
    assert refusal("\n\n".join(f"{form.format(name)}\n{under}" for name in EIGHT)) == "empty"


def test_headings_that_are_asked_for_say_nothing_in_whatever_form() -> None:
    with pytest.raises(SummaryRefused, match="besides its headings"):
        judge_text("\n".join(f"* {name}" for name in EIGHT), complete=True, required=EIGHT)


@pytest.mark.parametrize(
    "text",
    [
        "short",
        "Done.",
        "no, no",
        "<summary></summary>",
        '<summary lang="en">\n</summary>',
        "## Key Decisions\n## Pending Tasks\n" * 3,
        "done " * 30 + "finished",
        "word " * 900 + "end",
        "完成",
    ],
)
def test_a_text_with_hardly_a_word_is_empty(text: str) -> None:
    assert refusal(text) == "empty"


def test_what_code_takes_from_a_source_may_be_a_single_word() -> None:
    judge_text("Hello.", complete=True, by_code=True)
    with pytest.raises(SummaryRefused):
        judge_text("\u200b", complete=True, by_code=True)


def test_judging_a_long_text_without_an_end_takes_no_time() -> None:
    for text in (
        "<a " * 99_999,
        "#" * 299_999,
        "**a" * 99_999,
        "a: " * 99_999,
        " " * 299_999 + "a",
    ):
        with pytest.raises(SummaryRefused):
            judge_text(text, complete=True)


@pytest.mark.parametrize(
    "text",
    [
        "word " * 3,
        "summary " * 2_000,
        "Summary. SUMMARY! summary",
        "a" * 5_000,
        "and so on, " * 200,
        "The user asked for the parser to be fixed. " * 30,
        "OK.\n" * 40,
        "总结 " * 40,
        "好" * 80,
        "0 0 0 0",
        "- None.\n" * 8,
    ],
)
def test_the_same_words_again_and_again_are_refused(text: str) -> None:
    assert refusal(text) == "repetitive"


@pytest.mark.parametrize(
    "text",
    [
        "what was said",
        "Done: 5 files.",
        "The user asked for X; Y was done.",
        "# Summary\nThe user asked for X; Y was done.",
        "<summary>The port is 5433.</summary>",
        "**Status:** the build is green.",
        "Status: the build is green.",
        "**The user asked for X; Y was done, and nothing else.**",
        "## 当前状态\n已修复",
        "사용자가 요청",
        "Use List<String> in Java.",
        "if a < b and c > d",
        "UNIQUE-FACT-3 " + "detail " * 900,
        "The user asked twice. The user asked twice. Then it was done.",
        "用户要求修复测试。已经完成。",
        "\n".join(f"- file {n} done" for n in range(90)),
        "a" * 500 + " was the key that the user gave",
    ],
)
def test_a_text_that_says_something_is_fit(text: str) -> None:
    judge_text(text, complete=True)
