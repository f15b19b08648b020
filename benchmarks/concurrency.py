"""Many processes on one log: what each append waits, and that nothing is lost, doubled or half there.

    python benchmarks/concurrency.py [--processes 8] [--seconds 10]

Every process appends to a conversation of its own and to one that all share, and compacts both when
that is due; some only read. Then the log is looked over.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.table import Table

import refold

ROOT = Path(__file__).resolve().parents[1]
SHARED = "shared"
WINDOW = 60_000
TEXT = "The build of step seven failed again, so look at the log of the compiler. " * 4


def exchange(name: str, number: int) -> list[dict[str, str]]:
    words = f"{name}-{number} {TEXT}"
    return [{"role": role, "content": words} for role in ("user", "assistant")]


def write(path: Path, name: str, seconds: float) -> None:
    """Append to the own and to the shared conversation in turns; print each wait in seconds."""
    waits: list[float] = []
    compacted, number = 0, 0
    with refold.open(path, window=WINDOW) as memory:
        deadline = together() + seconds
        while time.monotonic() < deadline:
            conversation = memory.conversation(name if number % 2 else SHARED)
            began = time.perf_counter()
            conversation.append(
                exchange(name, number), key=[f"{name}-{number}{end}" for end in "qa"]
            )
            waits.append(time.perf_counter() - began)
            number += 1
            if number % 40 == 0:
                compacted += conversation.compact().outcome == "performed"
    print(json.dumps({"waits": waits, "compacted": compacted}))


def read(path: Path, seconds: float) -> None:
    """Make requests and read the read models; print each wait in seconds."""
    waits: list[float] = []
    with refold.open(path, window=WINDOW) as memory:
        deadline = together() + seconds
        while time.monotonic() < deadline:
            began = time.perf_counter()
            # Six writers may outgrow any window while one compacts.
            with suppress(refold.ContextWindowExceeded):
                memory.conversation(SHARED).context()
            memory.conversations()
            waits.append(time.perf_counter() - began)
            time.sleep(0.02)
    print(json.dumps({"waits": waits, "compacted": 0}))


def together() -> float:
    """Wait until all are ready; the time when they begin."""
    print("ready", flush=True)
    sys.stdin.readline()
    return time.monotonic()


def started(act: str, path: Path, *rest: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(Path(__file__).resolve()), act, str(path), *rest]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)


def run(processes: Sequence["subprocess.Popen[str]"]) -> None:
    """Let them begin together."""
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def quantile(waits: Sequence[float], share: float) -> float:
    ordered = sorted(waits)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1_000


def looked_over(path: Path, stored: dict[str, int]) -> list[str]:
    """Everything that is not as it must be."""
    wrong: list[str] = []
    with refold.open(path, window=WINDOW) as memory:
        wrong += [f"damage: {found}" for found in memory.verify().damage]
        said = {
            thread: [str(m.message.content) for m in memory.conversation(thread).messages()]
            for thread in (SHARED, *stored)
        }
        for name, count in stored.items():
            for thread, parity in ((SHARED, 0), (name, 1)):
                mine = [w.split()[0] for w in said[thread] if w.startswith(f"{name}-")]
                numbers = range(parity, count, 2)
                expected = [f"{name}-{number}" for number in numbers for _ in "qa"]
                if mine != expected:
                    wrong.append(
                        f"{thread}: {name} has {len(mine)} of {len(expected)}, or another order"
                    )
        for thread in said:
            active = [s for s in memory.conversation(thread).summaries() if s.is_active]
            if len(active) > 1:
                wrong.append(f"{thread}: {len(active)} active summaries")
    return wrong


def measured(processes: int, readers: int, seconds: float) -> tuple[dict[str, float], list[str]]:
    """Figures of the waits of the appends in milliseconds, and what is wrong with the log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "agent.db")
        writers = {
            f"w{n}": started("write", path, f"w{n}", str(seconds))
            for n in range(processes - readers)
        }
        others = [started("read", path, str(seconds)) for _ in range(readers)]
        run([*writers.values(), *others])
        answers = {name: json.loads(p.communicate()[0]) for name, p in writers.items()}
        reads = [json.loads(p.communicate()[0]) for p in others]
        waits = [wait for answer in answers.values() for wait in answer["waits"]]
        counts = {name: len(answer["waits"]) for name, answer in answers.items()}
        wrong = looked_over(path, counts)
    figures = {
        "appends": len(waits),
        "fewest by one": min(counts.values()),
        "most by one": max(counts.values()),
        "compactions": sum(answer["compacted"] for answer in answers.values()),
        "reads": sum(len(answer["waits"]) for answer in reads),
        "p50 ms": quantile(waits, 0.5),
        "p99 ms": quantile(waits, 0.99),
        "max ms": max(waits) * 1_000,
    }
    return figures, wrong


def main() -> None:
    match sys.argv[1:]:
        case ["write", path, name, seconds]:
            write(Path(path), name, float(seconds))
            return
        case ["read", path, seconds]:
            read(Path(path), float(seconds))
            return
        case _:
            pass
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--readers", type=int, default=2, help="of these, how many only read")
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    figures, wrong = measured(options.processes, options.readers, options.seconds)
    table = Table("figure", "value")
    for name, figure in figures.items():
        table.add_row(name, f"{figure:,.1f}" if name.endswith("ms") else f"{figure:,}")
    console = Console()
    console.print(table)
    console.print(
        "\n".join(wrong) or "0 lost, 0 doubled, at most one active summary, nothing damaged"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
