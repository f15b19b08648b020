"""Finds commands in what people write, and says which ones are worth remembering."""

import re
from collections.abc import Iterator

_RUNS = (
    r"(?:sudo )?(?:\./[\w./-]+|(?:[\w-]+/)*[\w-]+\.(?:sh|py)|(?:npm|pnpm|yarn|npx|bunx?|deno|node|pip3?|pipx|uvx?|poetry|"
    r"python[\d.]*|pytest|ruff|mypy|tox|nox|make|cmake|ninja|bazel|gradlew?|mvn|java|go|cargo|rustup|dotnet|mix|"
    r"rails|rake|bundle|ruby|php|composer|git|gh|glab|docker(?:-compose)?|podman|kubectl|helm|terraform|ansible\S*|"
    r"vagrant|aws|gcloud|az|fly|heroku|psql|mysql|sqlite3|redis-cli|mongo\w*|curl|wget|ssh|scp|rsync|systemctl|"
    r"service|journalctl|crontab|apt(?:-get)?|brew|dnf|yum|apk|tar|unzip|chmod|chown|ffmpeg|openssl|jq|"
    r"bash|sh|zsh|pwsh|export|source|alembic|flask|uvicorn|gunicorn|celery|jest|vitest|eslint|prettier|tsc|"
    r"swift|xcodebuild|flutter|dart|refold|claude)\b)"
)
_SPAN = re.compile(r"(?<!`)`([^`\n]{3,240})`(?!`)")
_PROMPT = re.compile(r"^[ \t]*[$❯%] ([^\n]{3,240})$", re.MULTILINE)
_FENCED = re.compile(r"```(?:bash|sh|shell|zsh|console)\n(.*?)(?:```|\Z)", re.DOTALL)
_COMMAND = re.compile(_RUNS + r"(?= [^ ]|$)")
_TRIVIAL = re.compile(
    r"(?:ls|cat|pwd|echo|head|tail|wc|which|cd|grep|rg|find|tree|stat|file|sed -n|for |sleep|true|clear|history|"
    r"git (?:status|diff|log|show|branch|blame))\b",
    re.IGNORECASE,
)
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


def is_trivial(command: str) -> bool:
    """Whether a command only looks around."""
    return _TRIVIAL.match(command) is not None


def is_changing(command: str) -> bool:
    """Whether a command builds, tests, releases or removes something."""
    return _CHANGING.search(command) is not None
