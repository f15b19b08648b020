"""The pictures of a conversation: no two kinds look the same, and the legend counts what it says."""

from refold.application.inspection.message_strip import (
    FateTokens,
    MessageStrip,
    StripCell,
    StripFate,
)
from refold.application.inspection.size_history import SizeHistory, SizeMark
from refold.infrastructure.inspector.pictures import chart_of, strip_of

KINDS = ("compacted", "rebuilt", "offloaded", "condensed", "pinned", "unpinned", "recalled")


def history_of(*kinds: str) -> SizeHistory:
    marks = [
        SizeMark(
            kind=kind,
            version=number,
            position=0,
            at="",
            tokens_before=10,
            tokens_after=5,
            changed_from=0,
        )
        for number, kind in enumerate(kinds, 1)
    ]
    return SizeHistory(
        thread_id="t",
        version=len(marks),
        points=(),
        marks=tuple(marks),
        window=100,
        limit=90,
        trigger=80,
        is_estimate=False,
    )


def strip_with(*fates: StripFate) -> MessageStrip:
    cells = [
        StripCell(start=n, stop=n + 1, tokens=1, fates=(FateTokens(fate, 1),))
        for n, fate in enumerate(fates)
    ]
    return MessageStrip(
        thread_id="t",
        version=9,
        length=len(cells),
        cells=tuple(cells),
        largest=(),
        is_estimate=False,
    )


def test_decisions_of_two_kinds_have_two_looks() -> None:
    marks = chart_of(history_of(*KINDS), len(KINDS), len(KINDS)).marks
    assert len({one.style for one in marks}) == len(KINDS)


def test_messages_of_two_fates_have_two_looks() -> None:
    fates: list[StripFate] = ["summarised", "offloaded", "condensed", "pinned", "full", "preamble"]
    looks = {(one.colour, one.is_striped) for one in strip_of(strip_with(*fates)).fates}
    assert len(looks) == len(fates)


def test_the_legend_counts_marks_up_to_the_version_that_is_shown() -> None:
    (kind,) = chart_of(history_of("compacted", "compacted", "compacted"), 3, 2).kinds
    assert (kind.before, kind.total) == (2, 3)
