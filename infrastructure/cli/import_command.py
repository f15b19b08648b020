"""``refold import``: import recorded conversations into the log."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import count, takewhile
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.conversation.appending import GROWING
from refold.application.conversation.message_meaning import (
    added_blocks,
    identity,
    same_beginning,
    was_erased_at_source,
)
from refold.application.conversation.parsing import plain_message
from refold.application.conversation.transcripts import (
    RecordedConversation,
    RecordedMessage,
    Transcript,
)
from refold.application.errors import TranscriptError
from refold.domain.errors import InvalidMessage, OwnerConflict
from refold.domain.messages import Message
from refold.domain.value import replace
from refold.infrastructure.files.log_place import LogPlace

from .list_commands import unique_beginnings
from .options import DEFAULT_DB, Db, Format, FormatName, Json, is_verbose
from .output import clean, print_json, say, show_table, steps, warn

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="Transcript files, plain or .gz, and folders with sessions."
    ),
]
ThreadOption = Annotated[
    str | None,
    typer.Option("--thread", metavar="ID", help="Thread id, for a file with one conversation."),
]
OwnerOption = Annotated[
    str | None,
    typer.Option("--owner", metavar="ID", help="The owner of the conversations, such as user-7."),
]
Watch = Annotated[
    bool,
    typer.Option(
        "--watch", help="Go on, and import what is new in the files, until Ctrl-C.", metavar=""
    ),
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
    watch: Watch = False,
    json: Json = False,
) -> None:
    """Import recorded conversations. Importing the same file again adds only what is new in it."""
    if watch and json:
        raise TranscriptError("--watch never ends, and --json prints one object: use one of them")
    if thread is not None and any(path.is_dir() for path in files):
        raise TranscriptError("--thread names one conversation, and a folder has many: omit it")
    with ExitStack() as stack:
        importer = _Importer(db, stack, format=format, thread=thread, owner=owner)
        found = find_sessions(files)
        quiet = json or len(found) > 1
        there = [one for one in found if not watch or one.path.exists()]
        for session in steps(there, "importing", quiet=json):
            importer.take(session, quiet=quiet)
        done = importer.done
        if json:
            print_json({"db": str(db), "files": done})
        else:
            _print_result(db, done, brief=any(path.is_dir() for path in files))
        if watch:
            _watch(files, found, importer)
    if any("error" in item for item in done):
        raise typer.Exit(2)


class Session(NamedTuple):
    """A file to import."""

    path: Path
    is_named: bool
    """True if the user named it, False if it was found in a folder."""
    state: tuple[int, float] = (0, 0.0)
    """Its size, and the time of its last change."""


def find_sessions(paths: Sequence[Path]) -> list[Session]:
    """Return the files that are named and those in named folders, the oldest of a folder first."""
    from refold.infrastructure.transcripts.session_files import (
        IMPORTED_ENDINGS,
        find_files,
        join_events,
    )

    found: list[Session] = []
    for path in paths:
        if not path.is_dir():
            found.append(Session(path, True, _state_of(path)))
            continue
        oldest_first = reversed(join_events(find_files([path], IMPORTED_ENDINGS).files))
        found += [Session(file.path, False, (file.size, file.changed)) for file in oldest_first]
    return found


def _state_of(path: Path) -> tuple[int, float]:
    try:
        stat = path.stat()
    except (OSError, ValueError):
        return 0, 0.0
    return stat.st_size, stat.st_mtime


class _Importer:
    """Imports files into a log that is opened when there is something to store."""

    def __init__(
        self,
        db: LogPlace,
        stack: ExitStack,
        *,
        format: FormatName,
        thread: str | None,
        owner: str | None,
    ) -> None:
        self.done: list[dict[str, Any]] = []
        """Imported conversations and counts, by file."""
        self._db, self._stack = db, stack
        self._format, self._thread, self._owner = format, thread, owner
        self._memory: Memory | None = None

    def take(self, session: Session, *, quiet: bool) -> dict[str, Any]:
        """Import a file, and return what was imported from it."""
        from refold.infrastructure.transcripts.read_transcript import read_transcript
        from refold.infrastructure.transcripts.transcript_source import UnknownFormat

        path = session.path
        try:
            transcript = read_transcript(path, format=self._format)
            if self._memory is None:  # A wrong path leaves no empty log.
                from refold.infrastructure.bootstrap import open_memory

                self._memory = self._stack.enter_context(open_memory(self._db.given))
            item = _import(self._memory, path, transcript, self._thread, self._owner, quiet=quiet)
        except UnknownFormat as error:
            left_out = {"file": str(path), "left_out": str(error)}
            item = _failed(path, error) if session.is_named else left_out
        except TranscriptError as error:
            item = _failed(path, error)
        except InvalidMessage as error:  # Such as one that is too large for any request.
            item = _failed(path, TranscriptError(f"{path}: {error}"))
        self.done.append(item)
        return item


def _failed(path: Path, error: TranscriptError) -> dict[str, Any]:
    warn(f"[damage]not imported[/damage]: {clean(error)}")
    return {"file": str(path), "error": str(error)}


WATCHED_EVERY_S = 2.0
"""Seconds between two looks at the files."""


def _watch(paths: Sequence[Path], found: Sequence[Session], importer: _Importer) -> None:
    """Import files again when they have changed, until Ctrl-C."""
    known = {session.path: session.state for session in found}
    missing = [clean(path) for path in paths if not path.exists()]
    say(f"Watching {', '.join(clean(path) for path in paths)}. Ctrl-C ends it.")
    for path in missing:
        warn(f"{path} does not exist yet; it is imported when it appears")
    new = 0
    try:
        while True:
            time.sleep(WATCHED_EVERY_S)
            for session in find_sessions(paths):
                if known.get(session.path) == session.state:
                    continue
                known[session.path] = session.state
                item = importer.take(session, quiet=True)
                importer.done.clear()
                for one in item.get("conversations", ()):
                    if one["new"]:
                        new += one["new"]
                        say(f"{clean(one['thread_id'])}: {one['new']:,} new messages")
    except KeyboardInterrupt:
        say(f"Stopped. {new:,} new messages were stored meanwhile.")


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
    ids = [c.thread_id if thread is None else thread for c in transcript.conversations]
    if ids and thread is None:
        ids[0] = _stored_id(memory, path, transcript.conversations[0], owner)
    chats = [memory.conversation(one, owner=owner) for one in ids]
    talks = [*zip(chats, transcript.conversations, strict=True)]
    elsewhere = [c.thread_id not in (recorded.thread_id, thread) for c, recorded in talks]
    for (conversation, recorded), is_elsewhere in zip(talks, elsewhere, strict=True):
        if not is_elsewhere:  # Else it was compared before.
            refuse_another(conversation, recorded, transcript)
    return {
        "file": str(path),
        "format": transcript.format,
        "conversations": [
            _store(conversation, recorded, is_elsewhere=is_elsewhere, quiet=quiet)
            for (conversation, recorded), is_elsewhere in zip(talks, elsewhere, strict=True)
        ],
        "skipped": skipped_counts(transcript),
        "damaged": [
            {"line": s.line, "reason": s.reason, "detail": s.detail}
            for s in transcript.skipped
            if s.damage
        ],
    }


def _stored_id(
    memory: Memory, path: Path, recorded: RecordedConversation, owner: str | None
) -> str:
    """Return the id under which the first conversation of a file is stored, or its own.

    Without an id in the file it is named after the file, and after its place as soon as there are others.
    """
    from refold.infrastructure.transcripts.transcript_source import stem_of, thread_id

    own, stem = recorded.thread_id, stem_of(path)
    alone, firsts = thread_id(stem), [thread_id(stem, place) for place in ("0", "1")]
    if own not in (alone, *firsts):
        return own
    with suppress(OwnerConflict):
        if not memory.conversation(own, owner=owner).version:
            more = (thread_id(stem, str(place)) for place in count(len(firsts)))
            stored = takewhile(lambda one: memory.conversation(one).version, more)
            others = [*firsts, *stored] if own == alone else [alone]
            same = {one: _common(memory, one, recorded, owner) for one in others}
            likest = max(others, key=lambda one: same[one])
            return likest if same[likest] else own
    return own


def _common(
    memory: Memory, thread_id: str, recorded: RecordedConversation, owner: str | None
) -> int:
    """Return how many messages a stored conversation and a recorded one share, or 0 if any differ as far as both go."""
    with suppress(OwnerConflict):
        stored = [
            None if m.erased else m.message
            for m in memory.conversation(thread_id, owner=owner).messages()
        ]
        common = min(len(stored), len(recorded.messages))
        said = (m.message for m in recorded.messages)
        return common if same_beginning(stored, said) == common else 0
    return 0


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
    """Return whether a message is the stored one, or has more blocks: its session may have gone on since.

    One that was erased in the log that it was exported from cannot be compared.
    """
    if stored is None or was_erased_at_source(message):
        return True
    if replace(stored, content="") != replace(message, content=""):
        return False
    blocks, known = message.blocks(), stored.blocks()
    is_begin = [*map(identity, blocks[: len(known)])] == [*map(identity, known)]
    return is_begin or bool(added_blocks(blocks, known))


def _store(
    conversation: ConversationMemory,
    recorded: RecordedConversation,
    *,
    is_elsewhere: bool,
    quiet: bool,
) -> dict[str, Any]:
    new = 0
    # An adapter may have stored the same messages, with keys of its own.
    stored = (None if m.erased else m.message for m in conversation.messages())
    known = same_beginning(stored, (m.message for m in recorded.messages))
    # Messages that differ only in their reasoning count as the same, and the newest may have got some since.
    newest = conversation.select_known(recorded.messages[max(0, known - GROWING) : known])
    rest = list(recorded.messages[known:])
    if is_elsewhere:  # Under another id, the keys of a file may name other messages.
        taken = {one.key for one in conversation.select_known(rest)}
        other = f"{recorded.thread_id}/"
        rest = [replace(m, key=other + m.key) if m.key in taken else m for m in rest]
    messages = [*newest, *rest]
    begins = range(0, len(messages), AT_ONCE)
    for start in steps(begins, clean(conversation.thread_id), quiet=quiet or len(begins) < MANY):
        appended = conversation.append_recorded(messages[start : start + AT_ONCE])
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
            if skipped := item.get("skipped"):
                say(f"  {clean(Path(item['file']).name)}: left out {_counted(Counter(skipped))}")
        return
    total: Counter[str] = Counter()
    for item in done:
        total.update(item.get("skipped", {}))
    if total:
        say(f"Left out by design or because of damage: {_counted(total)}. -v shows each file.")


def _counted(skipped: Counter[str]) -> str:
    return ", ".join(f"{count:,} × {clean(reason)}" for reason, count in skipped.most_common())


SHOWN = 20
"""Number of conversations of a folder that are shown, if new messages were found in them."""


def _print_result(db: LogPlace, done: list[dict[str, Any]], *, brief: bool) -> None:
    """Print what was imported. With ``brief`` only the newest conversations with new messages are shown."""
    stored = [(f, c) for f in done for c in f.get("conversations", ())]
    rows = [
        (clean(Path(f["file"]).name), f["format"], clean(c["thread_id"]), c["messages"], c["new"])
        for f, c in stored
        if c["new"] or not brief
    ]
    if brief:
        more, rows = len(rows) - SHOWN, rows[-SHOWN:]
        sessions = sum(1 for f in done if f.get("conversations"))
        others = sum(1 for f in done if "left_out" in f)
        messages, new = (sum(c[name] for _, c in stored) for name in ("messages", "new"))
        if done:
            say(
                f"{sessions:,} files with {len(stored):,} conversations and {messages:,} messages, of which {new:,} "
                f"are new. {others:,} other files."
            )
        else:
            say("There are no files with sessions.")
        if is_verbose():
            for item in (f for f in done if "left_out" in f):
                say(f"  not imported: {clean(item['left_out'])}")
        if more > 0:
            say(f"The newest {SHOWN} of {more + SHOWN:,} conversations with new messages:")
    if rows:
        ids = unique_beginnings([str(row[2]) for row in rows])
        shown = [(row[0], row[1], ids[str(row[2])], *row[3:]) for row in rows]
        show_table("", ["file…", "format", "thread", "messages#", "new#"], shown)
    _print_skipped(done)
    for item in done:
        name = clean(Path(item["file"]).name)
        if not brief and not item.get("conversations") and "error" not in item:
            say(f"  {name}: contains no messages, nothing to import")
        for damage in item.get("damaged", ()):
            place = "" if damage["line"] is None else f" line {damage['line']}"
            say(f"  [warning]{name}{place}[/warning]: "
                f"{clean(damage['reason'])}: {clean(damage['detail'])}")  # fmt: skip
    if stored:
        say(f"Stored in {clean(db)}. Next: refold list --db {clean(db)}")
