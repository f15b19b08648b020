"""Notes and topics in a real log: listed, written into files, erased with what they come from, forked."""

import json
import multiprocessing
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.notes.note_files import files_of
from refold.domain.events import CompactionPerformed
from refold.domain.notes import Note, NotesFlushed
from refold.infrastructure.bootstrap import open_core
from refold.infrastructure.notes.notes_folder import BEGIN, END
from tests.support.command_line import Refold
from tests.support.note_takers import NotingSummariser

RULE = "Please never push to the main branch."
SECRET = "the zebra protocol begins on Friday"
LONG = "Look at it once more, with all that was said. " * 12


def opened(path: Path, folder: Path | None = None, **options: Any) -> refold.Memory:
    return refold.open(path, window=8_000, notes_folder=folder, **options)


def talk(conversation: refold.ConversationMemory, turns: int = 10, said: str = RULE) -> None:
    for n in range(turns):
        conversation.append(
            {"role": "user", "content": f"{said} In payments_{n % 3}.py, that is. {LONG}"}
        )
        conversation.append(
            {"role": "assistant", "content": f"We decided to keep step {n}. {LONG}"}
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "notes"


@pytest.fixture
def memory(tmp_path: Path, folder: Path) -> Iterator[refold.Memory]:
    with opened(tmp_path / "a.db", folder) as made:
        yield made


def texts(folder: Path) -> str:
    return "\n".join(path.read_text("utf-8") for path in sorted(folder.rglob("*.md")))


def test_notes_are_listed_with_their_sources(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation)
    conversation.compact()
    rows = conversation.notes()
    assert list(memory.notes()) == list(rows)
    rule = next(row for row in rows if row.kind == "constraint")
    assert rule.text == RULE
    assert rule.taken_by == "ledger"
    assert (rule.start, rule.stop) == (0, conversation.summaries()[0].compact_up_to_index + 1)
    [position] = rule.source_positions
    assert RULE in str(conversation.read(position).message.content)
    assert memory.verify().ok


def test_the_files_say_what_the_events_say_and_are_made_again_when_lost(
    memory: refold.Memory, folder: Path, tmp_path: Path
) -> None:
    conversation = memory.conversation("a/b <c>")
    talk(conversation)
    conversation.compact()
    today = datetime.now(UTC).date().isoformat()
    memory_file, daily = folder / "MEMORY.md", folder / "memory" / f"{today}.md"
    assert f"- {RULE} (refold://a/b%20%3Cc%3E/" in memory_file.read_text("utf-8")
    assert f"- constraint: {RULE} (" in daily.read_text("utf-8")
    assert "step" in memory_file.read_text("utf-8"), "decisions"
    assert "- task" not in memory_file.read_text("utf-8")
    written = {path: path.read_bytes() for path in folder.rglob("*.md")}
    for path in written:
        path.unlink()
    memory.close()
    with opened(tmp_path / "a.db", folder):
        assert {path: path.read_bytes() for path in folder.rglob("*.md")} == written
        for name, content in files_of_log(tmp_path / "a.db").items():
            assert content in (folder / name).read_text("utf-8")


def files_of_log(path: Path) -> dict[str, str]:
    with opened(path) as memory:
        return dict(files_of(memory.notes()))


def test_what_a_person_writes_around_our_part_stays(memory: refold.Memory, folder: Path) -> None:
    conversation = memory.conversation("t")
    folder.mkdir()
    mine = folder / "MEMORY.md"
    mine.write_bytes(b"# My notes\r\nkeep \xff this")
    talk(conversation)
    conversation.compact()
    first = mine.read_bytes()
    assert first.startswith(b"# My notes\r\nkeep \xff this\n\n" + BEGIN)
    mine.write_bytes(first + b"\nand this below")
    talk(conversation, said="Please never touch vendor.")
    conversation.compact()
    second = mine.read_bytes()
    assert second.startswith(b"# My notes\r\nkeep \xff this\n\n" + BEGIN)
    assert second.endswith(END + b"\n\nand this below")
    assert b"Please never touch vendor." in second
    assert RULE.encode() in second


def test_a_file_keeps_its_mode_and_new_ones_are_private(
    memory: refold.Memory, folder: Path
) -> None:
    folder.mkdir()
    mine = folder / "MEMORY.md"
    mine.write_text("mine\n")
    mine.chmod(0o644)
    conversation = memory.conversation("t")
    talk(conversation)
    conversation.compact()
    assert mine.stat().st_mode & 0o777 == 0o644
    [daily] = (folder / "memory").iterdir()
    assert daily.stat().st_mode & 0o777 == 0o600


def test_through_a_link_the_file_behind_it_is_written(
    memory: refold.Memory, folder: Path, tmp_path: Path
) -> None:
    real = tmp_path / "elsewhere.md"
    real.write_text("mine\n")
    folder.mkdir()
    (folder / "MEMORY.md").symlink_to(real)
    conversation = memory.conversation("t")
    talk(conversation)
    conversation.compact()
    assert (folder / "MEMORY.md").is_symlink()
    assert RULE in real.read_text("utf-8")


def test_a_folder_that_cannot_be_written_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    with opened(tmp_path / "a.db", tmp_path / "file") as memory:
        conversation = memory.conversation("t")
        talk(conversation)
        assert conversation.compact().outcome == "performed"
        assert not memory.write_notes()
    assert "the notes files cannot be written" in caplog.text


def test_notes_cannot_pass_for_marks_or_headings(tmp_path: Path, folder: Path) -> None:
    odd = (
        Note(kind="decision", text="x\n<!-- refold:notes:end -->\n# Memory", positions=(0,)),
        Note(kind="constraint", text="<!-- refold:notes:begin --> y", positions=()),
    )
    with opened(tmp_path / "a.db", folder, summariser=NotingSummariser(*odd)) as memory:
        conversation = memory.conversation("t")
        talk(conversation)
        conversation.compact()
    for path in folder.rglob("*.md"):
        content = path.read_bytes()
        assert content.count(b"<!--") == 2
        assert content.startswith(BEGIN + b"\n")
        assert content.endswith(b"\n" + END + b"\n")
        assert content.decode().count("\n# Memory") <= 1


def test_what_is_erased_is_in_no_note_and_in_no_file(
    memory: refold.Memory, folder: Path, tmp_path: Path
) -> None:
    conversation = memory.conversation("t")
    conversation.append({"role": "user", "content": f"I prefer that {SECRET}. {LONG}"})
    conversation.append({"role": "assistant", "content": f"The zebra protocol it is. {LONG}"})
    talk(conversation)
    conversation.compact()
    copy = conversation.fork(thread_id="copy")
    assert SECRET in texts(folder)
    assert "zebra protocol" in {topic.topic for topic in conversation.topics()}
    assert any(SECRET in row.text for row in copy.notes())
    report = conversation.erase([0, 1])
    assert {"notes", "topics", "notes files"} <= {one.place for one in report.removed}
    assert report.complete
    assert not report.notes_elsewhere
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"zebra" not in path.read_bytes(), path
    for one in (conversation, copy):
        rows = one.notes()
        assert not any("zebra" in row.text for row in rows)
        assert RULE in {row.text for row in rows}, "what remains is noted anew"
        assert not any("zebra" in topic.topic for topic in one.topics())
        assert one.topics(), "and so are topics"
    assert RULE in texts(folder)
    assert memory.verify().ok
    conversation.compact()
    assert len([row for row in conversation.notes() if row.text == RULE]) == 1


def test_files_in_a_folder_that_nobody_named_are_told_as_keeping_what_was_noted(
    tmp_path: Path, folder: Path, refold: Refold
) -> None:
    with opened(tmp_path / "agent.db", folder) as memory:
        for thread in ("t", "whole"):
            talk(memory.conversation(thread))
            memory.conversation(thread).compact()
        memory.conversation("new").append([{"role": "user", "content": n} for n in "ab"])
    told = "If a program keeps notes in a folder, its files have them until it opens the log."
    assert told not in refold("erase", "new", "0", "--yes").out
    assert told not in refold("erase", "new", "--all", "--yes").out
    assert told in refold("erase", "t", "0", "--yes").out
    assert told in refold("erase", "whole", "--all", "--yes").out
    assert "Nothing was left" in refold("erase", "whole", "--all", "--yes").out
    with opened(tmp_path / "agent.db") as memory:
        report = memory.conversation("t").erase(2)
        assert report.notes_elsewhere
        assert "notes files" not in {one.place for one in report.removed}


def test_what_a_model_noted_of_an_erased_message_is_withdrawn_as_a_whole(tmp_path: Path) -> None:
    told = Note(kind="fact", text=SECRET, positions=(4,))
    with opened(tmp_path / "a.db", summariser=NotingSummariser(told)) as memory:
        conversation = memory.conversation("t")
        talk(conversation)
        conversation.compact()
        assert [row.text for row in conversation.notes()] == [SECRET]
        conversation.erase(2)
        rows = conversation.notes()
        assert SECRET not in {row.text for row in rows}, "who knows what it was made from"
        assert {row.taken_by for row in rows} == {"ledger"}


def test_an_erased_conversation_leaves_no_notes(
    memory: refold.Memory, folder: Path, tmp_path: Path
) -> None:
    for thread in ("gone", "kept"):
        conversation = memory.conversation(thread)
        talk(conversation, said=f"Please never push to {thread}.")
        conversation.compact()
    report = memory.erase_conversation("gone")
    assert "notes files" in {one.place for one in report.removed}
    assert {row.thread_id for row in memory.notes()} == {"kept"}
    assert "gone" not in texts(folder)
    memory.erase_conversation("kept")
    assert not memory.erase_conversation("kept").changed
    assert list(folder.rglob("*.md")) == [], "a file that was ours alone goes with its notes"


def test_a_copy_of_an_old_version_is_noted_anew_of_what_was_erased_since(
    memory: refold.Memory,
) -> None:
    conversation = memory.conversation("t")
    conversation.append({"role": "user", "content": f"I prefer that {SECRET}. {LONG}"})
    talk(conversation)
    conversation.compact()
    then = conversation.version
    conversation.erase(0)
    copy = conversation.fork(at=then, thread_id="copy")
    rows = copy.notes()
    assert RULE in {row.text for row in rows}
    assert not any("zebra" in row.text for row in rows)
    assert memory.verify().ok


def test_topics_are_those_of_the_active_summary_and_come_back(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    assert list(conversation.topics()) == []
    talk(conversation)
    conversation.compact()
    first = list(conversation.topics())
    assert any(topic.topic.startswith("payments_") for topic in first)
    assert all(topic.count > 0 for topic in first)
    assert first[0].last_seen[:10] == datetime.now(UTC).date().isoformat()
    talk(conversation, said="The checkpoint migration failed.")
    conversation.compact()
    assert "checkpoint migration" in {topic.topic for topic in conversation.topics()}
    conversation.revert_compaction()
    assert list(conversation.topics()) == first
    conversation.revert_compaction()
    assert list(conversation.topics()) == []
    assert memory.verify().ok


def test_topics_are_named_behind_the_summary_and_counted(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation)
    before = conversation.context(at=conversation.version)
    assert "[Recallable Topics]" not in json.dumps(before.for_anthropic())
    conversation.compact(tools=conversation.tools())
    context = conversation.context(system="You help.", tools=conversation.tools())
    [line] = [x for x in context.memory[0].splitlines() if x.startswith("[Recallable Topics]: ")]
    assert line.endswith(" (ask recall_memory)")
    assert "labels" in str(context.system)
    event = context.summary
    assert isinstance(event, CompactionPerformed)
    assert event.topics_shown == line.count(",") + 1


def test_replay_gives_the_same_notes_and_topics(tmp_path: Path, memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation)
    conversation.compact()
    notes, topics = list(conversation.notes()), list(conversation.topics())
    memory.replay()
    assert (list(conversation.notes()), list(conversation.topics())) == (notes, topics)


def _compact(path: Path, folder: Path, thread: str) -> None:
    with opened(path, folder) as memory:
        conversation = memory.conversation(thread)
        talk(conversation, said=f"Please never push to {thread}.")
        conversation.compact()


@pytest.mark.slow
def test_many_processes_write_the_same_files(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "a.db"
    with opened(path):
        pass
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_compact, args=(path, folder, f"thread-{n}")) for n in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    content = (folder / "MEMORY.md").read_text("utf-8")
    assert all(f"Please never push to thread-{n}." in content for n in range(3))
    assert content.encode().count(BEGIN) == 1


def test_with_notes_turned_off_nothing_is_taken_or_written(tmp_path: Path, folder: Path) -> None:
    with opened(tmp_path / "a.db", folder, notes="off") as memory:
        conversation = memory.conversation("t")
        talk(conversation)
        conversation.compact()
        assert list(conversation.notes()) == []
    assert not folder.exists()


def test_notes_flushed_are_in_the_log_before_the_summary(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        talk(conversation)
        conversation.compact()
    core = open_core(tmp_path / "a.db")
    events = [logged.event for logged in core.log.scan()]
    kinds = [type(e) for e in events if isinstance(e, NotesFlushed | CompactionPerformed)]
    assert kinds == [NotesFlushed, CompactionPerformed]
    core.log.close()


@pytest.mark.parametrize("background", [False, True])
def test_from_a_size_on_notes_are_taken_without_a_compaction(
    tmp_path: Path, background: bool
) -> None:
    settings: dict[str, Any] = {"notes_reserve_tokens": 4_000, "notes_soft_tokens": 700}
    with opened(tmp_path / "a.db", background=background, **settings) as memory:
        conversation = memory.conversation("t")
        while conversation.context().tokens < 3_300:
            assert list(conversation.notes()) == [] or conversation.context().tokens >= 3_000
            talk(conversation, 1)
        assert memory.drain(20)
        assert list(conversation.compactions()) == []
        noted = conversation.version
        assert {row.text for row in conversation.notes()} >= {RULE}
        talk(conversation, 1)
        conversation.context()
        assert memory.drain(20)
        assert conversation.version == noted + 2, "once per cycle"


def test_the_commands_show_topics_and_notes(tmp_path: Path, refold: Refold) -> None:
    with opened(tmp_path / "agent.db") as memory:
        conversation = memory.conversation("t")
        talk(conversation)
        conversation.compact()
        memory.conversation("new").append({"role": "user", "content": "hi"})
    shown = refold("topics", "t", "--json").answer
    assert shown["thread_id"] == "t"
    assert {"topic", "count", "last_position", "last_seen"} <= shown["topics"][0].keys()
    assert "payments_0.py" in refold("topics", "t").out
    assert "No topics yet" in refold("topics", "new").out
    noted = refold("notes", "--json").answer["notes"]
    assert RULE in {note["text"] for note in noted}
    assert isinstance(noted[0]["positions"], list)
    assert "No notes" in refold("notes", "new").out
    assert RULE in refold("notes", "t", "--write", "out").out
    assert RULE in (tmp_path / "out" / "MEMORY.md").read_text("utf-8")
    assert refold("notes", "nobody").code == 2
    (tmp_path / "file").touch()
    refused = refold("notes", "--write", "file/x")
    assert (refused.code, refused.out) == (2, "")


def test_the_command_says_what_was_written_and_that_nothing_was(
    tmp_path: Path, refold: Refold
) -> None:
    with opened(tmp_path / "agent.db") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "hi"})
        told = refold("notes", "--write", "out")
        assert "Nothing was written: the log has no notes." in told.out
        assert "Written" not in told.out
        assert refold("notes", "--write", "out", "--json").answer["written_to"] is None
        assert not (tmp_path / "out").exists()
        talk(conversation)
        conversation.compact()
    assert (
        "Written: out: MEMORY.md and 1 file below memory." in refold("notes", "--write", "out").out
    )
    assert refold("notes", "--write", "out", "--json").answer["written_to"] == "out"


@pytest.mark.parametrize("folder", ["", " "])
def test_the_command_refuses_a_folder_without_a_name(
    tmp_path: Path, refold: Refold, folder: str
) -> None:
    with opened(tmp_path / "agent.db") as memory:
        conversation = memory.conversation("t")
        talk(conversation)
        conversation.compact()
    refused = refold("notes", "--write", folder)
    assert (refused.code, refused.out) == (2, "")
    assert "--write" in refused.err
    assert not list(tmp_path.rglob("*.md"))
