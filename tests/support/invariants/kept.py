"""Invariants of what code keeps word for word: pins and ledger, sourced, and never anything else."""

import re
from collections.abc import Iterator

from refold.application.api.results import Context
from refold.application.conversation.entries import PinnedText
from refold.application.rendering.index_text import INDEX_HEADINGS, index_text
from refold.application.rendering.render import HEADINGS, ledger_line, pin_line
from refold.application.rendering.request_blocks import LEDGER_HEADING
from tests.support.talk import strings
from tests.support.witness import Witness

from .opened import opened, without_surrogates

_HEADINGS = {
    "## Pinned",
    LEDGER_HEADING,
    *INDEX_HEADINGS,
    *(part for h in HEADINGS for part in (h.opening, *h.closing)),
}
_QUOTED = re.compile(r"\[(\d+(–\d+)?|pin)\] ")
_FENCED = re.compile(r"\[(?:\d+|pin)\] (`{3,})$")


def pins_are_verbatim(witness: Witness, shown: Context) -> None:
    """Invariants 4 and 14: what is pinned stands in the request, character for character."""
    assert [item.pin_id for item in witness.conversation.pins()] == list(witness.story.pins)
    assert set(witness.story.pins) == set(witness.pins)
    parted = opened(witness, shown)
    ledger, rest = parted.ledger or "", {parted.system, *strings(parted.rest)}
    for pin_id, event in witness.story.pins.items():
        pinned = witness.pins[pin_id]
        assert event.position == pinned.position
        for words in map(without_surrogates, pinned.words):
            if event.tokens:
                assert words in ledger, f"{words!r} is pinned and not in the ledger"
            else:
                assert any(words in text for text in rest), f"{words!r} is pinned and not shown"


def ledger_lines_are_sourced(witness: Witness, shown: Context) -> None:
    """Invariant 14: each line stands character for character in the message that it names."""
    active, ledger = witness.story.active, opened(witness, shown).ledger
    if active is None:
        return
    for line in active.ledger[: active.ledger_shown]:
        assert f"\n{without_surrogates(ledger_line(line))}\n" in f"{ledger}\n"
    for line in active.ledger:
        assert active.coverage.covers(line.position), f"{line} is of a message that is not covered"
        said = witness.spoken[line.position].message
        leads = (lead.removeprefix("… ") for lead in line.under)
        for words in (line.text, *leads, line.reason, *line.rejected):
            assert any(words in text for text in strings(said)), (
                f"{words!r} of {line} was never said"
            )


def index_entries_are_sourced(witness: Witness, shown: Context) -> None:
    """Invariant 14: each entry stands in the message that it names, apart from white space."""
    active, ledger = witness.story.active, opened(witness, shown).ledger
    if active is None:
        return
    rows = index_text(active.index[: active.index_shown])
    assert without_surrogates(rows) in (ledger or "")
    for entry in active.index:
        assert active.coverage.covers(entry.position), f"{entry} is of a message that stays"
        said = strings(witness.spoken[entry.position].message)
        assert any(entry.text in " ".join(text.split()) for text in said), f"{entry} was never said"


def the_ledger_has_nothing_else(witness: Witness, shown: Context) -> None:
    """Invariants 14 and 20: headings of ours, quoted lines, and pins between their fences."""
    active, ledger = witness.story.active, opened(witness, shown).ledger
    if ledger is None:
        return
    lines = active.ledger[: active.ledger_shown] if active else ()
    pins = [
        without_surrogates(pin_line(PinnedText(p.pin_id, p.position, p.text, p.tokens)))
        for p in witness.story.texts_in_the_ledger()
    ]
    own = {without_surrogates(ledger_line(line)) for line in lines}
    entries = active.index[: active.index_shown] if active else ()
    own |= set(without_surrogates(index_text(entries)).split("\n"))
    for text in _outside_fences(ledger):
        if text in _HEADINGS:
            continue
        assert _QUOTED.match(text), f"{text!r} passes for something of ours"
        known = text in own or any(text == pin.split("\n")[0] for pin in pins)
        assert known, f"{text!r} is no line of the ledger, and no pin"


def _outside_fences(ledger: str) -> Iterator[str]:
    fence = ""
    for line in ledger.split("\n"):
        if fence:
            fence = "" if line == fence else fence
            continue
        yield line
        if found := _FENCED.match(line):
            fence = found[1]
    assert not fence, "a fence was not closed"
