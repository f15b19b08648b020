"""The import rules of pyproject.toml hold: layers, a pure domain, use cases without vendors."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.architecture.rules import ROOT

LINT = "from importlinter.cli import lint_imports_command as main; main()"


def test_every_import_contract_is_kept() -> None:
    if find_spec("importlinter") is None:
        if os.environ.get("CI"):
            pytest.fail("import-linter is missing: install '.[test]'")
        pytest.skip("import-linter is not installed: pip install -e '.[test]'")
    run = subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache", "--no-logo"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 broken" in run.stdout
