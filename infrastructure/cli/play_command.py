"""``refold play``: replay a recorded conversation and report figures."""

import io
import json as jsonlib
import logging
import shlex
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.conversation.transcripts import RecordedConversation, Transcript
from refold.application.errors import TranscriptError
from refold.application.lab.playing import Played, Player, PlayFigures, combine
from refold.application.maintenance.verifying import Verification
from refold.infrastructure.files.log_place import LogPlace
from refold.infrastructure.files.private_files import open_private

from .arguments import as_request, next_command
from .import_command import ThreadOption, refuse_another, require_one, skipped_counts
from .options import Format, Json, ModelName, PolicyFile, SummariserName, Window
from .output import Troubles, clean, keep_free, print_json, progress_bar, say, show_table


def as_json(
    transcript: Transcript,
    figures: list[PlayFigures],
    troubles: Troubles,
    verified: Verification,
) -> dict[str, Any]:
    """Return the figures of all conversations together and of each, and the result of verify."""
    return {
        "file": transcript.source,
        "format": transcript.format,
        **combine(figures).model_dump(exclude={"thread_id"}),
        "refused": troubles.refused,
        "failed": troubles.failed,
        "conversations": [f.model_dump() for f in figures],
        "skipped": skipped_counts(transcript),
        "verify": verified.model_dump(),
    }


def show_figures(title: str, total: PlayFigures) -> None:
    """Print the figures of a play as a table. Messages that were stored before have no figures."""
    if total.messages and total.messages_known == total.messages:
        say(
            f"{title}: all {total.messages:,} messages were already stored. Nothing was played, so there are "
            "no figures; omit --db or give another log to play everything."
        )
        return
    rows: list[tuple[str, int | str]] = [
        ("messages", total.messages),
        *_there_already(total),
        ("requests", total.requests),
        ("requests that could not fit", total.requests_refused),
        ("requests over budget", total.requests_over_budget),
        ("compactions", total.compactions),
        ("  of these: split turns", total.splits),
        ("  of these: rebuilt from originals", total.rebuilds),
        ("compactions failed", total.compactions_failed),
        ("tool results offloaded", total.results_offloaded),
        ("older tool results condensed", total.results_condensed),
        ("reopenings of the log", total.restarts),
        ("largest request, tokens", total.largest_request),
        ("budget of a request, tokens", total.budget or "–"),
        ("tokens sent", total.tokens_sent),
        ("tokens without compaction", total.tokens_without_compaction),
        ("prompt-cache hit rate", f"{total.unchanged_prefix_share:.1%}"),
        ("append p50 / p99, ms", f"{total.append_p50_ms:.2f} / {total.append_p99_ms:.2f}"),
        ("context p50 / p99, ms", f"{total.context_p50_ms:.2f} / {total.context_p99_ms:.2f}"),
    ]
    show_table(title, ["", "#"], rows)


def _there_already(total: PlayFigures) -> list[tuple[str, int | str]]:
    if not total.messages_known:
        return []
    return [("  of these: stored before, not played", total.messages_known)]


def print_verified(verified: Verification) -> None:
    """Print in one line whether everything matches the log."""
    if verified.ok:
        say(f"verify: [good]all is well[/good], {verified.events:,} events")
        return
    kinds = sorted({f"{d.place} {d.kind}" for d in verified.damage})
    say(f"verify: [damage]damage found[/damage]: {clean(', '.join(kinds))}")


