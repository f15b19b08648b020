"""Faults of a log while a program uses it: locked, full, deleted; each gives a function that ends it."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

import refold
from refold.infrastructure.files.lock import WriteLock

Fault = Callable[[Path, pytest.MonkeyPatch, refold.Memory], Callable[[], object]]


def lock(path: Path, patch: pytest.MonkeyPatch, memory: refold.Memory) -> Callable[[], object]:
    """Hold the lock of the writers."""
    del patch, memory
    taken = WriteLock(Path(f"{path}.lock"), 1.0)
    held = ExitStack()
    held.callback(taken.close)
    held.enter_context(taken.held())
    return held.close


def fill(path: Path, patch: pytest.MonkeyPatch, memory: refold.Memory) -> Callable[[], object]:
    """Refuse writes as a full disk does."""
    log = memory._core.log  # pyright: ignore[reportPrivateUsage]

    def refuse(*_: object, **__: object) -> None:
        raise refold.LogFull(path, OSError("no space left"))

    patch.setattr(log, "transact", refuse)
    return patch.undo


def delete(path: Path, patch: pytest.MonkeyPatch, memory: refold.Memory) -> Callable[[], object]:
    """Take the files of the log away."""
    del patch, memory
    files = [f for f in path.parent.iterdir() if f.name.startswith(path.name)]
    aside = path.parent / "aside"
    aside.mkdir(exist_ok=True)
    for file in files:
        file.rename(aside / file.name)

    def put_back() -> None:
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()
        for file in files:
            (aside / file.name).rename(file)

    return put_back


FAULTS: dict[str, Fault] = {"locked": lock, "full": fill, "deleted": delete}
