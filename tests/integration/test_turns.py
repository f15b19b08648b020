"""Two requests of one conversation at once: turns order them, and versions and keys tell what was missed."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import refold
from refold.application.conversation.turn_lock import TurnsInMemory
from tests.support.fake_summarisers import GoodSummariser

SOON = 60
USER = {"role": "user", "content": "a question"}
REPLY = {"role": "assistant", "content": "an answer"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


def roles(conversation: refold.ConversationMemory) -> str:
    return "".join(message.message.role[0] for message in conversation.messages())


def serve(path: Path, turns: int, wait: float = SOON) -> None:
    """What a worker of a web service does, several times."""
    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        for _ in range(turns):
            with conversation.turn(wait):
                conversation.append(USER)
                time.sleep(0.02)
                conversation.append(REPLY)


@pytest.mark.slow(but="threads")
@pytest.mark.parametrize("where", ["threads", "processes"])
def test_questions_and_answers_alternate_whoever_sends_them(path: Path, where: str) -> None:
    if where == "threads":
        at_once([partial(serve, path, 6) for _ in range(3)])
    else:
        spawning = multiprocessing.get_context("spawn")
        workers = [spawning.Process(target=serve, args=(path, 6)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(120)
            assert worker.exitcode == 0
    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        assert roles(conversation) == "ua" * 18
        assert conversation.version == 36, "a turn stands nowhere in the log"


@pytest.mark.parametrize("place", [":memory:", "file"])
def test_two_tabs_that_send_at_once_take_turns_in_the_loop_of_a_service(
    path: Path, place: str
) -> None:
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.005)

    async def scene() -> str:
        async with refold.aopen(path if place == "file" else place) as memory:

            async def send() -> None:
                conversation = memory.conversation("t")
                async with conversation.turn():
                    await conversation.append(USER)
                    await asyncio.sleep(0.05)
                    await conversation.append(REPLY)

            ticking = asyncio.create_task(tick())
            await asyncio.gather(*(send() for _ in range(8)))
            ticking.cancel()
            messages = await memory.conversation("t").messages()
            return "".join(message.message.role[0] for message in messages)

    assert asyncio.run(scene()) == "ua" * 8
    assert len(ticks) > 20


def test_who_came_first_is_next(path: Path) -> None:
    order: list[int] = []

    def want(number: int) -> None:
        with memory.conversation("t").turn(SOON):
            order.append(number)

    with refold.open(path) as memory:
        threads = [threading.Thread(target=want, args=(n,)) for n in range(6)]
        with memory.conversation("t").turn():
            for thread in threads:
                thread.start()
                time.sleep(0.1)
        for thread in threads:
            thread.join(SOON)
    assert order == sorted(order)


def test_the_error_says_what_to_do_and_others_conversations_are_free(path: Path) -> None:
    with refold.open(path) as memory, refold.open(path) as other:
        with memory.conversation("t").turn():
            with pytest.raises(refold.TurnTaken, match="wait longer") as caught:
                other.conversation("t").turn(0.1).__enter__()
            assert (caught.value.thread_id, caught.value.waited) == ("t", 0.1)
            with other.conversation("u").turn(0):
                pass
            other.conversation("t").append(USER)  # Who takes no turn is not refused.
            assert roles(other.conversation("t")) == "u"
            assert other.conversation("t").context().messages
        with other.conversation("t").turn(0):
            pass
    with pytest.raises(refold.InvalidSetting, match="wait"):
        memory.conversation("t").turn(float("nan"))


def test_a_turn_within_a_turn_is_refused_at_once(path: Path) -> None:
    async def nested() -> None:
        async with refold.aopen(path) as memory:
            conversation = memory.conversation("t")
            async with conversation.turn():
                with pytest.raises(refold.TurnTaken, match="already"):
                    async with memory.conversation("t").turn():
                        raise AssertionError

    asyncio.run(nested())
    with (
        refold.open(path) as memory,
        memory.conversation("t").turn(),
        pytest.raises(refold.TurnTaken, match="already"),
    ):
        memory.conversation("t").turn().__enter__()


def test_one_who_is_cancelled_while_waiting_leaves_the_line(path: Path) -> None:
    async def scene() -> None:
        async with refold.aopen(path) as memory:
            conversation = memory.conversation("t")

            async def want() -> None:
                async with conversation.turn():
                    pass

            async with conversation.turn():
                waiting = asyncio.create_task(want())
                await asyncio.sleep(0.1)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            async with asyncio.timeout(SOON):
                async with conversation.turn():
                    pass

    asyncio.run(scene())


HOLDING = """
import sys, time, refold
memory = refold.open(sys.argv[1])
with memory.conversation("t").turn():
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_the_system_ends_the_turn_of_a_process_that_dies(path: Path) -> None:
    command = [sys.executable, "-c", HOLDING, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with refold.open(path) as memory:
            with pytest.raises(refold.TurnTaken):
                memory.conversation("t").turn(0.1).__enter__()
            process.send_signal(signal.SIGKILL)
            process.wait(SOON)
            with memory.conversation("t").turn(SOON):
                pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_child_neither_has_nor_ends_the_turn_of_its_parent(path: Path) -> None:
    with refold.open(path) as memory, refold.open(path) as other:
        turn = memory.conversation("t").turn()
        turn.__enter__()
        child = os.fork()
        if not child:
            turn.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(refold.TurnTaken):
            other.conversation("t").turn(0.1).__enter__()
        sleeper = os.fork()
        if not sleeper:
            time.sleep(SOON)
            os._exit(0)
        turn.__exit__(None, None, None)
        with other.conversation("t").turn(1):
            pass
        os.kill(sleeper, signal.SIGKILL)
        os.waitpid(sleeper, 0)


def test_more_than_have_places_all_get_their_turn() -> None:
    turns, done = TurnsInMemory(), list[int]()

    def want(number: int) -> None:
        place = turns.place("t")
        while not place.take():
            time.sleep(0.001)
        done.append(number)
        place.leave()

    at_once([partial(want, number) for number in range(100)])
    assert sorted(done) == list(range(100))


def at_once(acts: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)


def test_what_somebody_else_appended_meanwhile_is_a_conflict(path: Path) -> None:
    with refold.open(path) as memory, refold.open(path) as other:
        conversation = memory.conversation("t")
        version = conversation.append(USER).version
        other.conversation("t").append(USER)
        with pytest.raises(refold.VersionConflict, match="another writer") as caught:
            conversation.append(REPLY, expected_version=version)
        assert (caught.value.expected, caught.value.actual) == (1, 2)
        assert roles(conversation) == "uu"
        assert (
            conversation.append(REPLY, expected_version=conversation.context().version).version == 3
        )
        with pytest.raises(refold.VersionConflict, match="never had"):
            conversation.append(USER, expected_version=4)
        for wrong in (-1, True, "3", 2.0):
            with pytest.raises(refold.InvalidMessage, match="expected_version"):
                conversation.append(USER, expected_version=wrong)  # type: ignore[arg-type]  # pyright: ignore


def test_a_version_of_before_an_erasure_is_refused_with_the_one_to_begin_again_with(
    path: Path,
) -> None:
    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        conversation.append([USER, REPLY])
        memory.erase_conversation("t")
        for before in (2, conversation.version):
            with pytest.raises(
                refold.VersionConflict, match=r"was erased.*with version 0"
            ) as caught:
                conversation.append(USER, expected_version=before)
            assert caught.value.actual == 0
        assert conversation.append(USER, expected_version=0).version == 1
        with pytest.raises(refold.VersionConflict, match=r"at version 1.*before it was erased"):
            conversation.append(REPLY, expected_version=2)


def test_decisions_are_no_conflict(path: Path) -> None:
    with refold.open(path, window=8_000, summariser=GoodSummariser()) as memory:
        conversation = memory.conversation("t")
        conversation.append(
            [{**message, "content": "word " * 300} for message in (USER, REPLY) * 6]
        )
        version = conversation.append(USER).version
        assert conversation.compact().outcome == "performed"
        conversation.pin("keep this")
        assert conversation.version > version
        stored = conversation.append(REPLY, expected_version=version)
        assert stored.positions == (13,)
        with pytest.raises(refold.VersionConflict):
            conversation.append(USER, expected_version=0)


def test_what_was_delivered_already_is_no_conflict(path: Path) -> None:
    async def scene() -> None:
        async with refold.aopen(path) as memory:
            conversation = memory.conversation("t")
            await conversation.append(USER, key="a", expected_version=0)
            await conversation.append(REPLY, key="b", expected_version=1)
            again = await conversation.append(USER, key="a", expected_version=0)
            assert [message.new for message in again.messages] == [False]
            with pytest.raises(refold.VersionConflict):
                await conversation.append(USER, key="c", expected_version=0)

    asyncio.run(scene())


def test_one_key_stands_for_the_message_of_one_name(path: Path) -> None:
    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        ann, bob = {**USER, "name": "ann"}, {**USER, "name": "bob"}
        conversation.append({**ann, "metadata": {"try": 1}}, key="k")
        for again in (ann, USER, {**ann, "metadata": {"try": 2}}):
            assert not conversation.append(again, key="k").messages[0].new
        assert conversation.read(0).message.extra == {"name": "ann", "metadata": {"try": 1}}
        with pytest.raises(refold.KeyReused, match="message 0"):
            conversation.append(bob, key="k")
        with pytest.raises(refold.KeyReused, match="two messages"):
            conversation.append([ann, bob], key=["n", "n"])
        assert roles(conversation) == "u"


def test_one_key_stands_for_one_message(path: Path) -> None:
    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        conversation.append(USER, key="k")
        assert not conversation.append(USER, key="k").messages[0].new
        blocks = {"role": "user", "content": [{"type": "text", "text": "a question"}]}
        assert not conversation.append(blocks, key="k").messages[0].new
        with pytest.raises(refold.KeyReused, match="message 0") as caught:
            conversation.append({"role": "user", "content": "another"}, key="k")
        assert (caught.value.key, caught.value.position) == ("k", 0)
        with pytest.raises(refold.KeyReused, match="two messages"):
            conversation.append([USER, REPLY], key=["n", "n"])
        conversation.append(USER, key="by", author="person")
        assert not conversation.append(USER, key="by").messages[0].new
        with pytest.raises(refold.KeyReused):
            conversation.append(USER, key="by", author="program")
        assert len(conversation.append([REPLY, REPLY], key=["m", "m"]).messages) == 2
        assert roles(conversation) == "uua"
        conversation.erase(0)
        assert (
            not conversation.append({"role": "user", "content": "another"}, key="k").messages[0].new
        )
