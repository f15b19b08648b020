"""``refold scan``: show what compactions of coding agents lost on this machine. Nothing is written."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from refold.application.errors import TranscriptError

from .options import Force, Json
from .output import Cell, Stopped, clean, console, print_json, say, show_table

if TYPE_CHECKING:
    from refold.infrastructure.transcripts.session_files import FoundFiles

    from .scan_report import Row, ScanReport

EXAMPLE = (
    "Examples: refold scan looks at all sessions of this machine. refold scan ~/backup/sessions talk.jsonl --html "
    "scan.html looks at these and writes a page. Without --html nothing is written."
)
EXAMPLES = {"scan": EXAMPLE}
WIDE = 110
"""Columns of a terminal from which the table has the time of the last compaction, too."""
NOTHING_FOUND, INTERRUPTED = 1, 130

Folders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FOLDER",
        help="Folders or files with sessions; by default where the tools keep them on this machine.",
    ),
]
All = Annotated[
    bool,
    typer.Option(
        "--all", help="Compare all compactions with refold, not only the newest 20.", metavar=""
    ),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write a page with the result to this file."),
]


def scan(
    folders: Folders = None,
    all: All = False,
    html: Html = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show what compactions lost in the sessions of Claude Code, Codex, Gemini CLI and pi."""
    if not json:
        # Everything else is imported after this line, so that it is there at once.
        say("Looking for sessions of Claude Code, Codex, Gemini CLI and pi …")
    from .scan_page import check_page, write_page
    from .scan_report import NEWEST, ScanReport, as_json

    if html is not None:
        check_page(html, replace=force)
    report = ScanReport()
    stopped = False
    rows = _Rows(quiet=json)
    try:
        found = _find(folders or ())
        _scan_all(found, report, None if all else NEWEST, rows)
    except KeyboardInterrupt:
        stopped = True
        report.finish()
    if html is not None:
        write_page(report, html, stopped=stopped, replace=force)
    if json:
        print_json(as_json(report, stopped=stopped))
    else:
        if stopped:
            say("Stopped by Ctrl-C. This is what is known so far.")
        rows.end(report, stopped=stopped)
        _show(report, page=html)
    if stopped:
        raise Stopped(INTERRUPTED)
    if not report.tools and not report.agents:
        raise typer.Exit(NOTHING_FOUND)


def _find(folders: Sequence[Path]) -> "FoundFiles":
    from refold.infrastructure.transcripts.session_files import default_places, find_files

    for folder in folders:
        if not folder.exists():
            raise TranscriptError(f"{folder} does not exist: check the path.")
    places = folders or default_places(Path.home(), os.environ)
    return find_files([place for place in places if place.exists()])


def _scan_all(found: "FoundFiles", report: "ScanReport", newest: int | None, rows: "_Rows") -> None:
    from .scan_workers import mark, scan, workers

    size = sum(file.size for file in found.files)
    report.problems += [f"{folder} cannot be listed" for folder in found.unreadable]
    rows.begin(len(found.files), size)
    with workers(size) as pool:
        for one in pool.run(scan, found.files):
            for row in report.add(one):
                rows.show(row)
        for row in report.finish():
            rows.show(row)
        rows.end(report, stopped=False)
        for marked in pool.run(mark, report.to_mark(newest)):
            report.mark(marked)


class _Rows:
    """A table whose rows are printed as soon as they are known."""

    _COLUMNS: Mapping[str, int] = {
        "session": 0,
        "last": 10,
        "tool": 11,
        "compacted": 9,
        "lost": 12,
        "to first edit": 15,
        "paid twice": 10,
    }
    """Columns with their widths. The first one gets the room that is left."""
    _TEXTS = ("session", "last", "tool")

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._has_head = self._has_totals = False
        self._is_wide = console.width >= WIDE
        self._widths = {n: w for n, w in self._COLUMNS.items() if self._is_wide or n != "last"}
        taken = sum(self._widths.values()) + self._gap * len(self._widths)
        self._widths["session"] = max(12, min(60, console.width - taken))

    @property
    def _gap(self) -> int:
        return 2 if self._is_wide else 1

    def begin(self, files: int, size: int) -> None:
        """Print how much there is to read."""
        if files and not self._quiet:
            files_of = "1 file" if files == 1 else f"{files:,} files"
            say(f"{files_of}, {size / 1_000_000:,.1f} MB, the newest first.")

    def show(self, row: "Row") -> None:
        """Print a row, and the names of the columns before the first one."""
        if self._quiet:
            return
        if not self._has_head:
            say()
            self._print({name: name for name in self._COLUMNS}, style="bold")
            self._has_head = True
        from refold.application.lab.scan_facts import LOSS_KINDS

        from .scan_report import masked

        edits = ["–" if count is None else f"{count:,}" for count in row.edits]
        name = masked(row.session.label)
        self._print(
            {
                "session": f"(sub-agent) {name}" if row.is_agent else name,
                "last": f"{row.last:%Y-%m-%d}",
                "tool": _tool(row.tool),
                "compacted": f"{len(row.session.compactions):,} ×",
                "lost": f"{row.lost(*LOSS_KINDS):,} of {row.needed(*LOSS_KINDS):,}",
                "to first edit": ", ".join(edits[:3]) + (" …" if edits[3:] else ""),
                "paid twice": f"{row.twice:,}",
            }
        )

    def end(self, report: "ScanReport", *, stopped: bool) -> None:
        """Print the totals once. They do not wait for the comparison."""
        if not self._quiet and not self._has_totals:
            self._has_totals = True
            _show_totals(report, stopped=stopped)

    def _print(self, cells: Mapping[str, str], style: str = "") -> None:
        line = Table.grid(padding=(0, self._gap, 0, 0))
        for name, width in self._widths.items():
            line.add_column(
                width=width,
                justify="left" if name in self._TEXTS else "right",
                no_wrap=True,
                overflow="ellipsis",
            )
        line.add_row(*(Text(cells[name], style=style) for name in self._widths))
        if console.is_terminal:
            console.print(line)
            return
        with console.capture() as captured:
            console.print(line)
        console.print(Text(captured.get().rstrip()), soft_wrap=True)


