"""A process whose summariser never answers: ``python -m tests.support.compacting_process ACT PATH``."""

import asyncio
import os
import sys
import threading
import time

import refold
from refold.application.ports.summariser import SummaryDraft, SummaryRequest

WINDOW = 4_000
THREAD = "t"
DUE = 26
"""The message with which a compaction becomes due; two more do not fit, so it is waited for."""


class Endless:
    """Begins and never ends."""

    name = "endless"

    def __init__(self) -> None:
        self.started = threading.Event()

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        del request
        self.started.set()
        await asyncio.Event().wait()
        raise AssertionError


def message(number: int) -> dict[str, object]:
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": f"[{number}] " + "The build failed in step 7. " * 10}


def opened(path: str, endless: Endless) -> refold.Memory:
    return refold.open(path, window=WINDOW, background=True, summariser=endless)


def fill(memory: refold.Memory, endless: Endless) -> None:
    """Append until a compaction is under way."""
    conversation = memory.conversation(THREAD)
    for number in range(200):
        conversation.append(message(number))
        if endless.started.wait(0.01 if number < DUE else 20):
            return


def work(path: str) -> None:
    """Say that the summariser works, then wait to be killed."""
    endless = Endless()
    fill(opened(path, endless), endless)
    print("working", flush=True)
    sys.stdin.read()


def leave(path: str) -> None:
    """End without closing anything."""
    endless = Endless()
    fill(opened(path, endless), endless)
    print("leaving", flush=True)


def interrupted(path: str) -> None:
    """Wait for Ctrl-C."""
    endless = Endless()
    with opened(path, endless) as memory:
        fill(memory, endless)
        print("working", flush=True)
        time.sleep(60)


def interrupted_in_a_turn(path: str) -> None:
    """Wait for Ctrl-C in the middle of a request that waits for its summary."""
    endless = Endless()
    with refold.open(path, window=WINDOW, summariser=endless) as memory:
        conversation = memory.conversation(THREAD)
        conversation.append([message(number) for number in range(60)])
        told = threading.Thread(
            target=lambda: (endless.started.wait(), print("working", flush=True))
        )
        told.start()
        conversation.context()


async def interrupted_in_a_loop(path: str) -> None:
    """The same for asyncio."""
    endless = Endless()
    async with refold.aopen(path, window=WINDOW, background=True, summariser=endless) as memory:
        conversation = memory.conversation(THREAD)
        for number in range(200):
            await conversation.append(message(number))
            if endless.started.is_set():
                break
        print("working", flush=True)
        await asyncio.sleep(60)


def fork(path: str) -> None:
    """Use and close, in a child, what the parent opened and is at work with."""
    endless = Endless()
    memory = opened(path, endless)
    fill(memory, endless)
    conversation = memory.conversation(THREAD)
    if os.fork() == 0:
        for act in (conversation.compact, conversation.context):
            try:
                act()
                print("done")
            except refold.LogError as error:
                print(f"LogError: {error}")
        print("drained" if memory.drain(0) else "busy")
        memory.close()
        print("closed", flush=True)
        os._exit(0)
    os.wait()
    memory.close(0)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work", path]:
            work(path)
        case ["leave", path]:
            leave(path)
        case ["interrupted", path]:
            interrupted(path)
        case ["interrupted-in-a-turn", path]:
            interrupted_in_a_turn(path)
        case ["interrupted-in-a-loop", path]:
            asyncio.run(interrupted_in_a_loop(path))
        case ["fork", path]:
            fork(path)
        case arguments:
            sys.exit(f"unknown: {arguments}")
