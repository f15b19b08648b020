"""Finding real data: beside the project, named by the environment, or not at all."""

from pathlib import Path

import pytest

from tests.support.real_data import data_folder, files, needs_data


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tool-a").mkdir()
    for name in ("tool-a/2.jsonl", "tool-a/1.jsonl", "tool-a/notes.md", "README.md"):
        (tmp_path / name).write_text("{}")
    monkeypatch.setenv("REFOLD_X_DATA", str(tmp_path))
    return tmp_path


def test_the_environment_names_the_folder(folder: Path) -> None:
    assert data_folder() == folder


def test_files_are_found_by_patterns_sorted_and_each_once(folder: Path) -> None:
    found = files("*/*.jsonl", "tool-a/*", "tool-*")

    assert found == [
        folder / "tool-a/1.jsonl",
        folder / "tool-a/2.jsonl",
        folder / "tool-a/notes.md",
    ]


def test_an_absent_folder_is_none_and_holds_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFOLD_X_DATA", "/nowhere/at/all")

    assert data_folder() is None
    assert files("**/*") == []


def test_without_the_variable_the_folder_beside_the_project_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("REFOLD_X_DATA", raising=False)
    beside = Path(__file__).resolve().parents[4] / "shared" / "data"

    assert data_folder() == (beside if beside.is_dir() else None)


def test_a_skip_says_how_to_get_the_data() -> None:
    assert "REFOLD_X_DATA" in str(needs_data.kwargs["reason"])


@needs_data
def test_a_marked_test_runs_only_with_data() -> None:
    assert data_folder() is not None
