"""The read models on a real log: following, rebuilding and checking give the same rows."""

import multiprocessing
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import refold
from refold.application.api.memory_lists import ORDERS
from refold.application.ports.read_models import ReadModels
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.projection_store import view_folds as folding
from refold.infrastructure.projection_store.catch_up import FollowedLog
from refold.infrastructure.projection_store.read_models import SQLiteViews
from refold.infrastructure.projection_store.row_checksums import seal_row
from tests.support.view_events import TOPICS, Scribe

Act = tuple[str, str]
TWICE = ("compact", "compact")
ACTS = st.tuples(
    st.sampled_from(["say", "say", "compact", "revert", "fail", "label", "read"]),
    st.sampled_from(["t1", "t2", "线程"]),
)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SQLiteLog]:
    with closing(SQLiteLog(tmp_path / "agent.db")) as opened:
        yield opened


@pytest.fixture
def views(log: SQLiteLog, tmp_path: Path) -> Iterator[SQLiteViews]:
    with closing(SQLiteViews(tmp_path / "agent.views.db", log)) as opened:
        yield opened


def everything(views: ReadModels) -> list[object]:
    threads = [row.thread_id for row in views.conversations()]
    return [
        views.conversations(),
        *(views.conversations_page(0, 10, None, order) for order in ORDERS),
        *(
            (
                views.conversation(t),
                views.messages(t, 0, 10_000),
                views.summaries(t),
                views.compactions(t),
                views.topics(t),
            )
            for t in threads
        ),
    ]


def play(scribe: Scribe, acts: Sequence[Act], views: ReadModels) -> None:
    for act, thread_id in acts:
        match act:
            case "say":
                scribe.say(thread_id, "hello", "broken \ud83d text")
            case "compact":
                scribe.compact(thread_id, "a summary \udc4d")
            case "revert":
                scribe.revert(thread_id)
            case "fail":
                scribe.fail(thread_id)
            case "label":
                scribe.label(thread_id, "标签 \ud800")
            case _:
                everything(views)


@given(acts=st.lists(ACTS, max_size=25), batch=st.integers(1, 20))
@example(
    # The topics of the first summary are loaded after those of the active one were looked for.
    acts=[(act, "t1") for act in ("say", *TWICE, "read", "compact", "revert", "revert", "compact")],
    batch=20,
)
def test_following_rebuilding_and_checking_agree(acts: list[Act], batch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "BATCH", batch)
        # A wrong fold that the database refuses would be mended by a rebuild.
        patch.setattr(FollowedLog, "_repair", None)
        with (
            closing(SQLiteLog(":memory:")) as log,
            closing(SQLiteViews(":memory:", log)) as followed,
            closing(SQLiteViews(":memory:", log)) as late,
        ):
            play(Scribe(log), acts, followed)
            seen = everything(followed)
            assert list(followed.check()) == []
            assert everything(late) == seen
            assert followed.rebuild() == sum(1 for _ in log.scan())
            assert everything(followed) == seen
            for row in followed.conversations():
                state = log.load(row.thread_id).state
                assert (row.version, row.messages) == (state.version, state.length)
                assert row.compactions == state.compactions
                active = [s.summary_id for s in followed.summaries(row.thread_id) if s.is_active]
                assert active == ([state.summary.summary_id] if state.summary else [])
                assert len(followed.topics(row.thread_id)) == len(TOPICS) * len(active)


def test_the_rows_of_earlier_summaries_are_not_read_again(log: SQLiteLog, tmp_path: Path) -> None:
    """The steps of SQLite in a fold of one more compaction, after 5 and after 45."""
    scribe, steps = Scribe(log), dict[int, int]()
    with closing(SQLiteViews(tmp_path / "agent.views.db", log)) as views:
        scribe.say("t", "one", "two", "three")
        for number in range(1, 46):
            scribe.compact("t")
            if number not in (6, 45):
                views.conversations()
                continue
            steps[number] = 0

            def count(number: int = number) -> None:
                steps[number] += 1

            db = views.followed._file.connection()  # pyright: ignore[reportPrivateUsage]
            db.set_progress_handler(count, 1)
            views.conversations()
            db.set_progress_handler(None, 1)
    assert steps[45] <= 1.05 * steps[6], steps


def test_questions_are_answered_from_the_newest_state(log: SQLiteLog, views: SQLiteViews) -> None:
    scribe = Scribe(log)
    assert views.conversations() == []
    assert views.conversation("t") is None
    scribe.say("t", "one", "two", "three")
    scribe.say("u", "later")
    assert [row.thread_id for row in views.conversations()] == ["u", "t"]
    scribe.say("t", "four")
    assert [row.thread_id for row in views.conversations()] == ["t", "u"]
    assert [row.text for row in views.messages("t", 1, 3)] == ["two", "three"]
    assert [row.text for row in views.messages("t", -5, 99)] == ["one", "two", "three", "four"]
    assert views.messages("t", 4, 9) == []
    assert views.messages("nobody", 0, 9) == []
    assert views.summaries("nobody") == []


