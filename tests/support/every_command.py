"""Every command on one log, in one process that others look at.

python -m tests.support.every_command FOLDER encrypted|erased [few]
"""

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import typer

import refold
from refold.infrastructure.cli.app import app

from .command_line import talk

ENCRYPTED, ERASED = "encrypted", "erased"
SECRET = "quokka-sanctuary"
KEY = "fTcCXuAXxnwKwvxHDcMsYmn7UnPzeqUoCeyGkQLGBkU="
FEW = ("verify", "erase", "salvage", "backup", "compress")
"""The commands that write most."""
MESSAGES = 180
"""Of twelve kilobytes each: more than SQLite's caches hold, in the log and in what is made of it."""


def fill(log: Path) -> None:
    """Make a log in which the secret is everywhere, and erased where that is possible."""
    # Few and long ones: the bytes are what counts here.
    words = f"{SECRET} " + " ".join(f"word{n}" * 14 for n in range(150))
    with refold.open(log) as memory:
        conversation = memory.conversation("one")
        for begin in range(0, MESSAGES, 80):
            conversation.append(
                [
                    {"role": ("user", "assistant")[n % 2], "content": f"{n} {n % 97} {words}"}
                    for n in range(begin, begin + 80)
                ]
            )
        two = memory.conversation("two")
        two.append(talk(5, f"{SECRET}. "))
        two.compact()


def ask_all(log: Path) -> None:
    """What one program does that has the memory open all the time: what is in memory only is checked too."""
    with refold.open(log) as memory:
        conversation = memory.conversation("one")
        two = memory.conversation("two")
        assert memory.conversations()
        assert conversation.messages()
        assert two.summaries()
        assert two.context()
        assert memory.search("word7 word9").hits
        assert conversation.recall("13").hits
        memory.notes()
        assert memory.verify().ok
        assert memory.verify(repair=True).ok
        memory.replay()
        two.erase(0)
        memory.search("word7 word9")
        assert memory.verify().ok


def commands(folder: Path) -> Iterator[list[str]]:
    """The command lines, in an order in which each finds what it needs."""
    talked = folder / "talk.json"
    talked.write_text(json.dumps(talk(40, f"{SECRET} and some more words. ")), "utf-8")
    yield ["import", f"{talked}", "--thread", "three"]
    yield ["play", f"{talked}", "--thread", "four"]
    yield from (["list"], ["show", "one"], ["context", "three"], ["stats"], ["settings"], ["index"])
    yield from (["compact", "three"], ["summaries", "three"], ["topics", "three"], ["notes"])
    yield from (["pin", "three", "8"], ["pins", "three"], ["explain", "three"], ["query", "one"])
    yield from (["read", "refold://one/7"], ["recall", "one", "word9"], ["search", "word9"])
    yield from (["fork", "one", "five"], ["diff", "three", "10", "20"], ["revert", "three"])
    yield from (["erase", "one", "3", "--yes"], ["list"], ["recall", "one", "word9"], ["verify"])
    yield from (["verify", "--repair"], ["replay"], ["compress"], ["anchor"], ["verify"])
    yield from (["anchor", "--out", f"{folder / 'anchor'}"], ["backup", f"{folder / 'copy.db'}"])
    yield from (
        ["salvage", f"{folder / 'saved.db'}"],
        ["export", "one", "--out", f"{folder / 'one'}"],
    )
    yield ["copy", f"{folder / 'agent.db'}", f"{folder / 'copied.db'}"]
    yield ["db", "upgrade"]
    yield from (["restore", f"{folder / 'copy.db'}", "--force"], ["list"], ["mcp"], ["verify"])
    yield ["erase", "two", "--all", "--yes"]


def run(words: list[str], log: Path) -> bool:
    """Run one command in this process; whether it did what it should."""
    given = words if words[0] in ("settings", "copy") else [*words, "--db", f"{log}"]
    printed = io.TextIOWrapper(io.BytesIO(), write_through=True)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = app(given, standalone_mode=False)
    except (typer.Exit, SystemExit, refold.RefoldError, Exception) as ended:
        code = getattr(ended, "exit_code", repr(ended))
    if code:
        print(words, code, printed.buffer.getvalue()[-300:], flush=True)
    return not code


def main() -> None:
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    if kind == ENCRYPTED:
        os.environ["REFOLD_ENCRYPTION_KEY"] = KEY
    log = folder / "agent.db"
    fill(log)
    ask_all(log)
    all_done = [
        run(words, log) for words in commands(folder) if "few" not in sys.argv or words[0] in FEW
    ]
    raise SystemExit(0 if all(all_done) else 1)


if __name__ == "__main__":
    main()
