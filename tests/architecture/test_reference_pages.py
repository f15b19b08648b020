"""The reference is complete and current: commands, events, tables, and every public name of the API."""

import re
import runpy
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from inspect import getmembers, iscoroutinefunction

import pytest

import refold
from tests.architecture.rules import ROOT

REFERENCE = ROOT / "docs" / "reference"
MODULE = re.compile(r"\.\. currentmodule:: (\S+)")
DIRECTIVE = re.compile(r"\.\. auto\w+:: (\w+)")
FACES = [
    (refold.AsyncMemory, refold.Memory),
    (refold.AsyncConversationMemory, refold.ConversationMemory),
    (refold.AsyncToolbox, refold.Toolbox),
    (refold.AsyncFollower, refold.Follower),
]


def test_the_pages_are_those_of_the_code() -> None:
    pages = dict(runpy.run_path(str(REFERENCE / "write_pages.py"))["pages"]())
    found = {name: (REFERENCE / name).read_text("utf-8") for name in pages}
    changed = [name for name, text in pages.items() if found[name] != text]
    assert changed == [], "run: python docs/reference/write_pages.py"


def test_a_page_names_a_default_only_if_there_is_one() -> None:
    pages = (path.read_text("utf-8") for path in (REFERENCE / "commands").glob("*.md"))
    assert not any("Default: ." in page for page in pages)


@pytest.mark.parametrize("name", ["demo", "play", "claude-code"])
def test_an_option_with_another_meaning_than_elsewhere_is_described(name: str) -> None:
    page = REFERENCE / "commands" / ("connect.md" if name == "claude-code" else "start.md")
    section = page.read_text("utf-8").partition(f"## {name}\n")[2].partition("\n## ")[0]
    assert "| `--db P" in section
    assert "Also: `--json`" in section


def described() -> Iterator[str]:
    """The names of the API pages, each with its module."""
    for page in REFERENCE.glob("*.rst"):
        module = ""
        for line in page.read_text("utf-8").splitlines():
            if named := MODULE.fullmatch(line):
                module = named[1]
            elif directive := DIRECTIVE.fullmatch(line):
                yield f"{module}.{directive[1]}"


def names_of(module: str) -> set[str]:
    return {f"{module}.{name}" for name in import_module(module).__all__}


@pytest.mark.parametrize("module", ["refold", "refold.testing", "refold.inspector"])
def test_every_public_name_is_described(module: str) -> None:
    assert names_of(module) - set(described()) == set()


def test_no_name_is_described_twice_and_none_that_is_not_public() -> None:
    counted = Counter(described())
    assert [name for name, times in counted.items() if times > 1] == []
    ours = {name for name in counted if not name.startswith("refold.adapters.")}
    modules = ("refold", "refold.testing", "refold.inspector")
    assert ours == set().union(*map(names_of, modules))


def test_every_adapter_is_described() -> None:
    """Read from the text: the frameworks need not be installed."""
    for path in (ROOT / "src" / "refold" / "adapters").glob("*.py"):
        public = re.search(
            r"^__all__ = \[(.*?)\]", path.read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
        names = re.findall(r'"(\w+)"', public[1]) if public else []
        expected = {f"refold.adapters.{path.stem}.{name}" for name in names}
        assert expected - set(described()) == set()


def test_the_page_on_asyncio_names_what_is_not_awaited_and_what_differs() -> None:
    page = (REFERENCE / "asyncio.rst").read_text("utf-8")
    for face, plain in FACES:
        here = {name: one for name, one in getmembers(face) if not name.startswith("_")}
        there = {name: one for name, one in getmembers(plain) if not name.startswith("_")}
        unlike = {
            name for name in there if isinstance(there[name], property) and callable(here[name])
        }
        at_once = {
            name for name, one in here.items() if callable(one) and not iscoroutinefunction(one)
        }
        for name in unlike | at_once | (there.keys() - here.keys()):
            assert f"``{name}``" in page, f"{face.__name__}.{name}"
