"""Statements that reach the server: as many in a long conversation as in a short one."""

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

import refold
from refold.infrastructure.postgres import positions
from refold.infrastructure.postgres.connections import Address
from refold.infrastructure.postgres.log import PostgresLog

USER = {"role": "user", "content": "a question about src/main.py"}
REPLY = {"role": "assistant", "content": "an answer"}


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that any thread has sent."""
    sent: list[str] = []
    execute = psycopg.Cursor.execute

    def counted(cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        sent.append(query.decode() if isinstance(query, bytes) else str(query))
        return execute(cursor, query, *args, **kwargs)

    monkeypatch.setattr(psycopg.Cursor, "execute", counted)
    return sent


@contextmanager
def long_conversation(place: str, messages: int) -> Generator[refold.ConversationMemory]:
    with refold.open(place, window=200_000, standing_recall=0) as memory:
        conversation = memory.conversation("t")
        conversation.append([USER, REPLY] * (messages // 2))
        conversation.context()
        memory.conversations()
        yield conversation


Act = Callable[[refold.ConversationMemory], object]
ACTS: dict[str, tuple[Act, int]] = {
    "append": (lambda c: c.append(USER), 1),
    "append of a turn of three": (lambda c: c.append([USER, REPLY, USER]), 1),
    "context": (lambda c: c.context(), 1),
    "recall after an append": (lambda c: c.recall("main.py"), 26),
}


@pytest.mark.parametrize("name", ACTS)
def test_the_number_of_statements_does_not_grow_with_the_conversation(
    database: str, statements: list[str], name: str
) -> None:
    act, wanted = ACTS[name]
    counts: list[int] = []
    for messages in (100, 1_000):
        with long_conversation(database, messages) as conversation:
            conversation.append([USER, REPLY])
            conversation.recall("main.py")
            conversation.append([USER, REPLY])
            statements.clear()
            act(conversation)
            counts.append(len(statements))
    assert counts == [wanted, wanted], statements


def test_asking_for_the_newest_position_reads_no_more_pages_of_a_large_log(database: str) -> None:
    fill = (
        "INSERT INTO {stored_events} (originator_id, originator_version, topic, state) "
        "SELECT 't', n, 'message_appended', repeat('x', 500)::bytea FROM generate_series(1, %s) n"
    )
    asked = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
    with closing(PostgresLog(Address.of(database))) as log:
        log.store.run(fill, (5_000,))
        assert log.newest() == 5_000
        log.store.run("ANALYZE {stored_events}")
        (([plan],),) = log.store.rows(asked + positions._NEWEST)  # pyright: ignore[reportPrivateUsage]
    assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] < 20
