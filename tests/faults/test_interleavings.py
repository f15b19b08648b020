"""The scheduler of threads: it replays exactly, finds planted defects, and finds nothing without them."""

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pytest

from refold.application.api.blocking import Runner
from refold.application.compaction.background import Background
from refold.application.conversation.loaded import LoadedConversation
from refold.infrastructure.event_store import stored_log
from refold.infrastructure.event_store.conversation_loader import RememberedStreams
from refold.infrastructure.event_store.stored_log import StoredLog
from refold.infrastructure.files.lock import WriteLock

from .interleaving_playing import Case, Played, Playing, parsed
from .interleaving_scenes import SCENES
from .interleavings import changes, in_order, mixed


class Later:
    """A lock that the schedules of a child make their own."""

    lock: Any = threading.RLock()


LATER = Later()
ENOUGH = 150
"""Schedules among which a planted defect is found: within a minute, also on a busy machine."""


@pytest.fixture(scope="module")
def playing(tmp_path_factory: pytest.TempPathFactory) -> Playing:
    return Playing(tmp_path_factory.mktemp("templates"))


def first_bad(schedules: Iterator[Played]) -> Played:
    """The first schedule with a find."""
    for played in islice(schedules, ENOUGH):
        if played.faults:
            return played
    raise AssertionError(f"nothing was found in {ENOUGH} schedules")


def test_a_case_is_what_its_text_says() -> None:
    for text in ("append/", "close compact+lines/3:b,17:s1"):
        assert str(parsed(text)) == text
    assert parsed("two/3:b") == Case("two", choices={3: "b"})


def test_the_same_case_gives_the_same_trace(playing: Playing) -> None:
    drawn = playing.play(Case("close"), draw=5)
    again = playing.play(parsed(str(drawn.case)))
    assert drawn.case.choices
    assert (again.trace, again.faults) == (drawn.trace, [])


@pytest.mark.slow
@pytest.mark.parametrize("scene", sorted(SCENES))
def test_drawn_schedules_are_replayed_exactly_and_have_no_find(
    playing: Playing, scene: str
) -> None:
    for played in islice(mixed(playing, scene, 2), 5):
        assert played.faults == []
        again = playing.play(parsed(str(played.case)))
        assert again.digest == played.digest


def test_a_change_is_made_only_where_two_threads_use_the_same_thing(playing: Playing) -> None:
    plain = playing.play(Case("close"))
    cases = changes(plain)
    assert 10 < len(cases) < sum(len(seen.others) for seen in plain.decisions)
    assert {len(case.choices) for case in cases} == {1}
    assert changes(playing.play(cases[7]))[0].choices.items() > cases[7].choices.items()


def test_a_commit_without_its_lock_is_found(
    playing: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def held(self: WriteLock, *arguments: object) -> Generator[bool]:
        del self, arguments
        yield True

    monkeypatch.setattr(WriteLock, "held", held)
    monkeypatch.setattr(stored_log, "CONFLICTS", 1)  # A second check would make up for the lock.
    bad = first_bad(in_order(playing, "append", 1, lines=False, seed=1))
    assert "REFUSED LogError" in bad.faults[0]
    assert playing.play(parsed(str(bad.case))).faults[0].startswith(bad.faults[0][:40])


@pytest.mark.slow
def test_a_close_that_waits_for_no_compaction_is_found(
    playing: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def finish(self: Background, wait: float | None = None) -> None:
        del self, wait

    monkeypatch.setattr(Background, "finish", finish)

    def close(self: Runner) -> None:
        del self

    monkeypatch.setattr(Runner, "close", close)
    bad = first_bad(in_order(playing, "close compact", 1, lines=False, seed=1))
    assert "A COMPACTION WITHOUT AN END in x" in bad.faults[0]


@pytest.mark.slow
def test_a_lost_update_in_a_shared_cache_is_found(
    playing: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(self: Any, thread_id: str, stream: object) -> None:
        streams = self._streams.copy()
        streams[thread_id] = stream
        self._streams = streams

    load: Callable[..., LoadedConversation] = StoredLog.load

    def load_kept(self: Any, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        kept = self._remembered.find(thread_id) if at is None else None
        return load(self, thread_id, at=at) if kept is None else kept.loaded

    monkeypatch.setattr(RememberedStreams, "put", put)
    monkeypatch.setattr(StoredLog, "load", load_kept)
    near = in_order(playing, "requests", 1, lines=True, near="test_interleavings")
    bad = first_bad(near)
    assert "acknowledged before, is neither in the request nor covered" in bad.faults[0]


@pytest.mark.slow
def test_locks_that_are_taken_in_two_orders_are_a_deadlock(
    playing: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, load = WriteLock.held, StoredLog.load

    @contextmanager
    def held_and_remembered(self: WriteLock, *arguments: Any) -> Generator[bool]:
        with held(self, *arguments) as holds, LATER.lock:
            yield holds

    def load_locked(self: Any, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        with LATER.lock, self._writing():
            return load(self, thread_id, at=at)

    monkeypatch.setattr(WriteLock, "held", held_and_remembered)
    monkeypatch.setattr(StoredLog, "load", load_locked)
    bad = first_bad(in_order(playing, "requests", 1, lines=False, seed=1))
    assert bad.faults[0].startswith("DEADLOCK")
    assert "requests" in str(bad.case)
