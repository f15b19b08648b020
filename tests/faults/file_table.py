"""The table of file zones and commands: one fault in a zone, one command, one more command, and a judge.

python -m tests.faults.file_table [--rounds N] [--seed N] [--only WORD] [--case CASE] [--keep FOLDER]
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .children import import_everything, run_apart
from .commands import Run, Scene, commands, run_program
from .file_faults import strikes_for
from .file_judge import faults_of, look_before
from .sample_store import LOG, Store, make_store
from .zones import Find, zones_of

STORES = ("killed", "closed", "killed-encrypted")
TELLING = ("append", "append keyed", "append again", "verify", "list", "salvage", "backup")
"""Commands that most often show what the one before has done."""


class Case(NamedTuple):
    """One fault and two commands; its text is what replays it."""

    store: str
    zone: str
    fault: str
    first: str
    second: str
    seed: int

    def __str__(self) -> str:
        return "/".join(map(str, self))


def case_of(text: str) -> Case:
    store, zone, fault, first, second, seed = text.split("/")
    return Case(store, zone, fault, first, second, int(seed))


class Table:
    """The stores of one run, and the cases that are tried in copies of them."""

    def __init__(
        self, folder: Path, keep: Path | None = None, names: Sequence[str] = STORES
    ) -> None:
        self._folder = folder
        self._names = names
        self._keep = keep
        self._stores: dict[str, Store] = {}
        self._zones: dict[str, dict[str, Find]] = {}

    def cases(self, seed: int) -> Iterator[Case]:
        """All pairs of zone and first command, in an order drawn by the seed, again and again."""
        draw = random.Random(seed)
        names = sorted(commands())
        pairs = [
            (store, zone, name)
            for store in self._names
            for zone in self.zones(store)
            for name in names
        ]
        while True:
            draw.shuffle(pairs)
            for store, zone, name in pairs:
                fault = draw.choice(sorted(strikes_for(zone)))
                second = draw.choice(TELLING if draw.random() < 0.5 else names)
                yield Case(store, zone, fault, name, second, draw.randrange(1_000_000))

    def zones(self, name: str) -> dict[str, Find]:
        self.store(name)
        return self._zones[name]

    def store(self, name: str) -> Store:
        if name not in self._stores:
            store = make_store(self._folder, name)
            self._stores[name] = store
            self._zones[name] = dict(zones_of(store))
            self._back_up(store)
        return self._stores[name]

    def _back_up(self, store: Store) -> None:
        scene = self._scene(store, "backed-up")
        to = str(store.folder.with_name(f"{store.name}-backup.db"))
        words = ["backup", to, "--db", str(scene.folder / LOG)]
        if (ended := run_apart(lambda: run_program(scene, words))).status:
            raise RuntimeError(f"the whole store gives no backup: {ended.err[-1000:]}")

    def _scene(self, store: Store, name: str) -> Scene:
        place = self._folder / f"case-{name}"
        shutil.rmtree(place, ignore_errors=True)
        (place / "out").mkdir(parents=True)
        folder = Path(shutil.copytree(store.folder, place / "store"))
        return Scene(store, folder, place / "out")

    def tried(self, case: Case) -> tuple[str, list[str]]:
        """Try a case; what was done in words, and everything that is not as it must be."""
        store, draw = self.store(case.store), random.Random(case.seed)
        ranges = list(self.zones(case.store)[case.zone](store.folder))
        scene = self._scene(store, "struck")
        where = draw.choice(ranges)
        done = strikes_for(case.zone)[case.fault](store, scene.folder, where, draw)
        copy = self._copy(scene)
        before = look_before(scene, copy)
        runs = [commands()[name](scene) for name in (case.first, case.second)]
        found = list(faults_of(scene, before, runs, case.zone))
        if found and self._keep:
            self._kept(case, scene, copy, runs)
        return done, found

    def _copy(self, scene: Scene) -> Scene:
        place = scene.folder.parent.with_name("case-copy")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(scene.folder.parent, place)
        return Scene(scene.store, place / "store", place / "out")

    def _kept(self, case: Case, scene: Scene, copy: Scene, runs: Sequence[Run]) -> None:
        assert self._keep is not None
        place = self._keep / str(case).replace("/", "_").replace(" ", "-")
        shutil.copytree(scene.folder.parent, place / "after", dirs_exist_ok=True)
        shutil.copytree(copy.folder.parent, place / "before", dirs_exist_ok=True)
        for run in runs:
            (place / f"{run.name}.txt").write_text(f"{run.ended.out}\n-- \n{run.ended.err}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="how many cases")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only cases with this in their text")
    parser.add_argument("--case", help="try this case alone")
    parser.add_argument("--keep", type=Path, help="a folder for the files of each find")
    options = parser.parse_args()
    import_everything()
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        table = Table(Path(name), options.keep)
        cases = iter([case_of(options.case)]) if options.case else table.cases(options.seed)
        sys.exit(run(table, (c for c in cases if options.only in str(c)), options))


def run(table: Table, cases: Iterator[Case], options: argparse.Namespace) -> bool:
    """Try the cases and print what is found; whether anything was."""
    until = time.monotonic() + options.seconds
    tried, bad = Counter[str](), 0
    for case in cases:
        if tried.total() >= options.rounds or time.monotonic() > until:
            break
        done, found = table.tried(case)
        tried[case.zone] += 1
        if found or options.case:
            bad += bool(found)
            print(
                f"CASE {case}\n  ({done})", *(f"  {what}" for what in found), sep="\n", flush=True
            )
    zones = ", ".join(f"{zone} {count}" for zone, count in sorted(tried.items()))
    print(f"file table: {tried.total()} cases, {bad} of them bad ({zones})")
    return bool(bad)


if __name__ == "__main__":
    main()
