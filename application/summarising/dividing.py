"""A compaction's source divided for two calls: history, and the beginning of a divided turn (A5)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from refold.application.ports import SourceMessage
from refold.domain.budget import SHORTEST_SUMMARY
from refold.domain.events import CompactionPerformed, LeafSummary
from refold.domain.messages import Block

from .joining import history_text, whole_text


class Part(NamedTuple):
    """What one text is made from."""

    kind: Literal["history", "turn_prefix"]
    messages: tuple[SourceMessage, ...] = ()
    previous: str = ""
    """The recorded text that it carries on."""
    previous_block: Block | None = None
    leaves: tuple[LeafSummary, ...] = ()
    """What it is built from in place of ``previous``, where it is built anew."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that a text could be made from."""
        return not (self.messages or self.previous or self.leaves)


class Divided(NamedTuple):
    """History and turn, either of which may be empty."""

    history: Part
    turn: Part
    turn_from: int | None
    """Where the divided turn begins."""


def divided(
    messages: Sequence[SourceMessage],
    before: CompactionPerformed | None,
    split_at: int | None,
    leaves: Sequence[LeafSummary] = (),
) -> Divided:
    """Divide at ``split_at``. With leaves, these take the place of the text ``before``.

    Where the same turn was divided before and goes on, its part carries on the text about it; where
    that turn has ended, history carries on the whole text.
    """
    if split_at is None:
        block = before.block if before and not leaves else None
        whole = whole_text(before) if before else ""
        history = Part("history", tuple(messages), whole, block, tuple(leaves))
        return Divided(history, Part("turn_prefix"), None)
    turn_from, turn_before = split_at, ""
    history_before = whole_text(before) if before else ""
    if before is not None and before.is_split_turn and split_at <= before.coverage.stop:
        turn_from = split_at if before.split_at is None else min(split_at, before.split_at)
        history_before, turn_before = history_text(before), before.split_turn_prefix or ""
    history = Part(
        "history",
        tuple(m for m in messages if m.position < turn_from),
        history_before,
        leaves=tuple(leaf for leaf in leaves if leaf.start < turn_from),
    )
    turn = Part(
        "turn_prefix",
        tuple(m for m in messages if m.position >= turn_from),
        turn_before,
        leaves=tuple(leaf for leaf in leaves if leaf.stop > turn_from),
    )
    return Divided(history, turn, turn_from)


def share_of(size: int, other: int, room: int) -> int:
    """What a part of ``size`` gets of ``room`` beside another: in proportion, and no less than the
    shortest summary, or half of what there is.
    """
    least = min(SHORTEST_SUMMARY, room // 2)
    wanted = room * size // max(1, size + other)
    return max(least, min(room - least, wanted))
