"""Finds exact values: addresses, paths, versions, identifiers, ports, amounts, numbers with a unit."""

import re
from collections.abc import Iterator

# ASCII: a Chinese character beside a number is no part of its word.
_VALUE = re.compile(
    r"(?:https?://[^\s<>\"'`)\]\u3000-\u9fff\uff00-\uffef]{4,200})"
    r"|(?:(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,60}\.){1,4}[A-Za-z]{2,10}\b)"
    r"|(?:\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d{2,5}\b|\bport\b[^\d\n.,;]{1,12}\d{2,5}\b|端口\s*[:：]?\s*\d{2,5})"
    r"|(?:\bv?\d+\.\d+\.\d+(?:[-+.][\w.]+)?\b|\bv\d+(?:\.\d+)?\b)"
    r"|(?:\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
    r"|(?:[$€£¥]\s?\d[\d,]*(?:\.\d+)?(?:\s?[kKmM]\b)?)"
    r"|(?:\b\d{4}-\d{2}-\d{2}\b|\d{1,4}年\d{1,2}月(?:\d{1,2}日)?|\d{1,2}月\d{1,2}日)"
    r"|(?:\b[A-Z]{2,10}-\d{1,6}\b|(?<![\w/.-])[A-Z]{1,6}\d[A-Z0-9]{2,10}\b|\b[A-Z][A-Z0-9]+_[A-Z0-9_]{2,40}\b"
    r"|\b[a-z]+(?:_[a-z]+)*_\d{2,12}\b|#\d{2,10}\b|(?<![\w/.-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w-]))"
    r"|(?:(?<![\w.,])\d[\d,]*(?:\.\d+)?\s?(?:"
    r"%|‰|°C|[µμnm]s|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?|"
    r"[kKMGT]i?B|bytes?|bits?|[kMG]bit/s|[A-Za-z]{1,9}/(?:s|sec|min|h|day|month|request|user)|[rqf]ps|"
    r"tokens?|chars?|characters?|px|[kMG]?Hz|rows?|lines?|files?|tests?|commits?|requests?|errors?|users?|"
    r"events?|items?|records?|messages?|times|points?|[km]?m|cm|kg|kWh?|[x×])(?![\w/])"
    r"|(?<![\d.,])\d{1,12}(?:\.\d+)?\s?(?:元|万元?|亿元?|美元|公里|公斤|分钟|小时|天|周|个月|年|岁|毫秒|微秒|秒|"
    r"次|条|行|个|人|件|台|倍|兆|字节|米|克|页|章|分))",
    re.ASCII,
)
_PATH = re.compile(
    r"(?<![\w./~:@+-])(?:(?:~|\.{1,2})?/)?(?:[\w.@+-]+/)+[\w.@+-]*\w"
    r"|(?<![\w./~:@+-])[\w][\w.-]*\.(?:pyi?|tsx?|jsx?|mjs|go|rs|java|kts?|rb|php|cc?|hh?|cpp|hpp|cs|swift|scala|"
    r"sh|sql|jsonl?|ya?ml|toml|ini|cfg|conf|env|mdx?|rst|txt|csv|tsv|xml|html?|s?css|lock|log|proto|tf|ipynb|"
    r"vue|svelte|gradle|mod|sum|db|png|jpe?g|svg|pdf|docx?|xlsx?|zip|gz)\b(?![\w/(])",
    re.ASCII,
)
_TELLING = re.compile(r"^(?:~|\.{1,2})?/|\.[A-Za-z]\w{0,7}$|[\d_.-].*/.*/|/.*/.*[\d_.-]")
# What every value holds; the full pattern is slow and is only tried around these.
_SIGN = re.compile(r"[\d@_]|://")
_BLANK = re.compile(r"\s")


def exact_values(text: str) -> Iterator[re.Match[str]]:
    """The values in a text, in order; paths are found by ``paths_in``."""
    done = 0
    while sign := _SIGN.search(text, done):
        start, end = sign.span()
        for _ in range(2):  # The token that holds the sign, and the one before ("port 80").
            start = max(
                done, text.rfind(" ", max(done, start - 70), max(done, start - 1)) + 1, start - 70
            )
        blank = _BLANK.search(text, end, end + 220)
        stop = min(len(text), (blank.end() if blank else end + 220) + 12)
        for found in _VALUE.finditer(text, start, stop):
            yield found
            end = max(end, found.end())
        done = max(end, blank.start() if blank else stop)


def paths_in(text: str) -> Iterator[re.Match[str]]:
    """What is plainly the path of a file, or of a folder that is written as one."""
    return (found for found in _PATH.finditer(text) if _TELLING.search(found[0]))


def values_in(line: str) -> Iterator[tuple[str, int]]:
    """Values and paths of a line, and where each begins; a part of a path or address is none."""
    paths = [found.span() for found in paths_in(line)]
    for found in exact_values(line):
        start, stop = found.span()
        whole = "://" in found[0] or "@" in found[0]
        if whole:
            paths = [(a, b) for a, b in paths if b <= start or stop <= a]
        elif any(a < stop and start < b for a, b in paths):
            continue
        yield found[0].rstrip(".,;:"), start
    for start, stop in paths:
        yield line[start:stop], start
