"""The code of README.md runs as it stands and prints what the page shows; adapter pages name what exists."""

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.architecture.rules import ROOT
from tests.support.page_code import code_of, faults_of, run

A_SHORT_README = 30  # lines: below, there need not be an example yet
ADAPTERS = ROOT / "docs" / "adapters"


def test_the_readme_shows_code_that_is_run() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    if len(text.splitlines()) <= A_SHORT_README:
        pytest.skip("README.md is still a stub")
    shown = [block.shown for block in code_of(text)]
    assert any(shown), "README.md has no ```python block that is run, with its output"


def test_the_code_of_the_readme_runs_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert list(faults_of(text, run(text, tmp_path))) == []


@pytest.mark.parametrize("page", sorted(ADAPTERS.glob("*.md")), ids=lambda p: p.name)
def test_the_code_of_the_adapter_pages_names_what_exists(page: Path) -> None:
    """It needs a model to run. Its names are looked up, and calls of refold's classes have parameters that exist."""
    blocks = [t for t in MarkdownIt().parse(page.read_text("utf-8")) if is_python(t)]
    for block in blocks:
        tree = ast.parse(block.content)
        known: dict[str, Any] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                exec_import(node, known)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                check_call(node, known.get(node.func.id))


def is_python(token: Token) -> bool:
    return token.type == "fence" and token.info.split()[:1] == ["python"]


def exec_import(node: ast.Import | ast.ImportFrom, known: dict[str, Any]) -> None:
    package = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
    assert package is not None
    try:
        exec(compile(ast.Module([node], []), "page", "exec"), known)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] == "refold":
            raise  # A name of refold that does not exist.
        pytest.skip(f"{package}: {error}")


def check_call(node: ast.Call, function: Any) -> None:
    if function is None or not str(getattr(function, "__module__", "")).startswith("refold"):
        return
    names = [keyword.arg for keyword in node.keywords if keyword.arg]
    inspect.signature(function).bind(*node.args, **dict.fromkeys(names))
