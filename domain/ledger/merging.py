"""Merges the ledger of the summary before with what newly covered messages hold."""

from collections.abc import Iterable, Mapping

from .gathering import Gathered
from .line import WORDS, Kind, LedgerLine
from .uniting import LATER_OK, Key, key_of, together, united

_ECHOED: tuple[Kind, ...] = ("modified", "read", "value")


def merged(before: Iterable[LedgerLine], fresh: Gathered) -> tuple[LedgerLine, ...]:
    """One list without doubles, in the order of the newest use; what was used again counts
    on, and a failure whose call succeeded since says so.
    """
    known = map(_with_author, before)
    kept: dict[Key, LedgerLine] = {key_of(x): x for x in united((*known, *fresh.lines))}
    for echo in fresh.echoes:
        for kind in _ECHOED:
            found = kept.get((kind, echo.text, (), None))
            if found is not None:
                kept[kind, echo.text, (), None] = together(echo, found)
                break
    return tuple(_settled(line, fresh.succeeded) for line in kept.values())


def _with_author(line: LedgerLine) -> LedgerLine:
    """A line of a ledger that did not name authors: nobody knows who wrote these words."""
    if line.author or line.said_by != "user" or line.kind not in WORDS:
        return line
    return line.replaced(author="unknown")


def _settled(line: LedgerLine, succeeded: Mapping[str, int]) -> LedgerLine:
    if line.kind != "failure" or succeeded.get(line.note, -1) < line.position:
        return line
    return line.replaced(note=line.note + LATER_OK)
