"""Making vectors in the background: all that are missing, newest first, in nobody's way."""

import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager

import pytest

from refold.application.errors import EmbedderError, LogError
from refold.application.ports.embedder import Vector
from refold.application.recall import embedding as schedule
from refold.application.recall import missing_vectors as asked
from refold.application.recall.embedding import Embedding, EmbeddingProgress
from refold.application.recall.missing_vectors import BATCH, CHARACTERS, PAGE
from refold.application.recall.passages import Passage
from refold.application.recall.tokens import digest_of
from refold.infrastructure.recall.vectors import SQLiteVectorStore
from tests.support.fake_embedders import DigestEmbedder, FailingEmbedder, HeldEmbedder, unreachable
from tests.support.passage_lists import PassageList

WAIT = 30.0
"""Seconds; no test comes near."""


_OPENED: list[SQLiteVectorStore] = []


@pytest.fixture(autouse=True)
def closed_at_the_end() -> Generator[None]:
    """Close the stores of a test: some of its objects outlive it."""
    yield
    while _OPENED:
        _OPENED.pop().close()


class Desk:
    """An index, a store in memory, and what was told."""

    def __init__(self, *texts: str) -> None:
        self.index = PassageList(*texts)
        self.store = SQLiteVectorStore(":memory:", self.index)
        _OPENED.append(self.store)
        self.newest = 1
        self.told: list[tuple[str, Mapping[str, str | int | float]]] = []

    def embedding(self, embedder: DigestEmbedder) -> Embedding:
        return Embedding(
            self.index,
            self.store,
            embedder,
            words=self.index.words,
            newest=lambda: self.newest,
            report=lambda name, figures: self.told.append((name, figures)),
        )

    def say(self, *texts: str) -> None:
        self.index.say(*texts)
        self.newest += 1

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.told]


@contextmanager
def working(desk: Desk, embedder: DigestEmbedder) -> Generator[Embedding]:
    made = desk.embedding(embedder)
    try:
        yield made
    finally:
        made.close(WAIT)


def done(count: int, model: str = "digests-1") -> EmbeddingProgress:
    return EmbeddingProgress(model=model, done=count, total=count, running=False)


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_all_that_are_missing_are_made_the_newest_first_and_each_text_once() -> None:
    desk, embedder = Desk("one", "two", "one", "three"), DigestEmbedder()
    with working(desk, embedder) as embedding:
        assert embedding.progress() == EmbeddingProgress(
            model="digests-1", done=0, total=4, running=False
        )
        assert embedding.finish(WAIT) == done(4)
        assert embedder.texts == ["three", "one", "two"]
        assert embedding.finish(WAIT) == done(4)
    assert len(embedder.asked) == 1
    assert desk.names == ["embedding.finished"]
    assert desk.told[0][1]["texts"] == 3


def test_newest_first_holds_for_more_than_one_page() -> None:
    texts = [f"text {n}" for n in range(2 * PAGE + 10)]
    desk, embedder = Desk(*texts), DigestEmbedder()
    with working(desk, embedder) as embedding:
        assert embedding.finish(WAIT) == done(len(texts))
    assert embedder.texts == texts[::-1]
    assert {len(batch) for batch in embedder.asked[:-1]} >= {BATCH}


def test_a_text_that_several_pages_have_is_counted_on_each_of_them() -> None:
    texts = ["Go on.", "a bad one", *(f"text {n}" for n in range(PAGE)), "Go on.", "a bad one"]
    desk = Desk(*texts)
    embedder = FailingEmbedder(EmbedderError("bad_request", "no"), of="bad")
    with working(desk, embedder) as embedding:
        progress = embedding.finish(WAIT)
        assert (progress.done, progress.refused, progress.total) == (PAGE + 2, 2, PAGE + 4)
        assert progress.complete
        assert embedding.describe_missing() is None


