"""A summary that says nothing is refused, whatever it is made of."""

import pytest

from refold.domain.judging import SummaryRefused, judge_text


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
        "short",
        "what was said",
        "no, no",
        "Done: 5 files.",
        "UNIQUE-FACT-3 " + "detail " * 900,
        "word " * 900 + "end",
        "The user asked twice. The user asked twice. Then it was done.",
        "用户要求修复测试。已经完成。",
        "\n".join(f"- file {n} done" for n in range(90)),
        "a" * 500 + " was the key that the user gave",
    ],
)
def test_a_text_that_says_something_is_fit(text: str) -> None:
    judge_text(text, complete=True)
