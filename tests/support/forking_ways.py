"""Programs that fork in the ways of others: multiprocessing, subprocess, asyncio, and with a log in memory."""

import asyncio
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import refold
from refold.infrastructure.files.fork_gate import GATE

from .forking import appended, descriptors, ended, in_child, say, used, words_of


def in_memory(_: Path) -> None:
    """A log in memory lives on in the parent, and is refused in the child."""
    memory = used(Path(":memory:"))
    memory.conversations()
    ended(in_child(lambda: say(memory, "child")))
    say(memory, "two")
    print(words_of(memory), len(memory.conversations()))
    ended(in_child(memory.close))
    memory.close()


def by_multiprocessing(path: Path) -> None:
    """``multiprocessing`` in each of its ways."""
    for method in ("fork", "forkserver", "spawn"):
        memory = used(path)
        context: Any = multiprocessing.get_context(method)
        words = [f"{method}{n}" for n in range(40)]
        child = context.Process(target=appended, args=[path, *words])
        child.start()
        say(memory, f"beside-{method}")
        memory.close()
        child.join()
        with refold.open(path, telemetry=False) as memory:
            stored = words_of(memory).split()
        kept = [word for word in stored if word in words] == words
        print(method, child.exitcode, kept and f"beside-{method}" in stored)


def asynchronous(path: Path) -> None:
    """Every method of the asynchronous interface is refused as well, and closing is quiet."""

    async def parent() -> None:
        async with refold.aopen(path, telemetry=False) as memory:
            conversation = memory.conversation("t")
            await conversation.append({"role": "user", "content": "one"})
            tools = conversation.tools()
            deeds: list[Callable[[], Coroutine[Any, Any, object]]] = [
                lambda: conversation.append({"role": "user", "content": "two"}),
                conversation.context,
                conversation.messages,
                conversation.export,
                lambda: conversation.recall("one"),
                memory.conversations,
                lambda: memory.search("one"),
                memory.verify,
                memory.__aenter__,
                lambda: tools.call("recall_memory", {"query": "one"}),
            ]

            async def all_of() -> None:
                for deed in deeds:
                    try:
                        await deed()
                        print("done")
                    except refold.OpenedBeforeFork:
                        print("refused")
                await memory.drain()
                await memory.close()
                print("closed")

            ended(in_child(lambda: asyncio.run(all_of())))

    asyncio.run(parent())


def by_subprocess(path: Path) -> None:
    """A program that is started runs no hook: nothing waits, nothing is closed."""
    memory = used(path)
    opened = descriptors(path)
    _, usual = _started(path)
    with GATE.used():
        said, seconds = _started(path)
        print(said, seconds < usual + 4.5, descriptors(path) == opened)
    memory.close()


def _started(path: Path) -> tuple[str, float]:
    """Start a program that appends. Return what it says, and how many seconds it took."""
    began = time.monotonic()
    words = [sys.executable, "-m", "tests.support.forking_program", "append", str(path.parent)]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return said.strip(), time.monotonic() - began
