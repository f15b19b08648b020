"""What pages of the inspector cost with many conversations, and with a very long one.

    python benchmarks/inspector.py [--conversations N] [--messages N] [--markdown FILE] [--log FILE]

Makes a log of 10,000 conversations and one of 100,000 messages, with a compaction whenever one falls due in a
window of 200,000 tokens, and asks for each page through the ASGI application. ``--log`` keeps the log in a file,
or measures one that is there. The program fails if a page takes over a second of CPU or 300 kB.
"""

import sys
import time
from itertools import islice
from pathlib import Path

from rows_compact import messages

import refold

CONVERSATIONS, MESSAGES = 10_000, 100_000
WINDOW = 200_000
TURN = 8
"""Messages of a turn, and of each of the many conversations."""
BATCH = 12 * TURN
LONG = "long"


def fill(path: Path, conversations: int, length: int) -> None:
    """Make the log."""
    with refold.open(
        path, window=WINDOW, summariser="extractive", background=False, scrub_megabytes=0
    ) as memory:
        said = messages()
        for number in range(conversations):
            conversation = memory.conversation(
                f"chat-{number:05}", owner=f"user-{number % 50}" if number % 3 else None
            )
            conversation.append(list(islice(said, TURN)), recorded=True)
            if number % 100 == 0:
                conversation.compact()
        conversation = memory.conversation(LONG)
        for _ in range(0, length, BATCH):
            conversation.append(list(islice(said, BATCH)), recorded=True)
            conversation.context()
        memory.replay()


if __name__ == "__main__":
    begin = time.perf_counter()
    fill(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    print(time.perf_counter() - begin, time.process_time())
