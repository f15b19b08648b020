"""Find exact values and commands in texts: addresses, paths, versions, identifiers, amounts."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from refold.domain.lazy_pattern import lacks, lazy_pattern

from .fact import Kind

_RUNS = (
    r"(?:sudo )?(?:\./[\w./-]+|(?:[\w-]+/)*[\w-]+\.(?:sh|py)|(?:npm|pnpm|yarn|npx|bunx?|deno|node|pip3?|pipx|uvx?|"
    r"poetry|python[\d.]*|pytest|ruff|mypy|tox|nox|make|cmake|ninja|bazel|gradlew?|mvn|java|go|cargo|rustup|dotnet|mix|"
    r"rails|rake|bundle|ruby|php|composer|git|gh|glab|docker(?:-compose)?|podman|kubectl|helm|terraform|ansible\S*|"
    r"vagrant|aws|gcloud|az|fly|heroku|psql|mysql|sqlite3|redis-cli|mongo\w*|curl|wget|ssh|scp|rsync|systemctl|"
    r"service|journalctl|crontab|apt(?:-get)?|brew|dnf|yum|apk|tar|unzip|chmod|chown|ffmpeg|openssl|jq|"
    r"bash|sh|zsh|pwsh|export|source|alembic|flask|uvicorn|gunicorn|celery|jest|vitest|eslint|prettier|tsc|"
    r"swift|xcodebuild|flutter|dart|refold|claude)\b)"
)
_SPAN = lazy_pattern(r"(?<!`)`([^`\n]{3,240})`(?!`)")
_PROMPT = lazy_pattern(r"^[ \t]*[$❯%] ([^\n]{3,240})$", re.MULTILINE)
_COMMAND_SIGNS = ("`", "$", "❯", "%")
_FENCED = lazy_pattern(r"```(?:bash|sh|shell|zsh|console)\n(.*?)(?:```|\Z)", re.DOTALL)
_PROMPT_SIGNS = ("$", "❯", "%")
_HINT = lazy_pattern(
    r"\b(?i:run|try|execute|use|with)[: ]\s*[\"'`(]?(" + _RUNS + r"(?: [^\s\"'`,;)]+)+)"
)
_HINT_SIGNS = tuple(
    f"{word}{end}" for word in ("run", "try", "execute", "use", "with") for end in (" ", ":")
)
_END_OF_HINT = lazy_pattern(
    r" (?:to|for|and|or|in order|instead|again|if|when|before|after)\b.*|[.:]+$"
)
_COMMAND = lazy_pattern(_RUNS + r"(?= [^ ]|$)")
_TRIVIAL = lazy_pattern(
    r"(?:ls|cat|pwd|echo|head|tail|wc|which|cd|grep|rg|find|tree|stat|file|sed -n|sleep|true|clear|history|"
    r"git (?:status|diff|log|show|branch|blame))\b",
    re.IGNORECASE,
)
_EVERYDAY = lazy_pattern(
    r"git (?:add|commit|push|pull|fetch|checkout|switch|stash|restore|rebase)\b"
)
# Parts that only trim output. Without them, equal commands give equal lines.
_TRIMMED = lazy_pattern(
    r"\s+2>(?:&1|/dev/null)|\s*\|\s*(?:head|tail|grep|rg|sort|uniq|wc|less|cat|tee|cut|awk|sed)\b.*|\s*;?\s*echo\b.*"
)
_PREPARES = lazy_pattern(r"(?:set [-+]\w+|cd \S+|export \w+=\S*|\w+=\S*)(?:\s*;)?\s*")
_BRANCHING = lazy_pattern(r";|\|\||(?<![&>])&(?![&>])")
_HIDING = lazy_pattern(r"\||;|(?<![&>])&(?![&>])")
_COMPOUND = lazy_pattern(r"\s*(?:for|while|until|if|case|select|function)\b|\s*[{(]|[^\n]*<<")
_AND = lazy_pattern(r"\s+&&\s+|\s*;\s+")
_CHANGING = lazy_pattern(
    r"\b(?:commit|push|deploy|publish|install|migrate|merge|rm|mv|create|delete|release|build|test)\b"
)


def commands_in(text: str) -> Iterator[tuple[str, int]]:
    """Yield commands quoted in a text, with their starts: in backticks, after a prompt, or in shell code."""
    if not any(map(text.__contains__, _COMMAND_SIGNS)):
        return
    for found in _SPAN.finditer(text):
        if _COMMAND.match(found[1]) and " " in found[1].strip():
            yield found[1].strip(), found.start(1)
    for found in _PROMPT.finditer(text):
        yield found[1].strip(), found.start(1)
    for block in _FENCED.finditer(text):
        start = block.start(1)
        for line in block[1].splitlines(keepends=True):
            command = line.strip()
            if _COMMAND.match(line) and not command.endswith("\\"):
                yield command, start
            start += len(line)


def recommended_commands(text: str, begin: int = 0) -> Iterator[tuple[str, int]]:
    """Yield commands in a tool's output, with their starts: after a prompt, or recommended to run."""
    read = text[begin:]
    if any(map(read.__contains__, _PROMPT_SIGNS)):
        for found in _PROMPT.finditer(text, begin):
            yield found[1].strip(), found.start(1)
    if lacks(read, _HINT_SIGNS):
        return
    for found in _HINT.finditer(text, begin):
        command = _END_OF_HINT.sub("", found[1])
        if " " in command:
            yield command, found.start(1)