def test_long_texts_go_in_smaller_batches() -> None:
    desk, embedder = Desk(*(f"{n} " * 3_000 for n in range(8))), DigestEmbedder()
    with working(desk, embedder) as embedding:
        embedding.finish(WAIT)
    assert max(sum(map(len, batch)) for batch in embedder.asked) <= CHARACTERS
    assert len(embedder.texts) == 8


def test_a_search_wakes_it_and_an_append_only_after_the_first_search() -> None:
    desk, embedder = Desk("one"), DigestEmbedder()
    with working(desk, embedder) as embedding:
        embedding.appended()
        time.sleep(2 * schedule.SETTLE)
        assert embedder.asked == []
        embedding.wake()
        eventually(lambda: desk.names == ["embedding.finished"])
        desk.say("two")
        embedding.appended()
        eventually(lambda: len(desk.names) == 2)
        desk.say("three")  # As another process does.
        embedding.wake()
        eventually(lambda: len(desk.names) == 3)
        assert embedding.progress() == done(3)
    assert embedder.texts == ["one", "two", "three"]


def test_where_nothing_was_said_since_nothing_is_looked_for() -> None:
    desk, embedder = Desk("one"), DigestEmbedder()
    with working(desk, embedder) as embedding:
        embedding.finish(WAIT)
        desk.index.say("two")  # The log says that it did not grow.
        embedding.wake()
        time.sleep(0.05)
        assert not embedding.progress().running
    assert embedder.texts == ["one"]


def test_nobody_waits_while_vectors_are_made_and_how_far_it_is_can_be_asked() -> None:
    desk, embedder = Desk(*(f"text {n}" for n in range(BATCH + 1))), HeldEmbedder()
    with working(desk, embedder) as embedding:
        embedding.wake()
        assert embedder.begun.wait(WAIT)
        progress = embedding.progress()
        assert (progress.done, progress.total, progress.running) == (0, BATCH + 1, True)
        assert "0 of 33" in str(embedding.describe_missing())
        assert not embedding.has_any()
        embedding.wake()
        embedding.appended()
        assert embedding.finish(0.01).running
        embedder.let.set()
        assert embedding.finish(WAIT) == done(BATCH + 1)
        assert embedding.has_any()
        assert embedding.describe_missing() is None


def test_closing_waits_for_the_batch_and_leaves_the_rest() -> None:
    desk, embedder = Desk(*(f"text {n}" for n in range(5 * BATCH))), HeldEmbedder()
    embedding = desk.embedding(embedder)
    embedding.wake()
    assert embedder.begun.wait(WAIT)
    begun = time.monotonic()
    embedding.close(0.05)
    assert time.monotonic() - begun < 5
    embedder.let.set()
    embedding.close(WAIT)
    assert len(embedder.asked) == 1
    assert desk.store.count(embedder.model) == 0
    embedding.wake()
    embedding.appended()
    assert not embedding.finish(WAIT).running
    assert len(embedder.asked) == 1


def test_a_failing_embedder_disturbs_nobody_and_is_asked_again_after_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schedule, "FIRST_PAUSE", 0.05)
    desk, embedder = Desk("one"), FailingEmbedder(unreachable(), ValueError("odd"), unreachable())
    with working(desk, embedder) as embedding:
        embedding.wake()
        eventually(lambda: desk.names[-1:] == ["embedding.finished"])
        assert embedding.progress() == done(1)
    assert desk.names == ["embedding.failed", "embedding.finished"]
    assert desk.told[0][1] == {"embedder": "digests", "reason": "connection"}


def test_an_embedder_that_failed_is_left_alone_and_asked_at_once_by_who_wants_to_finish() -> None:
    desk, embedder = Desk("one"), FailingEmbedder(unreachable())
    with working(desk, embedder) as embedding:
        progress = embedding.finish(WAIT)
        assert (progress.done, progress.running, progress.error) == (0, False, "no connection")
        assert "no connection" in str(embedding.describe_missing())
        for _ in range(5):
            desk.say("more")
            embedding.wake()
            embedding.appended()
        time.sleep(2 * schedule.SETTLE)
        assert embedder.asked == []
        assert embedding.finish(WAIT) == done(6)


