"""How long the event loop of a service stands still while a long conversation is appended to and shown.

    python benchmarks/ticking.py [--messages 4000] [--largest 100000] [--batch 50] [--window 200000]

The whole of it: ``--messages 100000``. A task wakes up every few milliseconds and notes by how much it is late,
while messages of up to so many characters are appended, contexts made, and what is due compacted by the
embedded summariser. The goal: 99.9 % of the delays are at most 20 ms. Most of what is left is Python's lock, which a
thread keeps for its switch interval.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

import refold

TICK = 0.002
WORDS = "the build of step seven failed in src/app.py so look at the log of the compiler again "
GOAL = 0.020


async def tick(delays: list[float]) -> None:
    """Note by how much each wake-up is late."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(TICK)
        delays.append(time.perf_counter() - began - TICK)


def sizes(count: int, largest: int) -> Iterator[int]:
    """Most messages are short, some are as long as they may be."""
    draw = random.Random(7)
    for _ in range(count):
        yield int(min(largest, 40 * draw.paretovariate(0.6)))


def text(characters: int) -> str:
    """So many characters of words."""
    return (WORDS * (characters // len(WORDS) + 1))[: max(1, characters)]


async def run(path: Path, given: argparse.Namespace) -> tuple[list[float], int]:
    """Append and show; the delays, and how often it was compacted."""
    delays: list[float] = []
    compacted, batch = 0, list[dict[str, str]]()
    async with refold.aopen(path, window=given.window) as memory:
        conversation = memory.conversation("t")
        ticking = asyncio.create_task(tick(delays))
        for number, characters in enumerate(sizes(given.messages, given.largest)):
            role = "assistant" if number % 2 else "user"
            batch.append({"role": role, "content": f"{number} {text(characters)}"})
            if len(batch) == given.batch:
                await conversation.append(batch)
                batch = []
                try:
                    compacted += len((await conversation.context()).compactions)
                except refold.ContextWindowExceeded:
                    await conversation.append({"role": "assistant", "content": "too much at once"})
        ticking.cancel()
    return delays, compacted


def at(delays: list[float], share: float) -> float:
    """The delay that this share of all stays under, in milliseconds."""
    ordered = sorted(delays)
    return 1_000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=4_000)
    parser.add_argument("--largest", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--window", type=int, default=200_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        delays, compacted = asyncio.run(run(Path(folder) / "agent.db", given))
        seconds = time.perf_counter() - began
    figures = ", ".join(
        f"p{name} {at(delays, share):.1f} ms"
        for name, share in (("50", 0.5), ("99", 0.99), ("99.9", 0.999), ("100", 1.0))
    )
    Console().print(
        f"{given.messages:,} messages of up to {given.largest:,} characters in {seconds:.0f} s, "
        f"{compacted} compactions, {len(delays):,} ticks: {figures}"
    )
    return int(at(delays, 0.999) > 1_000 * GOAL)


if __name__ == "__main__":
    sys.exit(main())
