"""The recall indexes of one log in SQLite and on a server, and questions that both must answer alike."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from random import Random
from typing import Any

from refold.application.ports.conversation_log import ConversationLog
from refold.application.ports.recall_index import Filters, RecallIndex, Visible
from refold.application.recall.passages import Passage
from refold.infrastructure.postgres.log import PostgresLog
from refold.infrastructure.postgres.passage_index import PostgresRecallIndex
from refold.infrastructure.recall.recall_index import RECALL, SQLiteRecallIndex

EVERYTHING = 1_000_000


@contextmanager
def both_recalls(log: PostgresLog) -> Generator[tuple[PostgresRecallIndex, SQLiteRecallIndex]]:
    """Open both indexes of a log on a server."""
    with (
        closing(PostgresRecallIndex(log.store, log)) as there,
        closing(SQLiteRecallIndex(":memory:", log)) as here,
    ):
        yield there, here


def filters_for(passages: Sequence[Passage], draw: Random) -> Iterator[Filters]:
    """Filters of each kind, with values that these passages have."""
    one, other = draw.choice(passages), draw.choice(passages)
    thread = one.thread_id
    yield Filters()
    yield Filters(thread)
    yield Filters("not there")
    yield Filters(thread, roles=frozenset({one.role}), kinds=frozenset({one.kind}))
    yield Filters(roles=frozenset({"user", "tool"}))
    tools = {one.tool or "bash", other.tool or "read"}
    # SQLite cuts a name in a filter at a NUL.
    yield Filters(tools=frozenset(tool for tool in tools if "\0" not in tool))
    first, last = sorted((one.at, other.at))
    yield Filters(since=first, until=last)
    yield Filters(thread, since=first)
    positions = sorted((one.position, one.position + draw.randint(1, 50)))
    yield Filters(thread, positions=(positions[0], positions[1]))
    yield Filters(thread, leave_out=frozenset({one.position, one.position + 1}))
    threads = frozenset({one.thread_id, other.thread_id})
    for owner in (None, "ann", "bob"):
        for home in (None, other.thread_id):
            yield Filters(visible=Visible(owner, threads, home))
    yield Filters(thread, visible=Visible("ann", frozenset(), None))


def ask_alike(there: RecallIndex, here: RecallIndex, draw: Random, questions: int) -> None:
    """Ask both the same questions, with all kinds of filters, and compare every hit and number."""
    assert there.edition() == here.edition()
    passages = here.passages(0, EVERYTHING)
    assert there.passages(0, EVERYTHING) == passages
    assert set(there.digests()) == set(here.digests())
    if not passages:
        return
    for _ in range(questions):
        tokens = [
            draw.choice(draw.choice(passages).tokens.split()) for _ in range(draw.randint(0, 6))
        ]
        also = [draw.choice(passages).number for _ in range(3)]
        for filters in filters_for(passages, draw):
            limit = draw.choice((1, 5, 50))
            found = there.find([*tokens, "nothing"], filters, limit=limit, also=also)
            expected = here.find([*tokens, "nothing"], filters, limit=limit, also=also)
            assert _parts(found) == _parts(expected), (tokens, filters, limit)
            after = draw.choice(passages).number
            assert list(there.passages(after, 7, filters=filters)) == list(
                here.passages(after, 7, filters=filters)
            )


def _parts(found: Any) -> tuple[object, ...]:
    neighbours = {place: list(passages) for place, passages in found.neighbours.items()}
    return list(found.candidates), neighbours, dict(found.frequencies), found.total


def rows_of_recall(index: Any, log: ConversationLog) -> object:
    """All rows of the tables that both indexes have."""
    del log

    def rows(db: Any) -> list[Any]:
        return [
            db.execute(
                f"SELECT {', '.join(table.columns)} FROM {{{table.name}}} WHERE {table.where} "
                f"ORDER BY {', '.join(table.key)}"
            ).fetchall()
            for table in RECALL.compared
        ]

    return index.followed.answer(rows)
