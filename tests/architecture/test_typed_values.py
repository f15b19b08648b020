"""Values are made by functions whose fields type checkers know; what takes any names has one place each."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path, PurePath

import pytest

from tests.architecture.rules import LAYERS, ROOT, Module, modules_under

VALUE = PurePath("domain/value.py")
READERS = frozenset(
    {
        PurePath("infrastructure/event_store/codec.py"),
        PurePath("infrastructure/event_store/plain_shapes.py"),
        PurePath("infrastructure/projection_store/view_answers.py"),
    }
)
"""Where stored bytes become values."""
UNTYPED = frozenset({"trusted", "replaced", "model_construct", "model_copy"})
"""Methods that make a value of any names."""
BY_NAME = frozenset({"replace", "build_unvalidated", "__replace__"})
"""What makes a value of names that are spelled in the call."""

RIGHT = """
from refold.domain.messages import Message
from refold.domain.value import build_unvalidated, replace

message = build_unvalidated(Message, role="user", content="a")
replace(message, content="b", author=None)
replace(replace(message, content="b"), role="assistant")
"""
WRONG = """
from refold.domain.messages import Message
from refold.domain.value import build_unvalidated, replace

message = Message(role="user", content="a")
replace(message, contents="b")
replace(message, content=7)
build_unvalidated(Message, role="user", content="a", autor=None)
build_unvalidated(Message, role="nobody", content="a")
build_unvalidated(Message, role="user")
"""
WRONG_LINES = {6, 7, 8, 9, 10}


def refused_by_mypy(folder: Path) -> str:
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "right.py", "wrong.py"]
    words += ["--python-version", "3.13", "--cache-dir", f"{ROOT / '.mypy_cache' / 'values'}"]
    return printed(words, folder)


def refused_by_pyright(folder: Path) -> str:
    settings = '{"pythonVersion": "3.13", "typeCheckingMode": "strict", "extraPaths": ["%s"]}'
    (folder / "pyrightconfig.json").write_text(settings % (ROOT / "src").as_posix(), "utf-8")
    words = [sys.executable, "-m", "pyright", "--project", f"{folder}"]
    return printed([*words, "--pythonpath", sys.executable], folder)


def printed(words: list[str], folder: Path) -> str:
    """What a checker prints; that it refuses something is no failure here."""
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


CHECKERS = {"mypy": refused_by_mypy, "pyright": refused_by_pyright}


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_misspelt_field_a_wrong_type_and_a_missing_field_are_refused(
    checker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed: pip install -e '.[dev]'")
    monkeypatch.setenv("MYPYPATH", f"{ROOT / 'src'}")
    monkeypatch.setenv("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1")
    (tmp_path / "right.py").write_text(RIGHT, "utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, "utf-8")
    said = CHECKERS[checker](tmp_path)
    refused = re.findall(r"(\w+)\.py:(\d+)(?::\d+)?(?: -|:) error", said)
    assert {name for name, _ in refused} == {"wrong"}, said
    assert {int(line) for _, line in refused} == WRONG_LINES, said


def of_any_names(module: Module) -> Iterator[str]:
    """Calls that make a value of names that no type checker knows."""
    if module.path == VALUE:
        return
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        place, name = f"{module.path}:{node.lineno}", called(node.func)
        if isinstance(node.func, ast.Attribute) and name in UNTYPED:
            yield f"{place}: use replace or build_unvalidated, not .{name}"
        if name in BY_NAME and any(word.arg is None for word in node.keywords):
            yield f"{place}: spell the fields of {name}, without **"


def from_stored_elsewhere(module: Module) -> Iterator[str]:
    """Uses of ``from_stored`` where no stored bytes become values."""
    if module.path == VALUE or module.path in READERS:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.alias) and called(node) == "from_stored":
            yield f"{module.path}: from_stored is for stored bytes: use build_unvalidated"


def called(node: ast.AST) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name):
            return name
        case _:
            return ""


@pytest.mark.parametrize("rule", [of_any_names, from_stored_elsewhere])
def test_no_value_is_made_of_any_names(rule: Callable[[Module], Iterator[str]]) -> None:
    assert [fault for module in modules_under(*LAYERS) for fault in rule(module)] == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (of_any_names, "Message.trusted({})"),
        (of_any_names, "state.replaced(version=1)"),
        (of_any_names, "Message.model_construct(role='user')"),
        (of_any_names, "message.model_copy(update={'role': 'user'})"),
        (of_any_names, "message.__replace__(**fields)"),
        (of_any_names, "replace(message, **fields)"),
        (of_any_names, "dataclasses.replace(core, **fields)"),
        (of_any_names, "build_unvalidated(Message, **fields)"),
        (from_stored_elsewhere, "from refold.domain.value import from_stored"),
        (from_stored_elsewhere, "value.from_stored(Message, fields)"),
    ],
)
def test_a_value_that_is_made_of_any_names_is_told(
    rule: Callable[[Module], Iterator[str]], text: str
) -> None:
    assert len(list(rule(Module(PurePath("application/a.py"), text)))) == 1
