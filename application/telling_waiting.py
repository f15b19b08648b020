"""What the read model of compactions cannot know: which of them wait to be written."""

from collections.abc import Sequence

from .core import Core
from .read_models import CompactionRow


def with_waiting(core: Core, rows: Sequence[CompactionRow]) -> Sequence[CompactionRow]:
    """Say of an attempt whose summary could not be written yet that it waits."""
    if not rows:
        return rows
    kept = core.unwritten.of(rows[-1].thread_id)
    waiting = {one.attempt_id: one.waiting for one in kept if one.waiting is not None}
    if not waiting:
        return rows
    return [
        row.replaced(outcome="waiting", reason=told.reason, model_calls=told.model_calls)
        if row.outcome == "requested" and (told := waiting.get(row.attempt_id))
        else row
        for row in rows
    ]
