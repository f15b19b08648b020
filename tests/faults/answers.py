"""The auditor of answers: after each fault, is every answer what the events alone give?

python -m tests.faults.answers [--rounds N] [--seed N] [--only WORD] [--case CASE]

A fault in a zone, one command, then every question: contexts at every version, lists, summaries, recall,
topics, notes, explanations. The same questions go to a log that has nothing but the rows of the events.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .answering import answers_of, differences, rebuild, unlike_what_was_said
from .children import Ended, import_everything, run_apart
from .commands import Scene, commands
from .file_faults import strikes_for
from .looking_raw import all_rows
from .reading_back import problems_of
from .row_faults import strike_row
from .sample_store import Store, make_store
from .zones import Find, zones_of

STORES = ("killed", "closed", "killed-encrypted")
FIRST = (
    "append",
    "append keyed",
    "compact",
    "context",
    "erase",
    "fork",
    "list",
    "long life",
    "pin",
    "recall",
    "replay",
    "revert",
    "verify",
    "verify --repair",
)
"""Commands before the questions; ``nothing`` too."""
LOG_ZONES = ("log", "events", "wal", "other", "key", "anchor", "snapshots")
"""Zones where an answer may be refused: the log itself is hit."""
ROWS = "rows of "
"""Begins zones that are tables of a derived file, changed by SQL."""


class Case(NamedTuple):
    """One fault and one command; its text is what replays it."""

    store: str
    zone: str
    fault: str
    first: str
    seed: int

    def __str__(self) -> str:
        return "/".join(map(str, self))


class Audit:
    """The stores of one run, and the answers of their events."""

    def __init__(self, folder: Path, every: int) -> None:
        self._folder = folder
        self._every = every
        self._stores: dict[str, Store] = {}
        self._zones: dict[str, dict[str, Find]] = {}

    def cases(self, seed: int) -> Iterator[Case]:
        """Zones in turn, in an order drawn by the seed; rows of derived files as often as all other zones."""
        draw = random.Random(seed)
        pairs = [(store, zone) for store in STORES for zone in self._of(store)]
        while True:
            draw.shuffle(pairs)
            for store, zone in pairs:
                first = draw.choice((*FIRST, "nothing"))
                fault = draw.choice(sorted(strikes_for(zone)))
                yield Case(store, zone, fault, first, draw.randrange(1_000_000))
                if "encrypted" not in store:
                    table = ROWS + draw.choice(("views", "recall", "vectors"))
                    yield Case(store, table, "row", first, draw.randrange(1_000_000))

    def _of(self, name: str) -> dict[str, Find]:
        if name not in self._stores:
            self._stores[name] = make_store(self._folder, name)
            self._zones[name] = dict(zones_of(self._stores[name]))
        return self._zones[name]

    def tried(self, case: Case) -> tuple[str, list[str]]:
        """What was done in words, and every answer that is wrong."""
        zones, store, draw = (
            self._of(case.store),
            self._stores[case.store],
            random.Random(case.seed),
        )
        scene = self._scene(store)
        if case.zone.startswith(ROWS):
            done = strike_row(scene.folder, case.zone.removeprefix(ROWS), draw)
        else:
            where = draw.choice(list(zones[case.zone](store.folder)))
            done = strikes_for(case.zone)[case.fault](store, scene.folder, where, draw)
        # The marks that are searched for: a few of all messages.
        marks = [s.mark for s in draw.sample(store.said, 6)]
        if case.first != "nothing":
            commands()[case.first](scene)
        found = run_apart(lambda: answers_of(scene.folder, marks, self._every))
        return done, list(self._judged(case, scene, marks, found))

    def _scene(self, store: Store) -> Scene:
        place = self._folder / "case"
        shutil.rmtree(place, ignore_errors=True)
        (place / "out").mkdir(parents=True)
        folder = Path(shutil.copytree(store.folder, place / "store"))
        return Scene(store, folder, place / "out")

    def _judged(self, case: Case, scene: Scene, marks: list[str], found: Ended) -> Iterator[str]:
        may_refuse = case.zone.startswith(LOG_ZONES)
        yield from self._problems(found, may_refuse=may_refuse)
        if found.answer is None or not self._events_are_there(scene):
            return
        to = scene.folder.with_name("events")
        made = run_apart(lambda: rebuild(scene.folder, to))
        if made.status:
            yield f"the log of its events could not be made: {made.err[-400:]}"
            return
        expected = run_apart(lambda: answers_of(to, marks, self._every))
        if expected.answer is None:
            yield f"the log of its events does not answer: {expected.err[-400:]}"
            return
        yield from differences(found.answer, expected.answer, may_refuse=may_refuse)
        said = scene.store.said
        if case.first == "erase":
            said = tuple(s for s in said if (s.thread_id, s.position) != ("three", 0))
        yield from unlike_what_was_said(found.answer, said)

    def _problems(self, found: Ended, *, may_refuse: bool) -> Iterator[str]:
        if "refold.application.errors" in found.err.strip().rpartition("\n")[2]:
            if not may_refuse:
                yield f"REFUSED: {found.err.strip().rpartition(chr(10))[2][:300]}"
        else:
            yield from problems_of(found)

    def _events_are_there(self, scene: Scene) -> bool:
        """Whether every event is as it was stored; else the table of zones judges what became of it."""
        now, then = all_rows(scene.folder), all_rows(scene.store.folder)
        if now is None or then is None:
            return False
        events, stored = now["stored_events"], then["stored_events"]
        return all(events.get(name) is not None for name in stored)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="how many cases")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=7, help="contexts at every so many versions")
    parser.add_argument("--only", default="", help="only cases with this in their text")
    parser.add_argument("--case", help="try this case alone")
    options = parser.parse_args()
    import_everything()
    with tempfile.TemporaryDirectory(prefix="answers-") as name:
        sys.exit(run(Audit(Path(name), options.every), options))


def run(audit: Audit, options: Any) -> bool:
    """Try the cases and print what is found; whether anything was."""
    until = time.monotonic() + options.seconds
    tried, bad = Counter[str](), 0
    for case in [parsed(options.case)] if options.case else audit.cases(options.seed):
        if tried.total() >= options.rounds or time.monotonic() > until:
            break
        if options.only not in str(case):
            continue
        done, found = audit.tried(case)
        tried[case.zone] += 1
        if found or options.case:
            bad += bool(found)
            shown = [f"  {what}" for what in found[:6]]
            shown += [f"  … and {len(found) - 6} more"] if len(found) > 6 else []
            print(f"CASE {case}\n  ({done})", *shown, sep="\n", flush=True)
    zones = ", ".join(f"{zone} {count}" for zone, count in sorted(tried.items()))
    print(f"answers: {tried.total()} cases, {bad} of them bad ({zones})")
    return bool(bad)


def parsed(text: str) -> Case:
    store, zone, fault, first, seed = text.split("/")
    return Case(store, zone, fault, first, int(seed))


if __name__ == "__main__":
    main()