def test_a_superseded_summary_stays_with_the_name_of_its_successor(
    log: SQLiteLog, views: SQLiteViews
) -> None:
    scribe = Scribe(log)
    scribe.say("t", "one", "two", "three")
    scribe.compact("t", "first")
    views.summaries("t")
    scribe.compact("t", "second")
    old, new = views.summaries("t")
    assert (old.summary_text, old.is_active, old.superseded_by) == ("first", False, new.summary_id)
    assert (new.summary_text, new.is_active, new.superseded_by) == ("second", True, None)


def test_a_failed_attempt_ends_at_the_time_of_the_log(log: SQLiteLog, views: SQLiteViews) -> None:
    Scribe(log).fail("t")
    (attempt,) = views.compactions("t")
    assert (attempt.outcome, attempt.reason) == ("failed", "empty")
    assert attempt.ended_at == next(iter(log.scan())).at


def test_two_active_summaries_are_refused_by_the_database(
    log: SQLiteLog, views: SQLiteViews, tmp_path: Path
) -> None:
    scribe = Scribe(log)
    scribe.say("t", "one", "two")
    scribe.compact("t")
    scribe.compact("t")
    views.summaries("t")
    with closing(sqlite3.connect(tmp_path / "agent.views.db")) as connection:
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute("UPDATE summaries SET is_active = 1")
        connection.rollback()


def test_an_append_does_not_touch_the_file(log: SQLiteLog, tmp_path: Path) -> None:
    with closing(SQLiteViews(tmp_path / "agent.views.db", log)):
        Scribe(log).say("t", "hello")
        assert not (tmp_path / "agent.views.db").exists()


def test_events_that_came_since_are_no_damage(log: SQLiteLog, views: SQLiteViews) -> None:
    scribe = Scribe(log)
    scribe.say("t", "one")
    assert list(views.check()) == []
    views.conversations()
    scribe.say("t", "two")
    assert list(views.check()) == []


@pytest.mark.slow
def test_threads_that_catch_up_at_once_see_the_same(log: SQLiteLog, tmp_path: Path) -> None:
    scribe = Scribe(log)
    for n in range(200):
        scribe.say(f"t{n % 5}", "hello", "world")
    path = tmp_path / "agent.views.db"
    with closing(SQLiteViews(path, log)) as one, closing(SQLiteViews(path, log)) as two:
        answers: list[list[object]] = []

        def ask(views: SQLiteViews) -> None:
            answers.append(everything(views))

        workers = [threading.Thread(target=ask, args=(v,)) for v in (one, two, one, two)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(answers) == 4
        assert all(answer == answers[0] for answer in answers)
        assert list(one.check()) == []


def _count(folder: str, rebuild: bool, found: "multiprocessing.Queue[int]") -> None:
    with (
        closing(SQLiteLog(Path(folder) / "agent.db")) as log,
        closing(SQLiteViews(Path(folder) / "agent.views.db", log)) as views,
    ):
        if rebuild:
            views.rebuild()
        found.put(sum(row.messages for row in views.conversations()))


@pytest.mark.slow
def test_processes_that_catch_up_and_rebuild_at_once_see_the_same(
    log: SQLiteLog, views: SQLiteViews, tmp_path: Path
) -> None:
    scribe = Scribe(log)
    for _ in range(20):
        scribe.say("t", *["hello"] * 50)
    context = multiprocessing.get_context("spawn")
    found: multiprocessing.Queue[int] = context.Queue()
    workers = [
        context.Process(target=_count, args=(str(tmp_path), rebuild, found))
        for rebuild in (False, True, False)
    ]
    for worker in workers:
        worker.start()
    for _ in range(5):
        assert len(views.messages("t", 0, 5_000)) == 1_000
    assert [found.get(timeout=60) for _ in workers] == [1_000] * 3
    for worker in workers:
        worker.join()
    assert list(views.check()) == []


def test_read_models_of_an_earlier_version_are_no_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.db"
    with refold.open(path) as memory:
        memory.conversation("t").append({"role": "user", "content": "hello"})
        assert memory.conversations()
    with closing(sqlite3.connect(tmp_path / "a.views.db")) as old:
        # As an earlier version would have left it: a column less, and a fold of another number.
        old.execute("ALTER TABLE conversations DROP COLUMN erased_messages")
        (row,) = old.execute("SELECT * FROM positions WHERE projection = 'conversations'")
        earlier = seal_row((row[0], row[1] - 1, *row[2:-1]))
        old.execute("DELETE FROM positions WHERE projection = 'conversations'")
        old.execute("INSERT INTO positions VALUES (?, ?, ?, ?, ?, ?, ?)", earlier)
        old.commit()
    with refold.open(path) as memory:
        assert memory.verify().ok
        assert [row.thread_id for row in memory.conversations()] == ["t"]
        assert memory.verify().ok
    assert "damaged" not in caplog.text
