"""The memory files of a model, kept as messages of a conversation of their own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast
from uuid import uuid4

from refold.application.erasure.erasure_report import ErasureReport
from refold.application.history.moments import At, version_at
from refold.domain import memory_files as rules
from refold.domain.errors import VersionConflict
from refold.domain.memory_files import Change, Command, FileRefused, Files, StoredChange
from refold.domain.value import Value, is_object

from .async_memory import AsyncMemory, blocking_memory
from .memory import Memory
from .results import StoredMessage

THREAD = "memories"
_FORMAT = "refold-memory-file"
_TRIES = 50
"""Attempts to store a change while other processes change files as well."""


_FIELDS: Mapping[str, Sequence[str]] = {
    "view": ("path", "view_range"),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}
"""Fields of each command of a model."""


class _Decision(NamedTuple):
    changes: Sequence[Change]
    undone: str = ""
    """Group of the command that the changes take back."""


class FileChange(Value, frozen=True):
    """A change of a memory file."""

    version: int
    """Version of the files after the change; ``files(at=version)`` gives them."""
    at: str
    """Time of the change: ISO 8601, UTC."""
    command: Command
    path: str
    source: str = ""
    """Path before the change, if the file was moved."""


class MemoryFiles:
    """Files that a model keeps for itself, such as with the memory tool of the Messages API.

    Each change is a message of one conversation, so it has a version and a time, it can be taken back, and it is
    erased like any message. The files are a fold of the changes. All methods may be called from several threads
    and processes.
    """

    def __init__(
        self, memory: Memory | AsyncMemory, *, owner: str | None = None, thread: str | None = None
    ) -> None:
        """Create the files of an owner.

        ``thread``: id of the conversation that keeps the changes; by default ``memories``, or ``memories:`` and the
        owner.
        """
        of_the_owner = THREAD if owner is None else f"{THREAD}:{owner}"
        self.thread_id = thread or of_the_owner
        blocking = blocking_memory(memory)
        self._core = blocking._core  # pyright: ignore[reportPrivateUsage]
        self._conversation = blocking.conversation(self.thread_id, owner=owner)

    def execute(self, command: Mapping[str, Any]) -> str:
        """Carry out a command of a model: its name as ``command``, and its fields.

        Raises:
            FileRefused: the command cannot be carried out, or is unknown.
        """
        name = command.get("command") if isinstance(cast("object", command), Mapping) else command
        if not isinstance(name, str) or name not in _FIELDS:
            raise FileRefused(f"Unknown command: {name}")
        carry_out: Callable[..., str] = getattr(self, name)
        return carry_out(**{field: command.get(field) for field in _FIELDS[name]})

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """Return the numbered lines of a file, or the list of a folder.

        ``view_range``: first and last line, from 1; a last line of -1 is the end.

        Raises:
            FileRefused: there is no such file or folder, or the range is not a list of numbers.
        """
        return rules.view(self._files(), path, view_range)

    def create(self, path: str, file_text: str) -> str:
        """Create a file.

        Raises:
            FileRefused: something has this name, or it is not in ``/memories``.
        """
        name = rules.valid_path(path)
        self._change("create", lambda files: rules.create(files, path, file_text))
        return f"File created successfully at: {name}"

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        """Replace a text that occurs exactly once in a file.

        Raises:
            FileRefused: there is no such file, or the text is not there or not unique.
        """
        (changed,) = self._change(
            "str_replace", lambda files: rules.str_replace(files, path, old_str, new_str)
        )
        shown = rules.snippet(changed.text or "", new_str)
        heading = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return f"{heading}\n{shown}"

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert lines after a line of a file; 0 is its beginning.

        Raises:
            FileRefused: there is no such file or line.
        """
        self._change("insert", lambda files: rules.insert(files, path, insert_line, insert_text))
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Delete a file, or a folder with all its files. Their text stays in the history: see ``erase``.

        Raises:
            FileRefused: there is no such file or folder.
        """
        self._change("delete", lambda files: rules.delete(files, path))
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Move a file, or a folder with all its files.

        Raises:
            FileRefused: there is nothing to move, or something has the new name.
        """
        self._change("rename", lambda files: rules.rename(files, old_path, new_path))
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        """Delete all files."""
        self._change("delete", rules.clear)
        return "All memory cleared"

    def files(self, at: At | None = None) -> dict[str, str]:
        """Return the text of each file by its path, now or at a version or time.

        Raises:
            InvalidSetting: there is no such version, or the time has no time zone.
        """
        stored = self._conversation.messages()
        if at is not None:
            last = version_at(self._core, self.thread_id, at)
            stored = [message for message in stored if message.version <= last]
        found = rules.fold_files(filter(None, map(_stored_change, stored)))
        return {path: file.text for path, file in sorted(found.items())}

    def history(self, path: str | None = None) -> list[FileChange]:
        """Return the changes, oldest first; with ``path`` those of a file under all its names, or of a folder."""
        messages = {m.position: m for m in self._conversation.messages()}
        changes = list(filter(None, map(_stored_change, messages.values())))
        if path is not None:
            wanted = rules.positions_of(changes, rules.valid_path(path))
            changes = [one for one in changes if one.position in wanted]
        return [
            FileChange(
                version=messages[one.position].version,
                at=messages[one.position].at,
                command=one.command,
                path=one.change.path,
                source=one.change.source,
            )
            for one in changes
        ]

    def undo(self) -> tuple[str, ...]:
        """Take back the newest command that was not taken back, and return the paths that it changed.

        Nothing is removed from the history. Without a command to take back, the result is empty.
        """

        def take_back(changes: Sequence[StoredChange]) -> _Decision:
            found = rules.undo(changes)
            if found is None:
                return _Decision(())
            group, restoring = found
            return _Decision(restoring, undone=group)

        return tuple(change.path for change in self._store("undo", take_back))

    def erase(self, path: str, reason: str = "") -> ErasureReport:
        """Erase a file or folder for good: all texts that it ever had, under all its names.

        ``reason``: text to store in the log.

        Raises:
            FileRefused: there never was such a file.
        """
        _, changes = self._read()
        positions = rules.positions_of(changes, rules.valid_path(path))
        if not positions:
            raise FileRefused(f"The path {path} does not exist")
        return self._conversation.erase(positions, reason)

    def _files(self) -> Files:
        return rules.fold_files(self._read()[1])

    def _read(self) -> tuple[int, list[StoredChange]]:
        """Return the version, and the changes up to it or later."""
        version = self._conversation.version
        messages = self._conversation.messages()
        return version, list(filter(None, map(_stored_change, messages)))

    def _change(
        self, command: Command, decide: Callable[[Files], Sequence[Change]]
    ) -> Sequence[Change]:
        return self._store(command, lambda changes: _Decision(decide(rules.fold_files(changes))))

    def _store(
        self, command: Command, decide: Callable[[Sequence[StoredChange]], "_Decision"]
    ) -> Sequence[Change]:
        """Store what is decided about the changes so far, again if others were stored in the meantime."""
        tries = 0
        while True:
            version, changes = self._read()
            made = decide(changes)
            if not made.changes:
                return ()
            try:
                self._append(command, made, version)
            except VersionConflict:
                if (tries := tries + 1) == _TRIES:
                    raise
            else:
                return made.changes

    def _append(self, command: Command, made: "_Decision", version: int) -> None:
        """Store changes that were decided at a version.

        Raises:
            VersionConflict: other changes were stored since.
        """
        group = uuid4().hex
        messages = [_message(command, group, change, made.undone) for change in made.changes]
        stored = self._conversation.append(messages, expected_version=version)
        if stored.version != version + len(messages):
            positions = [one.position for one in stored.messages]
            self._erase_if_made_from_erased(made.changes, positions)

    def _erase_if_made_from_erased(self, made: Sequence[Change], positions: Sequence[int]) -> None:
        """Erase changes if an erasure came between, because their texts may have been made from what it erased."""
        earlier = [m for m in self._conversation.messages() if m.position < min(positions)]
        if any(m.erased for m in earlier) and any(change.text for change in made):
            self._conversation.erase(list(positions), "made from an erased text")


def _message(command: Command, group: str, change: Change, undone: str) -> dict[str, Any]:
    """Return the message that stores a change; its words can be searched and read like any other."""
    moved = f"{change.source} to " if change.source else ""
    blocks = [{"type": "text", "text": f"{command} {moved}{change.path}"}]
    if change.text and not change.text.isspace():
        blocks.append({"type": "text", "text": change.text})
    data = {"command": command, "group": group, "undone": undone, **change._asdict()}
    return {
        "role": "user",
        "author": "program",
        "content": blocks,
        "original": {"format": _FORMAT, "data": data},
    }


def _stored_change(stored: StoredMessage) -> StoredChange | None:
    """Return the change that a message stores, or None for another message."""
    original = stored.original
    if original is None or original.format != _FORMAT or not is_object(original.data):
        return None
    data = original.data
    change = Change(data["path"], data["text"], data["source"])
    return StoredChange(stored.position, data["command"], data["group"], change, data["undone"])
