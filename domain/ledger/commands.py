"""Finds commands in what people write, and says which ones are worth remembering."""

import re
from collections.abc import Iterator, Sequence

_RUNS = (
    r"(?:sudo )?(?:\./[\w./-]+|(?:[\w-]+/)*[\w-]+\.(?:sh|py)|(?:npm|pnpm|yarn|npx|bunx?|deno|node|pip3?|pipx|uvx?|"
    r"poetry|python[\d.]*|pytest|ruff|mypy|tox|nox|make|cmake|ninja|bazel|gradlew?|mvn|java|go|cargo|rustup|dotnet|mix|"
    r"rails|rake|bundle|ruby|php|composer|git|gh|glab|docker(?:-compose)?|podman|kubectl|helm|terraform|ansible\S*|"
    r"vagrant|aws|gcloud|az|fly|heroku|psql|mysql|sqlite3|redis-cli|mongo\w*|curl|wget|ssh|scp|rsync|systemctl|"
    r"service|journalctl|crontab|apt(?:-get)?|brew|dnf|yum|apk|tar|unzip|chmod|chown|ffmpeg|openssl|jq|"
    r"bash|sh|zsh|pwsh|export|source|alembic|flask|uvicorn|gunicorn|celery|jest|vitest|eslint|prettier|tsc|"
    r"swift|xcodebuild|flutter|dart|refold|claude)\b)"
)
_SPAN = re.compile(r"(?<!`)`([^`\n]{3,240})`(?!`)")
_PROMPT = re.compile(r"^[ \t]*[$❯%] ([^\n]{3,240})$", re.MULTILINE)
_FENCED = re.compile(r"```(?:bash|sh|shell|zsh|console)\n(.*?)(?:```|\Z)", re.DOTALL)
_HINT = re.compile(
    r"\b(?i:run|try|execute|use|with)[: ]\s*[\"'`(]?(" + _RUNS + r"(?: [^\s\"'`,;)]+)+)"
)
_END_OF_HINT = re.compile(
    r" (?:to|for|and|or|in order|instead|again|if|when|before|after)\b.*|[.:]+$"
)
_COMMAND = re.compile(_RUNS + r"(?= [^ ]|$)")
_TRIVIAL = re.compile(
    r"(?:ls|cat|pwd|echo|head|tail|wc|which|cd|grep|rg|find|tree|stat|file|sed -n|sleep|true|clear|history|"
    r"git (?:status|diff|log|show|branch|blame))\b",
    re.IGNORECASE,
)
_EVERYDAY = re.compile(r"git (?:add|commit|push|pull|fetch|checkout|switch|stash|restore|rebase)\b")
# What only trims the output; without it, the same command is the same line.
_TRIMMED = re.compile(
    r"\s+2>(?:&1|/dev/null)|\s*\|\s*(?:head|tail|grep|rg|sort|uniq|wc|less|cat|tee|cut|awk|sed)\b.*|\s*;?\s*echo\b.*"
)
_PREPARES = re.compile(r"(?:set [-+]\w+|cd \S+|export \w+=\S*|\w+=\S*)(?:\s*;)?\s*")
_BRANCHING = re.compile(r";|\|\||(?<![&>])&(?![&>])")
_HIDING = re.compile(r"\||;|(?<![&>])&(?![&>])")
_COMPOUND = re.compile(r"\s*(?:for|while|until|if|case|select|function)\b|\s*[{(]|[^\n]*<<")
_AND = re.compile(r"\s+&&\s+|\s*;\s+")
_CHANGING = re.compile(
    r"\b(?:commit|push|deploy|publish|install|migrate|merge|rm|mv|create|delete|release|build|test)\b"
)


def commands_in(text: str) -> Iterator[str]:
    """Commands that a text quotes: in backticks, behind a prompt, in a block of shell code."""
    for found in _SPAN.finditer(text):
        if _COMMAND.match(found[1]) and " " in found[1].strip():
            yield found[1].strip()
    for found in _PROMPT.finditer(text):
        yield found[1].strip()
    for block in _FENCED.finditer(text):
        for line in block[1].splitlines():
            if _COMMAND.match(line) and not line.endswith("\\"):
                yield line.strip()


def commands_hinted(text: str) -> Iterator[str]:
    """Commands that a tool's output shows behind a prompt, or tells to run."""
    for found in _PROMPT.finditer(text):
        yield found[1].strip()
    for found in _HINT.finditer(text):
        command = _END_OF_HINT.sub("", found[1])
        if " " in command:
            yield command


def steps_of(command: str) -> Iterator[str]:
    """The commands that a line of shell runs one after another; a loop or a condition is one of them."""
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


def hides_failure(command: str) -> bool:
    """Return whether a shell line can succeed although a command in it failed or never ran."""
    return _HIDING.search(command) is not None and "pipefail" not in command


def first_telling(places: Sequence[tuple[int, int]], command: str) -> tuple[int, int]:
    """Return the place of the first line of a script that does more than set it up, or of its first line."""
    telling = (at for at in places if not _PREPARES.fullmatch(command, *at))
    return next(telling, next(iter(places), (0, 0)))


def branches(command: str) -> bool:
    """Return whether a shell line can succeed without running all of its commands."""
    return _BRANCHING.search(command) is not None


def without_trimming(command: str) -> str:
    """A command without what only trims its output: what it is compared by."""
    trimmed = _TRIMMED.search(command)
    return (command[: trimmed.start()] if trimmed else command).strip() or command


def is_trivial(command: str) -> bool:
    """Whether a command only looks around."""
    return _TRIVIAL.match(command) is not None


def is_changing(command: str) -> bool:
    """Whether a command builds, tests, releases or removes something."""
    return _CHANGING.search(command) is not None


def is_everyday(command: str) -> bool:
    """Whether nobody needs to be told how it is called."""
    return _EVERYDAY.match(command) is not None
