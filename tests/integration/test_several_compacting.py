"""Several writers share a conversation: no compaction is repeated for nothing, and none is given up."""

import asyncio
import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.api.blocking import in_thread
from refold.application.api.results import CompactionResult
from refold.application.compaction.fit_to_budget import FitToBudget
from refold.application.ports.summariser import (
    NotesDraft,
    NotesRequest,
    SummaryDraft,
    SummaryRequest,
)

PAIR = [
    {"role": "user", "content": "hello world " * 60},
    {"role": "assistant", "content": "ok " * 60},
]
SOON = 60


class Model:
    """Takes so long for notes and for a summary; ``asked`` is set when it is asked for one."""

    name = "model"

    def __init__(self, notes: float, summary: float = 0.2) -> None:
        self.calls = 0
        self.asked = threading.Event()
        self._notes = notes
        self._summary = summary

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        self.calls += 1
        self.asked.set()
        await asyncio.sleep(self._summary)
        return SummaryDraft(text="what was said", complete=True, model="m", prompt_fingerprint="1")

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        await asyncio.sleep(self._notes)
        return NotesDraft(notes=(), model="m", prompt_fingerprint="p")


def at_once(*acts: Callable[[], object]) -> None:
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
        assert not thread.is_alive()


@pytest.mark.slow
def test_who_takes_notes_while_another_compacts_does_not_compact_again(tmp_path: Path) -> None:
    quick, slow = Model(0.1), Model(2)
    path, told = tmp_path / "agent.db", list[CompactionResult]()
    with (
        refold.open(path, window=60_000, summariser=quick) as first,
        refold.open(path, window=60_000, summariser=slow) as second,
    ):
        first.conversation("t").append([*PAIR * 226, {"role": "user", "content": "next?"}])
        at_once(
            lambda: told.extend(first.conversation("t").context().compactions),
            lambda: told.extend(second.conversation("t").context().compactions),
        )
        assert [row.outcome for row in first.conversation("t").compactions()] == ["performed"]
    assert (quick.calls, slow.calls) == (1, 0)
    assert [result.outcome for result in told] == ["performed"]


@pytest.mark.slow
def test_a_living_attempt_is_waited_for_where_the_request_grows_meanwhile(tmp_path: Path) -> None:
    path, model = tmp_path / "agent.db", Model(0, 4)
    large = [{"role": "assistant", "content": "so " * 600}, {"role": "user", "content": "x " * 300}]
    told = list[CompactionResult]()

    def tell(result: CompactionResult) -> None:
        if result.outcome == "in_flight":
            third.conversation("t").append(large)

    with (
        refold.open(path, window=8_000, summariser=model) as first,
        refold.open(path, window=8_000, on_compaction=tell) as second,
        refold.open(path, window=8_000) as third,
    ):
        first.conversation("t").append([*PAIR * 30, {"role": "user", "content": "next?"}])

        def compact() -> None:
            told.extend(first.conversation("t").context().compactions)

        thread = threading.Thread(target=compact)
        thread.start()
        assert model.asked.wait(SOON), "it is due"
        context = second.conversation("t").context()
        thread.join(SOON)
        assert not thread.is_alive()
        assert context.summary is not None
        assert context.summary.text == "what was said"
        assert [result.outcome for result in told] == ["performed"]
        rows = second.conversation("t").compactions()
        assert [(row.outcome, row.summariser) for row in rows] == [("performed", "model")]


@pytest.mark.slow
def test_what_others_append_in_between_is_made_smaller_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, left = FitToBudget.run, [PAIR * 35, PAIR * 35]
    with refold.open(tmp_path / "agent.db", window=8_000) as memory:
        conversation = memory.conversation("t")

        async def and_then(settling: FitToBudget, *given: Any) -> None:
            await run(settling, *given)
            if left:  # Another process, between settling and loading.
                await in_thread(conversation.append, left.pop())

        monkeypatch.setattr(FitToBudget, "run", and_then)
        conversation.append([*PAIR * 35, {"role": "user", "content": "next?"}])
        context = conversation.context()
        assert left == []
        assert context.tokens <= context.budget.limit
        assert {result.outcome for result in context.compactions} == {"performed"}


def test_what_cannot_fit_still_raises_at_once(tmp_path: Path) -> None:
    with refold.open(tmp_path / "agent.db", window=8_000, shorten_texts=False) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "word " * 9_000})
        version = conversation.version
        with pytest.raises(refold.ContextWindowExceeded):
            conversation.context()
        assert conversation.version == version


def _talk(path: Path, turns: int, failures: "multiprocessing.Queue[str]") -> None:
    try:
        with refold.open(path, window=8_000) as memory:
            conversation = memory.conversation("t")
            for _ in range(turns):
                conversation.append(PAIR)
                context = conversation.context()
                assert context.tokens <= context.budget.limit
    except BaseException as error:
        failures.put(repr(error))
        raise


@pytest.mark.slow
def test_four_processes_that_talk_at_once_repeat_nothing_and_give_nothing_up(
    tmp_path: Path,
) -> None:
    spawning = multiprocessing.get_context("spawn")
    failures: multiprocessing.Queue[str] = spawning.Queue()
    path = tmp_path / "agent.db"
    processes = [spawning.Process(target=_talk, args=(path, 60, failures)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    assert [process.exitcode for process in processes] == [0] * 4, failures.get(timeout=1)
    with refold.open(path, window=8_000) as memory:
        conversation = memory.conversation("t")
        rows = conversation.compactions()
        assert {row.outcome for row in rows} == {"performed"}
        # A small rest is not compacted again.
        assert min(row.tokens_before for row in rows) >= 5_000
        assert memory.verify().ok
