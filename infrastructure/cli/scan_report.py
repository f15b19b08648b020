"""The result of a scan: what is known of all files so far, with every text of a session masked."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from refold.application.lab.scan_facts import LOSS_KINDS, LossKind
from refold.application.lab.session_scan import LostFact, ScannedCompaction, ScannedSession
from refold.domain.facts.cues import clean, redact
from refold.domain.value import replace
from refold.infrastructure.shown_text import strip_control
from refold.infrastructure.transcripts.session_files import (
    RECORD_NO_COMPACTIONS,
    TOOLS,
    FileScan,
)

from .scan_workers import Marked, Marking

NEWEST = 20
"""Number of compactions for which the ledger is made, unless all are asked for."""
MOST_EXAMPLES, MOST_OF_A_KIND, MOST_PROBLEMS = 5, 2, 5
KINDS_COLUMNS = (
    "",
    "needed again#",
    "lost#",
    "refold keeps of the lost#",
    "in the summary's size#",
)
COUNTED = (
    "A fact counts if the session had it before a compaction and needs it after it: requests and rules of the "
    "person, files that tools were called with, shell commands of 12 characters or more. It is lost if the summary "
    "does not have it. Paid twice are the tokens of summaries, and of calls that read a file or ran a command again "
    "after a compaction, each once. Token counts are estimates."
)
"""Description of the figures for people."""


def masked(text: object) -> str:
    """Return a text on one line without credentials and control characters."""
    return redact(strip_control(clean(str(text))))


def short_path(path: str) -> str:
    """Return a path that begins with ``~`` in the home folder, masked."""
    home = str(Path.home())
    return masked(f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path)


class Row(NamedTuple):
    """A session with at least one compaction."""

    path: str
    changed: float
    tool: str
    is_agent: bool
    session: ScannedSession

    def having(self, *compactions: ScannedCompaction) -> "Row":
        """Return the row with these compactions only."""
        return self._replace(session=replace(self.session, compactions=compactions))

    @property
    def last(self) -> datetime:
        """Time of the newest compaction, or of the last change of the file."""
        times = [one.at for one in self.session.compactions if one.at is not None]
        return max(times) if times else datetime.fromtimestamp(self.changed, UTC)

    @property
    def twice(self) -> int:
        """Tokens that were paid twice."""
        return sum(one.twice.tokens for one in self.session.compactions)

    @property
    def edits(self) -> list[int | None]:
        """Calls before the first edit after each compaction."""
        return [one.actions_before_edit for one in self.session.compactions]

    def needed(self, *kinds: LossKind) -> int:
        """Facts of these kinds that were needed again."""
        return sum(one.needed.get(kind, 0) for one in self.session.compactions for kind in kinds)

    def lost(self, *kinds: LossKind) -> int:
        """Facts of these kinds that were lost."""
        return sum(one.lost_of(kind) for one in self.session.compactions for kind in kinds)


class Example(NamedTuple):
    """A lost fact, and where it was lost."""

    label: str
    compaction: int
    fact: LostFact

    def sentence(self) -> str:
        """Return a sentence that says what was lost."""
        fact, number = self.fact, self.compaction
        noun, verb = fact.kind.removesuffix("s"), "said" if _is_said(fact.kind) else "used"
        later = "" if fact.needed_at is None else f"; message {fact.needed_at} needs it again"
        kept = "; refold would have kept it" if fact.kept else ""
        return (
            f"The {noun} “{fact.text}”, {verb} at message {fact.position}, "
            f"is not in the summary of compaction {number}{later}{kept}."
        )


class ScanReport:
    """Collects the scans of files, newest first. A compaction that several files repeat counts once."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.files = 0
        self.tools: Counter[str] = Counter()
        """Sessions by format."""
        self.agents = 0
        """Sub-agents in files of their own."""
        self.quiet: list[tuple[str, str]] = []
        """Path and format of the sessions without compactions."""
        self.others = 0
        """Files without a session of these tools."""
        self.problems: list[str] = []
        self.damaged: list[str] = []
        self.repeated = 0
        self.covered = 0
        """Compactions for which the ledger was made."""
        self.not_marked: list[str] = []
        self._keys: set[str] = set()
        self._held: list[Row] = []
        """Sessions with a summary as their beginning, which may be another session's."""

    def add(self, scan: FileScan) -> list[Row]:
        """Add the scan of a file and return its sessions with compactions."""
        self.files += 1
        if scan.problem:
            self.problems.append(masked(scan.problem))
            return []
        if scan.format is None or not scan.has_messages:
            self.others += 1
            return []
        if scan.damaged:
            self.damaged.append(short_path(scan.path))
        rows = list(self._rows(scan, scan.format))
        if scan.is_agent:
            self.agents += 1
        else:
            self.tools[scan.format] += 1
            if not any(session.compactions for session in scan.sessions):
                self.quiet.append((short_path(scan.path), scan.format))
        self.rows += rows
        return rows

    def finish(self) -> list[Row]:
        """Add summaries at the beginning that no other file has after its messages, and return new rows."""
        held, self._held = self._held, []
        places = {(row.path, row.session.thread_id): n for n, row in enumerate(self.rows)}
        rows: list[Row] = []
        for row in held:
            (first,) = row.session.compactions
            if not self._is_new(first):
                continue
            number = places.get((row.path, row.session.thread_id))
            if number is None:
                rows.append(row)
            else:
                known = self.rows[number]
                self.rows[number] = known.having(first, *known.session.compactions)
        self.rows += rows
        return rows

    def _rows(self, scan: FileScan, format: str) -> Iterator[Row]:
        for session in scan.sessions:
            agent = format == "claude-code" and ":" in session.thread_id
            row = Row(scan.path, scan.changed, format, agent, session)
            begun = [one for one in session.compactions if not one.position]
            new = tuple(one for one in session.compactions if one.position and self._is_new(one))
            # Another file may have the messages that such a summary is about.
            self._held += [row.having(one) for one in begun]
            if new:
                yield row.having(*new)

    def _is_new(self, compaction: ScannedCompaction) -> bool:
        if compaction.key in self._keys:
            self.repeated += 1
            return False
        self._keys.add(compaction.key)
        return True

    def to_mark(self, count: int | None) -> list[Marking]:
        """Return the sessions with the newest compactions, by file; with None all of them."""
        times = [(one.at or row.last, row.path, one.key) for row, one in self.compactions()]
        newest = sorted(times, reverse=True)[:count]
        keys = {key for _, _, key in newest}
        by_file: dict[str, list[ScannedSession]] = {}
        for row in self.rows:
            wanted = tuple(one for one in row.session.compactions if one.key in keys)
            if wanted:
                by_file.setdefault(row.path, []).append(replace(row.session, compactions=wanted))
        return [Marking(path, tuple(sessions)) for path, sessions in by_file.items()]

    def mark(self, marked: Marked) -> None:
        """Take over the marks of the lost facts of one file."""
        if marked.problem:
            self.not_marked.append(masked(marked.problem))
        found = {one.key: one for session in marked.sessions for one in session.compactions}
        found = {key: one for key, one in found.items() if one.ledger_tokens is not None}
        self.covered += len(found)
        for number, row in enumerate(self.rows):
            if row.path == marked.path:
                compactions = tuple(found.get(one.key, one) for one in row.session.compactions)
                self.rows[number] = row.having(*compactions)

    def compactions(self) -> Iterator[tuple[Row, ScannedCompaction]]:
        """Yield all compactions with their sessions."""
        for row in self.rows:
            for compaction in row.session.compactions:
                yield row, compaction

    def examples(self) -> list[Example]:
        """Return the most telling losses: rules and requests first, those of which least was kept."""
        found = [
            Example(row.session.label, one.number, fact)
            for row, one in self.compactions()
            for fact in one.lost
        ]
        order: dict[LossKind, int] = {"rules": 0, "requests": 1, "files": 2, "commands": 3}
        found.sort(key=lambda e: (order[e.fact.kind], e.fact.words_kept, -len(e.fact.text)))
        chosen: list[Example] = []
        kinds: Counter[str] = Counter()
        seen: set[str] = set()
        for example in found:
            fact = example.fact
            if (
                len(chosen) < MOST_EXAMPLES
                and kinds[fact.kind] < MOST_OF_A_KIND
                and fact.text not in seen
            ):
                chosen.append(example)
                kinds[fact.kind] += 1
                seen.add(fact.text)
        return chosen

    def kinds(self) -> list["KindTotals"]:
        """Return needed, lost and kept facts by kind."""
        return [KindTotals.of(kind, [one for _, one in self.compactions()]) for kind in LOSS_KINDS]

    def edits(self) -> list[int]:
        """Return the calls before the first edit after each compaction that an edit followed."""
        found = (one.actions_before_edit for _, one in self.compactions())
        return sorted(count for count in found if count is not None)

    def notes(self) -> list[str]:
        """Return sentences on everything that was not scanned in full."""
        notes = [
            f"{TOOLS[name]} does not record compactions: its {counted(self.tools[name], 'session')} "
            "can only be counted."
            for name in RECORD_NO_COMPACTIONS
            if self.tools[name]
        ]
        if self.repeated:
            notes.append(
                f"{counted(self.repeated, 'compaction')} in a second file of the same session counted once."
            )
        begun = sum(one.position == 0 for _, one in self.compactions())
        if begun:
            notes.append(
                f"{counted(begun, 'file')} with the summary of an earlier session as its beginning: the "
                "messages before it are not in the file, so nothing is known of its losses."
            )
        notes += [f"Not read: {problem}" for problem in self.problems[:MOST_PROBLEMS]]
        if len(self.problems) > MOST_PROBLEMS:
            notes.append(f"Not read: {len(self.problems) - MOST_PROBLEMS:,} more files.")
        if self.damaged:
            more = f" and {len(self.damaged) - 1:,} more" if self.damaged[1:] else ""
            notes.append(f"Damaged lines were skipped in {self.damaged[0]}{more}.")
        if self.others:
            notes.append(f"{counted(self.others, 'file')} without messages of these tools.")
        notes += [f"Not compared: {problem}" for problem in dict.fromkeys(self.not_marked)]
        return notes