def steps_of(command: str) -> Iterator[str]:
    """Yield the commands that a shell line runs in sequence. A loop or a condition counts as one command."""
    start = 0
    for found in _AND.finditer(command):
        before = command[: found.start()]
        if _COMPOUND.match(command, start):
            break
        if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
            yield from _step(command[start : found.start()])
            start = found.end()
    yield from _step(command[start:])


def _step(command: str) -> Iterator[str]:
    if step := command.strip():
        yield step


def can_hide_failure(command: str) -> bool:
    """Return whether a shell line can succeed although a command in it failed or never ran."""
    return _HIDING.search(command) is not None and "pipefail" not in command


def first_real_line(places: Sequence[tuple[int, int]], command: str) -> tuple[int, int]:
    """Return the place of the first line of a script that is more than setup, or else of its first line."""
    telling = (at for at in places if not _PREPARES.fullmatch(command, *at))
    return next(telling, next(iter(places), (0, 0)))


def has_branches(command: str) -> bool:
    """Return whether a shell line can succeed without running all of its commands."""
    return _BRANCHING.search(command) is not None


def strip_trimming(command: str) -> str:
    """Return a command without the parts that only trim its output, for comparing commands."""
    trimmed = _TRIMMED.search(command)
    return (command[: trimmed.start()] if trimmed else command).strip() or command


def is_trivial(command: str) -> bool:
    """Return whether a command only looks around."""
    return _TRIVIAL.match(command) is not None


def is_changing(command: str) -> bool:
    """Return whether a command builds, tests, releases or removes something."""
    return _CHANGING.search(command) is not None


def is_everyday(command: str) -> bool:
    """Return whether a command is too common to be worth remembering."""
    return _EVERYDAY.match(command) is not None


