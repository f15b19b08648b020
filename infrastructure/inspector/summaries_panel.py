"""The panel of summaries: all of them, one with its sources, and what each compaction lost."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from refold.application.inspection.missing_facts import MissingFact
from refold.application.ports.read_models import CompactionRow, SummaryRow

from .scene import Scene

SHOWN_MISSING = 40
"""Facts that a summary did not take over and that are shown without unfolding."""
MOST_SUMMARIES = 40
"""Summaries that a page lists."""
MOST_LOSSES, MOST_NAMED = 12, 8
"""Compactions whose losses one page shows together, and facts that it names of each."""


class ListedSummary(NamedTuple):
    """A summary in the table."""

    row: SummaryRow
    attempt: CompactionRow | None
    """The compaction that made it, or None if an erasure rebuilt it."""

    @property
    def kept(self) -> int:
        """Number of messages in its range that it does not cover."""
        return self.row.first_kept_index - self.row.covered_from - self.row.covered_count


class Loss(NamedTuple):
    """The facts that one compaction took out of the request."""

    row: SummaryRow
    start: int
    """Position of the first message that this compaction covered and none before it."""
    stop: int
    facts: int
    missing_count: int
    named: Sequence[MissingFact]
    """The most telling missing facts."""
    said_at: str | None
    """Time of the newest message then, or None if it is not known."""


def summaries_panel(scene: Scene) -> Mapping[str, Any]:
    """Return all summaries, one of them with the sources of its lines, and what compactions lost."""
    made = [one for one in scene.conversation.summaries() if scene.has(one.version)]
    begins = new_starts(made)
    made.reverse()
    first = next((one for one in made if one.is_active), made[0] if made else None)
    chosen = scene.query.get("summary")
    if chosen is None and first and not scene.query.get("losses"):
        chosen = first.summary_id
    row = next((one for one in made if one.summary_id == chosen), None)
    stop = scene.number("stop")
    start = begins[row.summary_id] if row and stop is None else None
    tried = {one.summary_id: one for one in scene.conversation.compactions()}
    return {
        "summaries": [
            ListedSummary(one, tried.get(one.summary_id)) for one in made[:MOST_SUMMARIES]
        ],
        "more": max(0, len(made) - MOST_SUMMARIES),
        "chosen": None
        if chosen is None
        else scene.conversation.summary_sources(chosen, start, stop, at=scene.at),
        "chosen_row": row,
        "said_at": _said_at(scene, row) if row else None,
        "is_new": row is not None and start is not None and start > row.covered_from,
        "shown": SHOWN_MISSING,
        "losses": _losses(scene, made, begins) if scene.query.get("losses") else None,
        "made_count": len(made),
    }


def new_starts(made: Iterable[SummaryRow]) -> Mapping[str, int]:
    """Return for each summary the first position that no summary before it covered.

    ``made`` is in the order of the log. A summary that covers no more than the one before is read from its beginning.
    """
    starts: dict[str, int] = {}
    reached = 0
    for one in made:
        is_longer = reached < one.first_kept_index
        starts[one.summary_id] = max(one.covered_from, reached) if is_longer else one.covered_from
        if not one.is_reverted:
            reached = one.first_kept_index
    return starts


def _said_at(scene: Scene, row: SummaryRow) -> str | None:
    """Return the time of the newest message at a compaction. A recording that is played has times of its own."""
    if not row.message_count:
        return None
    found = scene.conversation.messages(row.message_count - 1, row.message_count)
    return found[0].at if found else None


def _losses(scene: Scene, made: Sequence[SummaryRow], begins: Mapping[str, int]) -> list[Loss]:
    """Return what each of the newest compactions lost of the messages that it was the first to cover."""
    losses: list[Loss] = []
    for row in made[:MOST_LOSSES]:
        found = scene.conversation.summary_sources(
            row.summary_id, begins[row.summary_id], at=scene.at
        )
        losses.append(
            Loss(
                row,
                found.examined_start,
                found.examined_stop,
                found.facts,
                found.missing_count,
                found.missing[:MOST_NAMED],
                _said_at(scene, row),
            )
        )
    return losses