class KindTotals(NamedTuple):
    """Facts of one kind over all compactions."""

    kind: LossKind
    needed: int
    lost: int
    looked_at: int
    """Lost facts that were looked up in refold's ledger and index."""
    kept: int
    """Those that it has."""
    kept_short: int
    """Those that it has with at most as many tokens as the summary."""

    def shares(self) -> tuple[str, str]:
        """Return the shares of the lost facts that refold has, at its own size and at that of the summary."""
        if not self.looked_at:
            return "–", "–"
        kept, short = self.kept / self.looked_at, self.kept_short / self.looked_at
        return f"{kept:.0%} of {self.looked_at:,}", f"{short:.0%}"

    @classmethod
    def of(cls, kind: LossKind, compactions: Sequence[ScannedCompaction]) -> "KindTotals":
        """Count the facts of a kind."""
        lost = [fact for one in compactions for fact in one.lost if fact.kind == kind]
        return cls(
            kind,
            sum(one.needed.get(kind, 0) for one in compactions),
            len(lost),
            sum(fact.kept is not None for fact in lost),
            sum(fact.kept is True for fact in lost),
            sum(fact.kept_short is True for fact in lost),
        )


def next_step(report: ScanReport) -> str:
    """Return how to keep the memory of sessions from now on."""
    if report.rows and all(row.tool != "claude-code" for row in report.rows):
        return (
            "Keep this memory from now on: refold import FILE… stores sessions in full, and refold recall "
            "finds what they said."
        )
    return (
        "Keep this memory from now on: refold claude-code install in a project; for sessions of other tools "
        "refold import FILE…"
    )


