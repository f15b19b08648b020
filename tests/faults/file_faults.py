"""Faults of files: what a disk, a copy or a hand does to bytes, one at a time and by a drawn number."""

import random
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from .children import run_apart
from .sample_store import LOG, OLD, Store
from .zones import Range

BLOCK = 512

Strike = Callable[[Store, Path, Range, random.Random], str]
"""Puts a fault into a folder that is a copy of the store; returns in words what was done."""


def flip_bit(store: Store, folder: Path, where: Range, draw: random.Random) -> str:
    path = folder / where.file
    content = bytearray(path.read_bytes())
    if not content:
        return add_bytes(store, folder, where, draw)
    at, bit = draw.randrange(where.start, where.stop), draw.randrange(8)
    content[at] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {at} of {where.file} was turned over"


def truncate(_store: Store, folder: Path, where: Range, draw: random.Random) -> str:
    size = draw.randrange(where.start, max(where.stop, where.start + 1))
    with (folder / where.file).open("r+b") as file:
        file.truncate(size)
    return f"{where.file} was cut at {size}"


def zero_block(_store: Store, folder: Path, where: Range, draw: random.Random) -> str:
    return _overwrite(folder, where, draw, 0)


def fill_with_ones(_store: Store, folder: Path, where: Range, draw: random.Random) -> str:
    return _overwrite(folder, where, draw, 0xFF)


def _overwrite(folder: Path, where: Range, draw: random.Random, byte: int) -> str:
    first = draw.randrange(where.start, max(where.stop - BLOCK, where.start) + 1)
    count = min(BLOCK, where.stop - first)
    with (folder / where.file).open("r+b") as file:
        file.seek(first)
        file.write(bytes([byte]) * count)
    return f"{count} bytes of {where.file} from {first} on became {byte:#x}"


def delete(_store: Store, folder: Path, where: Range, _draw: random.Random) -> str:
    (folder / where.file).unlink()
    return f"{where.file} was deleted"


def put_old_copy(store: Store, folder: Path, where: Range, _draw: random.Random) -> str:
    old = store.folder.with_name(f"{store.name}-{OLD}") / where.file
    if not old.exists():
        return delete(store, folder, where, _draw)
    shutil.copyfile(old, folder / where.file)
    return f"{where.file} was replaced by an older one"


def add_bytes(_store: Store, folder: Path, where: Range, draw: random.Random) -> str:
    with (folder / where.file).open("ab") as file:
        file.write(draw.randbytes(64))
    return f"64 bytes were added to {where.file}"


def drop_key_row(store: Store, folder: Path, _where: Range, draw: random.Random) -> str:
    return _change_keys(store, folder, draw, "DELETE FROM message_keys WHERE key = ?")


def move_key_row(store: Store, folder: Path, _where: Range, draw: random.Random) -> str:
    change = "UPDATE message_keys SET originator_version = originator_version + 1 WHERE key = ?"
    return _change_keys(store, folder, draw, change)


def rename_key_row(store: Store, folder: Path, _where: Range, draw: random.Random) -> str:
    return _change_keys(
        store, folder, draw, "UPDATE message_keys SET key = 'delivery-99999' WHERE key = ?"
    )


def _change_keys(store: Store, folder: Path, draw: random.Random, statement: str) -> str:
    key = draw.choice([s.key for s in store.said if s.key])

    def change() -> int:
        # Never closed: closing the last connection would bring the WAL into the file.
        connection = sqlite3.connect(folder / LOG, isolation_level=None)
        return connection.execute(statement, (key,)).rowcount

    return f"{statement} ({key}): {run_apart(change).answer} rows"


STRIKES: Mapping[str, Strike] = {
    "flip": flip_bit,
    "cut": truncate,
    "zero": zero_block,
    "ones": fill_with_ones,
    "delete": delete,
    "old": put_old_copy,
    "add": add_bytes,
}
ROW_STRIKES: Mapping[str, Strike] = {
    "drop row": drop_key_row,
    "move row": move_key_row,
    "rename row": rename_key_row,
}


def strikes_for(zone: str) -> Mapping[str, Strike]:
    """The faults that make sense in a zone."""
    if zone.startswith("key") and zone == "key pages":
        return {**STRIKES, **ROW_STRIKES}
    if zone == "key texts":
        return {"flip": flip_bit}
    return STRIKES