def test_a_text_that_is_refused_does_not_stop_the_others() -> None:
    desk = Desk(*(f"text {n}" for n in range(100)), "a bad one", "a bad one")
    embedder = FailingEmbedder(EmbedderError("bad_request", "no"), of="bad")
    with working(desk, embedder) as embedding:
        progress = embedding.finish(WAIT)
        assert (progress.done, progress.refused, progress.total) == (100, 2, 102)
        assert progress.complete
        asked = len(embedder.asked)
        desk.say("a good one")
        assert embedding.finish(WAIT).done == 101
        assert len(embedder.asked) == asked + 1


def test_where_every_text_is_refused_the_texts_are_not_to_blame() -> None:
    desk = Desk(*(f"bad {n}" for n in range(100)))
    embedder = FailingEmbedder(EmbedderError("bad_request", "no such model"), of="bad")
    with working(desk, embedder) as embedding:
        progress = embedding.finish(WAIT)
        assert (progress.done, progress.refused, progress.error) == (0, 0, "no such model")


class Counting(DigestEmbedder):
    """Gives another number of vectors than it was asked for, or something else."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self._answer = answer

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        answer: Sequence[Vector] = self._answer  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
        return answer


@pytest.mark.parametrize("answer", [[], [[1.0]] * 5, None, 7, [[float("nan")]], [["a"]], "x"])
def test_an_answer_that_makes_no_sense_is_an_error_and_nothing_is_kept(answer: object) -> None:
    desk = Desk("one")
    with working(desk, Counting(answer)) as embedding:
        assert embedding.finish(WAIT).error
    assert desk.store.count("digests-1") == 0


def test_another_dimension_under_the_same_name_is_told() -> None:
    desk = Desk("one")
    with working(desk, DigestEmbedder()) as embedding:
        embedding.finish(WAIT)
    desk.say("two")
    with working(desk, DigestEmbedder(dimension=4)) as embedding:
        assert "8 dimensions" in str(embedding.finish(WAIT).error)
    assert desk.store.count("digests-1") == 1


def test_another_model_embeds_all_again_and_the_old_vectors_stay_until_then() -> None:
    desk, new = Desk(*(f"text {n}" for n in range(2 * BATCH))), HeldEmbedder("digests-2")
    with working(desk, DigestEmbedder()) as embedding:
        embedding.finish(WAIT)
    with working(desk, new) as embedding:
        embedding.wake()
        assert new.begun.wait(WAIT)
        assert desk.store.count("digests-1") == 2 * BATCH
        assert not embedding.has_any()
        new.let.set()
        assert embedding.finish(WAIT) == done(2 * BATCH, "digests-2")
    assert desk.store.count("digests-1") == 0
    assert desk.names == ["embedding.finished", "embedding.replaced", "embedding.finished"]


def test_old_vectors_stay_where_the_new_ones_cannot_be_made() -> None:
    desk = Desk("one")
    with working(desk, DigestEmbedder("digests-0")) as embedding:
        embedding.finish(WAIT)
    with working(desk, FailingEmbedder(unreachable())) as embedding:
        embedding.finish(WAIT)
    assert desk.store.count("digests-0") == 1


def test_what_is_erased_while_its_vector_is_made_is_not_kept() -> None:
    desk, embedder = Desk("stays", "secret"), HeldEmbedder()
    with working(desk, embedder) as embedding:
        embedding.wake()
        assert embedder.begun.wait(WAIT)
        desk.index.erase("secret")
        assert desk.store.prune(lambda: [one.digest for one in desk.index.all()])
        embedder.let.set()
        assert embedding.finish(WAIT) == done(1)
    assert desk.store.missing(embedder.model, [digest_of("secret")]) == [digest_of("secret")]
    assert desk.store.count(embedder.model) == 1


def test_what_is_erased_before_its_words_are_read_is_not_embedded() -> None:
    desk, embedder = Desk("stays", "secret"), DigestEmbedder()
    index = desk.index
    erased = False

    def words(passages: Sequence[Passage]) -> Mapping[int, str]:
        nonlocal erased
        if not erased:
            erased = True
            index.erase("secret")
        return index.words(passages)

    embedding = Embedding(index, desk.store, embedder, words=words, newest=lambda: 1)
    try:
        assert embedding.finish(WAIT) == done(1)
    finally:
        embedding.close(WAIT)
    assert embedder.texts == ["stays"]


def test_words_that_the_log_lacks_are_left_out_for_good() -> None:
    desk, embedder = Desk("one", "two"), DigestEmbedder()
    embedding = Embedding(
        desk.index,
        desk.store,
        embedder,
        words=lambda passages: {p.number: "two" for p in passages if p.digest == digest_of("two")},
        newest=lambda: 1,
    )
    try:
        progress = embedding.finish(WAIT)
    finally:
        embedding.close(WAIT)
    assert (progress.done, progress.refused, progress.total) == (1, 1, 2)


def test_a_log_that_cannot_be_read_is_told_and_tried_again() -> None:
    desk, failing = Desk("one"), [LogError("the log is damaged")]

    def words(passages: Sequence[Passage]) -> Mapping[int, str]:
        if failing:
            raise failing.pop()
        return desk.index.words(passages)

    embedding = Embedding(desk.index, desk.store, DigestEmbedder(), words=words, newest=lambda: 1)
    with closing(embedding):
        assert "the log is damaged" in str(embedding.finish(WAIT).error)
        assert embedding.finish(WAIT) == done(1)


def test_a_question_that_cannot_be_embedded_is_not_tried_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk("one")
    embedder = FailingEmbedder(unreachable(), unreachable(), RuntimeError("odd"))
    with working(desk, embedder) as embedding:
        for _ in range(3):
            with pytest.raises(EmbedderError, match="no connection"):
                embedding.embed_question("which?")
        assert len(embedder.errors) == 2
        assert desk.names == ["embedder.failed"]
        monkeypatch.setattr(asked, "QUESTIONS_PAUSE", 0.0)
        for reason in ("connection", "raised"):
            with pytest.raises(EmbedderError) as failed:
                embedding.embed_question("which?")
            assert failed.value.reason == reason
        assert embedding.embed_question("which?") == embedder.vector("which?")


def test_vectors_that_another_process_made_are_not_made_again() -> None:
    desk, embedder = Desk("one", "two"), DigestEmbedder()
    desk.store.add(embedder.model, {digest_of("two"): embedder.vector("two")})
    with working(desk, embedder) as embedding:
        assert embedding.progress().done == 1
        assert embedding.finish(WAIT) == done(2)
    assert embedder.texts == ["one"]


def test_many_who_ask_at_once_share_one_thread() -> None:
    desk, embedder = Desk(*(f"text {n}" for n in range(300))), DigestEmbedder()
    with working(desk, embedder) as embedding:
        answers: list[EmbeddingProgress] = []
        askers = [
            threading.Thread(target=lambda: answers.append(embedding.finish(WAIT)))
            for _ in range(8)
        ]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        assert [answer.done for answer in answers] == [300] * 8
    assert sorted(embedder.texts) == sorted(f"text {n}" for n in range(300))


def test_where_no_thread_can_start_a_search_goes_on_and_a_later_one_embeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    desk, embedder = Desk("one", "two"), DigestEmbedder()
    with working(desk, embedder) as embedding:
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", refuse)
            embedding.wake()
            assert "can't start new thread" in str(embedding.describe_missing())
            assert "can't start new thread" in str(embedding.finish(WAIT).error)
        embedding.wake()
        eventually(lambda: desk.names == ["embedding.finished"])
        assert embedding.progress() == done(2)


def test_closing_what_never_got_a_thread_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    embedding = Desk("one").embedding(DigestEmbedder())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    embedding.wake()
    embedding.close(WAIT)
