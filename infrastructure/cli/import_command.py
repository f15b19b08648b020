"""``refold import``: import recorded conversations into the log."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.conversation.followed_lists import same_beginning
from refold.application.conversation.parsing import plain_message
from refold.application.conversation.transcripts import (
    RecordedConversation,
    RecordedMessage,
    Transcript,
)
from refold.application.errors import TranscriptError
from refold.domain.messages import Message
from refold.domain.value import replace
from refold.infrastructure.files.log_place import LogPlace

from .list_commands import unique_beginnings
from .options import DEFAULT_DB, Db, Format, Json, is_verbose
from .output import clean, print_json, say, show_table, steps, warn

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Transcript files, plain or .gz.")
]
ThreadOption = Annotated[
    str | None,
    typer.Option("--thread", metavar="ID", help="Thread id, for a file with one conversation."),
]
OwnerOption = Annotated[
    str | None,
    typer.Option("--owner", metavar="ID", help="The owner of the conversations, such as user-7."),
]
MANY = 4
"""Number of transactions from which a single file gets its own progress bar."""
AT_ONCE = 500
"""Number of messages per transaction. Syncing the disk after every message would take minutes."""


def import_files(
    files: Files,
    db: Db = DEFAULT_DB,
    format: Format = "auto",
    thread: ThreadOption = None,
    owner: OwnerOption = None,
    json: Json = False,
) -> None:
    """Import recorded conversations. Importing the same file again adds nothing."""
    from refold.infrastructure.bootstrap import open_memory
    from refold.infrastructure.transcripts.read_transcript import read_transcript

    done: list[dict[str, Any]] = []
    memory: Memory | None = None
    with ExitStack() as stack:
        for path in steps(files, "importing", quiet=json):
            try:
                transcript = read_transcript(path, format=format)
                # Opened only when there is something to store: a wrong path leaves no empty log.
                memory = memory or stack.enter_context(open_memory(db.given))
                quiet = json or len(files) > 1
                done.append(_import(memory, path, transcript, thread, owner, quiet=quiet))
            except TranscriptError as error:
                done.append({"file": str(path), "error": str(error)})
                warn(f"[red]not imported[/red]: {clean(error)}")
    if json:
        print_json({"db": str(db), "files": done})
    else:
        _print_result(db, done)
    if any("error" in item for item in done):
        raise typer.Exit(2)


def _import(
    memory: Memory,
    path: Path,
    transcript: Transcript,
    thread: str | None,
    owner: str | None,
    *,
    quiet: bool,
) -> dict[str, Any]:
    require_one(transcript, thread)
    chats = [
        memory.conversation(thread or c.thread_id, owner=owner) for c in transcript.conversations
    ]
    for conversation, recorded in zip(chats, transcript.conversations, strict=True):
        refuse_another(conversation, recorded, transcript)
    return {
        "file": str(path),
        "format": transcript.format,
        "conversations": [
            _store(conversation, recorded, quiet=quiet)
            for conversation, recorded in zip(chats, transcript.conversations, strict=True)
        ],
        "skipped": skipped_counts(transcript),
        "damaged": [
            {"line": s.line, "reason": s.reason, "detail": s.detail}
            for s in transcript.skipped
            if s.damage
        ],
    }


def require_one(transcript: Transcript, thread: str | None) -> None:
    """Refuse one thread id for several conversations.

    Raises:
        TranscriptError: the file has several conversations.
    """
    count = len(transcript.conversations)
    if thread is not None and count > 1:
        raise TranscriptError(
            f"{transcript.source} has {count} conversations, but --thread names only one: "
            "omit it, and each gets its own id"
        )


def refuse_another(
    conversation: ConversationMemory, recorded: RecordedConversation, transcript: Transcript
) -> None:
    """Refuse to mix two conversations. Files without their own ids are named by the file.

    Raises:
        TranscriptError: the stored conversation with this thread id has other content.
    """
    # Erased or lost messages cannot be compared.
    stored = {m.position: m.message for m in conversation.messages() if not m.erased}
    if not stored:
        return
    # Compare only user messages: an answer may have been read in another form at the last import.
    known = conversation.select_known([m for m in recorded.messages if m.message.role == "user"])
    if not known:
        return
    # They are known by their keys, so this stores nothing; without their ends, not even what a message has grown by.
    places = conversation.append_recorded([_begin_of(m) for m in known]).positions
    said = (plain_message(m.message) for m in known)
    if all(_is_begin(stored.get(at), message) for at, message in zip(places, said, strict=True)):
        return
    raise TranscriptError(
        f"{transcript.source}: thread {conversation.thread_id!r} already has another conversation; "
        + (
            "import this one under another id with --thread ID"
            if len(transcript.conversations) == 1
            else "rename the file, because its conversations are named after it"
        )
    )


def _begin_of(recorded: RecordedMessage) -> RecordedMessage:
    message = recorded.message
    return replace(recorded, message=replace(message, content=message.blocks()[:1]))


def _is_begin(stored: Message | None, message: Message) -> bool:
    """Return whether a message is the stored one, or has more blocks: its session may have gone on since."""
    if stored is None:
        return True
    blocks = stored.blocks()
    is_same_head = replace(stored, content="") == replace(message, content="")
    return is_same_head and message.blocks()[: len(blocks)] == blocks


def _store(
    conversation: ConversationMemory, recorded: RecordedConversation, *, quiet: bool
) -> dict[str, Any]:
    new = 0
    # An adapter may have stored the same messages, with keys of its own.
    stored = (None if m.erased else m.message for m in conversation.messages())
    known = same_beginning(stored, (m.message for m in recorded.messages))
    begins = range(known, len(recorded.messages), AT_ONCE)
    for start in steps(begins, clean(conversation.thread_id), quiet=quiet or len(begins) < MANY):
        appended = conversation.append_recorded(recorded.messages[start : start + AT_ONCE])
        new += sum(m.new for m in appended.messages)
    if recorded.label:
        conversation.label(recorded.label, recorded=True)
    return {"thread_id": conversation.thread_id, "messages": len(recorded.messages), "new": new}


def skipped_counts(transcript: Transcript) -> dict[str, int]:
    """Count the reasons for skipped content."""
    return dict(Counter(s.reason for s in transcript.skipped).most_common())


def _print_skipped(done: list[dict[str, Any]]) -> None:
    """Print the skipped content, of all files together or per file with ``-v``."""
    if is_verbose() or len(done) == 1:
        for item in done:
            name = clean(Path(item["file"]).name)
            for reason, count in item.get("skipped", {}).items():
                say(f"  {name}: left out {count:,} × {clean(reason)}")
        return
    total: Counter[str] = Counter()
    for item in done:
        total.update(item.get("skipped", {}))
    if total:
        said = ", ".join(f"{count:,} × {clean(reason)}" for reason, count in total.most_common())
        say(f"Skipped by design or because of damage: {said}. -v shows each file.")


def _print_result(db: LogPlace, done: list[dict[str, Any]]) -> None:
    rows = [
        (clean(Path(f["file"]).name), f["format"], clean(c["thread_id"]), c["messages"], c["new"])
        for f in done
        for c in f.get("conversations", ())
    ]
    if rows:
        ids = unique_beginnings([str(row[2]) for row in rows])
        shown = [(row[0], row[1], ids[str(row[2])], *row[3:]) for row in rows]
        show_table("", ["file…", "format", "thread", "messages#", "new#"], shown)
    _print_skipped(done)
    for item in done:
        name = clean(Path(item["file"]).name)
        if not item.get("conversations") and "error" not in item:
            say(f"  {name}: contains no messages, nothing to import")
        for damage in item.get("damaged", ()):
            place = "" if damage["line"] is None else f" line {damage['line']}"
            say(f"  [yellow]{name}{place}[/yellow]: "
                f"{clean(damage['reason'])}: {clean(damage['detail'])}")  # fmt: skip
    if rows:
        say(f"Stored in {clean(db)}. Next: refold list --db {clean(db)}")
