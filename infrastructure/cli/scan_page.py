"""Write the result of a scan as one page of HTML without scripts and without other files."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from refold.application.lab.scan_facts import LOSS_KINDS
from refold.domain.errors import InvalidSetting
from refold.infrastructure.files.private_files import new_file, refuse
from refold.infrastructure.palette import DARK_GROUND, LIGHT_GROUND, PALETTE, RULE, TEXT
from refold.infrastructure.transcripts.session_files import TOOLS

from .scan_report import COUNTED, KINDS_COLUMNS, Row, ScanReport, masked, next_step, short_path

_QUIET = PALETTE["system"]
_STYLE = f"""
:root {{ --ground: {LIGHT_GROUND}; --text: {TEXT.light}; --rule: {RULE.light}; --quiet: {_QUIET.light} }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }}
body {{ background: var(--ground); color: var(--text) }}
table {{ border-collapse: collapse; margin: 1rem 0; width: 100% }}
th, td {{ padding: .3rem .6rem; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: top }}
td.n, th.n {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }}
td.t {{ overflow-wrap: anywhere }}
.small {{ color: var(--quiet); font-size: 13px }}
@media (prefers-color-scheme: dark) {{ :root {{
  --ground: {DARK_GROUND}; --text: {TEXT.dark}; --rule: {RULE.dark}; --quiet: {_QUIET.dark}
}} }}
"""


def check_page(path: Path, *, replace: bool) -> None:
    """Refuse a page that cannot be written, before the scan runs.

    Raises:
        InvalidSetting: there is no folder for it.
        TargetExists: the path exists, and it is not a file or ``replace`` is false.
    """
    if not path.parent.is_dir():
        raise InvalidSetting(f"page {path}: there is no folder {path.parent}")
    refuse(path, replace=replace)


def write_page(report: ScanReport, path: Path, *, stopped: bool, replace: bool) -> None:
    """Write the page to a private file.

    Raises:
        TargetExists: the path exists, and it is not a file or ``replace`` is false.
    """
    with new_file(path, replace=replace) as made:
        made.write_text(render_page(report, stopped=stopped), "utf-8", "replace")


def render_page(report: ScanReport, *, stopped: bool) -> str:
    """Return the page as text."""
    compactions = sum(len(row.session.compactions) for row in report.rows)
    sessions = report.tools.total()
    parts = [
        "<h1>refold scan</h1>",
        _paragraph(
            f"{sessions:,} sessions, {len({row.path for row in report.rows}):,} of them compacted: "
            f"{compactions:,} compactions. Paid twice: {sum(row.twice for row in report.rows):,} tokens."
        ),
        _paragraph("The scan was stopped. The page has what was known by then.") if stopped else "",
        "<h2>Lost by compactions</h2>",
        _kinds(report),
        *_listed(
            "For example",
            [f"{example.sentence()} ({example.label})" for example in report.examples()],
        ),
        "<h2>Sessions</h2>",
        _sessions(report.rows),
        "<h2>Lost facts</h2>",
        _facts(report.rows),
        *_listed("Notes", report.notes()),
        _paragraph(COUNTED, small=True),
        _paragraph(next_step(report)),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    )
    title = "<title>refold scan</title>"
    return (
        f"<!doctype html><html lang=en><head>{head}{title}<style>{_STYLE}</style></head><body>"
        + ("\n".join(part for part in parts if part) + "</body></html>\n")
    )


def _kinds(report: ScanReport) -> str:
    rows = [
        (
            kind.kind,
            f"{kind.needed:,}",
            f"{kind.lost:,}",
            *kind.shares(),
        )
        for kind in report.kinds()
    ]
    return _table(KINDS_COLUMNS, rows)


def _sessions(rows: Sequence[Row]) -> str:
    names = (
        *("session", "tool", "file", "last compaction", "compactions#"),
        *(f"{kind} lost#" for kind in LOSS_KINDS),
        *("calls before the first edit#", "tokens paid twice#"),
    )
    return _table(names, [_session(row) for row in rows])


def _session(row: Row) -> tuple[str, ...]:
    lost = (f"{row.lost(kind):,} of {row.needed(kind):,}" for kind in LOSS_KINDS)
    return (
        ("(sub-agent) " if row.is_agent else "") + row.session.label,
        TOOLS[row.tool],
        short_path(row.path),
        f"{row.last:%Y-%m-%d %H:%M}",
        f"{len(row.session.compactions):,}",
        *lost,
        ", ".join("–" if count is None else f"{count:,}" for count in row.edits),
        f"{row.twice:,}",
    )


def _facts(rows: Sequence[Row]) -> str:
    names = ("session", "compaction#", "kind", "lost", "message#", "needed at#", "refold keeps it")
    marks = {None: "", True: "yes", False: "no"}
    found = [
        (
            row.session.label,
            f"{one.number:,}",
            fact.kind.removesuffix("s"),
            fact.text,
            f"{fact.position:,}",
            "" if fact.needed_at is None else f"{fact.needed_at:,}",
            marks[fact.kept],
        )
        for row in rows
        for one in row.session.compactions
        for fact in one.lost
    ]
    return _table(names, found)


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. A column name ending in ``#`` marks numbers."""
    kinds = ["n" if name.endswith("#") else "t" for name in names]
    head = "".join(
        f'<th class="{kind}">{_text(name.rstrip("#"))}</th>'
        for name, kind in zip(names, kinds, strict=True)
    )
    body = "\n".join(
        "<tr>"
        + "".join(
            f'<td class="{kind}">{_text(cell)}</td>' for cell, kind in zip(row, kinds, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _listed(title: str, sentences: Sequence[str]) -> list[str]:
    if not sentences:
        return []
    items = "".join(f"<li>{_text(sentence)}</li>" for sentence in sentences)
    return [f"<h2>{title}</h2>", f"<ul>{items}</ul>"]


def _paragraph(text: str, *, small: bool = False) -> str:
    return f"<p{' class=small' if small else ''}>{_text(text)}</p>"


def _text(text: str) -> str:
    return escape(masked(text))
