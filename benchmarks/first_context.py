"""What the first context of a very long imported conversation costs, and what comes after it.

    python benchmarks/first_context.py [--quick] [--window N] [--recorded] [--most-cpu S] [--most-mb M]

A log of 300,000 messages (30,000 with ``--quick``) is made, 500 an append, with no compaction between.
Then a fresh process opens it and asks for the context. CPU is that of this process, from before ``open``;
memory is the largest resident size that it ever had, all of Python and SQLite included. ``--recorded``:
a recorded session over and over instead of made-up talk. Ends with 1 where the first context costs more
than it may.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("REFOLD_X_DATA") or Path(__file__).parents[2] / "shared" / "data")
RECORDING = DATA / "claude-code-entire" / "6860e2316a8a_0.jsonl.gz"
_WORDS = (
    "parser token node visit cache index table query window branch merge release staging deploy review "
    "customer invoice ledger backup restore anchor snapshot message summary context budget model answer "
    "please could should check whether because before after while under over between against during "
    "report figure number value column record update insert select server client socket timeout retry"
)
WORDS = _WORDS.split(" ")
OPENINGS = ("Please", "Can you", "I think", "Always", "Never", "What about", "Fix")


def sentence(chance: random.Random, length: int) -> str:
    return " ".join(chance.choices(WORDS, k=length)).capitalize() + "."


def talk() -> Iterator[dict[str, Any]]:
    """Made-up work without end: about 165 characters a message, tool rounds now and then."""
    chance = random.Random(1)
    for number in count():
        asked = f"{chance.choice(OPENINGS)} {sentence(chance, chance.randint(9, 38))}"
        yield {"role": "user", "content": asked}
        for step in range(chance.randint(1, 3) if chance.random() < 0.15 else 0):
            call_id = f"call_{number}_{step}"
            given = {"command": f"pytest tests/test_{chance.choice(WORDS)}.py -k {number % 997}"}
            call = {"type": "tool_use", "id": call_id, "name": "Bash", "input": given}
            found = {"type": "tool_result", "tool_use_id": call_id, "content": sentence(chance, 30)}
            yield {"role": "assistant", "content": [call]}
            yield {"role": "user", "content": [{**found, "is_error": chance.random() < 0.15}]}
        yield {"role": "assistant", "content": sentence(chance, chance.randint(12, 40))}


def recorded() -> Iterator[dict[str, Any]]:
    """A recorded session over and over, with new call ids."""
    from refold.infrastructure.transcripts.read_transcript import read_transcript

    longest = max(read_transcript(RECORDING).conversations, key=lambda c: len(c.messages))
    said = [m.message for m in longest.messages if m.message.role != "system"]
    for cycle in count():
        for message in said:
            blocks = [
                {k: f"{v}_{cycle}" if k in ("id", "tool_use_id") else v for k, v in block.items()}
                for block in message.blocks()
            ]
            yield {"role": message.role, "content": blocks}


def make(path: Path, size: int, messages: Iterator[dict[str, Any]]) -> None:
    import refold

    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        for _ in range(0, size, 500):
            conversation.append(list(islice(messages, 500)))


def measure(path: Path, window: int) -> dict[str, float]:
    """Seconds of CPU of each step, and megabytes, in this very process."""
    start = time.process_time()
    import refold

    memory = refold.open(path, window=window)
    conversation = memory.conversation("t")
    first = conversation.context()
    found = {
        "first context": time.process_time() - start,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "compactions": float(len(first.compactions)),
    }
    steps: dict[str, Callable[[], object]] = {
        "second context": conversation.context,
        "append": lambda: conversation.append({"role": "user", "content": "and now?"}),
        "explain(0, 10)": lambda: conversation.explain(0, 10),
        "first list": memory.conversations,
        "list": memory.conversations,
        "topics": conversation.topics,
        "messages(0, 10)": lambda: conversation.messages(0, 10),
    }
    for name, step in steps.items():
        start = time.process_time()
        step()
        found[name] = time.process_time() - start
    memory.close()
    found["megabytes in the end"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def restart(path: Path, window: int) -> dict[str, float]:
    """The context of a process that opens the log again."""
    start = time.process_time()
    import refold

    with refold.open(path, window=window) as memory:
        memory.conversation("t").context()
        return {"context after a restart": time.process_time() - start}


def in_a_process(step: str, *arguments: object) -> dict[str, float]:
    command = [sys.executable, __file__, step, *map(str, arguments)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(shown.stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="30,000 messages")
    parser.add_argument("--window", type=int, default=200_000)
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--most-cpu", type=float, default=10.0, help="seconds")
    parser.add_argument("--most-mb", type=float, default=200.0)
    options = parser.parse_args()
    size = 30_000 if options.quick else 300_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.db"
        start = time.process_time()
        make(path, size, recorded() if options.recorded else talk())
        found = {"import": time.process_time() - start}
        found |= in_a_process("measure", path, options.window)
        found |= in_a_process("restart", path, options.window)
    print(f"{size:,} messages, a window of {options.window:,} tokens; seconds of CPU")
    for name, value in found.items():
        print(f"{name:>26}  {value:10.3f}")
    fits = found["first context"] <= options.most_cpu and found["megabytes"] <= options.most_mb
    return 0 if fits else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", path, window]:
            print(json.dumps(measure(Path(path), int(window))))
        case ["restart", path, window]:
            print(json.dumps(restart(Path(path), int(window))))
        case _:
            sys.exit(main())
