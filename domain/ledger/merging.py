"""Merges the ledger of the summary before with what newly covered messages hold."""

from collections.abc import Iterable

from .line import Kind, LedgerLine

Key = tuple[Kind, str]


def merged(before: Iterable[LedgerLine], fresh: Iterable[LedgerLine]) -> tuple[LedgerLine, ...]:
    """One list without doubles, in the order of the newest use. A text that was used again counts so
    many messages more and stands in the newest; a file that was modified is no longer only read.
    """
    kept: dict[Key, LedgerLine] = {}
    for line in (*before, *fresh):
        key = (line.kind, line.text)
        known = kept.pop(key, None)
        kept[key] = _together(known, line) if known else line
    for text in [text for kind, text in kept if kind == "modified"]:
        read = kept.pop(("read", text), None)
        if read is not None:
            line = kept["modified", text]
            kept["modified", text] = line.replaced(count=line.count + read.count)
    return tuple(kept.values())


def _together(known: LedgerLine, line: LedgerLine) -> LedgerLine:
    if line.position == known.position:
        return known
    newest = line if line.position > known.position else known
    count = known.count + line.count
    return newest.replaced(count=count, note=newest.note or known.note or line.note)
