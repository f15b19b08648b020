"""What pages of the inspector cost with many conversations, and with a very long one.

    python benchmarks/inspector.py [--conversations N] [--messages N] [--log FILE] [--markdown FILE]

Makes a log of 10,000 conversations and one of 100,000 messages, compacted whenever that falls due in a window of
200,000 tokens. Then it asks for each page through the ASGI application, four times, and takes the least time after
the first. ``--log`` keeps the log in a file, or asks one that is there. The program fails if a page takes over a
second of CPU or 300 kB.
"""

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from httpx import Response
from rows import Cost, cost
from rows_compact import messages
from starlette.testclient import TestClient

import refold
import refold.inspector

CONVERSATIONS, MESSAGES = 10_000, 100_000
WINDOW = 200_000
TURN = 8
"""Messages of each of the many conversations."""
BATCH = 12 * TURN
"""Messages of the long conversation that are appended at once."""
OWNERS = 50
LONG = "long"
ROUNDS = 3
MOST_SECONDS, MOST_BYTES = 1.0, 300_000


class Asked(NamedTuple):
    """One page with its cost."""

    what: str
    first: Cost
    """Cost of the first request."""
    later: Cost
    """Least cost of those that follow."""
    bytes: int

    @property
    def is_met(self) -> bool:
        """True if the page takes no longer, and is no larger, than it may."""
        return self.later.cpu <= MOST_SECONDS * 1e3 and self.bytes <= MOST_BYTES


def fill(path: Path, conversations: int, length: int) -> None:
    """Make the log."""
    with opened(path) as memory:
        said = messages()
        for number in range(conversations):
            owner = f"user-{number % OWNERS}" if number % 3 else None
            conversation = memory.conversation(f"chat-{number:05}", owner=owner)
            conversation.append(list(islice(said, TURN)), recorded=True)
            if number % 100 == 0:
                conversation.compact()
        conversation = memory.conversation(LONG)
        for _ in range(0, length, BATCH):
            conversation.append(list(islice(said, BATCH)), recorded=True)
            conversation.context()
        memory.replay()


def opened(path: Path) -> refold.Memory:
    """Open a memory that does nothing in the background."""
    return refold.open(
        path, window=WINDOW, summariser="extractive", background=False, scrub_megabytes=0
    )


def pages(length: int, version: int) -> Mapping[str, str]:
    """Return the addresses of all pages, by what they show."""

    def page(name: str, **query: object) -> str:
        return f"/{name}?{urlencode(query)}"

    middle = length // 2
    return {
        "list": "/",
        "list, second page": page("", start=100),
        "list, last page": page("", start=CONVERSATIONS - 100),
        "list, by size": page("", order="size"),
        "list, by compactions": page("", order="compactions"),
        "list, by failed compactions": page("", order="failures"),
        "list, one owner": page("", owner="user-7"),
        "search, a frequent word": page("", q="cursor"),
        "search, a sentence": page("", q="which port does the parser in src/cache use?"),
        "search, nonsense": page("", q="zzqqxx"),
        "timeline, newest page": page("conversation", id=LONG),
        "timeline, in the middle": page("conversation", id=LONG, position=middle),
        "timeline, first page": page("conversation", id=LONG, start=0),
        "timeline, at an early version": page("conversation", id=LONG, at=1_000),
        "timeline, in the middle at half the versions": page(
            "conversation", id=LONG, at=version // 2, position=length // 4
        ),
        "summaries": page("conversation", id=LONG, panel="summaries"),
        "request": page("conversation", id=LONG, panel="request"),
        "recall in it": page("conversation", id=LONG, panel="recall", q="cursor"),
        "health": page("conversation", id=LONG, panel="health"),
        "compare": page("conversation", id=LONG, panel="compare"),
        "one message": page("message", id=LONG, position=middle),
        "live, nothing new": page("live", id=LONG, version=version),
        "live, new messages": page("live", id=LONG, version=version - 1, seen=length - 1),
        "API: conversations": page("api/conversations", limit=200),
        "API: history, in the middle": page(f"api/conversations/{LONG}/history", start=middle),
    }


def asked(path: Path) -> Iterator[Asked]:
    """Ask for every page."""
    with opened(path) as memory:
        client = TestClient(refold.inspector.app(memory, lambda _: True))
        row = memory.conversation(LONG).row()
        assert row is not None
        for what, address in pages(row.messages, row.version).items():
            answers = list[Response]()

            def ask(address: str = address, answers: list[Response] = answers) -> None:
                answers.append(client.get(address))

            first = cost(ask)
            later = [cost(ask) for _ in range(ROUNDS)]
            assert answers[0].status_code in (200, 204), (what, answers[0].text[:500])
            least = Cost(min(one.wall for one in later), min(one.cpu for one in later))
            yield Asked(what, first, least, len(answers[0].content))


def table(found: list[Asked]) -> str:
    """Return the costs as a table in Markdown."""
    lines = [
        "| page | first, CPU ms | later, CPU ms | later, wall ms | kB |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {one.what}{'' if one.is_met else ' **(missed)**'} | {one.first.cpu:,.0f} | "
        f"{one.later.cpu:,.0f} | {one.later.wall:,.0f} | {one.bytes / 1e3:,.0f} |"
        for one in found
    ]
    return "\n".join(lines)


def report(found: list[Asked], conversations: int, length: int) -> str:
    """Return the page of results."""
    missed = sum(not one.is_met for one in found)
    return (
        "\n\n".join(
            [
                "# Pages of the inspector on a large log",
                f"Made by `python benchmarks/inspector.py --markdown FILE` with CPython {platform.python_version()} on "
                f"{os.cpu_count()} cores: a log of {conversations:,} conversations of {TURN} messages, one in a "
                f"hundred compacted, and one conversation of {length:,} messages in a window of {WINDOW:,} tokens, "
                "compacted by "
                "the built-in summariser whenever that fell due. Pages are asked for through the ASGI application, "
                "without a browser. The least of three times is shown, and that of the first request before them.",
                f"Each page may take {MOST_SECONDS:g} s of CPU and {MOST_BYTES / 1e3:,.0f} kB. {len(found)} pages, "
                f"{missed} missed. Times on the wall are those of a busy machine.",
                table(found),
            ]
        )
        + "\n"
    )


def main() -> int:
    """Measure, print the table and return 1 if a page is too slow or too large."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--log", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.log or Path(folder) / "large.db"
        if not path.exists():
            fill(path, given.conversations, given.messages)
        found = list(asked(path))
    text = report(found, given.conversations, given.messages)
    print(text)
    if given.markdown:
        given.markdown.write_text(text, "utf-8")
    return 0 if all(one.is_met for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
