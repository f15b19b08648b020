"""What refold costs, row by row, next to raw sqlite3 in the same run.

    python benchmarks/side_by_side.py [--long] [--peers] [--only NAME...] [--markdown FILE]

Without ``--long`` it takes less than ten minutes: 1,000 messages in most rows. Every measurement alternates with
its floor. ``--peers`` adds the turn of other libraries, as far as they are installed: see ``rows_peers.py``.
"""

import argparse
import importlib
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import rows_peers
from rich.console import Console
from rich.table import Table
from rows import Row

GROUPS = ("append", "writers", "start", "compact", "size", "rebuild", "recall", "import")
"""Names of the modules ``rows_NAME``, in the order of the table."""


def measured(names: Sequence[str], *, long: bool) -> Iterator[Row]:
    """Yield the rows of these groups, each in a folder of its own."""
    for name in names:
        module = importlib.import_module(f"rows_{name}")
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            yield from module.rows(Path(folder), long=long)
        print(f"{name}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)


def peers(*, long: bool) -> Iterator[tuple[str, ...]]:
    """Yield a line for each library and length: what its turn costs, and how it grew."""
    first: dict[str, float] = {}
    for size in (1_000, 10_000) if long else (1_000,):
        with tempfile.TemporaryDirectory() as folder:
            costs = dict(rows_peers.turns(Path(folder), size))
        floor = costs["raw sqlite3"]
        for name, cost in costs.items():
            ratio = cost.wall / floor.wall
            grown = f"{cost.wall / first.setdefault(name, cost.wall):.1f} ×"
            yield f"{size:,}", name, str(cost), f"{ratio:.1f} ×", grown


def figure(row: Row) -> str:
    """Return the figure of a row with its unit."""
    number = f"{row.figure:,.0f}" if row.figure >= 100 else f"{row.figure:.2f}"
    return f"{number} {row.unit}".strip()


def goal(row: Row) -> str:
    """Return the goal of a row."""
    return f"{'≥' if row.at_least else '≤'} {row.goal:g} {row.unit}".strip()


HEADS = ("what", "refold", "floor", "figure", "goal", "")
PEER_HEADS = ("messages", "library", "a turn", "to raw sqlite3", "to its first length")


def lines_of(found: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return the cells of the table."""
    return [
        (row.what, row.ours, row.floor, figure(row), goal(row), "met" if row.is_met else "missed")
        for row in found
    ]


def markdown(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def page(found: Sequence[Row], others: Sequence[Sequence[str]], *, long: bool) -> str:
    """Return the page of the results."""
    command = (
        f"python benchmarks/side_by_side.py{' --long' if long else ''} --peers --markdown FILE"
    )
    missed = sum(not row.is_met for row in found)
    parts = [
        "# What refold costs, next to raw sqlite3",
        f"Made by `{command}` with CPython {platform.python_version()} and SQLite {sqlite3.sqlite_version} on "
        f"{os.cpu_count()} cores. Each measurement alternates with its floor: raw `sqlite3` in WAL mode that syncs at "
        "every commit and stores the same messages as JSON, if no other floor is named. Figures are medians. CPU is "
        "the time of the processor, in milliseconds. Times are those of this machine; the ratios are what counts.",
        f"{len(found)} rows, {missed} missed.",
        markdown(HEADS, lines_of(found)),
    ]
    if others:
        parts += [
            "## Other libraries",
            "A turn appends three messages durably and loads what the library's own runner loads before it calls "
            "the model.",
            markdown(PEER_HEADS, others),
        ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Measure, print the table and return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="also long conversations; takes longer")
    parser.add_argument("--peers", action="store_true", help="also other libraries")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, metavar="NAME")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page of results")
    options = parser.parse_args()
    found = list(measured(options.only, long=options.long))
    others = list(peers(long=options.long)) if options.peers else []
    for heads, lines in ((HEADS, lines_of(found)), (PEER_HEADS, others)):
        if lines:
            table = Table(*heads)
            for line in lines:
                table.add_row(*line)
            Console().print(table)
    if options.markdown:
        options.markdown.write_text(page(found, others, long=options.long), encoding="utf-8")
    return 0 if all(row.is_met for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
