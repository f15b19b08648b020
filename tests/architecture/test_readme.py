"""The Python code of README.md and of the docs runs as it stands, and prints what the page shows."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.architecture.rules import ROOT

NO_TEST = "<!-- no-test -->"
A_SHORT_README = 30  # lines: below, there need not be an example yet


def python_blocks(text: str) -> list[Token]:
    """The blocks marked ``python``, but for those with a no-test comment right before them."""
    tokens = MarkdownIt().parse(text)
    before = [None, *tokens]
    return [
        token
        for token, previous in zip(tokens, before, strict=False)
        if token.type == "fence"
        and token.info.split()[:1] == ["python"]
        and (previous is None or previous.content.strip() != NO_TEST)
    ]


def shown_output(text: str) -> str:
    """The blocks marked ``text``, one after the other: what the code of the page prints."""
    tokens = MarkdownIt().parse(text)
    return "".join(t.content for t in tokens if t.type == "fence" and t.info == "text")


def as_script(text: str) -> str:
    """All blocks as one script; a line of it has the number that it has in the page."""
    lines = [""] * len(text.splitlines())
    for block in python_blocks(text):
        assert block.map is not None
        begin = block.map[0] + 1
        code = block.content.splitlines()
        lines[begin : begin + len(code)] = code
    return "\n".join(lines) + "\n"


def run(text: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    script = folder / "README.py"
    script.write_text(as_script(text), "utf-8")
    # No key: an example that would call a paid service has to say no-test.
    keys = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(
        [sys.executable, script.name],
        cwd=folder,
        env=keys,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


def test_the_readme_shows_code_that_is_run() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    if len(text.splitlines()) <= A_SHORT_README:
        pytest.skip("README.md is still a stub")
    assert python_blocks(text), "README.md has no ```python block that is run"


def test_the_code_of_the_readme_runs_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    done = run(text, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == shown_output(text)


PAGE = """# A page

```python
x = 1
```

<!-- no-test -->
```python
x = 2
```

```sh
x = 3
```

```python
assert x == 4, "no"
```
"""


def test_blocks_are_run_in_order_and_a_failing_one_is_told_by_its_line(tmp_path: Path) -> None:
    done = run(PAGE, tmp_path)
    assert done.returncode == 1
    assert 'README.py", line 17' in done.stderr


@pytest.mark.parametrize(
    "name", ["guide.md", "howto/keep-a-table-of-your-own.md", "observability.md", "testing.md"]
)
def test_the_code_of_the_docs_runs(name: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / name).read_text("utf-8")
    assert python_blocks(text)
    done = run(text, tmp_path)
    assert done.returncode == 0, done.stderr[-2_000:]


def test_the_output_of_a_page_is_what_its_text_blocks_show() -> None:
    page = PAGE + "\n```text\n4\n```\n\n```console\n$ no\n```\n\n```text\nfour\n```\n"
    assert shown_output(page) == "4\nfour\n"


def test_a_block_marked_no_test_is_left_out(tmp_path: Path) -> None:
    done = run(PAGE.replace("x == 4", "x == 1"), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "adapters").glob("*.md")), ids=lambda p: p.name
)
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
