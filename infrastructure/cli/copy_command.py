"""``refold copy``: copy a log between files and servers."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from refold.application.maintenance.copying import Progress as Watch
from refold.application.maintenance.copying import ignore_progress
from refold.application.maintenance.maintenance_results import Copied
from refold.infrastructure.files.log_place import LogPlace

from .options import Json
from .output import clean, errors, print_json, say

EXAMPLES = {
    "copy": "Examples: refold copy agent.db postgresql://me@db/agents, and back: refold copy "
    "postgresql://me@db/agents copy.db. Copying again copies what is new, and continues what was interrupted."
}

Source = Annotated[
    LogPlace,
    typer.Argument(
        metavar="SOURCE",
        help="The log to copy: a file or an address. It is only read, and may be in use.",
        parser=LogPlace.parse,
    ),
]
Target = Annotated[
    LogPlace,
    typer.Argument(
        metavar="TARGET",
        help="The log to copy into: a file or an address. It is created if it is missing.",
        parser=LogPlace.parse,
    ),
]


def copy(source: Source, target: Target, json: Json = False) -> None:
    """Copy a log between files and PostgreSQL servers, and compare every event.

    The copy has the same events, byte for byte and in the same order. What was erased is erased in it too.
    """
    from refold.infrastructure.maintenance.copy_log import copy_log

    with _progress(quiet=json) as watch:
        copied = copy_log(source.given, target.given, progress=watch)
    if json:
        print_json(copied.model_dump())
    else:
        _print_copied(copied)


@contextmanager
def _progress(*, quiet: bool) -> Generator[Watch]:
    """Show the progress on standard error if it is a terminal."""
    if quiet or not errors.is_terminal:
        yield ignore_progress
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=errors, transient=True) as progress:
        task = progress.add_task("copying")

        def watch(step: str, position: int, last: int) -> None:
            progress.update(task, description=step, completed=position, total=last)

        yield watch


def _print_copied(copied: Copied) -> None:
    say(
        f"{clean(copied.target)} has all {copied.events:,} events of {copied.conversations:,} conversations in "
        f"{clean(copied.source)}: every event was compared."
    )
    say(f"{copied.copied:,} of them were new.")
    if copied.rewritten:
        say(f"{copied.rewritten:,} were erased, because they were erased in the source.")
    if not copied.same_positions:
        say("The order is kept; the log positions differ, because the target has other events too.")
