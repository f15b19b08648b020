"""The memory tool of the Messages API: its answers, undo, files of the past, erasing, owners, several processes."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refold

anthropic = pytest.importorskip("anthropic", minversion="2.12")

from anthropic.lib.tools import ToolError  # noqa: E402
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool  # noqa: E402

from refold.adapters.anthropic import AsyncMemoryTool, MemoryTool  # noqa: E402
from refold.application.api.memory_files import MemoryFiles  # noqa: E402
from refold.domain.memory_files import FileRefused  # noqa: E402
from tests.support.adapter_pages import assert_page_runs  # noqa: E402
from tests.support.strict_server import Json, StrictServer  # noqa: E402


@pytest.fixture
def tool(memory: refold.Memory) -> MemoryTool:
    return MemoryTool(memory)


def call(tool: Any, command: str, **fields: Any) -> str:
    try:
        return str(tool.call({"command": command, **fields}))
    except ToolError as error:
        return f"refused: {error}"


A, B = "/memories/a.txt", "/memories/notes/b.txt"
COMMANDS: list[dict[str, Any]] = [
    {"command": "create", "path": A, "file_text": "one\ntwo\nthree\n"},
    {"command": "create", "path": A, "file_text": "again"},
    {"command": "create", "path": B, "file_text": "no line end"},
    {"command": "create", "path": "/memories/empty", "file_text": ""},
    {"command": "view", "path": A},
    {"command": "view", "path": "/memories/empty"},
    {"command": "view", "path": A, "view_range": [2, 3]},
    {"command": "view", "path": A, "view_range": [2, -1]},
    {"command": "view", "path": "/memories/none"},
    {"command": "str_replace", "path": A, "old_str": "two", "new_str": "zwei\nzwo"},
    {"command": "str_replace", "path": A, "old_str": "e", "new_str": "x"},
    {"command": "str_replace", "path": A, "old_str": "not there", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/none", "old_str": "a", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/notes", "old_str": "a", "new_str": "x"},
    {"command": "insert", "path": A, "insert_line": 0, "insert_text": "zero"},
    {"command": "insert", "path": A, "insert_line": 5, "insert_text": "last\n"},
    {"command": "insert", "path": A, "insert_line": 99, "insert_text": "x"},
    {"command": "insert", "path": B, "insert_line": 1, "insert_text": "a line"},
    {"command": "view", "path": A},
    {"command": "view", "path": B},
    {"command": "rename", "old_path": A, "new_path": B},
    {"command": "rename", "old_path": A, "new_path": "/memories/moved/c.txt"},
    {"command": "rename", "old_path": "/memories/none", "new_path": "/memories/x"},
    {"command": "rename", "old_path": "/memories/moved", "new_path": "/memories/elsewhere"},
    {"command": "view", "path": "/memories/elsewhere/c.txt"},
    {"command": "delete", "path": "/memories/none"},
    {"command": "delete", "path": B},
    {"command": "view", "path": B},
    {"command": "delete", "path": "/memories/elsewhere"},
    {"command": "view", "path": "/memories/elsewhere/c.txt"},
    {"command": "view", "path": "/etc/passwd"},
]


def test_every_command_answers_as_the_tool_of_the_sdk_does(
    tool: MemoryTool, tmp_path: Path
) -> None:
    """That tool writes to the disk. Models are trained on its answers."""
    other = BetaLocalFilesystemMemoryTool(str(tmp_path / "disk"))
    for fields in COMMANDS:
        ours, theirs = call(tool, **fields), call(other, **fields)
        assert ours == theirs, fields
    left = {
        f"/memories/{path.relative_to(other.memory_root)}": path.read_text("utf-8")
        for path in other.memory_root.rglob("*")
        if path.is_file()
    }
    assert tool.files.files() == left == {"/memories/empty": ""}


@pytest.mark.parametrize(
    "path",
    [
        "/memories/../secret",
        "/memoriesX",
        "memories/a",
        "/memories/a//b",
        "/memories/./a",
        "/memories/a\x00",
        "",
    ],
)
def test_a_path_outside_of_the_memories_is_refused(tool: MemoryTool, path: str) -> None:
    assert call(tool, "create", path=path, file_text="x").startswith("refused: ")
    assert tool.files.files() == {}


@pytest.mark.parametrize("wrong", [5, "12", ["a", "b"], [1.5, 2], {"a": 1}])
def test_a_range_that_is_no_list_of_numbers_is_refused(tool: MemoryTool, wrong: Any) -> None:
    call(tool, "create", path=A, file_text="one\ntwo\n")
    answer = call(tool, "view", path=A, view_range=wrong)
    assert answer.startswith("refused: Invalid `view_range` parameter")
    with pytest.raises(FileRefused, match="Unknown command"):
        tool.files.execute(wrong)


def test_a_command_with_missing_or_unknown_fields_is_refused(tool: MemoryTool) -> None:
    assert call(tool, "create", path=A) == "refused: file_text must be a text"
    assert call(tool, "create", path=A, file_text=None) == "refused: file_text must be a text"
    assert call(tool, "insert", path=A, insert_text="x").startswith("refused: The path")
    with pytest.raises(FileRefused, match="Unknown command: explode"):
        tool.files.execute({"command": "explode"})


def test_nothing_can_be_created_in_a_file_or_over_a_folder(tool: MemoryTool) -> None:
    call(tool, "create", path=B, file_text="x")
    assert "is a directory" in call(tool, "create", path="/memories/notes", file_text="x")
    assert "is a file" in call(tool, "create", path=f"{B}/deep", file_text="x")
    assert "into itself" in call(
        tool, "rename", old_path="/memories/notes", new_path="/memories/notes/in"
    )


def test_a_folder_is_listed_two_levels_deep_with_sizes(tool: MemoryTool) -> None:
    for path, size in (("a.txt", 10), ("d/b.txt", 1_536), ("d/e/c.txt", 5), (".hidden", 3)):
        call(tool, "create", path=f"/memories/{path}", file_text="x" * size)
    heading, *rows = call(tool, "view", path="/memories").split("\n")
    assert "2 levels deep in /memories" in heading
    assert rows == [
        "1.5K\t/memories",
        "10B\t/memories/a.txt",
        "1.5K\t/memories/d/",
        "1.5K\t/memories/d/b.txt",
        "5B\t/memories/d/e/",
    ]


def test_changes_can_be_taken_back_one_after_the_other(tool: MemoryTool) -> None:
    files = tool.files
    states = [files.files()]
    files.create(A, "one")
    states.append(files.files())
    files.create(B, "two")
    states.append(files.files())
    files.rename("/memories/notes", "/memories/kept")
    states.append(files.files())
    files.clear()
    assert files.files() == {}
    for state in reversed(states):
        assert files.undo()
        assert files.files() == state
    assert files.undo() == ()
    assert [change.command for change in files.history()].count("undo") == 6


def test_a_change_after_an_undo_is_taken_back_before_older_ones(tool: MemoryTool) -> None:
    files = tool.files
    files.create(A, "one")
    files.create(B, "two")
    files.undo()
    files.create(B, "three")
    files.undo()
    assert files.files() == {A: "one"}
    files.undo()
    assert files.files() == {}


def test_files_of_the_past(tool: MemoryTool) -> None:
    files = tool.files
    files.create(A, "one")
    files.str_replace(A, "one", "two")
    files.delete(A)
    first, second, third = files.history(A)
    assert [change.command for change in (first, second, third)] == [
        "create",
        "str_replace",
        "delete",
    ]
    assert files.files(at=first.version) == {A: "one"}
    assert files.files(at=second.at) == {A: "two"}
    assert files.files(at=third.version) == {}
    with pytest.raises(refold.InvalidSetting):
        files.files(at=99)


def test_erasing_a_file_leaves_none_of_its_texts_under_any_name(tmp_path: Path) -> None:
    with refold.open(tmp_path / "agent.db", telemetry=False) as memory:
        files = MemoryFiles(memory)
        files.create(A, "the secret cheese is taleggio")
        files.rename(A, B)
        files.str_replace(B, "taleggio", "gorgonzola")
        files.undo()
        files.undo()
        files.create("/memories/other", "parmesan")
        files.erase(B, "asked for")
        assert files.files() == {"/memories/other": "parmesan"}
        assert files.undo() == ("/memories/other",)
        with pytest.raises(FileRefused):
            files.erase("/memories/never")
    for file in tmp_path.iterdir():
        assert b"taleggio" not in file.read_bytes(), file.name
        assert b"gorgonzola" not in file.read_bytes(), file.name


def test_a_change_that_was_made_from_an_erased_text_is_erased_as_well(tmp_path: Path) -> None:
    """Another process erases the file after this one has read it, and before it stores its change."""
    with refold.open(tmp_path / "agent.db", telemetry=False) as memory:

        class Overtaken(MemoryFiles):
            waits = True

            def _read(self) -> Any:
                read = super()._read()
                if self.waits:
                    self.waits = False
                    MemoryFiles(memory).erase(A)
                return read

        MemoryFiles(memory).create(A, "the secret cheese is taleggio\n")
        Overtaken(memory).insert(A, 0, "a line above")
        assert MemoryFiles(memory).files() == {}
    for file in tmp_path.iterdir():
        assert b"taleggio" not in file.read_bytes(), file.name


def test_owners_have_files_of_their_own(memory: refold.Memory) -> None:
    ann, bob = MemoryFiles(memory, owner="ann"), MemoryFiles(memory, owner="bob")
    ann.create(A, "ann's")
    assert bob.files() == {}
    with pytest.raises(refold.OwnerConflict):
        MemoryFiles(memory, owner="bob", thread=ann.thread_id).create(A, "bob's")
    memory.erase_owner("ann")
    assert bob.files() == {}
    bob.create(A, "bob's")
    assert MemoryFiles(memory, owner="ann").files() == {}


def test_two_processes_and_several_threads_lose_no_change(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path, telemetry=False) as one, refold.open(path, telemetry=False) as other:
        MemoryFiles(one).create(A, "0\n")

        def add(memory: refold.Memory, name: str) -> None:
            for number in range(5):
                MemoryFiles(memory).insert(A, 0, f"{name}-{number}")

        threads = [
            threading.Thread(target=add, args=(memory, f"{n}-{k}"))
            for n, memory in enumerate((one, other))
            for k in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lines = MemoryFiles(one).files()[A].split()
    assert sorted(lines) == sorted(
        ["0", *(f"{n}-{k}-{i}" for n in range(2) for k in range(2) for i in range(5))]
    )


def test_other_messages_of_the_conversation_are_left_alone(memory: refold.Memory) -> None:
    memory.conversation("memories").append({"role": "user", "content": "hi"})
    files = MemoryFiles(memory)
    files.create(A, "one")
    assert files.files() == {A: "one"}


def test_a_file_can_be_searched_and_replayed(memory: refold.Memory) -> None:
    files = MemoryFiles(memory)
    files.create(A, "The staging redis listens on port 6390.")
    assert memory.search("redis port").hits[0].thread_id == "memories"
    assert memory.verify().ok
    memory.replay()
    assert files.files() == {A: "The staging redis listens on port 6390."}


def test_the_code_of_the_page_runs_and_prints_what_it_shows(tmp_path: Path) -> None:
    assert_page_runs("memory-tool.md", tmp_path, remembers)


def remembers(body: Json, number: int) -> list[Json]:
    """Create a file, then answer."""
    if len(body["messages"]) > 1:
        return [{"type": "text", "text": "I remember it."}]
    given = {"command": "create", "path": "/memories/taste.txt", "file_text": "likes coffee"}
    assert body["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    return [{"type": "tool_use", "id": "toolu_1", "name": "memory", "input": given}]


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("create"), st.sampled_from([A, B, "/memories/d/c"]), st.text(max_size=20)
        ),
        st.tuples(st.just("delete"), st.sampled_from([A, B, "/memories/d"])),
        st.tuples(
            st.just("rename"),
            st.sampled_from([A, B, "/memories/d"]),
            st.sampled_from([A, "/memories/e"]),
        ),
        st.tuples(
            st.just("insert"), st.sampled_from([A, B]), st.integers(0, 2), st.text(max_size=20)
        ),
        st.tuples(st.just("undo")),
    ),
    max_size=12,
)


@given(STEPS)
def test_undoing_everything_gives_every_state_in_between_again(
    steps: list[tuple[Any, ...]],
) -> None:
    with refold.open(":memory:", telemetry=False) as memory:
        files = MemoryFiles(memory)
        states = [files.files()]
        for name, *given_ in steps:
            if name == "undo":
                files.undo()
                states = states[:-1] or states
                assert files.files() == states[-1]
                continue
            command: Callable[..., str] = getattr(files, name)
            try:
                command(*given_)
            except FileRefused:
                continue
            if files.files() != states[-1]:
                states.append(files.files())
        while states[1:]:
            states.pop()
            assert files.undo()
            assert files.files() == states[-1]


def test_a_tool_runner_uses_it(memory: refold.Memory) -> None:
    tool = MemoryTool(memory)
    with StrictServer(remembers) as server:
        client = anthropic.Anthropic(base_url=server.base_url, api_key="x", max_retries=0)
        asked: Any = [{"role": "user", "content": "Remember that I like coffee."}]
        runner = client.beta.messages.tool_runner(
            model="claude-opus-5-5", max_tokens=1000, tools=[tool], messages=asked, thread=False
        )
        runner.until_done()
        assert not server.refused
    assert tool.files.files() == {"/memories/taste.txt": "likes coffee"}


def test_asyncio(tmp_path: Path) -> None:
    async def use() -> dict[str, str]:
        async with refold.aopen(tmp_path / "agent.db", telemetry=False) as memory:
            tool = AsyncMemoryTool(memory, owner="ann")
            said = await tool.call({"command": "create", "path": A, "file_text": "one"})
            assert said == f"File created successfully at: {A}"
            with pytest.raises(ToolError, match="already exists"):
                await tool.call({"command": "create", "path": A, "file_text": "two"})
            await tool.call({"command": "rename", "old_path": A, "new_path": B})
            found = tool.files.files()
            await tool.clear_all_memory()
            assert tool.files.files() == {}
            return found

    assert asyncio.run(use()) == {B: "one"}