# ASCII, so that an adjacent Chinese character does not count as part of a number's word. Each alternative takes its
# first character before it looks back: this skips all other characters fast.
_PLAIN = (
    # What begins with a digit: host, version, UUID, date, hash, and amounts.
    r"\d(?:(?<!\w\d)(?:\d{0,2}(?:\.\d{1,3}){3}:\d{2,5}\b|\d*\.\d+\.\d+(?:[-+.][\w.]+)?\b"
    r"|[0-9a-f]{7}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\d{3}-\d{2}-\d{2}\b)"
    r"|\d{0,3}年\d{1,2}月(?:\d{1,2}日)?|\d?月\d{1,2}日"
    r"|(?<![\w/.-]\d)(?=[0-9a-f]*[a-f])[0-9a-f]{6,39}(?![\w-])"
    r"|(?<![\w.,]\d)[\d,]*(?:\.\d+)?\s?(?:"
    r"%|‰|°C|[µμnm]s|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?|"
    r"[kKMGT]i?B|bytes?|bits?|[kMG]bit/s|[A-Za-z]{1,9}/(?:s|sec|min|h|day|month|request|user)|[rqf]ps|"
    r"tokens?|chars?|characters?|px|[kMG]?Hz|rows?|lines?|files?|tests?|commits?|requests?|errors?|users?|"
    r"events?|items?|records?|messages?|times|points?|[km]?m|cm|kg|kWh?|[x×])(?![\w/])"
    r"|(?<![\d.,]\d)\d{0,11}(?:\.\d+)?\s?(?:元|万元?|亿元?|美元|公里|公斤|分钟|小时|天|周|个月|年|岁|毫秒|微秒|秒|"
    r"次|条|行|个|人|件|台|倍|兆|字节|米|克|页|章|分))"
    r"|[A-Z](?<!\w[A-Z])(?:[A-Z]{1,9}-\d{1,6}\b|(?<![/.-][A-Z])[A-Z]{0,5}\d[A-Z0-9]{2,10}\b"
    r"|[A-Z0-9]+_[A-Z0-9_]{2,40}\b)"
    r"|#\d{2,10}\b|[$€£¥]\s?\d[\d,]*(?:\.\d+)?(?:\s?[kKmM]\b)?|端口\s*[:：]?\s*\d{2,5}"
)
# What begins with a small letter: hosts, ports, versions, and identifiers.
_SMALL = (
    r"|[a-z](?<!\w[a-z])(?:ocalhost(?<=localhost):\d{2,5}\b|ort(?<=port)\b[^\d\n.,;]{1,12}\d{2,5}\b"
    r"|\d(?<=v\d)\d*(?:\.\d+\.\d+(?:[-+.][\w.]+)?|(?:\.\d+)?)\b"
    r"|[0-9a-f](?<=[a-f].)[0-9a-f]{6}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|[a-z]*+(?:_[a-z]++)*+_\d{2,12}\b"
    r"|(?=[0-9a-f]{6})(?<=[a-f])(?<![/.-][a-f])(?=[0-9a-f]*\d)[0-9a-f]{6,39}(?![\w-]))"
)
_PLAIN_VALUE = lazy_pattern(_PLAIN, re.ASCII)
_SMALL_VALUE = lazy_pattern(_PLAIN + _SMALL, re.ASCII)
_VALUE = lazy_pattern(
    r"https?://[^\s<>\"'`)\]\u3000-\u9fff\uff00-\uffef]{4,200}"
    r"|[\w.+-](?<![\w.+-][\w.+-])[\w.+-]{0,63}+@(?:[\w-]{1,60}\.){1,4}[A-Za-z]{2,10}\b|"
    + _PLAIN
    + _SMALL,
    re.ASCII,
)
"""The same with addresses of the web and of mail."""
# Characters of one sort are replaced by one of them: so a plain search finds all that one could stand next to.
_DIGITS, _SMALL_LETTERS, _CAPITALS = b"0123456789", bytes(range(97, 123)), bytes(range(65, 91))


def _merging(*sorts: bytes) -> bytes:
    """Return a table for ``bytes.translate`` that replaces the characters of each sort by its first one."""
    table = bytearray(range(256))
    for sort in sorts:
        for byte in sort:
            table[byte] = sort[0]
    return bytes(table)


