"""The code of a page: its Python blocks and ``sh`` blocks that begin with a program of refold, as one script.

Comments right before a block say how it is run:

- ``<!-- no-test: it needs a server -->``: it is not run, for this reason.
- ``<!-- needs: langchain, agents -->``: it is run where these modules are installed.

A ``text`` block right after a block that is run shows what it prints; ``…`` is any text. A command whose comment
begins with "exit code 1" must end with this code, any other with 0.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

COLUMNS = 100
"""Width of the terminal in which commands are run."""
_COMMENT = re.compile(r"<!-- (no-test|needs)(?:: (.+?))? -->", re.DOTALL)
_EXIT_CODE = re.compile(r"^(.*?)\s+# exit code (\d+).*$", re.MULTILINE)
_PROGRAMS = ("refold ", "sqlite-utils ")
_MARK = "\x1e"
_BEGIN = (
    "_sh = lambda code: __import__('subprocess').run(['bash', '-euc', code], check=True)  # noqa"
)


class Block(NamedTuple):
    """A block that is run. Its code begins at a line of the page, counted from 1."""

    line: int
    language: str
    code: str
    shown: str | None
    """The output that the page shows, or None if it shows none."""
    needs: tuple[str, ...] = ()


class LeftOut(NamedTuple):
    """A block that is not run, and the reason."""

    line: int
    reason: str


class Ran(NamedTuple):
    """Result of a page's script: what each block printed, by its line."""

    code: int
    printed: Mapping[int, str]
    errors: str


def blocks_of(text: str) -> Iterator[Block | LeftOut]:
    """Yield the blocks of Python and of commands, in their order."""
    tokens = MarkdownIt().parse(text)
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if not _is_code(token) or token.map is None:
            continue
        comment = _COMMENT.fullmatch(before.content.strip()) if before else None
        line = token.map[0] + 2
        if comment and comment[1] == "no-test":
            yield LeftOut(line, comment[2] or "")
            continue
        needs = tuple(re.findall(r"[\w.]+", comment[2])) if comment else ()
        shown = after.content if after and _info(after) == "text" else None
        yield Block(line, _info(token), token.content, shown, needs)


def _info(token: Token) -> str:
    return (token.info.split() or [""])[0] if token.type == "fence" else ""


def _is_code(token: Token) -> bool:
    """Return whether a block is Python, or begins with a program that is installed with refold."""
    language = _info(token)
    return language == "python" or (language == "sh" and token.content.startswith(_PROGRAMS))


def code_of(text: str) -> list[Block]:
    """Return the blocks that are run."""
    return [block for block in blocks_of(text) if isinstance(block, Block)]


def missing_modules(text: str) -> list[str]:
    """Return the modules that blocks need and that are not installed."""
    needed = {name for block in code_of(text) for name in block.needs}
    return sorted(name for name in needed if not _is_installed(name))


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # Of a package that is not installed.
        return False


def as_script(text: str) -> str:
    """Return all blocks as one Python script; a line of it has the number that it has in the page."""
    lines = [""] * len(text.splitlines())
    lines[0] = _BEGIN
    for block in code_of(text):
        code = block.code.splitlines()
        if block.language == "sh":
            code = [f"_sh({_checked(block.code)!r})"]
        begin = block.line - 1
        lines[begin : begin + len(code)] = code
        lines[begin - 1] = f"print({_MARK + str(block.line) + _MARK!r}, end='', flush=True)"
    return "\n".join(lines) + "\n"


def _checked(commands: str) -> str:
    """Return commands of which those must fail that the page says will fail."""
    return _EXIT_CODE.sub(r"{ \1 && exit 99; } || [ $? -eq \2 ]", commands)


def run(text: str, folder: Path, environment: Mapping[str, str] | None = None) -> Ran:
    """Run the code of a page in a folder."""
    script = folder / "page.py"
    script.write_text(as_script(text), "utf-8")
    done = subprocess.run(
        [sys.executable, script.name],
        cwd=folder,
        env={**_environment(folder), **(environment or {})},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=180,
    )
    _, *parts = done.stdout.split(_MARK)
    printed = dict(zip(map(int, parts[::2]), parts[1::2], strict=True))
    return Ran(done.returncode, printed, done.stderr)


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment without settings, and without keys: what would call a paid service has to say no-test."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("_API_KEY") and not name.startswith("REFOLD_")
    }
    programs = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", "")))
    return {
        **kept,
        "PATH": programs,
        "HOME": str(folder),
        "TZ": "UTC",
        "COLUMNS": str(COLUMNS),
        "PYTHONUNBUFFERED": "1",
        "PYTHONUTF8": "1",
    }


def faults_of(text: str, ran: Ran) -> Iterator[str]:
    """Yield a line for each difference between what a page says and what its code did."""
    if ran.code:
        yield f"the code ended with {ran.code}: {ran.errors[-2_000:]}"
        return
    for block in code_of(text):
        printed = ran.printed[block.line]
        if block.shown is not None and not fits(block.shown, printed):
            yield f"line {block.line} printed:\n{printed}"


def fits(shown: str, printed: str) -> bool:
    """Return whether a page shows what was printed. ``…`` on a line of its own is any number of lines."""
    lines = _trimmed(shown).splitlines()
    pattern = "".join(
        "(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*?") + "\n"
        for line in lines
    )
    return re.fullmatch(pattern, _trimmed(printed)) is not None


def _trimmed(text: str) -> str:
    """Return a text without spaces at the ends of lines and empty lines around it."""
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(lines).strip("\n") + "\n"
