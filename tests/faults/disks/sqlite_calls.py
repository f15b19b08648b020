"""A VFS in front of the system's: it passes the calls that SQLite makes for its files to a simulated disk.

It is registered with the library that Python's own ``sqlite3`` uses, so refold runs as it does for its users.
Only opening, reading, writing, cutting, syncing and deleting pass through Python. Locks and shared memory do not.
"""

import _sqlite3
import ctypes
from ctypes import POINTER, Structure, addressof, c_char_p, c_int, c_longlong, c_void_p
from functools import partial
from pathlib import Path
from typing import Any, Protocol

OK = 0
_CLOSE = ctypes.CFUNCTYPE(c_int, c_void_p)
_MOVE = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_longlong)
_CUT = ctypes.CFUNCTYPE(c_int, c_void_p, c_longlong)
_SYNC = ctypes.CFUNCTYPE(c_int, c_void_p, c_int)
_OPEN = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_DELETE = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_int)


class _Methods(Structure):
    """The beginning of ``sqlite3_io_methods``, and room for the rest of its third version."""

    _fields_ = (
        ("version", c_int),
        ("close", _CLOSE),
        ("read", _MOVE),
        ("write", _MOVE),
        ("cut", _CUT),
        ("sync", _SYNC),
        *((f"other{n}", c_void_p) for n in range(13)),
    )


class _Vfs(Structure):
    """``sqlite3_vfs`` in its third version."""

    _fields_ = (
        ("version", c_int),
        ("file_size", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", _OPEN),
        ("delete", _DELETE),
        *((f"other{n}", c_void_p) for n in range(15)),
    )


class Disk(Protocol):
    """The receiver of the calls. Each method returns a result code of SQLite, which 0 is if all went well."""

    def opened(self, file: int, path: str) -> None:
        """Record that a file was opened. ``file`` is its number until it is closed."""
        ...

    def closed(self, file: int) -> None:
        """Record that a file is closed."""
        ...

    def read(self, file: int, at: int, buffer: int, size: int, read: Any) -> int:
        """Read by calling ``read(address, size, at)``."""
        ...

    def write(self, file: int, at: int, data: bytes, write: Any) -> int:
        """Write by calling ``write(data, at)``, or not."""
        ...

    def cut(self, file: int, size: int, cut: Any) -> int:
        """Cut the file by calling ``cut()``."""
        ...

    def sync(self, file: int, sync: Any) -> int:
        """Sync the file by calling ``sync()``."""
        ...

    def deleted(self, path: str, *, synced: bool = False) -> None:
        """Record that a file is deleted. ``synced``: its folder is synced afterwards."""
        ...


class NoSharedLibrary(Exception):
    """Python's ``sqlite3`` has a library of its own, which others cannot call."""


class CallsOfSQLite:
    """The VFS. There is one for the process, because no connection may outlive it."""

    def __init__(self) -> None:
        """Register it as the default.

        Raises:
            NoSharedLibrary: the library of ``sqlite3`` cannot be reached.
        """
        self.disk: Disk | None = None
        """The receiver of the calls. While it is None, nothing is recorded."""
        self._tables: dict[int, _Methods] = {}
        self._kept: list[Any] = []
        library = _shared_library()
        self._base = library.sqlite3_vfs_find(None).contents
        self._vfs = _Vfs()
        ctypes.memmove(addressof(self._vfs), addressof(self._base), ctypes.sizeof(_Vfs))
        self._vfs.name = b"refold-faults"
        self._vfs.open, self._vfs.delete = (
            self._keep(_OPEN(self._open)),
            self._keep(_DELETE(self._delete)),
        )
        library.sqlite3_vfs_register(addressof(self._vfs), 1)

    def _keep(self, function: Any) -> Any:
        self._kept.append(function)
        return function

    def _open(self, _vfs: int, name: int | None, file: int, flags: int, out: int) -> int:
        code: int = self._base.open(addressof(self._base), name, file, flags, out)
        if code != OK or not name or self.disk is None:
            return code
        methods = c_void_p.from_address(file)
        original = methods.value or 0
        if original not in self._tables:
            self._tables[original] = self._table(original)
        methods.value = addressof(self._tables[original])
        self.disk.opened(file, ctypes.string_at(name).decode())
        return OK

    def _delete(self, _vfs: int, name: int, sync_folder: int) -> int:
        if self.disk is not None:
            self.disk.deleted(ctypes.string_at(name).decode(), synced=bool(sync_folder))
        code: int = self._base.delete(addressof(self._base), name, sync_folder)
        return code

    def _table(self, address: int) -> _Methods:
        """Return the methods at the address with ours in front."""
        base, table = _Methods.from_address(address), _Methods()
        ctypes.memmove(addressof(table), address, ctypes.sizeof(_Methods))

        def close(file: int) -> int:
            if self.disk is not None:
                self.disk.closed(file)
            return int(base.close(file))

        def read(file: int, buffer: int, size: int, at: int) -> int:
            if self.disk is None:
                return int(base.read(file, buffer, size, at))
            return self.disk.read(file, at, buffer, size, partial(base.read, file))

        def write(file: int, buffer: int, size: int, at: int) -> int:
            if self.disk is None:
                return int(base.write(file, buffer, size, at))

            def write_data(data: bytes, at: int) -> int:
                return int(
                    base.write(file, ctypes.create_string_buffer(data, len(data)), len(data), at)
                )

            return self.disk.write(file, at, ctypes.string_at(buffer, size), write_data)

        def cut(file: int, size: int) -> int:
            if self.disk is None:
                return int(base.cut(file, size))
            return self.disk.cut(file, size, lambda: base.cut(file, size))

        def sync(file: int, flags: int) -> int:
            if self.disk is None:
                return int(base.sync(file, flags))
            return self.disk.sync(file, lambda: base.sync(file, flags))

        table.close, table.read = self._keep(_CLOSE(close)), self._keep(_MOVE(read))
        table.write, table.cut = self._keep(_MOVE(write)), self._keep(_CUT(cut))
        table.sync = self._keep(_SYNC(sync))
        return table


def _shared_library() -> Any:
    try:
        library = ctypes.CDLL("libsqlite3.so.0")
    except OSError as error:
        raise NoSharedLibrary(str(error)) from None
    if b"libsqlite3.so" not in Path(_sqlite3.__file__).read_bytes():
        raise NoSharedLibrary("sqlite3 does not use the system's library")
    library.sqlite3_vfs_find.restype = POINTER(_Vfs)
    library.sqlite3_vfs_find.argtypes = [c_char_p]
    library.sqlite3_vfs_register.argtypes = [c_void_p, c_int]
    return library
