"""Merges the ledger of the summary before with what newly covered messages hold."""

from collections.abc import Iterable

from .gathering import Gathered
from .line import Kind, LedgerLine
from .uniting import Key, together, united

_ECHOED: tuple[Kind, ...] = ("modified", "read", "value")


def merged(before: Iterable[LedgerLine], fresh: Gathered) -> tuple[LedgerLine, ...]:
    """One list without doubles, in the order of the newest use; what was used again counts on."""
    kept: dict[Key, LedgerLine] = {(x.kind, x.text): x for x in united((*before, *fresh.lines))}
    for echo in fresh.echoes:
        for kind in _ECHOED:
            known = kept.get((kind, echo.text))
            if known is not None:
                kept[kind, echo.text] = together(echo, known)
                break
    return tuple(kept.values())
