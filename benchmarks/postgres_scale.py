"""Sizes and times of a log on a PostgreSQL server, for the page about scaling.

    python benchmarks/postgres_scale.py --write

One private server that waits for its disk. The same steps at several numbers of conversations show what grows.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import refold  # noqa: E402
from refold.infrastructure.postgres.connections import Address, Store  # noqa: E402
from tests.support.postgres import Server, private_server  # noqa: E402

RESULT = ROOT / "benchmarks" / "results" / "postgres_scale.md"
COUNTS = (100, 1_000)
MESSAGES = 20
TEXT = "Please look at src/worker.py: the tests of the second queue fail. " * 15
LOG = ("stored_events", "payload_keys", "log_positions")


def filled(place: str, conversations: int) -> None:
    """Store conversations of the same length."""
    with refold.open(place, telemetry=False) as memory:
        for number in range(conversations):
            talk = [
                {"role": ("user", "assistant")[n % 2], "content": f"{number} {n} {TEXT}"}
                for n in range(MESSAGES)
            ]
            memory.conversation(f"talk-{number}").append(talk)


def milliseconds(act: Callable[[], object], times: int = 5) -> float:
    """Return the median time of an act."""
    took: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        took.append(1_000 * (time.perf_counter() - began))
    return statistics.median(took)


def bytes_of(store: Store, *tables: str) -> int:
    """Return the bytes of these tables with their indexes."""
    total = 0
    for table in tables:
        rows = store.rows(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c JOIN pg_namespace n "
            "ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r' AND c.relname LIKE %s",
            (store.address.schema, f"{table}%"),
        )
        total += int(rows[0][0])
    return total


def measured(server: Server, conversations: int) -> dict[str, str]:
    """Return what was measured at a number of conversations."""
    place = server.new_database()
    filled(place, conversations)
    messages = conversations * MESSAGES
    found: dict[str, str] = {}
    store = Store(Address.of(place))
    try:
        with refold.open(place, telemetry=False, standing_recall=0) as memory:
            began = time.perf_counter()
            memory.conversations()
            took = time.perf_counter() - began
            found["first fold of the lists, events/s"] = f"{messages / took:,.0f}"
            began = time.perf_counter()
            memory.search("worker")
            found["first fold of the recall index, messages/s"] = (
                f"{messages / (time.perf_counter() - began):,.0f}"
            )
            size = bytes_of(store, *LOG)
            found["log, bytes a message with indexes and keys"] = f"{size / messages:,.0f}"
            rest = bytes_of(store, "") - size
            found["lists and recall, bytes a message"] = f"{rest / messages:,.0f}"
            one = memory.conversation("talk-7")
            found["append, ms"] = (
                f"{milliseconds(lambda: one.append({'role': 'user', 'content': TEXT}), 40):.1f}"
            )
            found["next request, ms"] = f"{milliseconds(one.context, 40):.1f}"
            found["all conversations, ms"] = f"{milliseconds(memory.conversations):.0f}"
            found["recall in a conversation, ms"] = (
                f"{milliseconds(lambda: one.recall('second queue')):.0f}"
            )
            began = time.perf_counter()
            memory.conversation("talk-8").erase(3)
            found["erase a message, s"] = f"{time.perf_counter() - began:.1f}"
    finally:
        store.close()
    return found


def main() -> None:
    """Measure, print the table, and write it with ``--write``."""
    with private_server(options="-c max_connections=50") as server:
        columns = {count: measured(server, count) for count in COUNTS}
    lines = ["| what | " + " | ".join(f"{c:,} conversations" for c in COUNTS) + " |"]
    lines.append("|---|" + "---|" * len(COUNTS))
    lines += [
        f"| {what} | " + " | ".join(columns[count][what] for count in COUNTS) + " |"
        for what in columns[COUNTS[0]]
    ]
    table = "\n".join(lines)
    print(table)
    if "--write" in sys.argv:
        head = (
            "# A log on a PostgreSQL server as it grows\n\n"
            "Made by `python benchmarks/postgres_scale.py --write`: PostgreSQL 18 and the client on one machine "
            "with two cores, "
            f"{MESSAGES} messages of {len(TEXT):,} characters a conversation."
        )
        RESULT.write_text(f"{head}\n\n{table}\n", "utf-8")


if __name__ == "__main__":
    main()
