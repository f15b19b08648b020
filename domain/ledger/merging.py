"""Merges the ledger of the summary before with what newly covered messages hold."""

from collections.abc import Iterable, Mapping

from .gathering import Gathered
from .line import Kind, LedgerLine
from .uniting import LATER_OK, Key, key_of, together, united

_ECHOED: tuple[Kind, ...] = ("modified", "read", "value")


def merged(before: Iterable[LedgerLine], fresh: Gathered) -> tuple[LedgerLine, ...]:
    """One list without doubles, in the order of the newest use; what was used again counts
    on, and a failure whose call succeeded since says so.
    """
    kept: dict[Key, LedgerLine] = {key_of(x): x for x in united((*before, *fresh.lines))}
    for echo in fresh.echoes:
        for kind in _ECHOED:
            known = kept.get((kind, echo.text, ()))
            if known is not None:
                kept[kind, echo.text, ()] = together(echo, known)
                break
    return tuple(_settled(line, fresh.succeeded) for line in kept.values())


def _settled(line: LedgerLine, succeeded: Mapping[str, int]) -> LedgerLine:
    if line.kind != "failure" or succeeded.get(line.note, -1) < line.position:
        return line
    return line.replaced(note=line.note + LATER_OK)
