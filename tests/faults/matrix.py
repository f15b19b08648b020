"""The fault matrix: every fault at every point, and what came of it.

python -m tests.faults.matrix [--every K] [--only WORD] [--write]
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from .looking_over import faults_of, refusals, told
from .striking import FAULTS, ROOT, Fault, calls_of, missing, struck

PAGE = ROOT / "docs" / "promises.md"
BEGIN = "<!-- fault matrix: begin -->"
END = "<!-- fault matrix: end -->"
KILLED = -9


class Line(NamedTuple):
    """A fault, at all its points."""

    fault: Fault
    points: int
    outcomes: Counter[str]
    errors: Counter[str]
    broken: tuple[str, ...]
    """Where something was not as it must be, and what."""


def tried(fault: Fault, every: int, most: int, first: int = 1) -> Line:
    """Put a fault in at every ``every``-th point."""
    outcomes, errors = Counter[str](), Counter[str]()
    broken: list[str] = []
    points = range(first, most + 1, every)
    for point, session in struck(fault, iter(points), most):
        facts = told(session.folder)
        refused = refusals(facts)
        errors.update(refused)
        outcomes[_outcome(session.status, len(refused))] += 1
        broken += [f"{fault.name}, point {point}: {what}" for what in _looked_over(session.folder)]
        if not session.was_struck:
            broken.append(f"{fault.name}, point {point}: the fault was not put in")
        if session.status not in (0, KILLED):
            broken.append(f"{fault.name}, point {point}: ended with {session.status}")
    return Line(fault, len(points), outcomes, errors, tuple(broken))


def _looked_over(folder: Path) -> list[str]:
    try:
        return list(faults_of(folder))
    except Exception as error:  # Whatever it is, it was not to come.
        return [f"looking it over failed: {error!r}"]


def _outcome(status: int, refused: int) -> str:
    match status:
        case -9:
            return "killed"
        case 0 if refused:
            return "refused"
        case 0:
            return "unnoticed"
        case _:
            return "broken"


def table(lines: Sequence[Line], every: int) -> str:
    """The matrix as it stands in the promises."""
    each = "every point" if every == 1 else f"every {every}th point"
    rows = [
        f"A scripted session, with a fault at {each}; each is then opened and looked over.",
        "",
        "| fault | points | killed | unnoticed | refused | errors that were raised | lost, doubled, half |",
        "|---|---:|---:|---:|---:|---|---:|",
    ]
    for line in lines:
        raised = ", ".join(f"`{name}` {n}" for name, n in sorted(line.errors.items())) or "–"
        counts = [line.outcomes[name] for name in ("killed", "unnoticed", "refused")]
        rows.append(
            f"| {line.fault.name} | {line.points} | {counts[0]} | {counts[1]} | {counts[2]} "
            f"| {raised} | {len(line.broken)} |"
        )
    total = sum(line.points for line in lines)
    rows.append(f"| **all** | {total} | | | | | {sum(len(line.broken) for line in lines)} |")
    return "\n".join(rows)


def write(text: str) -> None:
    """Put the table into the page, between its markers."""
    page = PAGE.read_text("utf-8") if PAGE.exists() else ""
    if BEGIN not in page:
        page = f"{page.rstrip()}\n\n## Fault matrix\n\n{BEGIN}\n{END}\n".lstrip()
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", "utf-8")


def run(faults: Iterable[Fault], every: int) -> list[Line]:
    """All of these faults, two at a time."""
    faults = list(faults)
    counts = {call: calls_of(call) for call in {fault.call for fault in faults}}

    def one(fault: Fault) -> Line:
        began = time.monotonic()
        line = tried(fault, every, counts[fault.call])
        seconds = time.monotonic() - began
        print(f"{fault.name}: {line.points} points, {seconds:.0f} s, {dict(line.outcomes)}")
        for what in line.broken[:10]:
            print(f"  BROKEN {what}")
        sys.stdout.flush()
        return line

    with ThreadPoolExecutor(2) as both:
        return list(both.map(one, faults))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only every so many points")
    parser.add_argument("--only", default="", help="only faults with this in their name")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args()
    if reason := missing():
        sys.exit(reason)
    lines = run((f for f in FAULTS if options.only in f.name), options.every)
    text = table(lines, options.every)
    print(text)
    if options.write:
        write(text)
    sys.exit(any(line.broken for line in lines))


if __name__ == "__main__":
    main()
