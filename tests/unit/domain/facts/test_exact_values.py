"""Values, paths and names are found as slower patterns find them, which say plainly what each of them is."""

import re
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from refold.domain.facts.composed_names import composed_names, distinct_names
from refold.domain.facts.exact_values import (
    exact_values,
    may_have_values,
    paths_in,
)

VALUE = re.compile(
    r"(?:https?://[^\s<>\"'`)\]\u3000-\u9fff\uff00-\uffef]{4,200})"
    r"|(?:(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,60}\.){1,4}[A-Za-z]{2,10}\b)"
    r"|(?:\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d{2,5}\b|\bport\b[^\d\n.,;]{1,12}\d{2,5}\b|端口\s*[:：]?\s*\d{2,5})"
    r"|(?:\bv?\d+\.\d+\.\d+(?:[-+.][\w.]+)?\b|\bv\d+(?:\.\d+)?\b)"
    r"|(?:\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
    r"|(?:[$€£¥]\s?\d[\d,]*(?:\.\d+)?(?:\s?[kKmM]\b)?)"
    r"|(?:\b\d{4}-\d{2}-\d{2}\b|\d{1,4}年\d{1,2}月(?:\d{1,2}日)?|\d{1,2}月\d{1,2}日)"
    r"|(?:\b[A-Z]{2,10}-\d{1,6}\b|(?<![\w/.-])[A-Z]{1,6}\d[A-Z0-9]{2,10}\b|\b[A-Z][A-Z0-9]+_[A-Z0-9_]{2,40}\b"
    r"|\b[a-z]+(?:_[a-z]+)*_\d{2,12}\b|#\d{2,10}\b|"
    r"(?<![\w/.-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w-]))"
    r"|(?:(?<![\w.,])\d[\d,]*(?:\.\d+)?\s?(?:"
    r"%|‰|°C|[µμnm]s|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?|"
    r"[kKMGT]i?B|bytes?|bits?|[kMG]bit/s|[A-Za-z]{1,9}/(?:s|sec|min|h|day|month|request|user)|[rqf]ps|"
    r"tokens?|chars?|characters?|px|[kMG]?Hz|rows?|lines?|files?|tests?|commits?|requests?|errors?|users?|"
    r"events?|items?|records?|messages?|times|points?|[km]?m|cm|kg|kWh?|[x×])(?![\w/])"
    r"|(?<![\d.,])\d{1,12}(?:\.\d+)?\s?(?:元|万元?|亿元?|美元|公里|公斤|分钟|小时|天|周|个月|年|岁|毫秒|微秒|秒|"
    r"次|条|行|个|人|件|台|倍|兆|字节|米|克|页|章|分))",
    re.ASCII,
)
PATH = re.compile(
    r"(?<![\w./~:@+-])(?:(?:~|\.{1,2})?/)?(?:[\w.@+-]+/)+[\w.@+-]*\w"
    r"|(?<![\w./~:@+-])[\w][\w.-]*\.(?:pyi?|tsx?|jsx?|mjs|go|rs|java|kts?|rb|php|cc?|hh?|cpp|hpp|cs|swift|scala|"
    r"sh|sql|jsonl?|ya?ml|toml|ini|cfg|conf|env|mdx?|rst|txt|csv|tsv|xml|html?|s?css|lock|log|proto|tf|ipynb|"
    r"vue|svelte|gradle|mod|sum|db|png|jpe?g|svg|pdf|docx?|xlsx?|zip|gz)\b(?![\w/(])",
    re.ASCII,
)
TELLING = re.compile(r"^(?:~|\.{1,2})?/|\.[A-Za-z]\w{0,7}$|[\d_.-].*/.*/|/.*/.*[\d_.-]")
SIGN = re.compile(r"^[ \t]*\d+[→\t]|([\d@_]|://)\S{0,100}", re.MULTILINE)
BLANK = re.compile(r"\s")
WORD = 70
MARGIN = 24


