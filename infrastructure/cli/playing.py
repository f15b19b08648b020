"""``refold play``: a recorded conversation, played as a live agent would have it."""

import json as jsonlib
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from refold.application.context import Context
from refold.application.errors import TranscriptError
from refold.application.memory import Memory
from refold.application.playing import Played, Player, PlayFigures, combined
from refold.application.transcripts import Transcript
from refold.application.verifying import Verification

from .importing import skipped_counts
from .looking import as_request
from .options import Format, Json, ModelName, SummariserName, Window
from .output import clean, console, errors, print_json, say, show_table

DbOption = Annotated[
    Path | None,
    typer.Option("--db", help="The log to play into; a temporary one if left out.", metavar="PATH"),
]
Requests = Annotated[
    Path | None,
    typer.Option("--requests", help="Write every rendered request here.", metavar="OUT.jsonl"),
]


def play(
    file: Annotated[Path, typer.Argument(help="A transcript, plain or .gz.")],
    db: DbOption = None,
    window: Window = None,
    model: ModelName = None,
    summariser: SummariserName = "extractive",
    requests: Requests = None,
    restart_every: Annotated[
        int, typer.Option("--restart-every", help="Reopen the store every N messages.", min=0)
    ] = 0,
    thread: Annotated[str | None, typer.Option("--thread", help="Thread id to play into.")] = None,
    format: Format = "auto",
    json: Json = False,
) -> None:
    """Play a recorded conversation: render the context before each answer, compact when due."""
    from refold.infrastructure.opening import open_memory
    from refold.infrastructure.transcripts import read_transcript

    transcript = read_transcript(file, format=format)
    if not transcript.conversations:
        raise TranscriptError(f"{file} holds no messages; {sum(1 for _ in transcript.skipped)} "
                              "records were left out")  # fmt: skip
    if thread is not None and len(transcript.conversations) > 1:
        raise TranscriptError(f"{file} holds several conversations; leave --thread out")
    with ExitStack() as stack:
        folder = db or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "play.db"
        out = None if requests is None else stack.enter_context(requests.open("w"))

        def opened() -> Memory:
            return open_memory(folder, window=window, model=model, summariser=summariser)

        opened().close()  # A wrong setting or place is told before anything is played.
        figures = [
            _play(opened, transcript, index, out, model, restart_every, thread, quiet=json)
            for index in range(len(transcript.conversations))
        ]
        with opened() as memory:
            verified = memory.verify()
    _tell(file, transcript, figures, verified, json=json)
    if not verified.ok:
        raise typer.Exit(1)


def _play(
    opened: Callable[[], Memory],
    transcript: Transcript,
    index: int,
    out: IO[str] | None,
    model: str | None,
    restart_every: int,
    thread: str | None,
    *,
    quiet: bool,
) -> PlayFigures:
    recorded = transcript.conversations[index]

    def on_request(at: int, context: Context) -> None:
        if out is not None:
            line = {"index": at, **as_request(context), "thread": context.thread_id}
            out.write(jsonlib.dumps(line, ensure_ascii=False) + "\n")

    with progress_bar(recorded.thread_id, len(recorded.messages), quiet=quiet) as advance:
        return Player(
            opened,
            recorded,
            thread_id=thread,
            model=model,
            restart_every=restart_every,
            on_request=on_request,
            on_event=advance,
        ).play()


@contextmanager
def progress_bar(name: str, total: int, *, quiet: bool) -> Generator[Callable[[Played], None]]:
    """Show how far a play is, where somebody watches; gives what is to be told of each event."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=errors,
        disable=quiet or not errors.is_terminal,
        transient=True,
    ) as progress:
        task = progress.add_task(clean(name), total=total)

        def advance(event: Played) -> None:
            progress.update(task, completed=event.index + 1)
            if event.refused:
                errors.print(f"[yellow]message {event.index}[/yellow]: {clean(event.refused)}")

        yield advance


def _tell(
    file: Path,
    transcript: Transcript,
    figures: list[PlayFigures],
    verified: Verification,
    *,
    json: bool,
) -> None:
    total = combined(figures)
    if json:
        print_json(
            {
                "file": str(file),
                "format": transcript.format,
                **total.model_dump(exclude={"thread_id"}),
                "conversations": [f.model_dump() for f in figures],
                "skipped": skipped_counts(transcript),
                "verify": verified.model_dump(),
            }
        )
        return
    show_figures(f"{clean(file.name)} ({transcript.format})", total)
    for reason, count in skipped_counts(transcript).items():
        say(f"  left out: {count:,} × {clean(reason)}")
    word = "[green]all is well[/green]" if verified.ok else "[red]damage found[/red]"
    say(f"verify: {word}, {verified.events:,} events")


def show_figures(title: str, total: PlayFigures) -> None:
    """Print the figures of a play as a table."""
    rows: list[tuple[str, Any]] = [
        ("messages", total.messages),
        ("requests", total.requests),
        ("requests that cannot be made (too much must be shown)", total.requests_refused),
        ("requests over budget", total.requests_over_budget),
        ("compactions", total.compactions),
        ("compactions failed", total.compactions_failed),
        ("restarts of the store", total.restarts),
        ("largest request, tokens", total.largest_request),
        ("budget of a request, tokens", total.budget),
        ("tokens sent", total.tokens_sent),
        ("tokens without compaction", total.tokens_without_compaction),
        ("input in an unchanged prefix", f"{total.unchanged_prefix_share:.1%}"),
        ("append p50 / p99, ms", f"{total.append_p50_ms:.2f} / {total.append_p99_ms:.2f}"),
        ("context p50 / p99, ms", f"{total.context_p50_ms:.2f} / {total.context_p99_ms:.2f}"),
    ]
    show_table(title, ["", "#"], rows)
    console.print()
