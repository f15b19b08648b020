"""Original messages as an answer shows them: where each stands, then its words between fences."""

from refold.application.projections.seen import Fate
from refold.application.recall.records import HistoryRecord

from .names import READ_OFFLOADED
from .quoting import EMPTY, ERASED, moment, named, quoted

_SHOWN: dict[Fate, str] = {
    "full": "it in full",
    "pinned": "it in full",
    "protected": "it in full",
    "preamble": "it in full",
    "condensed": "it cut short",
    "offloaded": "a preview",
    "summarised": "a summary only",
    "omitted": "its address only",
}


def shown_as(fate: Fate, *, seen: bool) -> str:
    """What the context has of a message; ``seen``: whether it is that of the model that asks."""
    shown = _SHOWN.get(fate)
    whose = "your context" if seen else "its conversation's context"
    return f"{whose} has {shown}" if shown else fate


def too_large(record: HistoryRecord) -> str:
    """Where to go on when not even the first record has room."""
    return (
        f"Message {record.position} does not fit into this answer. Next: {READ_OFFLOADED} with "
        f"{record.address} reads it piece by piece."
    )


def record_text(record: HistoryRecord, *, seen: bool) -> str:
    """One record; ``seen``: whether the model that asks sees the context of its conversation."""
    part = record.stop - record.start < record.length
    where = (
        f"Message {record.position}",
        record.role,
        moment(record.at),
        record.address,
        f"id {named(record.message_id, 80)}",
        shown_as(record.fate, seen=seen),
        f"characters {record.start:,} to {record.stop:,} of {record.length:,}" if part else "",
    )
    head = ", ".join(filter(None, where))
    if record.erased:
        return f"{head}\n{ERASED}"
    return f"{head}\n{quoted(record.text) if record.text else EMPTY}"
