"""A rendered context taken apart: the summary, the ledger, and all that people, models and tools said."""

from typing import Any, NamedTuple

from refold.application.context import Context
from refold.application.rendering.texts import LEDGER_HEADING, SUMMARY_HEADING
from tests.support.rules.request import blocks_of
from tests.support.witness import Witness


class Opened(NamedTuple):
    """A request, parted."""

    summary: dict[str, Any] | None
    """The block that stands for what is covered."""
    ledger: str | None
    rest: list[dict[str, Any]]
    """The messages without these."""


def opened(witness: Witness, shown: Context) -> Opened:
    """Part a request that shows the newest version; summary and ledger lead its first turn."""
    story, messages = witness.story, shown.messages
    has_lines = story.active is not None and story.active.ledger_shown > 0
    if story.active is None and not story.texts_in_the_ledger():
        return Opened(None, None, messages)
    first, *rest = messages
    assert first["role"] == "user", "invariant 17: summary and ledger stand in the user's turn"
    said = list(blocks_of(first["content"]))
    summary: dict[str, Any] | None = None
    if story.active is not None:
        summary = dict(said.pop(0))
        is_signed = summary == story.active.block
        assert is_signed or str(summary.get("text")).startswith(SUMMARY_HEADING + "\n")
    ledger: str | None = None
    if has_lines or story.texts_in_the_ledger():
        ledger = str(said.pop(0).get("text"))
        assert ledger.startswith(LEDGER_HEADING + "\n")
    return Opened(summary, ledger, [{**first, "content": said}, *rest])
