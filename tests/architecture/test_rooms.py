"""The house stays as it is drawn: few modules, one meaning a name, no circles, few files on each walk."""

from pathlib import Path, PurePath

import pytest

import refold
from refold import Memory
from refold.domain.late_model import late_classes, read_classes
from tests.architecture import rooms
from tests.architecture.rules import LAYERS, ROOT, Module
from tests.support.entered_files import entered_files

MODULES = rooms.product_modules()
GRAPH = rooms.imports_between(MODULES)


def test_there_are_few_modules() -> None:
    assert len(MODULES) <= rooms.MOST_MODULES


def test_no_base_name_occurs_twice_in_a_layer() -> None:
    assert list(rooms.shared_names(MODULES)) == []


def test_no_modules_import_each_other() -> None:
    assert rooms.circles(GRAPH) == []


def test_no_small_module_serves_a_single_user() -> None:
    assert list(rooms.small_with_one_user(MODULES, GRAPH)) == []


def test_a_feature_has_one_room_in_a_layer() -> None:
    """Rooms with one module would be a file; rooms with many have a name that says what for."""
    for layer in LAYERS:
        for room in {m.path.parent for m in MODULES if m.path.parts[0] == layer}:
            assert len([m for m in MODULES if m.path.parent == room]) > 1 or len(room.parts) == 1


def module(path: str, text: str = "") -> Module:
    return Module(PurePath(path), text)


def test_a_name_that_occurs_twice_is_found() -> None:
    twice = [module("domain/a/x.py"), module("domain/b/x.py"), module("application/x.py")]
    assert list(rooms.shared_names(twice)) == ["domain: x (2 files)"]


def test_a_circle_through_type_checking_is_found() -> None:
    text = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from refold.domain.b import B\n"
    )
    pair = [module("domain/a.py", text), module("domain/b.py", "def f():\n    from .a import A\n")]
    graph = rooms.imports_between(pair)
    assert rooms.circles(graph) == [["domain/a.py", "domain/b.py"]]


def test_a_small_module_with_one_user_is_found() -> None:
    pair = [module("domain/a.py", "from .b import B\n"), module("domain/b.py", "B = 1\n")]
    (found,) = rooms.small_with_one_user(pair, rooms.imports_between(pair))
    assert found.startswith("domain/b.py: 1 lines and one user: move it")


@pytest.mark.parametrize(
    ("path", "text", "counts"),
    [
        ("domain/b.py", "def pin(state) -> tuple[MessagePinned, ...]: ...\n", False),
        ("domain/b.py", "def decide(state) -> Sequence[Event]: ...\n", False),
        ("domain/b.py", "def _pin(state) -> tuple[MessagePinned, ...]: ...\n", True),
        ("domain/b.py", "def cut(text) -> str: ...\n", True),
        ("application/b.py", "def pin(state) -> tuple[MessagePinned, ...]: ...\n", True),
        ("infrastructure/transcripts/b.py", "", False),
    ],
)
def test_decisions_and_formats_have_files_of_their_own(path: str, text: str, counts: bool) -> None:
    name = ".".join(PurePath(path).with_suffix("").parts)
    pair = [module("domain/a.py", f"from refold.{name} import B\n"), module(path, text)]
    assert bool(list(rooms.small_with_one_user(pair, rooms.imports_between(pair)))) == counts


def warm_up(memory: Memory) -> None:
    conversation = memory.conversation("before")
    for number in range(60):
        conversation.append({"role": "user", "content": f"question {number} " + "word " * 60})
        conversation.append({"role": "assistant", "content": "answer " * 60})
    assert conversation.context().summary is not None
    conversation.recall("question")


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return the files that each walk enters."""
    path: Path = tmp_path_factory.mktemp("walks") / "agent.db"
    found: dict[str, set[str]] = {}
    # The background check of an opened log is no part of a walk.
    with refold.open(path, window=8_000, standing_recall=0, scrub_megabytes=0) as memory:
        # What is imported or made on first use is no part of a walk, such as a class that pydantic reads.
        warm_up(memory)
        for cls in list(late_classes):
            read_classes(cls)
        conversation = memory.conversation("walk")
        # The walks use no other words: a word that is not in memory yet enters the stemmer.
        conversation.append({"role": "user", "content": "what about question 3 and src/a3.py?"})
        conversation.append({"role": "assistant", "content": "answer"})
        for number in range(5):
            conversation.append({"role": "user", "content": f"question {number} about src/a.py"})
            conversation.append({"role": "assistant", "content": "answer"})
            conversation.context()
        with entered_files() as found["append"]:
            conversation.append({"role": "user", "content": "please use pnpm, never npm"})
        conversation.context()
        with entered_files() as found["warm context"]:
            conversation.context()
        conversation.append({"role": "assistant", "content": "ok"})
        for number in range(60):
            text = f"question {number} about src/a{number}.py " + "word " * 60
            conversation.append({"role": "user", "content": text})
            conversation.append({"role": "assistant", "content": "answer " * 60})
        conversation.append({"role": "user", "content": "go on"})
        with entered_files() as found["compacting context"]:
            assert conversation.context().summary is not None
        conversation.recall("question 1")
        with entered_files() as found["recall"]:
            assert conversation.recall("about src/a5.py")
    with refold.open(path, window=8_000, scrub_megabytes=0) as memory:
        conversation = memory.conversation("walk")
        conversation.context()
        conversation.append({"role": "user", "content": "what about question 3 and src/a3.py?"})
        with entered_files() as found["context with recalled lines"]:
            assert "[Recalled Lines]" in str(conversation.context().messages[-1])
    return found


@pytest.mark.parametrize(
    ("walk", "most"),
    [
        ("append", 26),
        ("warm context", 39),
        ("compacting context", 95),
        ("recall", 42),
        ("context with recalled lines", 69),
    ],
)
def test_a_walk_enters_few_files(entered: dict[str, set[str]], walk: str, most: int) -> None:
    """The goals are 25, 40, 80, 40 and 80 files; these are the figures reached.

    A compaction enters the twelve files of facts and ledger. What both stores share is in files of its own: one of the
    log, one of the tables that are folded from it.
    """
    assert len(entered[walk]) <= most, "\n".join(sorted(entered[walk]))


def test_a_unit_test_has_the_name_of_a_module() -> None:
    """``test_MODULE.py`` or ``test_MODULE_ASPECT.py``, in the folder of the module's layer."""
    for layer in LAYERS:
        names = [f"test_{m.path.stem}" for m in MODULES if m.path.parts[0] == layer]
        paths = sorted((ROOT / "tests" / "unit" / layer).rglob("test_*.py"))
        assert [p for p in paths if not any(f"{p.stem}_".startswith(f"{n}_") for n in names)] == []
