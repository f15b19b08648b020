"""``refold import``: recorded conversations into the log."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from refold.application.errors import TranscriptError
from refold.application.memory import Memory
from refold.application.transcripts import RecordedConversation, Transcript

from .options import DEFAULT_DB, Db, Format, Json
from .output import clean, errors, print_json, say, show_table

Files = Annotated[list[Path], typer.Argument(help="Transcript files, plain or .gz.")]
ThreadOption = Annotated[
    str | None, typer.Option("--thread", help="Thread id, for a file with one conversation.")
]


def import_files(
    files: Files,
    db: Db = DEFAULT_DB,
    format: Format = "auto",
    thread: ThreadOption = None,
    json: Json = False,
) -> None:
    """Import recorded conversations. Importing the same file again adds nothing."""
    from refold.infrastructure.opening import open_memory
    from refold.infrastructure.transcripts import read_transcript

    done: list[dict[str, Any]] = []
    failed = 0
    with open_memory(db) as memory:
        for path in files:
            try:
                transcript = read_transcript(path, format=format)
                done.append(_import(memory, path, transcript, thread))
            except TranscriptError as error:
                failed += 1
                done.append({"file": str(path), "error": str(error)})
                errors.print(f"[red]{clean(path)}[/red]: {clean(error)}")
    if json:
        print_json({"db": str(db), "files": done})
    else:
        _tell(db, done)
    if failed:
        raise typer.Exit(2)


def _import(
    memory: Memory, path: Path, transcript: Transcript, thread: str | None
) -> dict[str, Any]:
    if thread is not None and len(transcript.conversations) > 1:
        raise TranscriptError(
            f"{path} holds {len(transcript.conversations)} conversations; "
            "--thread names only one: leave it out, each gets an id of its own"
        )
    conversations = [_store(memory, c, thread) for c in transcript.conversations]
    return {
        "file": str(path),
        "format": transcript.format,
        "conversations": conversations,
        "skipped": skipped_counts(transcript),
        "damaged": [
            {"line": s.line, "reason": s.reason, "detail": s.detail}
            for s in transcript.skipped
            if s.damage
        ],
    }


def _store(memory: Memory, recorded: RecordedConversation, thread: str | None) -> dict[str, Any]:
    chat = memory.conversation(thread or recorded.thread_id)
    new = 0
    # One transaction for many messages: a sync to the disk for each would take minutes.
    for start in range(0, len(recorded.messages), 500):
        appended = chat.append_recorded(recorded.messages[start : start + 500])
        new += sum(m.new for m in appended.messages)
    if recorded.label:
        chat.label(recorded.label)
    return {"thread_id": chat.thread_id, "messages": len(recorded.messages), "new": new}


def skipped_counts(transcript: Transcript) -> dict[str, int]:
    """How often each reason to leave something out occurred."""
    return dict(Counter(s.reason for s in transcript.skipped).most_common())


def _tell(db: Path, done: list[dict[str, Any]]) -> None:
    rows = [
        (clean(Path(f["file"]).name), f["format"], clean(c["thread_id"]), c["messages"], c["new"])
        for f in done
        for c in f.get("conversations", ())
    ]
    show_table("", ["file", "format", "thread", "messages#", "new#"], rows)
    for item in done:
        for reason, count in item.get("skipped", {}).items():
            say(f"  {clean(Path(item['file']).name)}: left out {count:,} × {clean(reason)}")
        for damage in item.get("damaged", ()):
            place = "" if damage["line"] is None else f" line {damage['line']}"
            say(f"  [yellow]{clean(Path(item['file']).name)}{place}[/yellow]: "
                f"{clean(damage['reason'])} {clean(damage['detail'])}")  # fmt: skip
    if rows:
        say(f"Stored in {clean(db)}. Next: refold list --db {clean(db)}")
