"""On a real log: what is appended while a summary is written stays, whoever asks meanwhile gets what fits."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import refold
from refold.application.api.results import StoredMessage
from refold.testing.history_layout import marked, marker
from refold.testing.request_judge import violations
from refold.testing.request_parts import blocks_of
from tests.support.fake_summarisers import HeldSummariser
from tests.support.talk import strings

WINDOW = 100_000
DUE = 70_000
"""The size at which a compaction begins: 70 % of the window."""
WAIT = 60
MEANWHILE = 231


def message(number: int, words: int) -> dict[str, object]:
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": f"{marker(number)} {'word ' * words}"}


def complete(stored: Sequence[StoredMessage], context: refold.Context, count: int) -> None:
    """Each message is in the log once, in order, and either shown or covered."""
    assert [m.position for m in stored] == list(range(count))
    assert [marked(str(m.message.content)) for m in stored] == [{n} for n in range(count)]
    assert context.summary is not None
    covered = context.summary.coverage
    # The first block is the summary.
    first, *rest = context.messages
    shown = {n for text in strings([*blocks_of(first["content"])[1:], *rest]) for n in marked(text)}
    assert all((n in shown) != covered.covers(n) for n in range(count))
    assert shown <= set(range(count))
    assert context.tokens <= context.budget.limit
    assert violations(context.for_anthropic()) == []


@pytest.mark.slow
def test_what_several_threads_append_while_a_summary_is_written_is_all_there(
    tmp_path: Path,
) -> None:
    held, lock = HeldSummariser(), threading.Lock()
    with (
        refold.open(tmp_path / "a.db", window=WINDOW, background=True, summariser=held) as memory,
        ThreadPoolExecutor(4) as threads,
    ):
        conversation, said = memory.conversation("t"), 0

        def say(words: int) -> int:
            nonlocal said
            with lock:  # Only so that the test knows the order.
                stored = conversation.append(message(said, words))
                said += 1
                return stored.messages[0].tokens

        size = 0
        while size < DUE:
            size += say(600)
        assert held.started.wait(WAIT)
        for done in [threads.submit(say, 2) for _ in range(MEANWHILE)]:
            done.result(WAIT)
        assert conversation.context().summary is None
        held.release()
        assert memory.drain(WAIT)
        complete(conversation.messages(), conversation.context(), said)
        assert [(row.outcome, row.trigger) for row in conversation.compactions()] == [
            ("performed", "background")
        ]
        assert memory.verify().ok


def test_the_same_for_asyncio(tmp_path: Path) -> None:
    async def scene() -> None:
        held = HeldSummariser()
        async with refold.aopen(
            tmp_path / "a.db", window=WINDOW, background=True, summariser=held
        ) as memory:
            conversation, said, size = memory.conversation("t"), 0, 0
            while size < DUE:
                size += (await conversation.append(message(said, 600))).messages[0].tokens
                said += 1
            while not held.started.is_set():
                await asyncio.sleep(0.001)
            for number in range(said, said + MEANWHILE):
                await conversation.append(message(number, 2))
            assert (await conversation.context()).summary is None
            held.release()
            assert await memory.drain(WAIT)
            complete(await conversation.messages(), await conversation.context(), said + MEANWHILE)

    asyncio.run(scene())


@pytest.mark.parametrize("background", [False, True])
def test_threads_that_talk_and_ask_at_once_are_all_served(tmp_path: Path, background: bool) -> None:
    """The built-in summariser, many compactions, four threads on one conversation, a fifth elsewhere."""
    with refold.open(tmp_path / "a.db", window=4_000, background=background) as memory:

        def talk(thread_id: str) -> int:
            conversation, over = memory.conversation(thread_id), 0
            for number in range(30):
                conversation.append(message(number, 40), recorded=True)
                context = conversation.context()
                over = max(over, context.tokens - context.budget.limit)
            return over

        with ThreadPoolExecutor(5) as threads:
            talks = [threads.submit(talk, t) for t in ("t", "t", "t", "t", "u")]
            assert all(one.result(WAIT) <= 0 for one in talks)
        assert memory.drain(WAIT)
        conversation = memory.conversation("t")
        assert len(conversation.messages()) == 120
        rows = conversation.compactions()
        assert {row.outcome for row in rows} <= {"performed", "failed"}
        assert len(rows) == len({row.attempt_id for row in rows})
        assert len([s for s in conversation.summaries() if s.is_active]) == 1
        assert memory.verify().ok
