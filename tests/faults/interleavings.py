"""Interleavings of the threads of one process: each with few changes of turn, in order, and drawn ones.

python -m tests.faults.interleavings [--rounds N] [--seed N] [--only SCENE] [--case "SCENE/3:b,17:a"]
python -m tests.faults.interleavings --bound 1 [--only SCENE]   every schedule with at most so many changes

A schedule goes on with the same thread where it can. A change is a point where another one goes on instead.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .children import import_everything
from .interleaving_playing import Case, Played, Playing, parsed
from .interleaving_scenes import SCENES


def changes(played: Played, near: str = "") -> list[Case]:
    """The cases with one more change, after the last one, where two threads use the same thing.

    ``near``: only where this is in the name of the lock, file or module.
    """
    last = max(played.case.choices, default=-1)
    return [
        played.case._replace(choices={**played.case.choices, seen.number: other})
        for seen in played.decisions
        if seen.number > last
        and near in seen.on
        and (not seen.can_stay or seen.on in played.shared)
        for other in seen.others
        if other != seen.usual
    ]


def in_order(
    playing: Playing, scene: str, bound: int, *, lines: bool, seed: int = 0, near: str = ""
) -> Iterator[Played]:
    """Every schedule with at most so many changes, those with fewer first; shuffled, unless the seed is 0."""
    level = [Case(scene, lines)]
    for left in range(bound, -1, -1):
        following: list[Case] = []
        for case in level:
            played = playing.play(case)
            yield played
            following += changes(played, near) if left else []
        level = following
        if seed:
            random.Random(seed).shuffle(level)


def mixed(playing: Playing, scene: str, seed: int) -> Iterator[Played]:
    """Schedules with no change, with one and with two at drawn points, and drawn ones, with lines and without."""
    draw = random.Random(f"{scene} {seed}")
    plain = playing.play(Case(scene))
    yield plain
    ones = changes(plain)
    while True:
        one = playing.play(draw.choice(ones))
        yield one
        for lines in (True, False):
            yield playing.play(Case(scene, lines), draw.randrange(1_000_000_000))
        if twos := changes(one):
            yield playing.play(draw.choice(twos))
        fine = playing.play(Case(scene, lines=True))
        yield playing.play(draw.choice(changes(fine)))


class Figures:
    """What was played of a scene."""

    def __init__(self) -> None:
        self.played = self.bad = self.points = self.single = 0
        self.traces: set[str] = set()

    def take(self, played: Played) -> None:
        self.played += 1
        self.bad += bool(played.faults)
        self.points = max(self.points, len(played.decisions))
        self.traces.add(played.digest)
        if not played.case.choices:
            self.single = len(changes(played))

    def __str__(self) -> str:
        single = f", {self.single} single changes" if self.single else ""
        return (
            f"{self.played:6} schedules, {len(self.traces):6} different, "
            f"{self.bad} bad; at most {self.points:5} points{single}"
        )


def chosen(playing: Playing, options: Any) -> Iterator[Played]:
    """The schedules that the options ask for."""
    if options.case:
        yield playing.play(parsed(options.case), options.draw)
        return
    names = [name for name in SCENES if options.only in ("", name)]
    if options.bound is not None:
        how: Any = {name: getattr(options, name) for name in ("lines", "seed", "near")}
        for name in names:
            yield from in_order(playing, name, options.bound, **how)
        return
    scenes = [mixed(playing, name, options.seed) for name in names]
    while True:
        for scene in scenes:
            yield next(scene)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="how many schedules")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin none after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="this scene alone")
    parser.add_argument("--bound", type=int, help="all schedules with at most so many changes")
    parser.add_argument("--lines", action="store_true", help="with --bound: lines are points too")
    parser.add_argument("--near", default="", help="with --bound: changes at such things alone")
    parser.add_argument("--case", help="play this one alone, and show its trace and every answer")
    parser.add_argument("--draw", type=int, help="with --case: draw the choices that it lacks")
    options = parser.parse_args()
    import_everything()
    with tempfile.TemporaryDirectory(prefix="interleavings-") as name:
        sys.exit(run(Playing(Path(name)), options))


def run(playing: Playing, options: Any) -> bool:
    """Play schedules and print what is found; whether anything was."""
    most = sys.maxsize if options.bound is not None else options.rounds
    until = time.monotonic() + options.seconds
    figures: dict[str, Figures] = {}
    for number, played in enumerate(chosen(playing, options)):
        name = f"{played.case.scene}{' with lines' if played.case.lines else ''}"
        figures.setdefault(name, Figures()).take(played)
        if options.case:
            print(*played.trace, *played.answers, sep="\n")
        if played.faults or options.case:
            print(
                f"CASE {played.case}",
                *(f"  {what}" for what in played.faults),
                sep="\n",
                flush=True,
            )
        if number + 1 >= most or time.monotonic() > until:
            break
    print(*(f"{name:24}{one}" for name, one in figures.items()), sep="\n")
    total = sum(one.played for one in figures.values())
    bad = sum(one.bad for one in figures.values())
    print(f"interleavings: {total} schedules, {bad} of them bad")
    return bool(bad)


if __name__ == "__main__":
    main()
