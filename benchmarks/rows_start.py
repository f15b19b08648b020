"""Rows on the start of a program: the processor time of new processes next to one that imports two libraries.

A new process is measured by what the system says of a finished child: user and system time, with bytecode in the
cache. Each measurement alternates with its floor. ``python benchmarks/rows_start.py [--long]`` prints the rows.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rows import Row

MESSAGES = 1_000
WINDOW = 30_000
"""Tokens of the window in which the log is made, so that its conversation has summaries."""

FLOOR = "from pydantic import BaseModel; import eventsourcing.sqlite"
FIRST = """
import sys, refold
with refold.open(sys.argv[1]) as memory:
    memory.conversation("thread-1").context()
"""
GIVEN = """
import sys, refold
tools = [{"name": "read", "description": "Read a file.", "input_schema": {"type": "object"}}]
with refold.open(sys.argv[1], window=30_000, model="claude-opus-4-5") as memory:
    memory.conversation("thread-1").context(system="You help with code.", tools=tools)
"""
APPENDS = """
import sys, time, refold
memory = refold.open(sys.argv[1], scrub_megabytes=0)
conversation = memory.conversation("new")
costs = []
for number in range(int(sys.argv[2])):
    message = {"role": "assistant" if number % 2 else "user", "content": f"message {number}, of some words"}
    began = time.process_time()
    conversation.append(message)
    costs.append(time.process_time() - began)
memory.close()
print(costs[0] * 1e3, sorted(costs[1:])[len(costs) // 2] * 1e3)
"""
Command = Sequence[str]


def make_log(path: Path) -> None:
    """Make a log with one conversation that was compacted several times."""
    import refold

    with refold.open(path, window=WINDOW) as memory:
        conversation = memory.conversation("thread-1")
        for number in range(MESSAGES // 2):
            asked = f"please change src/module_{number}.py so that it tries {number} times, and test it. "
            done = f"I changed src/module_{number}.py. " + "The answer has several sentences. " * 6
            conversation.append({"role": "user", "content": asked * 3})
            conversation.append({"role": "assistant", "content": done})
            if number % 25 == 24:
                conversation.context()


def start(command: Command, environment: Mapping[str, str]) -> float:
    """Run a process to its end and return its processor time in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def alternating(
    commands: Mapping[str, Command], environment: Mapping[str, str], rounds: int
) -> dict[str, float]:
    """Run all in turn, ``rounds`` times after one that fills the cache, and return the medians."""
    found: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            spent = start(command, environment)
            if number:
                found[name].append(spent)
    return {name: statistics.median(costs) for name, costs in found.items()}


def appends(path: Path, environment: Mapping[str, str], rounds: int) -> tuple[float, float]:
    """Return the milliseconds of the first append of a new process and of a steady one."""
    costs: list[tuple[float, float]] = []
    for number in range(rounds):
        place = path.with_name(f"appends-{number}.db")
        command = [sys.executable, "-c", APPENDS, str(place), "60"]
        printed = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment
        )
        first, steady = map(float, printed.stdout.split())
        costs.append((first, steady))
    return statistics.median(f for f, _ in costs), statistics.median(s for _, s in costs)


def rows(folder: Path, *, long: bool) -> Iterator[Row]:
    """Yield the rows on starting."""
    path, rounds = folder / "start.db", 41 if long else 9
    make_log(path)
    cached = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    environment = {**cached, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    python, module = [sys.executable, "-c"], [sys.executable, "-m", "refold"]
    found = alternating(
        {
            "empty": [*python, "pass"],
            "floor": [*python, FLOOR],
            "first": [*python, FIRST, str(path)],
            "given": [*python, GIVEN, str(path)],
            "list": [*module, "list", "--db", str(path)],
            "version": [*module, "--version"],
            "import": [*python, "import refold"],
        },
        environment,
        rounds,
    )
    floor = f"pydantic and eventsourcing imported: {found['floor']:.0f} ms"
    for what, name, goal in (
        (f"new process, first context of {MESSAGES:,} messages", "first", 2.0),
        ("the same with a window, a model, a system text and tools", "given", 2.0),
        ("refold list", "list", 4.0),
    ):
        times = found[name] / found["floor"]
        yield Row(what, f"{found[name]:.0f} ms CPU", floor, times, "times the floor", goal)
    empty = f"an empty process: {found['empty']:.0f} ms"
    version, imported = found["version"], found["import"] - found["empty"]
    yield Row("refold --version", f"{version:.0f} ms CPU", empty, version, "ms CPU", 60)
    yield Row("import refold", f"{imported:.1f} ms CPU", empty, imported, "ms CPU more", 10)
    first, steady = appends(path, environment, 9 if long else 5)
    yield Row(
        "first append of a process",
        f"{first:.2f} ms CPU",
        f"a steady append: {steady:.2f} ms",
        first / steady,
        "times a steady one",
        2.0,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for row in rows(Path(made), long="--long" in sys.argv[1:]):
            sign = "≥" if row.at_least else "≤"
            goal = f"goal {sign} {row.goal:g}: {'met' if row.is_met else 'missed'}"
            print(f"{row.what}: {row.ours}; {row.floor}; {row.figure:.2f} {row.unit}; {goal}")
