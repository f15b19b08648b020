"""The commands of README.md print what the page shows."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt

from tests.support.command_line import ran

README = Path(__file__).parents[2] / "README.md"


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands in blocks marked ``console``, each with the lines that are shown below it."""
    for token in MarkdownIt().parse(text):
        if token.type == "fence" and token.info == "console":
            for part in token.content.removeprefix("$ ").split("\n$ "):
                command, *lines = part.splitlines()
                yield command, lines


def is_shown(line: str, printed: list[str]) -> bool:
    """Whether a line was printed; ``…`` at its end is for the rest of the line."""
    begin = line.strip().removesuffix("…").strip()
    return any(one.strip().startswith(begin) for one in printed)


def test_the_commands_of_the_readme_print_what_the_page_shows(tmp_path: Path) -> None:
    tour = list(commands(README.read_text("utf-8")))
    assert len(tour) == 5
    for command, lines in tour:
        program, *words = shlex.split(command)
        assert program == "refold"
        done = ran(*words, folder=tmp_path, env={"COLUMNS": "100"})
        assert done.code == 0, f"{command}: {done.err}"
        printed = done.out.splitlines()
        missing = [line for line in lines if not is_shown(line, printed)]
        assert not missing, f"{command} does not print {missing}"


def test_commands_are_told_apart_and_have_their_lines() -> None:
    page = "```console\n$ refold a\n1\n2 …\n$ refold b --c\n```\n\n```sh\nrefold d\n```\n"
    assert list(commands(page)) == [("refold a", ["1", "2 …"]), ("refold b --c", [])]
    assert is_shown("2 …", ["1", "  2 and 3"])
    assert not is_shown("2 and 4", ["2 and 3"])