_BLANK = b" \t\n\r\v\f"
_NUMBERS = _merging(_DIGITS, _SMALL_LETTERS + _CAPITALS + b"%", _BLANK)
_NUMBER_SIGNS = (b"0a", b"0 a", b"0.0", b"0-0", b"0-a")
_IDS = _merging(_DIGITS, _CAPITALS, _BLANK)
_ID_SIGNS = (b"A0", b"A-0", b"A_", b"#0", b"$0", b"$ 0")
"""Each plain value in a text of ASCII characters has one of these signs, or one of the numbers."""
_SMALL_ID_SIGNS = (b"_00", b"v0")
_HASHES = _merging(_DIGITS + b"abcdef")
_HASH_SIGN = b"0000000"
_FOLDERS = (
    r"~(?<![\w./~:@+-]~)/(?:[\w.@+-]++/)+[\w.@+-]*\w|/(?<![\w./~:@+-]/)(?:[\w.@+-]++/)+[\w.@+-]*\w"
    r"|[\w.@+-](?<![\w./~:@+-][\w.@+-])[\w.@+-]*+/(?:[\w.@+-]++/)*[\w.@+-]*\w|"
)
_FILE = (
    r"\w(?<![\w./~:@+-]\w)[\w-]*+(?=\.)[\w.-]*\.(?:pyi?|tsx?|jsx?|mjs|go|rs|java|kts?|rb|php|cc?|hh?|cpp|hpp|cs|"
    r"swift|scala|sh|sql|jsonl?|ya?ml|toml|ini|cfg|conf|env|mdx?|rst|txt|csv|tsv|xml|html?|s?css|lock|log|proto|tf|"
    r"ipynb|vue|svelte|gradle|mod|sum|db|png|jpe?g|svg|pdf|docx?|xlsx?|zip|gz)\b(?![\w/(])"
)
_PATH, _FILE_NAME = lazy_pattern(_FOLDERS + _FILE, re.ASCII), lazy_pattern(_FILE, re.ASCII)
_TELLS = lazy_pattern(r"[\d@_/-]|[a-z][A-Z]|\.[a-z]{1,6}+(?![\w/(])", re.ASCII)
_MAY_END_FILE = lazy_pattern(r"\.[a-z]{1,6}+(?![\w/(])", re.ASCII)
"""The end of every file name."""
_SUFFIX = lazy_pattern(r"\.[A-Za-z]\w{0,7}$")
_TELLING = lazy_pattern(r"^(?:~|\.{1,2})?/|[\d_.-].*/.*/|/.*/.*[\d_.-]")
# Every value contains one of these. The full pattern is slow and only runs around them.
# Numbers that tools print in front of lines are skipped.
_SIGN = lazy_pattern(r"^[ \t]*\d+[→\t]|([\d@_]|://)\S{0,100}", re.MULTILINE)
_ANY_SIGN = lazy_pattern(r"[\d@_]|://")
_TWO_WORDS = lazy_pattern(r"(?:\S{0,209}\s|\S{0,210})(?:\S{0,209}\s|\S{0,210})")
_WORD = 70
_LONGEST_WORD = 210
_MARGIN = 24
_CLEAR = 24
_LONGEST = 400


def may_have_values(text: str) -> bool:
    """Return whether a text has a part that every path, composed name or value of ASCII characters has."""
    return _TELLS.search(text) is not None or not text.isascii()


def exact_values(text: str, begin: int = 0, end: int | None = None) -> Iterator[re.Match[str]]:
    """Yield the values in a range of a text, in order, except paths (see ``paths_in``)."""
    end = len(text) if end is None else end
    if _ANY_SIGN.search(text, begin, end) is None:
        return
    pattern = _pattern_for(text)
    if pattern is _PLAIN_VALUE and text.isascii():
        read = text[max(0, begin - 2 * _WORD) : end + 2 * _LONGEST_WORD].encode()
        if not _has_sign(read.translate(_NUMBERS), _NUMBER_SIGNS) and not _has_sign(
            read.translate(_IDS), _ID_SIGNS
        ):
            return
    for start, stop in _windows(text, begin, end):
        yield from pattern.finditer(text, start, stop)


def _has_sign(text: bytes, signs: Iterable[bytes]) -> bool:
    return any(map(text.__contains__, signs))


def _pattern_for(text: str) -> re.Pattern[str]:
    """Return the fastest pattern that finds all values of a text."""
    if "@" in text or "://" in text:
        return _VALUE
    if "localhost" in text or "port" in text:
        return _SMALL_VALUE
    read = text.encode("utf-8", "surrogatepass")
    if _has_sign(read.translate(_IDS), _SMALL_ID_SIGNS) or _HASH_SIGN in read.translate(_HASHES):
        return _SMALL_VALUE
    return _PLAIN_VALUE


