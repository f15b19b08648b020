"""The messages as people read them, folded from events."""

from datetime import datetime, timedelta, timezone
from typing import Any

from refold.application.ports.read_models import MessageRow
from refold.application.projections.message_list import changes_of_run, readable
from refold.application.projections.row_changes import Appended
from refold.domain.messages import Message
from refold.domain.value import replace
from tests.support.view_events import appended, failed, logged, performed, requested


def blocks(*content: dict[str, Any]) -> Message:
    return Message(role="assistant", content=content)


def test_a_message_is_one_row_and_nothing_else_is() -> None:
    row = MessageRow(
        thread_id="t",
        position=3,
        version=8,
        message_id="m3",
        role="assistant",
        at="2026-01-02T03:04:05.000000Z",
        tokens=4,
        text="Good morning",
    )
    said = logged(appended(3, "Good morning", tokens=4), version=8)
    others = [logged(e) for e in (requested(1), performed(1), failed(1))]
    assert changes_of_run([others[0], said, *others]) == (
        Appended([tuple(row.model_dump().values())]),
    )
    assert changes_of_run(others) == ()


def test_a_recorded_message_has_the_time_when_it_was_written_in_utc() -> None:
    written = datetime(2025, 6, 1, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    (change,) = changes_of_run([logged(replace(appended(0), written_at=written))])
    assert isinstance(change, Appended)
    assert [row[5] for row in change.rows] == ["2025-06-01T10:00:00.000000Z"]


def test_words_calls_and_results_are_text_and_thinking_is_not() -> None:
    message = blocks(
        {"type": "thinking", "thinking": "secret", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "I look."},
        {"type": "text", "text": " \n"},
        {"type": "tool_use", "id": "c", "name": "read", "input": {"path": "数据.txt", "n": 2}},
        {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "line"}]},
    )
    assert readable(message) == 'I look.\n→ read {"path": "数据.txt", "n": 2}\nline'


def test_a_block_without_text_is_named() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [image]}
    assert readable(blocks(image, result, {"type": "future_block"})) == (
        "[image]\n[tool_result]\n[future_block]"
    )


def test_a_long_result_is_kept_in_full() -> None:
    text = "x" * 100_000
    assert readable(blocks({"type": "tool_result", "content": text})) == text
