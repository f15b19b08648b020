"""Several need a smaller context in the same moment: one makes it, and the others wait for that."""

import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.compaction import fit_to_budget as settling
from refold.application.compaction.ladder import climb
from refold.application.ports.summariser import Summariser
from tests.support.fake_summarisers import GoodSummariser, HeldSummariser, RecordingSummariser

WINDOW = 16_000
PROGRAM = """
import sys, refold
with refold.open(sys.argv[1], window=int(sys.argv[2])) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    context = memory.conversation("t").context()
    print(context.tokens <= context.budget.limit, len(context.compactions), flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A conversation whose next request does not fit."""
    path = tmp_path / "agent.db"
    with refold.open(path, window=WINDOW) as memory:
        for number in range(60):
            asked = f"{number}: look at file_{number}.py. " + "word " * 90
            answered = f"{number} is right. " + "fine " * 100
            memory.conversation("t").append(
                [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
            )
        memory.conversation("t").append({"role": "user", "content": "And now?"})
    return path


@contextmanager
def opened(
    path: Path, summariser: Summariser, wait: float = 30.0
) -> Generator[refold.ConversationMemory]:
    with refold.open(
        path, window=WINDOW, summariser=summariser, compaction_wait=wait, notes="off"
    ) as memory:
        yield memory.conversation("t")


def outcomes(conversation: refold.ConversationMemory) -> list[tuple[str, str | None]]:
    return [(row.outcome, row.reason) for row in conversation.compactions()]


@pytest.mark.slow
def test_processes_that_ask_at_once_compact_once_and_all_fit(path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(path), str(WINDOW)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [process.communicate(timeout=60)[0] for process in processes]
    assert sorted(told) == ["True 0\n"] * 3 + ["True 1\n"]
    with refold.open(path, window=WINDOW) as memory:
        assert outcomes(memory.conversation("t")) == [("performed", None)]


def test_who_comes_later_waits_for_the_summary_and_asks_no_model(path: Path) -> None:
    held, recording = HeldSummariser(GoodSummariser()), RecordingSummariser(GoodSummariser())
    with (
        opened(path, held) as conversation,
        opened(path, recording) as other,
        ThreadPoolExecutor() as pool,
    ):
        first = pool.submit(conversation.context)
        assert held.started.wait(30)
        second = pool.submit(other.context)
        assert not second.done()
        held.release()
        made, waited = first.result(30), second.result(30)
        assert waited.compactions == ()
        assert (waited.messages, waited.tokens) == (made.messages, made.tokens)
        assert waited.tokens <= waited.budget.limit
        assert recording.requests == []
        assert outcomes(conversation) == [("performed", None)]


@pytest.mark.slow
def test_it_is_waited_for_no_longer_than_the_setting_says(path: Path) -> None:
    held = HeldSummariser(GoodSummariser())
    with (
        opened(path, held) as conversation,
        opened(path, GoodSummariser(), wait=0.2) as other,
        ThreadPoolExecutor() as pool,
    ):
        first = pool.submit(conversation.context)
        assert held.started.wait(30)
        context = other.context()
        assert context.tokens <= context.budget.limit
        assert [c.outcome for c in context.compactions] == ["in_flight", "performed"]
        held.release()
        late = first.result(30)
        assert [c.reason for c in late.compactions] == ["overtaken"]
        assert late.tokens <= late.budget.limit
        assert outcomes(conversation) == [("failed", "abandoned"), ("performed", None)]


@pytest.mark.slow
def test_a_summary_that_comes_too_late_is_no_failure_of_its_summariser(path: Path) -> None:
    class Interrupted(GoodSummariser):
        """A message that it is to cover is pinned while it works, once."""

        calls = 0

        async def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
            self.calls += 1
            if self.calls == 1:
                other.pin(3)
            return await super().summarise(request)

    mine = Interrupted()
    with opened(path, mine) as conversation, opened(path, GoodSummariser()) as other:
        context = conversation.context()
        assert context.tokens <= context.budget.limit
        assert [c.outcome for c in context.compactions] == ["failed", "performed"]
        assert [c.summariser for c in context.compactions] == [mine.name, mine.name]
        assert context.compactions[0].reason == "overtaken"


def test_who_sees_that_it_has_just_been_done_does_not_do_it_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = iter([True])
    with opened(path, GoodSummariser()) as one, opened(path, GoodSummariser()) as other:

        def climb_late(*args: Any, **options: Any) -> Any:
            if next(others, False):
                assert len(other.context().compactions) == 1
            return climb(*args, **options)

        monkeypatch.setattr(settling, "climb", climb_late)
        context = one.context()
        assert context.compactions == ()
        assert context.tokens <= context.budget.limit
        assert outcomes(one) == [("performed", None)]
