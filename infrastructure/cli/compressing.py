"""``refold compress``: storing old payloads in less."""

from typing import Annotated

import typer

from refold.application.upkeep.housekeeping import Compressed

from .opening import opened
from .options import DEFAULT_DB, Db, Json
from .output import print_json, say

Keep = Annotated[
    int,
    typer.Option(
        "--keep",
        min=0,
        metavar="N",
        help="How many of the newest events of each conversation stay as they are in any case.",
    ),
]


def compress(db: Db = DEFAULT_DB, keep: Keep = 0, json: Json = False) -> None:
    """Compress what lies before the live part of each conversation; everything reads as before.

    Programs that use the log go on meanwhile. Stopped at any point, the next run goes on from there.
    """
    with opened(db) as memory:
        done = memory.compress(keep=keep)
    if json:
        print_json(done.model_dump())
    else:
        _tell(done)


def _tell(done: Compressed) -> None:
    if not done.events:
        say("Nothing to compress: what is not in use every day is compressed, or there is none.")
        return
    say(
        f"{done.events:,} events: {done.bytes_before:,} → {done.bytes_after:,} bytes "
        f"({done.bytes_after / done.bytes_before:.0%}). Everything reads as before."
    )
    say(
        f"The file stays as long as it is: {done.reusable_bytes:,} bytes of it, and what is left over "
        "in its pages, are free for what is appended next. A copy by `refold backup` has none of that."
    )
