"""The memory files of a model: a fold of their changes, and the commands that read and change them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from .errors import RefoldError
from .value import is_list

Command = Literal["create", "str_replace", "insert", "delete", "rename", "undo"]
ROOT = "/memories"
_NUMBER_WIDTH = 6
_AROUND = 2
"""Lines shown before and after a replaced line."""
_LEVELS = 2
"""Levels of folders that a view of a folder shows."""


class FileRefused(RefoldError, ValueError):
    """A command cannot be carried out. The message is for the model, and nothing was changed."""


class Change(NamedTuple):
    """A change of one file by a command."""

    path: str
    text: str | None = None
    """Text of the file afterwards, or None if it is gone or was moved as it is."""
    source: str = ""
    """Path of the file before a command that moved it."""


class StoredChange(NamedTuple):
    """A change that was stored."""

    position: int
    """Position of the message that stores it."""
    command: Command
    group: str
    """Id that all changes of one command share."""
    change: Change
    undone: str = ""
    """Group that the command took back, for ``undo``."""


class File(NamedTuple):
    """A file and the positions of all changes that its text was made from."""

    text: str
    positions: tuple[int, ...]


Files = Mapping[str, File]


def fold_files(changes: Iterable[StoredChange]) -> dict[str, File]:
    """Return the files by path after these changes, oldest first."""
    files: dict[str, File] = {}
    for stored in changes:
        change = stored.change
        known = files.pop(change.source or change.path, None)
        text = known.text if change.source and known else change.text
        if text is not None:
            before = known.positions if known else ()
            files[change.path] = File(text, (*before, stored.position))
    return files


def positions_of(changes: Sequence[StoredChange], path: str) -> list[int]:
    """Return the positions of all changes of a file or of the files in a folder, under all their names."""
    names, known = {path}, 0
    while known < len(names):
        known = len(names)
        for stored in changes:
            change = stored.change
            if change.source and any(is_in(change.source, name) for name in names):
                names.add(change.path)
            if change.source and any(is_in(change.path, name) for name in names):
                names.add(change.source)
    return [s.position for s in changes if any(is_in(s.change.path, name) for name in names)]


def is_in(path: str, folder: str) -> bool:
    """Return whether a path is this file, or is in this folder."""
    return path == folder or path.startswith(f"{folder}/")


def valid_path(path: object) -> str:
    """Return the path of a memory file or folder without a slash at its end.

    Raises:
        FileRefused: the path is not in the folder of memories.
    """
    if not isinstance(path, str) or not path.isprintable():
        raise FileRefused(f"{path!r} is no path")
    trimmed = path.rstrip("/")
    if not is_in(trimmed, ROOT):
        raise FileRefused(f"Path must start with {ROOT}, got: {path}")
    if any(part in ("", ".", "..") for part in trimmed.split("/")[1:]):
        raise FileRefused(f"Path {path} must not have empty parts, '.' or '..'")
    return trimmed


def view(files: Files, path: object, view_range: Sequence[int] | None = None) -> str:
    """Return the numbered lines of a file, or the list of a folder.

    Raises:
        FileRefused: there is no such file or folder, or the range is not a list of numbers.
    """
    name = valid_path(path)
    if name in files:
        return _numbered(name, files[name].text, view_range)
    if not _is_folder(files, name):
        raise _missing(name)
    rows = [f"{_size_text(size)}\t{place}" for place, size in _listed(files, name)]
    total = sum(_size(file) for one, file in files.items() if is_in(one, name))
    heading = f"Here're the files and directories up to {_LEVELS} levels deep in {name}, excluding hidden items:"
    return "\n".join([heading, f"{_size_text(total)}\t{name}", *rows])


def create(files: Files, path: object, text: object) -> tuple[Change, ...]:
    """Create a file.

    Raises:
        FileRefused: something has this name, or a file stands where a folder is needed.
    """
    name = valid_path(path)
    if name in files:
        raise FileRefused(f"File {name} already exists")
    _refuse_place(files, name)
    return (Change(name, _text(text, "file_text")),)


def str_replace(files: Files, path: object, old: object, new: object) -> tuple[Change, ...]:
    """Replace a text that occurs exactly once in a file.

    Raises:
        FileRefused: there is no such file, or the text is not there or not unique.
    """
    name, text = _file(files, path)
    old, new = _text(old, "old_str"), _text(new, "new_str")
    places = list(_places(text, old))
    if not places:
        raise FileRefused(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {name}."
        )
    if len(places) > 1:
        lines = ", ".join(str(_line_of(text, at)) for at in places)
        raise FileRefused(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
            "Please ensure it is unique"
        )
    return (Change(name, text[: places[0]] + new + text[places[0] + len(old) :]),)


def insert(files: Files, path: object, line: object, text: object) -> tuple[Change, ...]:
    """Insert lines after a line of a file; 0 is its beginning.

    Raises:
        FileRefused: there is no such file or line.
    """
    name, before = _file(files, path)
    lines = before.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not isinstance(line, int) or isinstance(line, bool) or not 0 <= line <= len(lines):
        raise FileRefused(
            f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(line, _text(text, "insert_text").rstrip("\n"))
    return (Change(name, "\n".join([*lines, ""])),)


def delete(files: Files, path: object) -> tuple[Change, ...]:
    """Delete a file, or a folder with all its files.

    Raises:
        FileRefused: there is no such file or folder, or it is the folder of memories.
    """
    name = _movable(files, path)
    return tuple(Change(one) for one in files if is_in(one, name))


def rename(files: Files, path: object, to: object) -> tuple[Change, ...]:
    """Move a file, or a folder with all its files.

    Raises:
        FileRefused: there is nothing to move, or something has the new name.
    """
    name, new = _movable(files, path), valid_path(to)
    if new in files or _is_folder(files, new):
        raise FileRefused(f"The destination {new} already exists")
    if is_in(new, name):
        raise FileRefused(f"{name} cannot be moved into itself")
    _refuse_place({one: file for one, file in files.items() if not is_in(one, name)}, new)
    moved = [one for one in files if is_in(one, name)]
    return tuple(Change(new + one[len(name) :], source=one) for one in moved)


def clear(files: Files) -> tuple[Change, ...]:
    """Delete all files."""
    return tuple(map(Change, files))


def undo(changes: Sequence[StoredChange]) -> tuple[str, tuple[Change, ...]] | None:
    """Return the newest command that can be taken back, and the changes that do it, or None without one.

    Text that was erased does not come back.
    """
    taken_back = {stored.undone for stored in changes}
    done = [s for s in changes if s.command != "undo" and s.group not in taken_back]
    now = fold_files(changes)
    for group in dict.fromkeys(s.group for s in reversed(done)):
        before = fold_files(s for s in done if s.group != group)
        gone = [Change(path) for path in now if path not in before]
        restored = [
            Change(path, file.text)
            for path, file in before.items()
            if path not in now or now[path].text != file.text
        ]
        if gone or restored:
            return group, (*gone, *restored)
    return None


def snippet(text: str, at: str) -> str:
    """Return the numbered lines around the first place of a text."""
    line = _line_of(text, max(0, text.find(at)))
    lines = text.split("\n")
    first, last = max(1, line - _AROUND), min(len(lines), line + _AROUND)
    return "\n".join(_rows(lines[first - 1 : last], first))


def _numbered(name: str, text: str, view_range: Sequence[int] | None) -> str:
    lines, first = text.split("\n"), 1
    if view_range is not None and not _are_numbers(view_range):
        raise FileRefused(
            f"Invalid `view_range` parameter: {view_range}. It should be two line numbers."
        )
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0])
        lines = lines[first - 1 : len(lines) if view_range[1] == -1 else view_range[1]]
    heading = f"Here's the content of {name} with line numbers:"
    return "\n".join([heading, *_rows(lines, first)])


def _are_numbers(given: object) -> bool:
    return is_list(given) and all(type(one) is int for one in given)


def _rows(lines: Iterable[str], first: int) -> Iterator[str]:
    return (f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _listed(files: Files, folder: str) -> Iterator[tuple[str, int]]:
    """Yield the files and folders in a folder with their sizes in bytes, in the order of their names."""
    sizes: dict[tuple[str, ...], int] = {}
    for path, file in files.items():
        if path == folder or not is_in(path, folder):
            continue
        parts = tuple(path[len(folder) + 1 :].split("/"))
        if any(part.startswith(".") for part in parts):
            continue
        for depth in range(1, len(parts)):
            sizes[*parts[:depth], ""] = sizes.get((*parts[:depth], ""), 0) + _size(file)
        sizes[parts] = _size(file)
    for parts in sorted(sizes):
        if len([part for part in parts if part]) <= _LEVELS:
            yield "/".join((folder, *parts)), sizes[parts]


def _size(file: File) -> int:
    return len(file.text.encode("utf-8", "surrogatepass"))


def _size_text(size: float) -> str:
    """Return a number of bytes as the tool's own implementation gives it, such as ``1.5K``."""
    units = "BKMG"
    unit = 0
    while size >= 1024 and unit < len(units) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f}{units[unit]}" if size == int(size) else f"{size:.1f}{units[unit]}"


