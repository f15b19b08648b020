"""Texts of messages are written as UTF-8. What is stored is the same as if they were written as texts."""

from contextlib import closing
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from refold.application.projections.message_list import changes_of_run
from refold.application.projections.row_changes import Appended
from refold.domain.messages import readable_content
from refold.infrastructure.event_store.stream_reads import UnreadMessage
from refold.infrastructure.projection_store.row_checksums import seal_row, seal_utf8
from refold.infrastructure.projection_store.tables import AT_ONCE, SQLiteTables
from refold.infrastructure.projection_store.view_tables import create_tables
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite

WORDS = st.text(st.sampled_from('a \n\0\x1f"\\é→𝄞\ud800'), max_size=8)
JSON = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
TEXTS = st.fixed_dictionaries({"type": st.just("text"), "text": WORDS})
BLOCKS = TEXTS | st.fixed_dictionaries(
    {"type": st.sampled_from(["tool_use", "tool_result", "thinking", "image", "mcp_tool_use"])},
    optional={"name": WORDS, "input": JSON, "title": WORDS, "content": WORDS | st.lists(TEXTS)},
)
CONTENTS = WORDS | st.lists(BLOCKS, max_size=4)


@given(st.lists(st.tuples(CONTENTS, st.none() | WORDS), min_size=1, max_size=2 * AT_ONCE + 3))
def test_texts_that_are_written_as_utf8_are_stored_like_texts(
    messages: list[tuple[Any, str | None]],
) -> None:
    run = [
        UnreadMessage(
            position,
            "t→",
            position,
            "2026-03-01T12:00:00.000000Z",
            {
                "position": position,
                "message_id": f"m{position}",
                "message": {"role": "user", "content": content},
                "tokens": 1,
                "owner": owner,
            },
        )
        for position, (content, owner) in enumerate(messages)
    ]
    (change,) = changes_of_run(run)
    assert isinstance(change, Appended)
    at = change.utf8
    assert at is not None
    expected = [
        seal_row((*row[:at], readable_content(content), *row[at + 1 :]))  # type: ignore[arg-type]
        for row, (content, _) in zip(change.rows, messages, strict=True)
    ]
    with closing(open_sqlite(":memory:")) as connection:
        db = SQLiteTables(connection)
        create_tables(db)
        db.insert("messages", seal_utf8(change.rows, at), at)
        found = db.execute("SELECT * FROM messages ORDER BY rowid").fetchall()
        kinds = db.execute("SELECT DISTINCT typeof(text) FROM messages").fetchall()
    assert found == expected
    assert kinds == [("text",)]
