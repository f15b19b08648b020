"""Losses of power and failures of disks, simulated: a log lives, loses power, recovers, loses power again.

python -m tests.faults.storage [--crashes N] [--seconds N] [--seed N] [--case SEED]
"""

import argparse
import logging
import random
import sys
import tempfile
import time
from contextlib import nullcontext
from itertools import chain, count
from pathlib import Path

from .disks.defects import DEFECTS
from .disks.losing import Case, Played
from .disks.watched_folder import Simulator

KEPT = Path(__file__).with_name("disks") / "seeds.txt"
"""Seeds that found something once."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crashes", type=int, default=1_000, help="begin no case after so many")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after so long")
    parser.add_argument("--seed", type=int, default=0, help="the first seed is drawn from it")
    parser.add_argument("--case", type=int, help="play this seed alone")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--clean", action="store_true", help="disks lose power, but never fail")
    kinds.add_argument("--lying", action="store_true", help="all disks lose writes silently")
    parser.add_argument(
        "--defect", choices=DEFECTS, help="plant a defect, and end when it is found"
    )
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    simulator = Simulator()
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as name:
        sys.exit(run(simulator, Path(name), options))


def run(simulator: Simulator, root: Path, options: argparse.Namespace) -> bool:
    """Play seeds and print what is found; whether anything was."""
    began, total = time.monotonic(), Played()
    first = random.Random(options.seed).randrange(10**6) * 1_000
    with DEFECTS[options.defect]() if options.defect else nullcontext():
        for seed in chain(kept(), count(first)) if options.case is None else [options.case]:
            played = Case(simulator, root, seed, clean=options.clean, lying=options.lying).play()
            played.finds += simulator.errors
            simulator.errors.clear()
            total.add(played)
            if played.finds:
                print(
                    f"CASE {seed}", *(f"  {one}" for one in played.finds[:6]), sep="\n", flush=True
                )
            over = total.crashes >= options.crashes or time.monotonic() - began > options.seconds
            if over or (options.defect and played.finds):
                break
    rate = 60 * total.crashes / (time.monotonic() - began)
    print(
        f"storage: {total.seeds} seeds, {total.crashes} losses of power, {total.again} of them in a recovery"
    )
    print(f"{rate:.0f} losses a minute, {len(total.finds)} finds")
    for name in ("done", "struck", "refused"):
        print(f"{name}: {dict(getattr(total, name))}")
    return bool(total.finds)


def kept() -> list[int]:
    """Return the seeds that found something once."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    return [int(line.split("#")[0]) for line in lines if line.split("#")[0].strip()]


if __name__ == "__main__":
    main()
