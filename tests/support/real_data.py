"""Real conversations that tests may read: found beside the project, or skipped with a reason."""

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


def data_folder() -> Path | None:
    """The folder with real data: ``REFOLD_X_DATA`` or else ``../shared/data``; None if absent."""
    named = os.environ.get("REFOLD_X_DATA")
    folder = Path(named).expanduser() if named else _BESIDE
    return folder if folder.is_dir() else None


def files(*patterns: str) -> list[Path]:
    """The files below the data folder that match any glob pattern, sorted, each once.

    Without the folder the list is empty, so that a parametrised test collects and is skipped.
    """
    folder = data_folder()
    if folder is None:
        return []
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return sorted(found)


needs_data = pytest.mark.skipif(
    data_folder() is None,
    reason="no real data: put it at ../shared/data or name its folder in REFOLD_X_DATA",
)
"""Marks a test that reads real data; it is skipped where there is none."""
