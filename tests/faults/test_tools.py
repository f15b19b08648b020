"""The fault tools themselves: each has a row for every command, replays what it found, and finds what is planted."""

import random
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from .answering import answers_of, differences, rebuild, unlike_what_was_said
from .children import run_apart
from .commands import NAMES_ITS_LOGS, WITHOUT_A_LOG, Scene, commands, program_commands
from .file_judge import faults_of, look_before
from .file_table import Table, case_of
from .no_memory import Case, tried
from .outside_writes import Watched, faults_in
from .registry import TOOLS
from .sample_store import LOG, Store, make_store
from .schedule_drawing import all_points, drawn, parsed
from .schedule_judge import Done
from .schedule_judge import faults_of as faults_of_schedule
from .schedules import played, schedules
from .striking import ROOT


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("stores"), "killed")


@pytest.fixture
def scene(store: Store, tmp_path: Path) -> Scene:
    out = tmp_path / "case" / "out"
    out.mkdir(parents=True)
    return Scene(store, Path(shutil.copytree(store.folder, tmp_path / "case" / "store")), out)


def copied(scene: Scene) -> Scene:
    place = scene.folder.parent.with_name("copy")
    shutil.copytree(scene.folder.parent, place)
    return Scene(scene.store, place / "store", place / "out")


def test_every_command_that_works_on_a_log_has_a_row() -> None:
    rows = {name.partition(" --")[0] for name in commands()}
    for name, options in program_commands():
        if name in NAMES_ITS_LOGS:
            assert "--db" not in options
        if name in WITHOUT_A_LOG:
            assert "--db" not in options, f"{name} works on a log: give it a row in commands.py"
        else:
            assert name in rows, f"{name} has no row in commands.py"


@pytest.mark.slow
def test_a_store_without_a_fault_gives_no_find(scene: Scene) -> None:
    before = look_before(scene, copied(scene))
    assert before.is_whole
    assert before.readable == before.in_bytes == scene.store.marks
    runs = [commands()[name](scene) for name in ("append keyed", "append again")]
    assert list(faults_of(scene, before, runs, "wal page")) == []


def test_a_command_that_drops_messages_is_found(scene: Scene) -> None:
    before = look_before(scene, copied(scene))
    (scene.folder / f"{LOG}-wal").write_bytes(b"")
    found = list(faults_of(scene, before, [], "wal page"))
    assert any(what.startswith("LOST") for what in found)


def test_the_same_seed_gives_the_same_cases(tmp_path: Path) -> None:
    table = Table(tmp_path, names=["closed"])
    first = [next(table.cases(3)) for _ in range(2)]
    assert first[0] == first[1] == case_of(str(first[0]))


def test_a_schedule_is_what_its_text_says() -> None:
    for steps in all_points():
        assert parsed("; ".join(map(str, steps))) == list(steps)
    assert [str(s) for s in next(schedules(5))] == [str(s) for s in next(schedules(5))]


def test_a_plain_schedule_of_two_processes_has_no_find() -> None:
    assert played(parsed("A open; A append; B open; B append common; A close; B list")).faults == []


def test_a_judge_of_schedules_tells_what_is_lost_and_who_hangs(tmp_path: Path) -> None:
    [opening, append] = parsed("A open; A append")
    done = [
        Done(opening, "", {}, {"hangs": True}),
        Done(append, "mk00001aaaaz", {}, {"positions": [0]}),
    ]
    (tmp_path / LOG).touch()
    found = list(faults_of_schedule(tmp_path, done))
    assert "step 0, A open: HANGS" in found
    assert any(what.startswith("LOST") for what in found)


def test_the_events_alone_give_the_same_answers_and_a_changed_one_is_told(scene: Scene) -> None:
    events = scene.folder.with_name("events")
    marks = [scene.store.said[3].mark]
    found = run_apart(lambda: answers_of(scene.folder, marks, 30)).answer
    assert run_apart(lambda: rebuild(scene.folder, events)).status == 0
    expected = run_apart(lambda: answers_of(events, marks, 30)).answer
    assert list(differences(found, expected, may_refuse=False)) == []
    assert list(unlike_what_was_said(found, scene.store.said)) == []
    found["three: messages"][2]["message"]["content"] = "something else"
    found[f"search: {marks[0]}"]["hits"].clear()
    assert len(list(differences(found, expected, may_refuse=False))) == 2
    assert len(list(unlike_what_was_said(found, scene.store.said))) == 2


def test_an_append_without_memory_stores_nothing_by_half(store: Store, tmp_path: Path) -> None:
    told, found = tried(store, tmp_path, Case("killed", "append keyed", 40, 1))
    assert (told, found) == ("raised", [])


def test_writes_outside_of_the_folder_and_of_plain_text_are_told() -> None:
    watched = Watched(Path("/s/store"), Path("/s/out"), Path("/s/place"))

    def lines() -> Iterator[str]:
        yield '7 openat(AT_FDCWD</x>, "/var/tmp/etilqs_1", O_RDWR|O_CREAT|O_EXCL, 0600) = 9'
        yield '7 openat(AT_FDCWD</x>, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 9'
        yield '7 openat(AT_FDCWD</x>, "/s/store/agent.db", O_RDWR|O_CREAT, 0600) = 9'
        yield '7 pwrite64(9</s/store/agent.db-wal>, "mk00001abcdz said", 17, 0) = 17'
        yield '7 unlink("/var/tmp/other") = 0'

    assert list(faults_in(lines(), watched, encrypted=True)) == [
        "OUTSIDE: /var/tmp/etilqs_1 was opened for writing",
        "PLAIN TEXT of an encrypted log was written to /s/store/agent.db-wal",
        "OUTSIDE: unlink /var/tmp/other",
    ]


def test_every_tool_can_be_started_and_is_in_the_readme() -> None:
    page = (ROOT / "tests" / "faults" / "README.md").read_text("utf-8")
    for tool in TOOLS:
        assert callable(import_module(tool.module).main)
        assert f"`{tool.module.rpartition('.')[2]}`" in page


def test_drawn_schedules_begin_with_what_is_possible() -> None:
    for seed in range(50):
        for step in drawn(random.Random(seed)):
            assert parsed(str(step)) == [step]