def _tool(name: str) -> str:
    from refold.infrastructure.transcripts.session_files import TOOLS

    return TOOLS[name]


def _show(report: "ScanReport", *, page: Path | None) -> None:
    from .scan_report import COUNTED, masked, next_step

    if report.rows:
        _show_kinds(report)
        examples = report.examples()
        if examples:
            say("For example:")
        for example in examples:
            say(
                f"  {clean(masked(example.sentence()))} [dim]({clean(masked(example.label))})[/dim]"
            )
    for note in report.notes():
        say(f"[warning]Note:[/warning] {clean(note)}")
    if report.rows:
        say(f"[dim]{COUNTED}[/dim]")
    if page is not None:
        say(f"The page is in {clean(page)}.")
    say(next_step(report))


def _show_totals(report: "ScanReport", *, stopped: bool) -> None:
    from .scan_report import counted

    sessions = report.tools.total()
    if not sessions and not report.agents:
        found = "No session was read yet" if stopped else "No sessions were found"
        say(
            f"{found}. refold scan FOLDER… looks in other places; docs/scan.md names those of each tool."
        )
        return
    tools = ", ".join(f"{_tool(name)} {count:,}" for name, count in report.tools.most_common())
    compactions = [one for _, one in report.compactions()]
    say()
    say(
        f"{counted(sessions, 'session')} ({tools}), {len({row.path for row in report.rows}):,} of them "
        f"compacted: {counted(len(compactions), 'compaction')}."
    )
    if not compactions:
        return
    lost = ", ".join(f"{kind.lost:,} of {kind.needed:,} {kind.kind}" for kind in report.kinds())
    say(f"Needed again and not in the summary: {lost}.")
    edits = report.edits()
    if edits:
        without = len(compactions) - len(edits)
        say(
            f"After a compaction {median(edits):g} calls passed before the first edit (median), at most "
            f"{edits[-1]:,}." + (f" No edit followed {without:,} of them." if without else "")
        )
    files, commands, summaries = (
        sum(one.twice.file_tokens for one in compactions),
        sum(one.twice.command_tokens for one in compactions),
        sum(one.twice.summary_tokens for one in compactions),
    )
    say(
        f"Paid twice: {files + commands + summaries:,} tokens: files read again {files:,}, commands run again "
        f"{commands:,}, summaries {summaries:,}."
    )


def _show_kinds(report: "ScanReport") -> None:
    from .scan_report import KINDS_COLUMNS

    kinds = report.kinds()
    if not any(kind.looked_at for kind in kinds):
        return
    rows: list[tuple[Cell, ...]] = [
        (kind.kind, kind.needed, kind.lost, *kind.shares()) for kind in kinds
    ]
    show_table("", KINDS_COLUMNS, rows)
    covered = [one for _, one in report.compactions() if one.ledger_tokens is not None]
    if covered:
        ledger = sum(one.ledger_tokens or 0 for one in covered) / len(covered)
        summary = sum(one.twice.summary_tokens for one in covered) / len(covered)
        newest = f"{len(covered):,} newest compactions" if covered[1:] else "newest compaction"
        say(
            f"refold keeps: in its ledger and index at the {newest}, with {ledger:,.0f} tokens in the mean. "
            f"The summaries there have {summary:,.0f}; the last column is with no more tokens than them."
        )
