"""A process of its own that writes to a log: ``python -m tests.support.writer_process ACT PATH …``."""

import os
import sys
from pathlib import Path

from refold.application.conversation.appending import append
from refold.application.errors import LogError
from refold.infrastructure.event_store.store import SQLiteLog

from .fake_ports import core_of


def main() -> None:
    act, path, *rest = sys.argv[1:]
    match act:
        case "write":
            write(Path(path), *rest)
        case "fork":
            fork(Path(path))
        case "die":
            die(Path(path))
        case _:
            sys.exit(f"unknown act {act!r}")


def write(path: Path, thread_id: str, name: str, count: str) -> None:
    """Append so many messages, each under a key of this process and every other one twice."""
    log = SQLiteLog(path)
    core = core_of(log)
    for number in range(int(count)):
        message = {"role": "user", "content": f"{name}{number}"}
        for _ in range(1 + number % 2):
            append(core, thread_id, message, key=f"{name}{number}")
        append(core, thread_id, {"role": "user", "content": f"shared{number}"}, key=f"s{number}")
    log.close()


def fork(path: Path) -> None:
    """Use a log in a child that the parent opened: print how that ended in the child."""
    log = SQLiteLog(path)
    log.load("t")
    child = os.fork()
    if child == 0:
        try:
            log.load("t")
            print("loaded")
        except LogError as error:
            print(f"LogError: {error}")
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    print("parent has", log.load("t").state.version)


def die(path: Path) -> None:
    """Hold the lock and a part of a transaction, say so, and be killed."""
    log = SQLiteLog(path)

    def decide(_: object) -> tuple[()]:
        print("deciding", flush=True)
        sys.stdin.read()
        return ()

    log.transact("t", decide, at=core_of().clock())


if __name__ == "__main__":
    main()
