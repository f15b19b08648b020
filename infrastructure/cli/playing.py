"""``refold play``: a recorded conversation, played as a live agent would have it."""

import json as jsonlib
import logging
import shlex
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Annotated

import typer

from refold.application.context import Context
from refold.application.errors import TranscriptError
from refold.application.memory import Memory
from refold.application.recordings.playing import Played, Player, PlayFigures, combined
from refold.application.recordings.transcripts import RecordedConversation, Transcript

from .figures import as_json, show_figures, tell_verified
from .importing import ThreadOption, refuse_another, require_one, skipped_counts
from .looking import as_request
from .opening import next_command
from .options import Format, Json, ModelName, PolicyFile, SummariserName, Window
from .output import clean, print_json, say
from .watching import Troubles, progress_bar

DbOption = Annotated[
    Path | None,
    typer.Option("--db", help="The log to play into; else a temporary one.", metavar="PATH"),
]
Requests = Annotated[
    Path | None,
    typer.Option(
        "--requests", help="Write every request here, one JSON line each.", metavar="OUT.jsonl"
    ),
]
RestartEvery = Annotated[
    int,
    typer.Option("--restart-every", help="Reopen the store every N messages.", min=0, metavar="N"),
]


def play(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A transcript, plain or .gz.")],
    db: DbOption = None,
    window: Window = None,
    model: ModelName = None,
    summariser: SummariserName = None,
    policy: PolicyFile = None,
    requests: Requests = None,
    restart_every: RestartEvery = 0,
    thread: ThreadOption = None,
    format: Format = "auto",
    json: Json = False,
) -> None:
    """Play a recorded conversation: render the context before each answer, compact when due."""
    from refold.infrastructure.opening import Options, open_memory

    transcript = read_file(file, format, thread)
    _quieten()
    troubles = Troubles()
    with ExitStack() as stack:
        path = db or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "play.db"
        # Not in the background: what is decided for a request is counted with it.
        options = Options(
            window=window, model=model, summariser=summariser, policy_file=policy, background=False
        )
        opened = partial(open_memory, path, **options)
        _check_first(opened, transcript, thread)
        out = None if requests is None else stack.enter_context(_output(requests, (file, path)))
        run = _Run(opened, thread, model, restart_every, out, troubles, quiet=json)
        figures = [run.play(recorded) for recorded in transcript.conversations]
        with opened() as memory:
            verified = memory.verify()
    if json:
        print_json(as_json(transcript, figures, troubles, verified))
    else:
        _tell(file, transcript, figures, troubles)
        tell_verified(verified)
        _tell_next(file, figures[0].thread_id, db, requests)
    if not verified.ok:
        raise typer.Exit(1)


def _quieten() -> None:
    # Failed compactions are counted and told at the end, each reason once.
    if not logging.getLogger("refold").isEnabledFor(logging.INFO):
        logging.getLogger("refold.compaction").setLevel(logging.ERROR)


def read_file(file: Path, format: str, thread: str | None = None) -> Transcript:
    """The transcript in a file.

    Raises:
        TranscriptError: there is nothing to play, or ``thread`` is to name several conversations.
    """
    from refold.infrastructure.transcripts import read_transcript

    transcript = read_transcript(file, format=format)
    if not transcript.conversations:
        left_out = ", ".join(
            f"{n:,} × {reason}" for reason, n in skipped_counts(transcript).items()
        )
        raise TranscriptError(
            f"{file} holds no message of a conversation (left out: {left_out or 'nothing'}): "
            "there is nothing to play"
        )
    require_one(transcript, thread)
    return transcript


def _check_first(opened: Callable[[], Memory], transcript: Transcript, thread: str | None) -> None:
    """Tell of a wrong setting, place or log before anything is played."""
    with opened() as memory:
        for recorded in transcript.conversations:
            chat = memory.conversation(thread or recorded.thread_id)
            refuse_another(chat, recorded, transcript)


def _output(path: Path, others: Sequence[Path]) -> IO[str]:
    if any(other.exists() and path.exists() and path.samefile(other) for other in others):
        raise typer.BadParameter(
            f"{path} is in use here: name another file", param_hint="--requests"
        )
    try:
        # JSON may hold half a surrogate pair, which UTF-8 cannot: it is written as JSON's escape.
        return path.open("w", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise typer.BadParameter(
            f"{path} cannot be written: {error.strerror}", param_hint="--requests"
        ) from None


class _Run:
    """One play of all conversations of a file."""

    def __init__(
        self,
        opened: Callable[[], Memory],
        thread: str | None,
        model: str | None,
        restart_every: int,
        out: IO[str] | None,
        troubles: Troubles,
        *,
        quiet: bool,
    ) -> None:
        self._opened = opened
        self._thread = thread
        self._model = model
        self._restart_every = restart_every
        self._out = out
        self._troubles = troubles
        self._quiet = quiet

    def play(self, recorded: RecordedConversation) -> PlayFigures:
        thread_id = self._thread or recorded.thread_id
        with progress_bar(thread_id, len(recorded.messages), quiet=self._quiet) as bar:

            def watch(event: Played) -> None:
                bar.advance(event)
                self._troubles.note(thread_id, event)

            return Player(
                self._opened,
                recorded,
                thread_id=thread_id,
                model=self._model,
                restart_every=self._restart_every,
                on_request=self._write,
                on_event=watch,
            ).play()

    def _write(self, index: int, context: Context) -> None:
        if self._out is not None:
            line = {"index": index, **as_request(context), "thread": context.thread_id}
            self._out.write(jsonlib.dumps(line, ensure_ascii=False) + "\n")


def _tell(
    file: Path, transcript: Transcript, figures: list[PlayFigures], troubles: Troubles
) -> None:
    many = f", {len(figures):,} conversations" if figures[1:] else ""
    show_figures(f"{clean(file.name)} ({transcript.format}{many})", combined(figures))
    for reason, count in skipped_counts(transcript).items():
        say(f"  left out: {count:,} × {clean(reason)}")
    troubles.tell()


def _tell_next(file: Path, thread: str, db: Path | None, requests: Path | None) -> None:
    if requests is not None:
        say(f"Every request is in {clean(requests)}, one JSON line each.")
    if db is not None:
        say(f"Stored in {clean(db)}. Next: {clean(next_command('show', thread, db=db))}")
        return
    again = shlex.join(["play", str(file), "--db", "play.db"])
    compare = shlex.join(["simulate", str(file)])
    say(
        f"Nothing was kept. Next: refold {clean(again)} keeps it, to be looked at with refold show, explain "
        f"and recall; refold {clean(compare)} compares policies."
    )
