"""The tables of the retention benchmark: what was kept, and of the rest what was recalled."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from planted_facts import TYPES, Fact

HITS = 5
"""Among so many a fact must be to be recalled."""


@dataclass(frozen=True)
class Setting:
    """How often is compacted, to what share of the history, and whether there is a ledger."""

    compactions: int
    budget: int
    ledger: bool

    @property
    def title(self) -> str:
        return f"{self.compactions}×{self.budget}%"


Counts = dict[tuple[str, Setting], list[bool]]


@dataclass
class Tally:
    """Of how many facts the words were found, by whatever they are sorted by."""

    found: Counts = field(default_factory=Counts)
    """In the context."""
    recalled: Counts = field(default_factory=Counts)
    """Of those that are not in it, among the first hits."""
    sizes: dict[Setting, list[float]] = field(default_factory=dict[Setting, list[float]])
    performed: dict[Setting, list[int]] = field(default_factory=dict[Setting, list[int]])

    def note(self, fact: Fact, setting: Setting, recalled: bool | None) -> None:
        """``recalled``: whether it was among the first hits; None where the context has it."""
        for row in rows_of(fact):
            self.found.setdefault((row, setting), []).append(recalled is None)
            if recalled is not None:
                self.recalled.setdefault((row, setting), []).append(recalled)

    def share(self, row: str, setting: Setting) -> str:
        found = self.found.get((row, setting), [])
        return f"{100 * sum(found) / len(found):.0f}" if found else "–"

    def recalled_of(self, row: str, setting: Setting) -> str:
        recalled = self.recalled.get((row, setting), [])
        return f"{sum(recalled)}/{len(recalled)}"


def rows_of(fact: Fact) -> Iterator[str]:
    """The rows of the table that a fact counts in."""
    yield fact.type
    if fact.type in ("path", "command", "number", "decision"):
        yield f"{fact.type}, used {'more than once' if fact.often else 'once'}"
    yield "English" if fact.language == "en" else "Chinese"
    yield "phrasings seen" if fact.seen else "phrasings never seen"
    yield "all"


ROWS = (
    *(row for t in TYPES for row in (t, f"{t}, used once", f"{t}, used more than once")),
    *("English", "Chinese", "phrasings seen", "phrasings never seen", "all"),
)


def pairs_of(settings: Sequence[Setting]) -> list[tuple[Setting, Setting]]:
    """Each setting with ledger and index, and the same without them."""
    return [(s, Setting(s.compactions, s.budget, ledger=False)) for s in settings if s.ledger]


def table(tally: Tally, settings: Sequence[Setting]) -> list[list[str]]:
    """Head and rows: what is kept with the ledger, and in brackets without it."""
    pairs = pairs_of(settings)
    rows = [["fact", "number", *(s.title for s, _ in pairs)]]
    for row in ROWS:
        number = len(tally.found.get((row, pairs[0][0]), []))
        if number:
            cells = [f"{tally.share(row, a)} ({tally.share(row, b)})" for a, b in pairs]
            rows.append([row, str(number), *cells])
    sizes = [tally.sizes[a] for a, _ in pairs]
    rows.append(["context / history, most", "", *(f"{max(s):.0%}" for s in sizes)])
    performed = [tally.performed[a] for a, _ in pairs]
    rows.append(["compactions, fewest", "", *(str(min(p)) for p in performed)])
    return rows


def recall_table(tally: Tally, settings: Sequence[Setting]) -> list[list[str]]:
    """Head and rows: of what is not in the context with the ledger, and in brackets without it, how many
    are recalled.
    """
    pairs = pairs_of(settings)
    rows = [["fact", *(s.title for s, _ in pairs)]]
    for row in ROWS:
        cells = [f"{tally.recalled_of(row, a)} ({tally.recalled_of(row, b)})" for a, b in pairs]
        if any(cell != "0/0 (0/0)" for cell in cells):
            rows.append([row, *cells])
    return rows


def markdown(
    kept: Sequence[Sequence[str]], recalled: Sequence[Sequence[str]], files: int, seed: int
) -> str:
    lines = [
        "# Retention: what compaction keeps word for word",
        "",
        f"Made by `python benchmarks/retention.py --write` (seed {seed}, {files} recordings).",
        "Per cent of planted facts whose words stand in the context after so many compactions, down to so",
        "many per cent of the history; in brackets the same without ledger and index. How: see the script.",
        "",
        *_table_lines(kept),
        "",
        "## Recalled",
        "",
        f"What the context no longer shows, asked for by `conversation.recall(question, limit={HITS})`, no model,",
        "by a question that names what the fact is about and nothing else of it: how many stand word for word in",
        "one of the hits, of how many; in brackets where there was no ledger.",
        "",
        *_table_lines(recalled),
    ]
    return "\n".join(lines) + "\n"


def _table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return [head, "|" + "---|" * len(rows[0]), *body]
