"""Trials of policies: one at a time, once for a version, stopped with the server."""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

import refold
from refold.application.lab.simulating import Simulation
from refold.application.runtime.core import Core
from refold.domain.compaction.policy import CompactionPolicy
from refold.infrastructure.cli.inspect_command import open_trial
from refold.infrastructure.inspector.policy_trials import (
    PolicyTrials,
    Stopped,
    Trial,
    TrialKey,
    trial_of,
)


def unused(core: Core, policy: CompactionPolicy, window: int) -> Core:
    raise AssertionError("no core is needed")


EMPTY = Simulation(
    thread_id="t",
    messages=0,
    model=None,
    prices_as_of=date(2026, 1, 2),
    currency="USD",
    cache_seconds=None,
    policies=(),
)
ONE, OTHER = TrialKey("t", 1), TrialKey("t", 2)
SECONDS = 20


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def at_once() -> Callable[[Trial], Simulation]:
    return lambda _: EMPTY


def until_stopped() -> Callable[[Trial], Simulation]:
    def work(trial: Trial) -> Simulation:
        trial.stop.wait(SECONDS)
        raise Stopped

    return work


def test_a_trial_is_computed_once_and_kept() -> None:
    begun = list[int]()

    def prepare() -> Callable[[Trial], Simulation]:
        begun.append(1)
        return at_once()

    with closing(PolicyTrials(unused)) as trials:
        assert trials.find(ONE) is None
        for _ in range(3):
            trials.start(ONE, prepare)
            wait_for(lambda: (trials.find(ONE) or Trial()).is_over)
        found = trials.find(ONE)
        assert found is not None
        assert found.result is EMPTY
        assert begun == [1]


def test_only_one_trial_runs_however_often_it_is_asked_for() -> None:
    trials = PolicyTrials(unused)
    before = threading.active_count()
    for _ in range(20):
        trials.start(ONE, until_stopped)
        trials.start(OTHER, until_stopped)
    assert trials.is_busy
    assert trials.find(OTHER) is None
    assert threading.active_count() == before + 1
    trials.close()
    stopped = trials.find(ONE)
    assert stopped is not None
    assert stopped.is_over
    assert stopped.failure == "It was stopped."
    trials.start(OTHER, at_once)
    assert trials.find(OTHER) is None


def test_a_failure_is_reported_and_does_not_block_the_next_trial() -> None:
    def fail() -> Callable[[Trial], Simulation]:
        raise ValueError("no such thing")

    with closing(PolicyTrials(unused)) as trials:
        trials.start(ONE, fail)
        wait_for(lambda: not trials.is_busy)
        trials.start(OTHER, at_once)
        wait_for(lambda: not trials.is_busy)
        failed, done = trials.find(ONE), trials.find(OTHER)
        assert failed is not None
        assert failed.failure == "ValueError: no such thing"
        assert done is not None
        assert done.result is EMPTY


def test_only_the_newest_trials_are_remembered() -> None:
    with closing(PolicyTrials(unused)) as trials:
        for version in range(20):
            trials.start(TrialKey("t", version), at_once)
            wait_for(lambda: not trials.is_busy)
        kept = [n for n in range(20) if trials.find(TrialKey("t", n)) is not None]
        assert kept == list(range(4, 20))


def test_a_trial_plays_the_messages_up_to_the_version_and_writes_nothing(tmp_path: Path) -> None:
    with refold.open(
        tmp_path / "a.db", window=8_000, background=False, scrub_megabytes=0
    ) as memory:
        conversation = memory.conversation("t")
        for number in range(30):
            conversation.append({"role": "user", "content": f"question {number} " + "word " * 250})
            conversation.append({"role": "assistant", "content": "answer " * 60})
        version = conversation.version
        request = conversation.context(at=version)
        work = trial_of(memory, conversation, request, 40, open_trial)
        files = {path: path.stat().st_size for path in tmp_path.iterdir()}
        trial = Trial()
        now, earlier, never = work(trial).policies
        assert [one.figures.messages for one in (now, earlier, never)] == [40, 40, 40]
        assert (now.policy.trigger_share, now.window) == (0.7, 8_000)
        assert earlier.trigger < now.trigger
        assert earlier.compactions >= now.compactions > never.compactions == 0
        assert never.figures.largest_request > now.figures.largest_request
        assert trial.share == 1
        assert conversation.version == version
        assert {path: path.stat().st_size for path in tmp_path.iterdir()} == files
        trial.stop.set()
        with pytest.raises(Stopped):
            work(trial)


def test_a_trial_whose_thread_cannot_start_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with closing(PolicyTrials(unused)) as trials:
        with monkeypatch.context() as limited:
            limited.setattr(threading.Thread, "start", refuse)
            trials.start(ONE, at_once)
        assert not trials.is_busy
        trial = trials.find(ONE)
        assert trial is not None
        assert trial.failure == "No thread could start: can't start new thread"
        trials.start(OTHER, at_once)
        wait_for(lambda: not trials.is_busy)
