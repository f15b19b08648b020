"""A process that forks while everything of a memory is in use: ``python -m tests.support.forked_process PATH``."""

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import refold
from refold.infrastructure.files.fork_gate import FileTurn


def acts(memory: refold.Memory) -> dict[str, Callable[[], object]]:
    """Everything that can be asked of a memory."""
    conversation = memory.conversation("t")
    return {
        "append": lambda: conversation.append({"role": "user", "content": "from the child"}),
        "context": conversation.context,
        "compact": conversation.compact,
        "revert": conversation.revert_compaction,
        "pin": lambda: conversation.pin(0),
        "pins": conversation.pins,
        "label": lambda: conversation.label("a name"),
        "messages": conversation.messages,
        "read": lambda: conversation.read(0),
        "explain": conversation.explain,
        "summaries": conversation.summaries,
        "compactions": conversation.compactions,
        "version": lambda: conversation.version,
        "fork": conversation.fork,
        "erase": lambda: conversation.erase(0),
        "conversations": memory.conversations,
        "erase_conversation": lambda: memory.erase_conversation("t"),
        "verify": memory.verify,
        "replay": memory.replay,
        "stats": memory.stats,
    }


def child(memory: refold.Memory, asked: dict[str, Callable[[], object]]) -> None:
    for name, act in asked.items():
        try:
            act()
            print(name, "done")
        except refold.LogError as error:
            print(name, "refused" if isinstance(error, refold.OpenedBeforeFork) else error)
    memory.close()
    print("close", "done")


def main(path: str) -> None:
    memory = refold.open(path, window=4_000)
    conversation = memory.conversation("t")
    conversation.append({"role": "user", "content": "from the parent"})
    conversation.context()
    memory.conversations()
    wrapped: Any = memory._core.views  # pyright: ignore[reportPrivateUsage]
    turn: FileTurn = wrapped._views.followed._turn
    held, forked = threading.Event(), threading.Event()

    def hold() -> None:
        """A thread that is in the middle of something, and does not live in the child."""
        with turn._threads, memory._runner._lock:  # pyright: ignore[reportPrivateUsage]
            held.set()
            forked.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    asked = acts(memory)
    pid = os.fork()
    if pid == 0:
        child(memory, asked)
        sys.stdout.flush()
        # As a program that ends: what is collected then must not touch the parent's files.
        sys.exit(0)
    forked.set()
    thread.join()
    _, status = os.waitpid(pid, 0)
    conversation.append({"role": "user", "content": "and again"})
    print(
        "parent",
        os.waitstatus_to_exitcode(status),
        len(conversation.messages()),
        memory.verify().ok,
    )
    memory.close()


if __name__ == "__main__":
    main(sys.argv[1])
