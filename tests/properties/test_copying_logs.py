"""Whatever happened in a log, a copy on a server and a copy back in a file have the same rows, whenever it is made."""

import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.messages import Message
from refold.testing.history_strategies import histories
from tests.support.effort import one_in
from tests.support.postgres import shared_server
from tests.support.witness import SHM

POLICY = CompactionPolicy(keep_last=1, whole_last=2, offload_tokens=60)
THREADS = st.sampled_from(
    (("one", None), ("zwei 🙂", None), ("one", "me"), ("drei\u0301 中", "mé"))
)
Deed = tuple[str, tuple[str, str | None], Any]

said = histories(max_messages=6, damaged=True)
deeds = st.lists(
    st.one_of(
        st.tuples(st.just("say"), THREADS, said),
        st.tuples(st.just("say"), THREADS, said),
        st.tuples(st.just("keyed"), THREADS, st.text(min_size=1, max_size=5)),
        st.tuples(st.sampled_from(("pin", "erase", "erase")), THREADS, st.integers(0, 12)),
        st.tuples(
            st.sampled_from(("compact", "revert", "fork", "erase all", "copy", "copy")),
            THREADS,
            st.none(),
        ),
    ),
    min_size=1,
    max_size=14,
)


def act(memory: refold.Memory, deed: Deed, number: int) -> None:
    """Do one thing in a conversation, if it can be done there."""
    name, (thread_id, owner), value = deed
    conversation = memory.conversation(thread_id, owner=owner)
    match name:
        case "say":
            history: list[Message] = value
            conversation.append(history, recorded=True)
        case "keyed":
            conversation.append({"role": "user", "content": f"NUL \0 {number}"}, key=f"{value}\0")
        case "pin":
            conversation.pin(value)
        case "erase":
            conversation.erase(value)
        case "compact":
            conversation.compact()
        case "revert":
            conversation.revert_compaction()
        case "fork":
            conversation.fork(thread_id=f"fork {number}")
        case _:
            memory.erase_conversation(thread_id)


def rows_of(log: Path) -> list[tuple[object, ...]]:
    """Every column of every event and key, and the log positions."""
    with closing(sqlite3.connect(log)) as connection:
        events = connection.execute("SELECT rowid, * FROM stored_events ORDER BY rowid").fetchall()
        keys = connection.execute("SELECT * FROM message_keys ORDER BY 1, 2").fetchall()
    return [*events, *keys]


@one_in(3)
@given(deeds)
def test_copies_of_any_history_are_equal_row_by_row(history: list[Deed]) -> None:
    server = shared_server()
    database = server.new_database()
    try:
        with tempfile.TemporaryDirectory(dir=SHM) as made:
            check(Path(made), database, history)
    finally:
        server.drop(database)


def check(folder: Path, database: str, history: list[Deed]) -> None:
    log, back = folder / "a.db", folder / "back.db"
    with refold.open(log, window=3_000, policy=POLICY, scrub_megabytes=0) as memory:
        for number, deed in enumerate(history):
            if deed[0] == "copy":
                refold.copy_log(log, database)
                refold.copy_log(database, back)
                assert rows_of(back) == rows_of(log)
            else:
                with suppress(refold.RefoldError, LookupError, ValueError):
                    act(memory, deed, number)
        refold.copy_log(log, database)
        refold.copy_log(database, back)
    assert rows_of(back) == rows_of(log)
    for place in (database, back):
        with refold.open(place, scrub_megabytes=0) as copy:
            assert copy.verify().ok
