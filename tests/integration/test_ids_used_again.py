"""The id of an erased conversation can be used again: a new one begins, and nothing of the old one comes back."""

import asyncio
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

import refold
from refold.application.conversation.transcripts import RecordedMessage
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.recall_index import Filters
from refold.application.recall import search
from refold.application.recall.ranking import WordPlace, messages_at
from refold.application.runtime.core import Core
from refold.domain.events import MessageAppended
from refold.domain.messages import Message
from refold.infrastructure.event_store.recorder import Head, LogRecorder
from refold.testing.request_judge import violations
from tests.support.fake_embedders import DigestEmbedder

SECRET = "the password is marzipan"
NEW = [
    {"role": "user", "content": "a new beginning with walnuts"},
    {"role": "assistant", "content": "welcome back"},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


def old(conversation: refold.ConversationMemory, turns: int = 30, keys: str = "k") -> None:
    for n in range(turns):
        conversation.append(
            {"role": "user", "content": f"{n}: {SECRET} " + "word " * 60}, key=f"{keys}{n}"
        )
        conversation.append({"role": "assistant", "content": "noted " * 60})


@pytest.mark.slow(but="None")
@pytest.mark.parametrize("key", [None, "11" * 32])
def test_a_new_conversation_begins_under_the_same_id(path: Path, key: str | None) -> None:
    with refold.open(path, window=8_000, encryption_key=key) as memory:
        conversation = memory.conversation("t")
        old(conversation)
        conversation.pin("keep this")
        conversation.label("the old one")
        assert conversation.compact().outcome == "performed"
        memory.erase_conversation("t")
        with pytest.raises(refold.ConversationGone, match="append a message"):
            conversation.context()
        for act in (
            conversation.compact,
            lambda: conversation.pin("x"),
            lambda: conversation.label("x"),
        ):
            with pytest.raises(refold.ConversationGone):
                act()
        assert memory.conversations() == []
        stored = conversation.append(NEW, key=["k0", "k1"])
        assert (stored.positions, stored.version, stored.thread_id) == ((0, 1), 2, "t")
        assert [message.text for message in conversation.messages()] == [m["content"] for m in NEW]
        assert not conversation.append(NEW[0], key="k0").messages[0].new
        context = conversation.context()
        assert violations(context.for_anthropic()) == []
        assert SECRET not in str(context.messages)
        assert context.thread_id == "t"
        [row] = memory.conversations()
        assert (row.thread_id, row.messages, row.label, row.erased) == ("t", 2, None, False)
        [hit] = conversation.recall("walnuts", limit=1).hits
        assert (hit.thread_id, hit.position, hit.address) == ("t", 0, "refold://t/0")
        assert conversation.read(hit.address).text == NEW[0]["content"]
        assert not conversation.recall("marzipan").hits
        assert not memory.search("marzipan").hits
        assert (
            conversation.summaries(),
            conversation.notes(),
            conversation.pins(),
            conversation.compactions(),
        ) == ([], [], (), [])
        assert [fate.address for fate in conversation.explain()] == ["refold://t/0", "refold://t/1"]
        assert "\x1f" not in str(list(conversation.export("events")))
        found = memory.verify()
        assert (found.ok, found.conversations, found.erased) == (True, 2, 1)
    with refold.open(path, window=8_000, encryption_key=key) as memory:
        conversation = memory.conversation("t")
        assert len(conversation.messages()) == 2
        memory.replay()
        assert [row.messages for row in memory.conversations()] == [2]
        old(conversation, 25, keys="later")
        assert conversation.compact().outcome == "performed"
        assert conversation.context().summary is not None
        assert conversation.context(at=2).messages == context.messages
        assert memory.verify().ok


def test_it_can_be_erased_and_begun_again_and_again(path: Path) -> None:
    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        for number in range(3):
            assert conversation.append({"role": "user", "content": f"life {number}"}).positions == (
                0,
            )
            report = memory.erase_conversation("t")
            assert report.changed
            assert report.complete
        assert not memory.erase_conversation("t").changed
        conversation.append(NEW)
        report = conversation.erase(0)
        assert (report.thread_id, report.positions) == ("t", (0,))
        assert conversation.messages()[0].erased
        assert memory.verify().ok
    for file in path.parent.iterdir():
        assert b"life" not in file.read_bytes(), file


def test_a_recording_can_be_imported_again(path: Path) -> None:
    recording = [
        RecordedMessage(message=Message(role=role, content=f"{role} says"), key=role)
        for role in ("user", "assistant")
    ]
    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        conversation.append_recorded(recording)
        memory.erase_conversation("t")
        assert not conversation.knows(recording[0])
        stored = conversation.append_recorded(recording)
        assert [message.new for message in stored.messages] == [True, True]
        assert [message.new for message in conversation.append_recorded(recording).messages] == [
            False,
            False,
        ]


def test_forks_of_both_lives_are_kept_apart(path: Path) -> None:
    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        old(conversation, 2)
        first = conversation.fork(thread_id="first")
        first.append({"role": "user", "content": "said in the first fork"})
        memory.erase_conversation("t")
        conversation.append(NEW)
        second = conversation.fork(thread_id="second")
        assert conversation.shared_with(0) == ("second",)
        report = conversation.erase(0)
        assert report.copies == ("second",)
        assert second.messages()[0].erased
        assert first.messages()[4].text == "said in the first fork"
        rows = {row.thread_id: row.forked_from for row in memory.conversations()}
        (fork,) = (e for e in second.export(format="events") if e["name"] == "conversation_forked")
        assert fork["fields"]["source"] == "t"
        assert rows == {"t": None, "first": "t", "second": "t"}
        memory.erase_conversation("first")
        assert conversation.fork(thread_id="first").messages()[1].text == "welcome back"
        assert memory.verify().ok


def test_other_processes_go_on_in_the_new_one(path: Path) -> None:
    with refold.open(path) as one, refold.open(path) as other:
        old(one.conversation("t"), 2)
        assert len(other.conversation("t").messages()) == 4
        one.erase_conversation("t")
        one.conversation("t").append(NEW[0])
        assert other.conversation("t").append(NEW[1]).positions == (1,)
        assert len(one.conversation("t").messages()) == 2
        one.erase_conversation("t")
        together = [
            threading.Thread(target=memory.conversation("t").append, args=(NEW[0],))
            for memory in (one, other)
        ]
        for thread in together:
            thread.start()
        for thread in together:
            thread.join(60)
        assert len(one.conversation("t").messages()) == 2
        assert one.verify().ok


def test_vectors_backups_and_salvage_know_the_new_one(path: Path, tmp_path: Path) -> None:
    async def scene() -> None:
        async with refold.aopen(path, embedder=DigestEmbedder()) as memory:
            conversation = memory.conversation("t")
            await conversation.append({"role": "user", "content": SECRET})
            await memory.embed()
            await memory.erase_conversation("t")
            await conversation.append(NEW)
            await memory.embed()
            found = await conversation.recall("walnuts", mode="hybrid", limit=1)
            assert [(hit.thread_id, hit.position) for hit in found.hits] == [("t", 0)]
            await memory.backup(tmp_path / "backup.db")
            await memory.salvage(tmp_path / "salvaged.db")
            assert {one.thread_id for one in (await memory.stats()).conversations} == {"t"}

    asyncio.run(scene())
    for name in ("backup.db", "salvaged.db"):
        with refold.open(tmp_path / name) as memory:
            assert len(memory.conversation("t").messages()) == 2
            assert [row.thread_id for row in memory.conversations()] == ["t"]
            assert memory.verify().ok


def test_an_older_copy_has_the_first_life_erased_again_and_keeps_the_second(
    path: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        old(conversation, 2)
        memory.backup(backup)
        memory.erase_conversation("t")
        conversation.append(NEW)
    restored = refold.restore(backup, path, force=True)
    assert [(one.thread_id, one.position) for one in restored.erased_again] == [("t", None)]
    with refold.open(path) as memory:
        assert memory.conversations() == []
        assert memory.conversation("t").append(NEW).positions == (0, 1)
        assert memory.verify().ok


def test_index_and_log_find_the_new_conversation_that_another_program_began(path: Path) -> None:
    """Both try the conversation that was known first."""
    with refold.open(path) as memory, refold.open(path) as other:
        old(memory.conversation("t"), turns=3)
        core = memory._core  # pyright: ignore[reportPrivateUsage]
        index, log, one = core.recall.index, core.log, Filters(thread_id="t")
        assert index.find(["marzipan"], one).candidates
        other.erase_conversation("t")
        other.conversation("t").append(NEW)
        [found] = index.find(["walnut", "marzipan"], one).candidates
        assert (found.thread_id, found.position) == ("t", 0)
        assert log.load("t").state.length == len(NEW)
    with refold.open(path) as memory:
        core = memory._core  # pyright: ignore[reportPrivateUsage]
        [first] = core.log.read_at("t", [1])
        assert isinstance(first.event, MessageAppended)
        assert first.event.message.content == NEW[0]["content"]


def test_a_recall_during_an_erasure_returns_nothing_of_the_conversation(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is erased after the search, before the words are read."""
    with refold.open(path) as memory, refold.open(path) as other:
        conversation = memory.conversation("t")
        old(conversation, turns=3)

        def erased(core: Core, places: Iterable[WordPlace]) -> Mapping[WordPlace, LoggedEvent]:
            other.erase_conversation("t")
            return messages_at(core, places)

        with monkeypatch.context() as patch:
            patch.setattr(search, "messages_at", erased)
            with pytest.raises(refold.ConversationGone):
                conversation.recall("marzipan password")
        other.conversation("t").append(NEW)
        assert conversation.recall("marzipan password").hits == ()


def test_a_recall_with_hits_looks_for_new_events_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it reads. The words that it reads then prove that the conversation was not erased meanwhile."""
    looks: list[str] = []
    is_newest = LogRecorder.is_newest

    def counted(recorder: LogRecorder, stream: str, head: Head) -> bool:
        looks.append(stream)
        return is_newest(recorder, stream, head)

    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        old(conversation, turns=3)
        conversation.recall("marzipan password")
        monkeypatch.setattr(LogRecorder, "is_newest", counted)
        assert conversation.recall("marzipan password").hits
        assert len(looks) == 1