def as_json(report: ScanReport, *, stopped: bool) -> dict[str, Any]:
    """Return the whole result as JSON data."""
    edits = report.edits()
    return {
        "files": report.files,
        "sessions_by_tool": {name: report.tools[name] for name in TOOLS},
        "records_no_compactions": list(RECORD_NO_COMPACTIONS),
        "sub_agents": report.agents,
        "compactions": sum(len(row.session.compactions) for row in report.rows),
        "compared_compactions": report.covered,
        "kinds": {kind.kind: {k: v for k, v in kind._asdict().items() if k != "kind"}
                  for kind in report.kinds()},
        "actions_before_edit_median": median(edits) if edits else None,
        "tokens_paid_twice": sum(row.twice for row in report.rows),
        "sessions": [_session_json(row) for row in report.rows],
        "sessions_without_compactions": [
            {"file": path, "tool": tool} for path, tool in report.quiet
        ],
        "examples": [
            {"session": masked(example.label), "kind": example.fact.kind,
             "sentence": masked(example.sentence())}
            for example in report.examples()
        ],
        "notes": report.notes(),
        "counted": COUNTED,
        "stopped": stopped,
        "next": next_step(report),
    }  # fmt: skip


def _session_json(row: Row) -> dict[str, Any]:
    return {
        "file": short_path(row.path),
        "tool": row.tool,
        "sub_agent": row.is_agent,
        "thread_id": masked(row.session.thread_id),
        "label": row.session.label,
        "messages": row.session.messages,
        "tokens_paid_twice": row.twice,
        "compactions": [
            {**one.model_dump(mode="json", exclude={"key"}), "key": masked(one.key)}
            for one in row.session.compactions
        ],
    }


def _is_said(kind: LossKind) -> bool:
    return kind in ("requests", "rules")


def counted(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