DbOption = Annotated[
    LogPlace | None,
    typer.Option(
        "--db",
        help="The log to play into, a file or an address; by default a temporary file.",
        metavar="PLACE",
        parser=LogPlace.parse,
    ),
]
Requests = Annotated[
    Path | None,
    typer.Option(
        "--requests", help="Write every request to this file, as JSON lines.", metavar="OUT.jsonl"
    ),
]
RestartEvery = Annotated[
    int,
    typer.Option("--restart-every", help="Reopen the log every N messages.", min=0, metavar="N"),
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
    """Replay a recorded conversation: render the context before each answer, compact when due."""
    from refold.infrastructure.bootstrap import open_memory
    from refold.infrastructure.settings.option_checks import Options

    transcript = read_file(file, format, thread)
    troubles = _collect_troubles()
    with ExitStack() as stack:
        path = db.given if db else _temporary(stack)
        options = Options(
            window=window, model=model, summariser=summariser, policy_file=policy, background=False
        )
        opened = partial(open_memory, path, **options)
        _check_first(opened, transcript, thread)
        out = (
            None if requests is None else stack.enter_context(_output(requests, (file, Path(path))))
        )
        run = _Run(opened, thread, model, restart_every, out, troubles, quiet=json)
        figures = [run.play(recorded) for recorded in transcript.conversations]
        with opened() as memory:
            verified = memory.verify()
    if json:
        print_json(as_json(transcript, figures, troubles, verified))
    else:
        _print_play(file, transcript, figures, troubles)
        print_verified(verified)
        _print_next(file, figures[0].thread_id, db, requests if run.has_written else None)
    if not verified.ok:
        raise typer.Exit(1)


def _temporary(stack: ExitStack) -> str:
    return str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "play.db")


def _collect_troubles() -> Troubles:
    # Failed compactions are counted and reported at the end, once per reason.
    if not logging.getLogger("refold").isEnabledFor(logging.INFO):
        logging.getLogger("refold.compaction").setLevel(logging.ERROR)
    return Troubles()


def read_file(file: Path, format: str, thread: str | None = None) -> Transcript:
    """Read the transcript in a file.

    Raises:
        TranscriptError: the file has no messages, or ``thread`` names several conversations.
    """
    from refold.infrastructure.transcripts.read_transcript import read_transcript

    transcript = read_transcript(file, format=format)
    if not transcript.conversations:
        left_out = ", ".join(
            f"{n:,} × {reason}" for reason, n in skipped_counts(transcript).items()
        )
        raise TranscriptError(
            f"{file} contains no messages (skipped: {left_out or 'nothing'}): "
            "there is nothing to play"
        )
    require_one(transcript, thread)
    return transcript


def _check_first(opened: Callable[[], Memory], transcript: Transcript, thread: str | None) -> None:
    """Report an invalid setting, path or log before anything is played."""
    with opened() as memory:
        for recorded in transcript.conversations:
            conversation = memory.conversation(recorded.thread_id if thread is None else thread)
            refuse_another(conversation, recorded, transcript)


def _output(path: Path, others: Sequence[Path]) -> IO[str]:
    if any(other.exists() and path.exists() and path.samefile(other) for other in others):
        raise typer.BadParameter(
            f"{path} is already used here: give another file", param_hint="--requests"
        )
    keep_free(path)
    try:
        # JSON may contain a lone surrogate, which UTF-8 cannot encode: it is written as an escape.
        # An existing file keeps its content until there is a request.
        file = open_private(path, "ab")
        return io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace")
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
        self.has_written = False

    def play(self, recorded: RecordedConversation) -> PlayFigures:
        thread_id = recorded.thread_id if self._thread is None else self._thread
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
            if not self.has_written:
                with suppress(OSError):  # It is a pipe or a device, which keeps nothing.
                    self._out.truncate(0)
            self.has_written = True
            self._out.write(jsonlib.dumps(line, ensure_ascii=False) + "\n")


def _print_play(
    file: Path, transcript: Transcript, figures: list[PlayFigures], troubles: Troubles
) -> None:
    many = f", {len(figures):,} conversations" if figures[1:] else ""
    show_figures(f"{clean(file.name)} ({transcript.format}{many})", combine(figures))
    for reason, count in skipped_counts(transcript).items():
        say(f"  skipped: {count:,} × {clean(reason)}")
    troubles.print()


def _print_next(file: Path, thread: str, db: LogPlace | None, requests: Path | None) -> None:
    if requests is not None:
        say(f"Every request is in {clean(requests)}, one JSON line each.")
    if db is not None:
        say(f"Stored in {clean(db)}. Next: {clean(next_command('show', thread, db=db))}")
        return
    again = shlex.join(["play", str(file), "--db", "play.db"])
    compare = shlex.join(["simulate", str(file)])
    say(
        f"Nothing was stored. Next: refold {clean(again)} stores it for refold show, explain "
        f"and recall; refold {clean(compare)} compares policies."
    )