def _is_folder(files: Files, path: str) -> bool:
    return path == ROOT or any(one.startswith(f"{path}/") for one in files)


def _file(files: Files, path: object) -> tuple[str, str]:
    name = valid_path(path)
    if name in files:
        return name, files[name].text
    raise (
        FileRefused(f"The path {name} is not a file.")
        if _is_folder(files, name)
        else _missing(name)
    )


def _movable(files: Files, path: object) -> str:
    name = valid_path(path)
    if name == ROOT:
        raise FileRefused(f"The folder {ROOT} itself cannot be deleted or renamed")
    if name not in files and not _is_folder(files, name):
        raise FileRefused(f"The path {name} does not exist")
    return name


def _refuse_place(files: Files, name: str) -> None:
    """Refuse the name of a folder, and a place inside a file."""
    if _is_folder(files, name):
        raise FileRefused(f"{name} is a directory")
    parent = name
    while (parent := parent.rpartition("/")[0]) and parent != ROOT:
        if parent in files:
            raise FileRefused(f"{parent} is a file, so nothing can be created in it")


def _missing(name: str) -> FileRefused:
    return FileRefused(f"The path {name} does not exist. Please provide a valid path.")


def _text(given: object, name: str) -> str:
    if not isinstance(given, str):
        raise FileRefused(f"{name} must be a text")
    return given


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part) if part else -1
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
