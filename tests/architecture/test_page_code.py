"""The code of every page of docs/ runs as it stands, and prints what the page shows."""

from pathlib import Path

import pytest

from tests.architecture.rules import ROOT
from tests.architecture.test_docs import DOCS
from tests.support.page_code import (
    LeftOut,
    Ran,
    as_script,
    blocks_of,
    code_of,
    faults_of,
    fits,
    missing_modules,
    run,
)

TESTED_ELSEWHERE = {
    "adapters/anthropic.md": "integration/test_anthropic_middleware.py",
    "adapters/google-adk.md": "integration/test_google_adk.py",
    "adapters/langchain.md": "integration/test_langchain_middleware.py",
    "adapters/memory-tool.md": "integration/test_memory_tool.py",
    "adapters/openai-agents.md": "integration/test_openai_agents.py",
    "adapters/pydantic-ai.md": "integration/test_pydantic_ai.py",
    "postgres.md": "integration/test_operating_postgres.py",
    "howto/replicate-with-litestream.md": "integration/test_litestream.py",
}
"""Pages whose code needs a server, and the tests that start one. ``test_howto_pages`` follows the pages howto/add-*."""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT / "docs").as_posix()


def is_run_here(page: Path) -> bool:
    name = name_of(page)
    return not name.startswith("howto/add-") and name not in TESTED_ELSEWHERE


WITH_CODE = [page for page in DOCS if is_run_here(page) and code_of(page.read_text("utf-8"))]
ALWAYS = [
    "guide.md",
    "howto/keep-a-table-of-your-own.md",
    "inspector.md",
    "observability.md",
    "testing.md",
    "tutorial.md",
]


@pytest.mark.slow(but=ALWAYS)
@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    if missing := missing_modules(text):
        pytest.skip(f"not installed: {', '.join(missing)}")
    if faults := list(faults_of(text, run(text, tmp_path))):
        pytest.fail("\n".join([f"{page}:", *faults]), pytrace=False)


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_a_block_that_is_not_run_has_a_reason(page: Path) -> None:
    left_out = [b for b in blocks_of(page.read_text("utf-8")) if isinstance(b, LeftOut)]
    assert [block.line for block in left_out if not block.reason] == []


@pytest.mark.parametrize(("page", "tests"), TESTED_ELSEWHERE.items())
def test_pages_that_need_a_server_are_named_by_their_tests(page: str, tests: str) -> None:
    assert Path(page).name in (ROOT / "tests" / tests).read_text("utf-8")


PAGE = """# A page

```python
x = 1
```

<!-- no-test: it would be wrong -->
```python
x = 2
```

```sh
echo "no command of refold"
```

```sh
refold --version >version.txt
refold verify --db none.db 2>/dev/null  # exit code 2
```

```python
print(x, open("version.txt").read())
assert x == 1, "no"
```

```text
1 refold …
```
"""


def test_blocks_are_run_in_order_and_in_one_folder(tmp_path: Path) -> None:
    assert list(faults_of(PAGE, run(PAGE, tmp_path))) == []


def test_a_block_that_fails_is_told_by_its_line(tmp_path: Path) -> None:
    ran = run(PAGE.replace("x == 1", "x == 2"), tmp_path)
    assert ran.code == 1
    assert 'page.py", line 23' in ran.errors


@pytest.mark.parametrize(
    ("right", "wrong"), [("exit code 2", "exit code 1"), ("  # exit code 2", "")]
)
def test_a_command_that_ends_otherwise_than_said_is_a_fault(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert run(PAGE.replace(right, wrong), tmp_path).code == 1


def test_other_output_than_shown_is_a_fault(tmp_path: Path) -> None:
    page = PAGE.replace("1 refold …", "2 refold …")
    (fault,) = faults_of(page, run(page, tmp_path))
    assert fault.startswith("line 22 printed:\n1 refold")


def test_a_script_has_the_lines_of_its_page() -> None:
    lines = as_script(PAGE).splitlines()
    assert lines[3] == "x = 1"
    assert "x = 2" not in lines


def test_a_page_says_which_modules_a_block_needs() -> None:
    page = "<!-- needs: json, no_such_module.inner -->\n```python\nx = 1\n```\n"
    assert missing_modules(page) == ["no_such_module.inner"]


@pytest.mark.parametrize(
    ("shown", "printed", "fitting"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a … c\n", "a b c\n", True),
        ("a …\n", "a\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nd\n", True),
        ("a\n…\n", "a\nb\n", True),
        ("a … c\n", "a b\nb c\n", False),
        ("a (b)\n", "a (b)   \n\n", True),
    ],
)
def test_output_fits_what_is_shown(shown: str, printed: str, fitting: bool) -> None:
    assert fits(shown, printed) == fitting


def test_what_ran_without_a_shown_output_is_no_fault() -> None:
    assert list(faults_of("```python\nx\n```\n", Ran(0, {2: "anything"}, ""))) == []
