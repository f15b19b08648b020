"""Golden files: written once, on request, and compared for ever.

``REFOLD_X_WRITE_GOLDEN=1 pytest tests/golden`` writes the files that are missing. One that exists is
never written again: to replace it, delete it first, and know that people's logs hold the old bytes.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "golden"
SWITCH = "REFOLD_X_WRITE_GOLDEN"


def golden_text(name: str, make: Callable[[], str] | None = None) -> str:
    """The text of a golden file; what ``make`` returns is written where it is missing and that was asked for."""
    path = FOLDER / name
    if not path.exists():
        if make is None or not os.environ.get(SWITCH):
            pytest.fail(
                f"{path} is missing: restore it, or write it with {SWITCH}=1", pytrace=False
            )
        path.parent.mkdir(exist_ok=True)
        path.write_text(make(), "utf-8")
    return path.read_text("utf-8")


def golden_json(name: str, make: Callable[[], object]) -> Any:
    """As ``golden_text``, of JSON data."""

    def written() -> str:
        return json.dumps(make(), indent=1, sort_keys=True, ensure_ascii=True) + "\n"

    return json.loads(golden_text(name, written))
