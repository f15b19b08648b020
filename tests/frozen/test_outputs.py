"""The outputs that a change of structure must not change are as they are kept."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.real_data import needs_data

ROOT = Path(__file__).resolve().parents[2]

pytestmark = needs_data


@pytest.mark.parametrize("few", ["--few", pytest.param("", marks=pytest.mark.slow)])
def test_the_outputs_are_those_that_are_kept(few: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.frozen", f"{tmp_path}", *filter(None, [few])]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"these differ:\n{ended.stdout}{ended.stderr}"
    assert "outputs are equal" in ended.stdout
