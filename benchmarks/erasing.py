"""What erasing one covered message costs, with the next list, recall and context after it.

    python benchmarks/erasing.py [--sizes 3000 30000 300000] [--most-cpu S]

For each size a log of so many messages of made-up work is made, 500 an append, compacted by its first context,
listed and searched once. Then a fresh process opens it, erases message 5, and asks; then message 7. CPU is
that of this process, all of its threads included, without opening. Ends with 1 where an erasure with what
follows it costs more than it may.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from first_context import make, talk

WINDOW = 100_000
"""Tokens: even 3,000 messages are compacted once."""
QUESTION = "invoice ledger pytest"


def prepare(path: Path, size: int) -> None:
    import refold

    make(path, size, talk())
    with refold.open(path, window=WINDOW) as memory:
        conversation = memory.conversation("t")
        conversation.context()
        memory.conversations()
        conversation.recall(QUESTION)


def measure(path: Path) -> dict[str, float]:
    """Seconds of CPU of each step, in this very process."""
    import refold

    found: dict[str, float] = {}
    with refold.open(path, window=WINDOW) as memory:
        conversation = memory.conversation("t")
        assert conversation.compactions()[-1].outcome == "performed"
        for name, position in (("first", 5), ("second", 7)):
            steps: dict[str, Callable[[], object]] = {
                "erase": lambda position=position: conversation.erase(position),  # type: ignore[misc]
                "list": memory.conversations,
                "recall": lambda: conversation.recall(QUESTION),
                "context": conversation.context,
            }
            begun = time.process_time()
            for step, act in steps.items():
                start = time.process_time()
                act()
                found[f"{name} {step}"] = time.process_time() - start
            found[f"{name}, together"] = time.process_time() - begun
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="+", default=[3_000, 30_000, 300_000])
    parser.add_argument("--most-cpu", type=float, default=2.0, help="seconds")
    options = parser.parse_args()
    table: dict[int, dict[str, float]] = {}
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "long.db"
            prepare(path, size)
            command = [sys.executable, __file__, "measure", str(path)]
            shown = subprocess.run(command, check=True, capture_output=True, text=True)
            table[size] = json.loads(shown.stdout)
    print(f"| seconds of CPU | {' | '.join(f'{size:,}' for size in table)} |")
    print(f"|---|{'---|' * len(table)}")
    for name in next(iter(table.values())):
        print(f"| {name} | {' | '.join(f'{found[name]:.2f}' for found in table.values())} |")
    return int(any(found["first, together"] > options.most_cpu for found in table.values()))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", path]:
            print(json.dumps(measure(Path(path))))
        case _:
            sys.exit(main())
