"""What compaction keeps of facts planted in a real session: the retention benchmark, a small part of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.real_data import needs_data

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "retention.py"


@pytest.mark.slow
@needs_data
def test_ten_compactions_to_a_tenth_keep_what_the_user_asked_pinned_and_forbade() -> None:
    arguments = ["--files", "1", "--budgets", "10", "--compactions", "10", "--json"]
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=True
    )
    answer = json.loads(ran.stdout)
    kept = {row[0]: row[2] for row in answer["kept"]}
    for fact in ("pin", "prohibition", "request", "path, used more than once"):
        assert kept[fact].startswith("100 "), kept
    with_ledger, without = (int(n) for n in kept["all"].rstrip(")").split(" ("))
    assert with_ledger >= 80 > without
    assert int(kept["context / history, most"].rstrip("%")) <= 10
    recalled = {row[0]: row[1] for row in answer["recalled"]}
    found, asked = (int(n) for n in recalled["all"].split("(")[1].rstrip(")").split("/"))
    assert found >= 0.9 * asked > 0
