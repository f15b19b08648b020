"""The pages about the code are true: each path exists, each room is named, each walk enters what is named."""

import re
from pathlib import Path

import pytest

import refold
from tests.architecture.rules import LAYERS, ROOT
from tests.support.entered_files import entered_files
from tests.support.howto_pages import PAGES as HOWTO
from tests.support.howto_pages import steps_of

PAGE = ROOT / "docs" / "architecture.md"
REQUIREMENTS = ROOT / "docs" / "requirements.md"
TOP = ("domain", "application", "infrastructure", "tests", "docs", "src")
_PATH = re.compile(rf"`((?:{'|'.join(TOP)})/[\w./-]*)`")
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
_CREATED = frozenset(
    {
        "tests/golden/events/mood_noted.1.json",
        "docs/schemas/mood_noted.1.json",
        *(step.path for page in HOWTO for step in steps_of(page) if step.text),
    }
)
"""What the how-to pages make."""
_WALK = re.compile(r"^## Walk \d: (\w+)$(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
ONLY_SOMETIMES = frozenset(
    {"application/compaction/background.py", "infrastructure/recall/vectors.py"}
)
"""Entered by a walk with compactions in the background, or with an embedder."""


def paths_in(text: str) -> set[str]:
    return set(_PATH.findall(text))


@pytest.mark.parametrize("page", [PAGE, *HOWTO], ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    named = paths_in(page.read_text("utf-8"))
    assert named
    assert [path for path in sorted(named - _CREATED) if not (ROOT / path).exists()] == []


def test_every_room_is_named() -> None:
    rooms = {
        f"{init.parent.relative_to(ROOT)}/"
        for layer in LAYERS
        for init in (ROOT / layer).rglob("__init__.py")
    }
    assert sorted(rooms - paths_in(PAGE.read_text("utf-8"))) == []


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The files that each walk enters."""
    found: dict[str, set[str]] = {}
    path: Path = tmp_path_factory.mktemp("walks") / "agent.db"
    with refold.open(path, window=8_000) as memory:
        conversation = memory.conversation("walk")
        with entered_files() as found["append"]:
            conversation.append({"role": "user", "content": [{"type": "text", "text": "go"}]})
        for number in range(60):
            text = f"question {number} about src/a{number}.py " + "word " * 60
            conversation.append({"role": "assistant", "content": "answer " * 60})
            conversation.append({"role": "user", "content": text})
        with entered_files() as found["context"]:
            assert conversation.context().summary is not None
        with entered_files() as found["recall"]:
            assert conversation.recall("about src/a5.py")
    return found


def test_the_walks_enter_every_file_that_the_page_names(entered: dict[str, set[str]]) -> None:
    walks = dict(_WALK.findall(PAGE.read_text("utf-8")))
    assert walks.keys() == entered.keys()
    for walk, text in walks.items():
        assert sorted(paths_in(text) - entered[walk] - ONLY_SOMETIMES) == [], walk


def test_every_drawing_is_small() -> None:
    drawings = re.findall(r"```mermaid\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(drawings) == 3
    for drawing in drawings:
        assert len(set(re.findall(r"\b[A-Z]\b", drawing))) <= 12


def test_every_feature_names_a_test_that_exists() -> None:
    rows = [
        line
        for line in REQUIREMENTS.read_text("utf-8").splitlines()
        if line.startswith("|") and not line.startswith(("|--", "| feature"))
    ]
    assert len(rows) > 60
    for row in rows:
        tests = _TEST.findall(row)
        assert tests, f"no test is named for: {row}"
        for path, name in tests:
            assert (ROOT / path).is_file(), f"there is no {path}: {row}"
            assert not name or f"def {name}(" in (ROOT / path).read_text("utf-8"), (
                f"no {name} in {path}"
            )
