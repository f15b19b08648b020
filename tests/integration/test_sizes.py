"""``memory.stats`` and ``refold stats``: how large a log is and what of."""

import json
from pathlib import Path

from refold.application.api.memory import Memory
from refold.application.maintenance.maintenance_results import Share, Sizes
from refold.infrastructure.bootstrap import open_memory
from tests.support.command_line import Refold, talk
from tests.support.log_files import execute, rows, set_state


def filled(path: Path) -> Memory:
    memory = open_memory(path, window=8_000)
    memory.conversation("long").append(talk(40, "Some words of it. " * 12), recorded=True)
    assert memory.conversation("long").compact().outcome == "performed"
    memory.conversation("short").append({"role": "user", "content": "你好 🙂"})
    return memory


def test_every_stored_byte_belongs_to_a_conversation_and_to_a_kind(tmp_path: Path) -> None:
    with filled(tmp_path / "agent.db") as memory:
        sizes = memory.stats()
    stored = rows(tmp_path / "agent.db")
    assert [c.thread_id for c in sizes.conversations] == ["long", "short"]
    assert sum(c.bytes for c in sizes.conversations) == sum(len(row[3]) for row in stored)
    assert sum(kind.bytes for kind in sizes.kinds) == sum(len(row[3]) for row in stored)
    assert {kind.name: kind.count for kind in sizes.kinds} == {
        "message_appended": 161, "compaction_requested": 1, "compaction_performed": 1,
        "notes_flushed": 1,
    }  # fmt: skip
    assert (sizes.messages, sizes.events) == (161, 164)
    assert sizes.frames == (Share(name="plain", count=164, bytes=sum(len(r[3]) for r in stored)),)


def test_messages_are_counted_as_the_json_that_they_are(tmp_path: Path) -> None:
    with filled(tmp_path / "agent.db") as memory:
        sizes = memory.stats()
        for size in sizes.conversations:
            messages = memory.conversation(size.thread_id).messages()
            assert size.messages == len(messages)
            assert size.message_bytes == sum(
                len(message.message.model_dump_json(exclude_defaults=True).encode())
                for message in messages
            )


def test_snapshots_and_files_are_counted_apart(tmp_path: Path) -> None:
    with filled(tmp_path / "agent.db") as memory:
        memory.conversations()
        memory.search("anything")
        long, short = memory.stats().conversations
        (snapshot,) = rows(tmp_path / "agent.db", "stored_snapshots")
        assert (long.snapshots, long.snapshot_bytes) == (1, len(snapshot[3]))
        assert (short.snapshots, short.snapshot_bytes) == (0, 0)
        assert long.bytes_per_message == (long.bytes + len(snapshot[3])) / 160
    with open_memory(tmp_path / "agent.db", scrub_megabytes=0) as memory:
        files = {file.name: file for file in memory.stats().files}
    assert files.keys() >= {"log", "views", "recall", "anchor"}
    for file in files.values():
        if "wal" not in file.name:
            assert file.bytes == file.path.stat().st_size


def test_what_was_erased_is_counted(tmp_path: Path) -> None:
    with filled(tmp_path / "agent.db") as memory:
        memory.conversation("short").erase(0)
        sizes = memory.stats()
    assert [c.erased_events for c in sizes.conversations if c.thread_id == "short"] == [1]
    assert {frame.name: frame.count for frame in sizes.frames}["erased"] == 1


def test_an_erased_conversation_of_an_encrypted_log_is_counted(tmp_path: Path) -> None:
    with open_memory(tmp_path / "agent.db", encryption_key=b"k" * 32) as memory:
        for thread_id in ("gone", "there"):
            memory.conversation(thread_id).append({"role": "user", "content": "Hello."})
        memory.erase_conversation("gone")
        sizes = {one.thread_id: one for one in memory.stats().conversations}
    assert [sizes[t].erased_events for t in ("gone", "there")] == [1, 0]
    assert [sizes[t].message_bytes > 0 for t in ("gone", "there")] == [False, True]


def test_compressed_events_are_counted_by_their_encoding(tmp_path: Path) -> None:
    with filled(tmp_path / "agent.db") as memory:
        before = memory.stats()
        memory.compress(keep=0)
        after = memory.stats()
    assert len({frame.name for frame in after.frames}) > 1
    assert after.events == before.events
    assert after.conversations[0].bytes < before.conversations[0].bytes
    assert message_bytes(after) == message_bytes(before)


def message_bytes(sizes: Sizes) -> dict[str, int]:
    return {c.thread_id: c.message_bytes for c in sizes.conversations}


def test_damage_does_not_keep_it_from_counting(tmp_path: Path) -> None:
    filled(tmp_path / "agent.db").close()
    set_state(tmp_path / "agent.db", 3, b"damaged")
    execute(tmp_path / "agent.db", "UPDATE stored_events SET state=NULL WHERE originator_version=4")
    broken = "UPDATE stored_events SET state=CAST(state || 'x' AS BLOB) WHERE originator_version=5"
    execute(tmp_path / "agent.db", broken)
    with open_memory(tmp_path / "agent.db") as memory:
        sizes = memory.stats()
    assert {frame.name: frame.count for frame in sizes.frames}["damaged"] == 2
    assert sizes.events == 164


def test_the_command_shows_conversations_kinds_and_files(refold: Refold, stored: Path) -> None:
    shown = refold("stats")
    assert shown.code == 0
    for word in ("talk", "message_appended", "compaction_performed", "plain", "agent.db"):
        assert word in shown.out
    answer = refold("stats", "--json").answer
    assert answer["messages"] == 80
    assert answer["conversations"][0]["thread_id"] == "talk"
    assert sum(kind["bytes"] for kind in answer["kinds"]) == sum(len(r[3]) for r in rows(stored))
    assert refold("stats", "--db", "none.db").code == 2


def test_names_of_conversations_are_shown_safely(tmp_path: Path, refold: Refold) -> None:
    with open_memory(tmp_path / "agent.db") as memory:
        memory.conversation("[red]x[/red]").append({"role": "user", "content": "Hello."})
    for words in (("stats",), ("stats", "--json")):
        assert "[red]x[/red]" in refold(*words).out
    assert json.loads(refold("stats", "--json").out)["conversations"][0]["messages"] == 1


def test_of_a_log_in_memory(tmp_path: Path) -> None:
    with filled(Path(":memory:")) as memory:
        assert memory.stats().files == ()
        assert memory.stats().messages == 161
    assert list(tmp_path.iterdir()) == []
