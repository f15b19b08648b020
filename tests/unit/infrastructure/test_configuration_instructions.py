"""Instruction files are read once, when a memory is opened, and are part of every request after that."""

import logging
import os
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.rendering.turn_builder import FRAME_TOKENS
from refold.domain.errors import ContextWindowExceeded, InvalidSetting
from refold.infrastructure.settings.configuration import read_configuration


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    path = tmp_path / "AGENTS.md"
    path.write_text("Use tabs.\r\nRun make check.\n", "utf-8")
    return path


def asked(*files: Path, system: Any = None, **more: Any) -> refold.Context:
    with refold.open(":memory:", instruction_files=files, **more) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "hi"})
        return conversation.context(system=system)


def test_they_stand_behind_the_system_text_of_the_caller(agents: Path) -> None:
    assert asked(agents, system="You build things.").system == (
        f"You build things.\n\n[Instructions from {agents}]\nUse tabs.\nRun make check."
    )


def test_without_a_system_text_they_are_all_of_it(agents: Path) -> None:
    assert str(asked(agents, system=" ").system).startswith("[Instructions from")
    assert str(asked(agents).system).startswith("[Instructions from")


def test_a_window_that_is_too_small_for_them_is_an_error_that_names_them(tmp_path: Path) -> None:
    path = tmp_path / "zh.md"
    path.write_text("请遵守规则。" * 4_000, "utf-8")
    with pytest.raises(ContextWindowExceeded) as refused:
        asked(path, window=16_000)
    told = str(refused.value)
    assert refused.value.instructions > refused.value.budget
    assert f"instruction files {refused.value.instructions:,} tokens" in told
    assert "system text" not in told
    assert "`instruction_characters`" in told
    assert asked(path, window=16_000, instruction_characters=5_000).tokens < 14_000


def test_behind_blocks_they_are_a_block_of_their_own(agents: Path) -> None:
    cached = {"type": "text", "text": "You build.", "cache_control": {"type": "ephemeral"}}
    blocks = asked(agents, system=[cached]).system
    assert isinstance(blocks, list)
    first, second = blocks
    assert first == cached
    assert second == {
        "type": "text",
        "text": f"[Instructions from {agents}]\nUse tabs.\nRun make check.",
    }


def test_they_are_counted_among_what_every_request_carries(agents: Path) -> None:
    with_them, without = asked(agents, system="You."), asked(system="You.")
    assert with_them.budget.fixed > without.budget.fixed
    assert with_them.tokens - without.tokens == with_them.budget.fixed - without.budget.fixed


def test_they_are_read_once_and_in_requests_of_old_versions_as_well(agents: Path) -> None:
    with refold.open(":memory:", instruction_files=[agents]) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "hi"})
        before = conversation.context().system
        agents.write_text("Use blanks.", "utf-8")
        assert conversation.context().system == before
        assert conversation.context(at=1).system == before


def test_the_budget_of_the_settings_holds(tmp_path: Path) -> None:
    path = tmp_path / "long.md"
    path.write_text("x" * 1_000, "utf-8")
    system = str(asked(path, instruction_characters=400).system)
    assert f"characters cut, read {path} for the full content" in system
    assert len(system.split("]\n", 1)[1]) <= 400


def skipped(*files: Path | str) -> str:
    """Why the only file is skipped."""
    with refold.open(":memory:", instruction_files=files) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "hi"})
        [file] = conversation.context(system="You.").budget.instruction_files
        assert conversation.context(system="You.").system == "You."
    assert (file.name, file.tokens, file.cut) == (str(files[0]), 0, 0)
    return file.skipped


def test_of_a_standard_list_those_that_are_there_are_read(
    agents: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    missing = [tmp_path / "TOOLS.md", tmp_path / "IDENTITY.md"]
    caplog.set_level(logging.WARNING, "refold")
    with refold.open(":memory:", instruction_files=[agents, *missing]) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "hi"})
        made = [conversation.context(system="You.") for _ in range(3)][-1]
    assert made.system == asked(agents, system="You.").system
    assert [record.getMessage() for record in caplog.records] == [
        f"instruction file {path} is skipped: it cannot be read: No such file or directory"
        for path in missing
    ]


def test_the_budget_tells_of_each_file_in_tokens(agents: Path, tmp_path: Path) -> None:
    other, none = tmp_path / "TOOLS.md", tmp_path / "IDENTITY.md"
    other.write_text("x y " * 1_000, "utf-8")
    budget = asked(agents, other, none, instruction_characters=1_000).budget
    first, second, third = budget.instruction_files
    assert [file.name for file in budget.instruction_files] == [str(agents), str(other), str(none)]
    assert 0 < first.tokens < second.tokens
    assert budget.instructions == first.tokens + second.tokens + FRAME_TOKENS
    assert (first.cut, third.tokens) == (0, 0)
    assert second.cut > 3_000
    assert third.skipped == "cannot be read: No such file or directory"


def test_a_file_that_is_not_there_is_skipped(tmp_path: Path) -> None:
    assert skipped(tmp_path / "none.md") == "cannot be read: No such file or directory"


@pytest.mark.parametrize("name", ["~nobody-has-this-name/AGENTS.md", "a\0b", "x" * 5_000])
def test_a_name_that_no_file_can_have_is_skipped(name: str) -> None:
    assert skipped(name)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_a_file_that_may_not_be_read_is_skipped(agents: Path) -> None:
    agents.chmod(0)
    assert skipped(agents) == "cannot be read: Permission denied"


def test_a_folder_is_no_instruction_file(tmp_path: Path) -> None:
    assert skipped(tmp_path) == "is a folder: name the files in it"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert skipped(tmp_path / "pipe") == "is not a regular file"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"caf\xe9", "is not UTF-8 text (byte 3): save it as UTF-8"),
        ("text".encode("utf-16"), "is not UTF-8 text (byte 0): save it as UTF-8"),
        (b"a\0b", "is not text: it contains zero bytes"),
    ],
)
def test_what_is_no_text_is_skipped(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "odd.md"
    path.write_bytes(content)
    assert skipped(path) == why


def test_a_mark_at_the_beginning_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "marked.md"
    path.write_bytes(b"\xef\xbb\xbfUse tabs.")
    assert str(asked(path).system).endswith("]\nUse tabs.")


def files(**arguments: Any) -> tuple[Path, ...] | None:
    return read_configuration(**arguments).settings.instruction_files


def test_a_variable_has_the_separator_of_path_between_the_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REFOLD_INSTRUCTION_FILES", f"a.md{os.pathsep}docs/b.md")
    assert files() == (Path("a.md"), Path("docs/b.md"))


def test_a_policy_file_has_a_list(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('instruction_files = ["a.md", "b.md"]', "utf-8")
    assert files(policy_file=path) == (Path("a.md"), Path("b.md"))


@pytest.mark.parametrize("given", ["a.md", Path("a.md"), ["a.md"], (Path("a.md"),)])
def test_an_argument_is_one_path_or_several(given: Any) -> None:
    assert files(instruction_files=given) == (Path("a.md"),)


def test_what_is_no_list_of_files_is_refused() -> None:
    for given in (3, [3], {"a": 1}):
        with pytest.raises(InvalidSetting, match="must be a list of files"):
            files(instruction_files=given)


def test_a_variable_that_is_no_json_is_named_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFOLD_INSTRUCTION_FILES", "{not json")
    monkeypatch.setenv("REFOLD_MODELS", "{not json")
    with pytest.raises(InvalidSetting, match="REFOLD_MODELS: must be a JSON object such as"):
        read_configuration()
