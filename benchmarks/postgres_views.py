"""Read models on a PostgreSQL server and in an SQLite file: rebuild, catching up, lists, erasure.

    python benchmarks/postgres_views.py [--conversations 200] [--messages 100] [--write]

Starts a server of its own with the settings of a new installation. Both stores get the same messages.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import refold  # noqa: E402
from tests.support.postgres import private_server  # noqa: E402

REPEATED = 50
"""Number of measurements of everything that is short."""
WORDS = (
    "The importer reads a page, checks every row, and writes what it found into the report. " * 8
)
RESULT = ROOT / "benchmarks" / "results" / "postgres_views.md"
HEAD = """# Read models on a server and in a file

Made by `python benchmarks/postgres_views.py --write`: {conversations} conversations of {messages} messages of
{size} characters each. Times are medians of {repeated}; rebuild, check and erasure once.

| what | SQLite file | PostgreSQL |
|---|---|---|"""


@contextmanager
def places() -> Generator[tuple[str, str]]:
    """Yield a log file and a database that do not exist yet."""
    with TemporaryDirectory() as folder, private_server(options="") as server:
        yield f"{folder}/agent.db", server.new_database()


def fill(memory: refold.Memory, conversations: int, messages: int) -> None:
    """Append the messages."""
    for number in range(conversations):
        turn = [
            {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} {WORDS}"}
            for n in range(messages)
        ]
        memory.conversation(f"thread {number}").append(turn)


def seconds(act: Callable[[], object]) -> float:
    """Return how long a call takes."""
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def milliseconds(act: Callable[[], object]) -> str:
    """Return the median of many calls."""
    return f"{1_000 * statistics.median(seconds(act) for _ in range(REPEATED)):.1f} ms"


def measure(place: str, conversations: int, messages: int) -> dict[str, str]:
    """Return all figures of a store."""
    with refold.open(place, telemetry=False) as memory:
        fill(memory, conversations, messages)
        views, events = memory._core.views, conversations * messages
        first = memory.conversation("thread 0")
        figures = {"first fold": f"{events / seconds(memory.conversations):,.0f} events/s"}
        figures["rebuild"] = f"{events / seconds(views.rebuild):,.0f} events/s"
        figures["list of all conversations, nothing new"] = milliseconds(memory.conversations)
        figures["page of 50 messages, nothing new"] = milliseconds(
            lambda: views.messages("thread 1", 0, 50)
        )

        appending = [seconds(lambda: first.append({"role": "user", "content": "and?"}))]
        catching = list[float]()
        for _ in range(REPEATED):
            appending.append(seconds(lambda: first.append({"role": "user", "content": "and?"})))
            catching.append(seconds(lambda: views.conversation("thread 0")))
        figures["one conversation, after one new event"] = (
            f"{1_000 * statistics.median(catching):.1f} ms"
        )
        figures["check of all rows"] = (
            f"{events / seconds(lambda: list(views.check())):,.0f} events/s"
        )
        figures["erasure of one message, everything"] = f"{seconds(lambda: first.erase(1)):.2f} s"
        return figures


def main() -> None:
    """Measure and print or write a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--messages", type=int, default=100)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    with places() as (file, address):
        in_file = measure(file, chosen.conversations, chosen.messages)
        on_server = measure(address, chosen.conversations, chosen.messages)
    head = HEAD.format(
        conversations=chosen.conversations,
        messages=chosen.messages,
        size=len(WORDS),
        repeated=REPEATED,
    )
    lines = [f"| {what} | {in_file[what]} | {on_server[what]} |" for what in in_file]
    text = "\n".join([head, *lines]) + "\n"
    print(text)
    if chosen.write:
        RESULT.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