def windows(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range that may contain values.

    Each range has the words with a sign of a value, one word before ("port 80") and one word after ("3
    GB").
    """
    window: tuple[int, int] | None = None
    for sign in SIGN.finditer(text, begin, end):
        if not sign[1] or (window and sign.end() <= window[1] - MARGIN):
            continue
        start = word_before(text, word_before(text, sign.start()))
        stop = word_behind(text, word_behind(text, sign.end()))
        if window and start <= window[1]:
            window = (window[0], stop)
            continue
        if window:
            yield window
        window = (start, stop)
    if window:
        yield window


def word_before(text: str, at: int) -> int:
    least = max(0, at - WORD)
    return max(least, text.rfind(" ", least, max(least, at - 1)) + 1)


def word_behind(text: str, at: int) -> int:
    blank = BLANK.search(text, at, at + 3 * WORD)
    return blank.end() if blank else min(len(text), at + 3 * WORD)


NAME = re.compile(
    r"(?<![\w./@-])(?:_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_{0,2}|[A-Za-z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+"
    r"|[a-z][a-z0-9]*(?:-[a-z0-9]+){1,5})(?![\w@-]|[./]\w)",
    re.ASCII,
)


PIECES = (
    *(
        "https://a.io/x",
        "http",
        "://",
        "me@ex-a.mple.org",
        "@",
        "localhost:8080",
        "127.0.0.1:80",
        "port 80",
        "port is 8",
    ),
    *(
        "端口：8080",
        "v1.2.3",
        "1.2.3-rc.1",
        "v2",
        "v10.4",
        "1.20.300",
        "0123abcd-0123-0123-0123-0123456789ab",
        "$ 12,000.50k",
    ),
    *(
        "¥3",
        "2024-01-02",
        "2024年1月2日",
        "3月4日",
        "ABC-12",
        "E1234",
        "AB_CD",
        "A_B_1",
        "case_12",
        "a_b_123",
        "_12",
        "#42",
    ),
    *(
        "0a1b2c3d4e",
        "deadbeef",
        "abc1234",
        "1abcdef2",
        "12 ms",
        "3%",
        "1,000 files",
        "5 x",
        "7 kB/s",
        "3 元",
        "12个月",
        "9x",
    ),
    *(
        "src/a/b.py",
        "./a",
        "../b/c",
        "~/x/y.z",
        "/tmp",
        "/usr/bin/env",
        "a.py",
        "b.tar.gz",
        "read.me",
        "x/y",
        "a//b",
        ".env",
    ),
    *(
        "snake_case",
        "__init__",
        "_a_b",
        "camelCase",
        "CamelCase",
        "kebab-case",
        "a-b-c",
        "A-B",
        "a1B2",
        "x_",
        "HTTPServer",
    ),
    *(
        "a-b-c-d-e-f",
        "one-two-six-ten-a-b-c",
        "/AB1234",
        "-AB12C",
        ".F12345",
        "xAB1234",
        "a_b_12345",
        "_x_y_12",
    ),
    *("12→", "  3\t", "pass", "self.", "(x)", "the", "a", "F", "0", "7", "文", "é", "K", "²", "１"),
)
JOINTS = (
    "",
    "",
    " ",
    " ",
    "\n",
    "\t",
    ".",
    ",",
    "-",
    "_",
    "/",
    ":",
    "(",
    "  ",
    "=",
    "@",
    "+",
    "'",
    "\u00a0",
    "x" * 80,
)
LINES = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(JOINTS)), max_size=40).map(
    lambda parts: "".join(piece + joint for piece, joint in parts)
)
TEXTS = st.one_of(LINES, st.text(st.sampled_from("aA0_-./:@#vpkx \n\t,3~"), max_size=80))


def spans(found: Iterator[re.Match[str]]) -> list[tuple[int, int]]:
    return [one.span() for one in found]


@settings(max_examples=400)
@given(TEXTS, st.integers(0, 60), st.integers(0, 60))
def test_values_are_those_of_the_plain_pattern(text: str, begin: int, less: int) -> None:
    end = max(begin, len(text) - less)
    wanted = [
        one.span()
        for start, stop in windows(text, begin, end)
        for one in VALUE.finditer(text, start, stop)
    ]
    assert spans(exact_values(text, begin, end)) == wanted


@settings(max_examples=400)
@given(TEXTS)
def test_paths_are_those_of_the_plain_pattern(text: str) -> None:
    wanted = [
        one.span()
        for one in PATH.finditer(text)
        if len(one[0]) > 400 or TELLING.search(one[0])  # A longer one is returned without a look.
    ]
    assert spans(paths_in(text)) == wanted


@settings(max_examples=400)
@given(TEXTS)
def test_names_are_those_of_the_plain_pattern(text: str) -> None:
    wanted = [
        (one[0], one.start())
        for one in NAME.finditer(text)
        if len(one[0]) >= 5 and not re.fullmatch("[^-]*-[^-]*", one[0])
    ]
    assert list(composed_names(text)) == wanted


@settings(max_examples=400)
@given(TEXTS, st.integers(-20, 60), st.integers(0, 60))
def test_different_names_are_main_if_one_of_each_is(text: str, start: int, size: int) -> None:
    main, wanted = range(start, start + size), dict[str, bool]()
    for name, at in composed_names(text):
        if len(name) <= 240:  # A longer one is left out.
            wanted[name] = wanted.get(name, False) or at in main
    assert list(distinct_names(text, main).items()) == list(wanted.items())


@settings(max_examples=400)
@given(TEXTS)
def test_a_text_that_may_have_no_values_has_none(text: str) -> None:
    if not may_have_values(text):
        assert [*exact_values(text), *paths_in(text), *composed_names(text)] == []


def test_each_piece_alone_may_have_the_values_that_it_has() -> None:
    for text in PIECES:
        found = [*exact_values(text), *paths_in(text), *composed_names(text)]
        assert not found or may_have_values(text), text


def test_plain_words_may_have_no_values() -> None:
    assert not may_have_values("I decided to keep the cache, as it is. Yes.")
    assert may_have_values("I keep parser_token.")
