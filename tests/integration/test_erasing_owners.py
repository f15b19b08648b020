"""Everything that is a person's is erased, in every conversation and file; what is others' stays."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.testing.request_judge import violations
from tests.support.command_line import ran
from tests.support.dying import torn, traced, watched, write_files

FILLER = "Tidying the garden shed, raking leaves and painting the fence white. " * 14
MINE = "zanzibar"
OTHERS = "kilimanjaro"


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def open_memory(folder: Path, **options: Any) -> refold.Memory:
    made: dict[str, Any] = {
        "window": 8_000,
        "memories": 5,
        "notes_folder": folder / "notes",
        "scrub_megabytes": 0,
        "background": False,
        **options,
    }
    return refold.open(folder / "agent.db", **made)


def fill(memory: refold.Memory) -> None:
    """Two conversations of one person, one of which quotes the other, one of somebody else in which
    that person speaks, a fork, and one of nobody.
    """
    monday = memory.conversation("monday", owner="user-7")
    monday.append(
        [said(f"Remember: I prefer {MINE}-1 to tea."), said(f"So {MINE}-2.", "assistant")]
    )
    monday.append(said(f"Remember: I always want {OTHERS}-1."), owner="user-8")
    monday.append([said("Fine.", "assistant")])
    monday.append([m for _ in range(6) for m in (said(FILLER), said("Fine.", "assistant"))])
    monday.append(said("Go on."))
    assert monday.compact(focus=f"keep {MINE}-3").outcome == "performed"
    monday.label(f"{MINE}-4")
    monday.pin(f"{MINE}-5 is a pinned text")
    tuesday = memory.conversation("tuesday", owner="user-7")
    tuesday.append(said(f"What do I prefer to tea, {MINE}-6?"))
    assert f"{MINE}-1" in str(tuesday.context().system)
    tuesday.fork(thread_id="copy")
    room = memory.conversation("room", owner="user-8")
    room.append([said(f"Remember: I prefer {OTHERS}-2."), said("Noted.", "assistant")])
    room.append(said(f"Remember: I prefer {MINE}-7."), owner="user-7")
    room.append(said("Noted.", "assistant"))
    room.append([m for _ in range(6) for m in (said(FILLER), said("Fine.", "assistant"))])
    room.append(said("Go on."))
    assert room.compact().outcome == "performed"
    memory.conversation("nobodys").append(said(f"{OTHERS}-3"))


def bytes_of(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def assert_erased(memory: refold.Memory, folder: Path) -> None:
    assert memory.verify().ok
    for row in memory.conversations():
        conversation = memory.conversation(row.thread_id)
        assert MINE not in str(list(conversation.export("events")))
        for version in range(1, conversation.version + 1):
            assert MINE not in str(conversation.context(at=version).for_anthropic())
        assert violations(conversation.context().for_anthropic()) == []
        assert (
            MINE
            not in f"{conversation.notes()} {conversation.summaries()} {conversation.topics()} {row.label}"
        )
    assert not [h for h in memory.search(MINE, scope="all") if MINE in h.text]
    assert MINE.encode() not in bytes_of(folder)
    told = [str(memory.conversation(t).messages()) for t in ("monday", "room", "nobodys")]
    assert all(f"{OTHERS}-{n}" in text for n, text in enumerate(told, 1))


@pytest.mark.slow
def test_everything_of_an_owner_is_erased_and_nothing_of_others(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        assert MINE.encode() in bytes_of(tmp_path)
        report = memory.erase_owner("user-7", "the account was closed")
        assert (report.owner, report.complete, report.changed) == ("user-7", True, True)
        places = {(one.thread_id, one.place) for one in report.removed}
        assert {
            ("monday", "message"),
            ("monday", "summary"),
            ("monday", "notes"),
            ("monday", "label"),
            ("monday", "focus"),
            ("monday", "pin"),
            ("tuesday", "message"),
            ("tuesday", "quoted memory"),
            ("copy", "message"),
            ("copy", "quoted memory"),
            ("room", "message"),
            ("room", "summary"),
            ("room", "notes"),
            ("room", "notes files"),
            ("room", "recall index"),
            ("room", "read models"),
        } <= places
        assert not [one for one in places if one[0] == "nobodys"]
        assert_erased(memory, tmp_path)
        assert f"{OTHERS}-2" in str(memory.conversation("room").notes())
        texts = [row.summary_text for row in memory.conversation("room").summaries()]
        assert f"{OTHERS}-2" in str(texts)
        again = memory.erase_owner("user-7")
        assert (again.changed, again.complete) == (False, True)
        memory.conversation("tuesday", owner="user-7").append(said("I am back."))
        assert "I am back." in str(memory.conversation("tuesday").context().messages)
    with open_memory(tmp_path) as memory:
        assert_erased(memory, tmp_path)


def test_an_owner_that_nothing_is_of_is_no_error(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        report = memory.erase_owner("user-9")
        assert (report.changed, report.complete, report.removed) == (False, True, ())
        assert not report.known
        for owner in ("", None):
            with pytest.raises(refold.InvalidOwner):
                memory.erase_owner(owner)  # type: ignore[arg-type]


@pytest.mark.slow(but="user-8")
@pytest.mark.parametrize("owner", ["user-7", "user-8"])
def test_an_owner_stays_known_when_all_of_theirs_is_erased(tmp_path: Path, owner: str) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        assert [memory.erase_owner(owner).known for _ in range(2)] == [True, True]
    assert ran("erase", "--owner", owner, "--yes", folder=tmp_path).code == 0


@pytest.mark.slow
def test_the_command_line_says_that_an_owner_is_unknown(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
    for more in ((), ("--json",)):
        told = ran("erase", "--owner", "user-70", "--yes", *more, folder=tmp_path)
        assert told.code == 2
        assert "This log has no data of owner 'user-70'" in told.err
        assert "left to erase" not in told.out


def test_copies_made_before_the_log_knew_whose_it_is_are_erased_as_well(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.conversation("old").append([said(f"{MINE}-1"), said("Fine.", "assistant")])
        memory.conversation("old").fork(thread_id="copy")
        memory.conversation("old", owner="user-7").append(said(f"{MINE}-2"))
        memory.erase_owner("user-7")
        assert MINE.encode() not in bytes_of(tmp_path)


@pytest.mark.slow
def test_asyncio_and_the_command_line_do_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with open_memory(tmp_path / name, notes_folder=None) as memory:
            fill(memory)

    async def work() -> refold.ErasureReport:
        async with refold.aopen(tmp_path / "a" / "agent.db", window=8_000) as memory:
            return await memory.erase_owner("user-7")

    assert asyncio.run(work()).complete
    folder, words = tmp_path / "b", ("erase", "--owner", "user-7", "--json")
    assert ran(*words, folder=folder).code != 0, "nobody was asked"
    done = ran(*words, "--yes", folder=folder)
    assert done.code == 0, done
    for wrong in (("t", "--owner", "user-7"), ("--owner", "user-7", "--all"), ("t",), ()):
        assert ran("erase", *wrong, "--yes", folder=folder).code == 2
    for name in ("a", "b"):
        with open_memory(tmp_path / name, notes_folder=None) as memory:
            assert_erased(memory, tmp_path / name)


def test_a_restored_backup_is_erased_again(tmp_path: Path) -> None:
    folder, backup = tmp_path / "log", tmp_path / "backup.db"
    folder.mkdir()
    with open_memory(folder, notes_folder=None) as memory:
        fill(memory)
        memory.backup(backup)
        memory.erase_owner("user-7")
    refold.restore(backup, folder / "agent.db", force=True)
    with open_memory(folder, notes_folder=None) as memory:
        for row in memory.conversations():
            told = str(list(memory.conversation(row.thread_id).export("jsonl")))
            assert MINE not in told
        assert memory.verify().ok


@pytest.mark.slow
def test_a_death_at_any_write_leaves_all_or_nothing_in_the_log(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    with traced():
        memory = open_memory(folder)
        fill(memory)
        done: list[bool] = []
        with watched(folder, lambda: bool(done)) as moments:
            memory.erase_owner("user-7")
            done.append(True)
        memory.close()
        possible = [*moments, *torn(moments, 0.5)]
        assert len(possible) > 10
        distinct = {frozenset(m.files.items()): m for m in possible}.values()
        for number, moment in enumerate(distinct):
            life = tmp_path / f"life-{number}"
            write_files(moment.files, life)
            with open_memory(life) as again:
                left = {
                    row.thread_id
                    for row in again.conversations()
                    for m in again.conversation(row.thread_id).messages()
                    if MINE in m.text
                }
                assert left in (set(), {"monday", "tuesday", "copy", "room"}), moment.before
                assert not (left and moment.known), "it was acknowledged, and is there again"
                if left:
                    assert again.erase_owner("user-7").changed
                assert_erased(again, life)
            shutil.rmtree(life)
