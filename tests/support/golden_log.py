"""The conversations of the golden log: played with fakes, so that they are the same at any time."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.erasure.erasing import erase_all
from refold.application.runtime.core import Core
from refold.domain.messages import Message
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.maintenance.restore import salvage_file

from .builders import assistant, calls, system, talk, text, thinking, tool_result, tool_use, user
from .fake_ports import core_of
from .fake_summarisers import RaisingSummariser
from .golden_scenes import (
    ANSWERED,
    FILES,
    REBUILT,
    SCENES,
    WORKED,
    add_foreign,
    add_rebuilt,
    add_scenes,
    add_work,
)

THREADS = (
    "compacted",
    "对话 2",
    "failed",
    "kept",
    "undone",
    "long turn",
    "lost",
    "erased",
    "copy",
    "copy of a copy",
    "early copy",
)
LOST = (2, 4, 16)
"""Versions that damage took from one of them: two before its compaction, one after it."""
GONE = "gone"
"""A conversation that was erased as a whole: it has no contexts."""
LOGS = {
    "log-1": THREADS[:3],
    "log-2": THREADS[:6],
    "log-3": THREADS,
    "log-4": THREADS,
    "log-5": THREADS,
    "log-6": (*THREADS, *SCENES),
    "log-7": (*THREADS, *SCENES, WORKED),
    "log-8": (*THREADS, *SCENES, WORKED, ANSWERED, FILES),
    "log-9": (*THREADS, *SCENES, WORKED, ANSWERED, FILES, REBUILT),
}
"""The kept logs, and which of the conversations each holds: later ones know more events."""
KEYS = {"log-4": bytes(range(32))}
"""The keys of those that are encrypted, but for their beginning, and compressed."""
WORDS = "word " * 60
WINDOW = 4_000


def write_log(path: Path) -> None:
    """Play the conversations into a new log at ``path``, which begins with what a damaged one left."""
    _salvage_lost(path)
    _begin(path)
    _go_on(path)


def write_sealed_log(path: Path) -> None:
    """The same, with a key from the third conversation on, then compressed, and erased from."""
    key = KEYS["log-4"]
    _salvage_lost(path)
    _begin(path)
    _erase(path, "compacted", [1], None)
    _go_on(path, key)
    log = SQLiteLog(path, key=key)
    assert log.compress(0).dictionary
    log.close()
    _erase(path, "compacted", [2, 5], key)
    _erase(path, "kept", [3], key)


def write_scenes(path: Path) -> None:
    """The conversations of ``write_log``, and those that the sixth log has besides."""
    write_log(path)
    add_scenes(path, WINDOW)


def write_work(path: Path) -> None:
    """The same, and a conversation about work that is recalled."""
    write_scenes(path)
    add_work(path, WINDOW)


def write_foreign(path: Path) -> None:
    """The same, with answers of another API and the memory files of a model."""
    write_work(path)
    add_foreign(path, WINDOW)


def write_rebuilt(path: Path) -> None:
    """The same, and a conversation whose summary was rebuilt twice."""
    write_foreign(path)
    add_rebuilt(path, WINDOW, 0, 12)


def _begin(path: Path) -> None:
    log = SQLiteLog(path)
    core, runner = core_of(log, window=WINDOW), Runner()
    try:
        _compacted(ConversationMemory(core, THREADS[0], runner))
        _odd(ConversationMemory(core, THREADS[1], runner))
    finally:
        runner.close()
        log.close()


def _erase(path: Path, thread_id: str, positions: Sequence[int], key: bytes | None) -> None:
    log = SQLiteLog(path, key=key)
    runner = Runner()
    try:
        report = ConversationMemory(core_of(log, window=WINDOW), thread_id, runner).erase(
            positions, "by request"
        )
        assert report.complete
    finally:
        runner.close()
        log.close()


def _go_on(path: Path, key: bytes | None = None) -> None:
    log = SQLiteLog(path, key=key)
    core, runner = core_of(log, window=WINDOW), Runner()
    try:
        failing = core_of(log, window=WINDOW, summariser=RaisingSummariser())
        _failed(ConversationMemory(failing, THREADS[2], runner))
        _kept(ConversationMemory(core, THREADS[3], runner))
        _undone(ConversationMemory(core, THREADS[4], runner))
        _long_turn(ConversationMemory(core, THREADS[5], runner))
        _gone_on(ConversationMemory(core, THREADS[6], runner))
        _erased(ConversationMemory(core, THREADS[7], runner))
        _copied(core, runner)
    finally:
        runner.close()
        log.close()


def long(turns: int) -> list[Message]:
    return [Message(role=m.role, content=f"{m.content} {WORDS}") for m in talk(turns)]


def _compacted(conversation: ConversationMemory) -> None:
    conversation.append([system("Keep to the rules."), *long(3)], key=[f"k{i}" for i in range(7)])
    conversation.append(
        assistant(thinking(), text("I look."), tool_use("toolu_1", cmd="cat big.txt"))
    )
    conversation.append(user(tool_result("toolu_1", "line of output\n" * 800)))
    conversation.append(long(7))
    conversation.context()
    conversation.append(long(8))
    conversation.context(system="You help.")
    conversation.append(long(14))
    conversation.context()
    conversation.append([user("and now?"), assistant(thinking("new"), text("now this"))])
    conversation.label("The golden one")
    conversation.compact(focus="what the user wants")
    conversation.append(
        [user("thanks"), calls("toolu_9", "toolu_10"), user(tool_result("toolu_9"))]
    )


def _failed(conversation: ConversationMemory) -> None:
    conversation.append(long(8))
    conversation.compact()
    conversation.append(long(1))


def _odd(conversation: ConversationMemory) -> None:
    conversation.append(
        [
            assistant("I begin."),
            user("half \ud83d of a pair", {"type": "new_in_2030", "data": [1, None, 1.5]}),
            user(tool_result("never.called", "42")),
            assistant(text(" "), thinking()),
            assistant(text("好的 👍"), thinking()),
        ],
        recorded=True,
    )


def _kept(conversation: ConversationMemory) -> None:
    conversation.append([user("Never push to main. 请用中文回答。"), assistant("Understood.")])
    conversation.append(long(3))
    conversation.pin(2)
    conversation.pin("the budget is 40,000 EUR")
    conversation.append(long(6))
    conversation.compact()
    pinned = conversation.pin(0)
    conversation.append(long(4))
    conversation.unpin(pinned)
    conversation.compact(focus="the budget")


def _undone(conversation: ConversationMemory) -> None:
    conversation.append(long(6))
    conversation.compact()
    conversation.append(long(5))
    conversation.compact()
    conversation.revert_compaction("it left out the point")
    conversation.append(long(2))


def _long_turn(conversation: ConversationMemory) -> None:
    conversation.append(user("Fix src/app.py and run pytest -q until it passes."))
    for n in range(30):
        call = tool_use(f"toolu_{n}", cmd="pytest -q", note=f"attempt {n}")
        conversation.append(assistant(thinking(), call))
        conversation.append(user(tool_result(f"toolu_{n}", f"{n} failed, src/app.py:42\n" * 60)))
        conversation.context()


def _salvage_lost(path: Path) -> None:
    """A log of one conversation, of which three events were damaged and are lost."""
    damaged = path.with_name(f"damaged-{path.name}")
    log, runner = SQLiteLog(damaged), Runner()
    conversation = ConversationMemory(core_of(log, window=WINDOW), THREADS[6], runner)
    conversation.append(long(6))
    conversation.pin(2)
    conversation.compact()
    conversation.append(long(3))
    runner.close()
    log.close()
    with closing(sqlite3.connect(damaged)) as connection:
        for version in LOST:
            connection.execute(
                "UPDATE stored_events SET state = substr(state, 1, length(state) - 9) || x'7d' "
                "WHERE originator_version=?",
                (version,),
            )
        connection.commit()
    salvage_file(damaged, path)


def _gone_on(conversation: ConversationMemory) -> None:
    conversation.append(long(4))
    conversation.compact()
    conversation.append(long(2))


def _erased(conversation: ConversationMemory) -> None:
    conversation.append(long(4))
    conversation.append(
        assistant(thinking(), text("I look."), tool_use("toolu_1", cmd="cat key.pem"))
    )
    conversation.append(user(tool_result("toolu_1", "the secret key\n" * 100)))
    conversation.append(long(3))
    conversation.pin(3)
    conversation.compact()
    conversation.append(long(2))
    conversation.fork(thread_id="copy", at=conversation.version)


def _copied(core: Core, runner: Runner) -> None:
    source, copy = (
        ConversationMemory(core, THREADS[7], runner),
        ConversationMemory(core, THREADS[8], runner),
    )
    copy.append(long(3))
    copy.compact()
    source.erase([1, 3, 8, 9, source.messages()[-1].position], "a leaked key")
    copy.fork(thread_id=THREADS[9]).append(long(2))
    # Of this beginning no event tells that something in it was erased.
    source.fork(thread_id=THREADS[10], at=12).append(long(1))
    source.append(long(2))
    source.fork(thread_id=GONE).append(long(1))
    erase_all(core, GONE)


def contexts(
    path: Path, threads: Sequence[str] = THREADS, key: bytes | None = None
) -> dict[str, Any]:
    """Of every conversation the newest context as it would be sent, and digests of all before it."""
    log = SQLiteLog(path, create=False, key=key)
    core, runner = core_of(log, window=WINDOW), Runner()
    try:
        return {name: _all_versions(ConversationMemory(core, name, runner)) for name in threads}
    finally:
        runner.close()
        log.close()


def _all_versions(conversation: ConversationMemory) -> dict[str, Any]:
    contexts = [conversation.context(at=version) for version in range(conversation.version + 1)]
    # Before the first message there is no request; its place was told as this.
    empty: dict[str, Any] = {"messages": []}
    shown = [json.dumps(c.for_anthropic() if c.messages else empty) for c in contexts]
    return {
        "newest": json.loads(shown[-1]),
        "digests": [sha256(text.encode("ascii")).hexdigest()[:16] for text in shown],
    }


def as_sql(path: Path) -> str:
    """A log as SQL text: its marks, and then all that it holds."""
    with closing(sqlite3.connect(path)) as connection:
        marks = [
            f"PRAGMA {name}={connection.execute(f'PRAGMA {name}').fetchone()[0]};"
            for name in ("application_id", "user_version")
        ]
        return "\n".join([*marks, *connection.iterdump()]) + "\n"


def from_sql(sql: str, path: Path) -> Path:
    """A log file from SQL text."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)
    return path
