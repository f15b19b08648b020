"""Acting as a user who may not write: permissions do not hold root back."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@contextmanager
def as_other_user() -> Generator[None]:
    """Be a user who is not root for a while."""
    if not hasattr(os, "geteuid"):
        pytest.skip("this system has no such users")
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if was_root:
            os.seteuid(0)


def readable_by_all(folder: Path) -> None:
    """Let everybody read a folder and its files, and nobody write."""
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