def _windows(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range that may contain values.

    Each range has the words with a sign of a value, one word before ("port 80") and one word after ("3
    GB").
    """
    first = last = -1
    two_words = _TWO_WORDS.match
    for sign in _SIGN.finditer(text, begin, end):
        at, stop = sign.span()
        if stop <= last - _MARGIN or sign.lastindex is None:
            continue
        # Without a space between them, the window before reaches this sign.
        if last < 0 or at > last + _WORD or text.find(" ", last, at - 1) >= 0:
            start = _word_before(text, _word_before(text, at))
            if start > last:
                if last >= 0:
                    yield first, last
                first = start
        if found := two_words(text, stop):
            last = found.end()
    if last >= 0:
        yield first, last


def _word_before(text: str, at: int) -> int:
    least = max(0, at - _WORD)
    return max(least, text.rfind(" ", least, max(least, at - 1)) + 1)


def paths_in(text: str) -> Iterator[re.Match[str]]:
    """Yield matches that are clearly file paths, or folder paths in the same notation."""
    if "/" in text:
        places = _PATH.finditer(text)
    elif "." in text and _MAY_END_FILE.search(text):
        places = _FILE_NAME.finditer(text)
    else:
        return iter(())
    return (
        found
        for found in places
        # Long matches are returned unchecked: they are dropped later, and so no part of them
        # becomes a value.
        if found.end() - found.start() > _LONGEST
        or _SUFFIX.search(found[0])
        or _TELLING.search(found[0])
    )


_NOTHING = lazy_pattern(
    r"(?:UTF|SHA|MD|ISO)-\d{1,5}|/dev/\w+|(?:/usr)?/bin/(?:ba|z|da)?sh|/usr/bin/env|(?:19|20)\d\d年?|/tmp/?"
)
_BEGIN_OF_NOTHING = ("U", "S", "M", "I", "/", "1", "2")
_FEW = lazy_pattern(
    r"\d{1,3} (?:files?|lines?|items?|times|rows?|points?|records?|commits?)|#\d{1,2}"
)


def says_nothing(value: str, *, by_tool: bool) -> bool:
    """Return whether a value is too common to keep, or a small count reported by a tool."""
    if value[:1] in _BEGIN_OF_NOTHING and _NOTHING.fullmatch(value):
        return True
    return by_tool and _FEW.fullmatch(value) is not None


class ExactValue(NamedTuple):
    """A value in a text."""

    kind: Kind
    text: str
    start: int
    is_clear: bool
    """Whether the value explains itself, as a path does."""


def values_in(text: str, ranges: Sequence[tuple[int, int]] | None = None) -> Iterator[ExactValue]:
    """Yield the paths of a text and the values in these ranges of it, in order.

    A part of a path or address is not a value.
    """
    paths, at = [found.span() for found in paths_in(text)], 0
    for begin, end in ((0, len(text)),) if ranges is None else ranges:
        for found in exact_values(text, begin, end):
            start, stop = found.span()
            while at < len(paths) and paths[at][1] <= start:
                yield _path(text, paths[at])
                at += 1
            whole = "://" in found[0] or "@" in found[0]
            if whole:
                while at < len(paths) and paths[at][0] < stop:
                    at += 1
            elif at < len(paths) and paths[at][0] < stop:
                continue
            value = found[0].rstrip(".,;:")
            yield ExactValue(kind_of_value(value), value, start, whole or len(value) > _CLEAR)
    for span in paths[at:]:
        yield _path(text, span)


def _path(text: str, span: tuple[int, int]) -> ExactValue:
    return ExactValue("path", text[slice(*span)], span[0], is_clear=True)


_VERSION = lazy_pattern(r"v?\d+(?:\.\d+){2,}[\w.+-]*|v\d+(?:\.\d+)*")
_HOST = lazy_pattern(r"://|@|localhost|^\d+(?:\.\d+){3}:")
_ID = lazy_pattern(
    r"#\d+|[A-Z]+-\d+|[A-Z]+\d[A-Z0-9]*|[A-Z][A-Z0-9]+_[A-Z0-9_]+|[a-z]+(?:_[a-z]+)*_\d+|[0-9a-f]{7,40}|[0-9a-f-]{36}"
)


def kind_of_value(value: str) -> Kind:
    """Return the kind of a value that is neither a path nor a name."""
    if _HOST.search(value):
        return "address"
    if _VERSION.fullmatch(value):
        return "version"
    return "id" if _ID.fullmatch(value) else "number"


_PIPES = lazy_pattern(r"\s*(?:\|\||\|)\s*")


def steps_and_pipes(command: str) -> Iterator[str]:
    """Yield the steps of a command, and the commands of their pipes.

    A text in quotes or a document stays whole.
    """
    steps = [step for line in _shell_lines(command) for step in steps_of(line)]
    for step in steps:
        parts = _PIPES.split(step)
        if len(steps) > 1:
            yield step
        yield from parts if len(parts) > 1 else ()


def _shell_lines(command: str) -> Iterator[str]:
    """Yield the lines of a command. Lines that a quotation or a document joins are one."""
    if "<<" in command:
        yield command.strip()
        return
    held = ""
    for line in command.splitlines():
        held = f"{held}\n{line}" if held else line.strip()
        if held and held.count('"') % 2 == 0 and held.count("'") % 2 == 0:
            yield held
            held = ""
    if held:
        yield held
