"""Opening a log that is there, and asking for a conversation in it: what most commands begin with."""

import os
import shlex
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from refold.application.errors import ForeignAddress
from refold.application.memory import Memory

from .options import DB_VARIABLE, DEFAULT_DB, EmbedderChoice
from .places import find_thread


def opened(
    db: Path,
    *,
    window: int | None = None,
    model: str | None = None,
    summariser: str | None = None,
    policy_file: Path | None = None,
    embedder: EmbedderChoice | None = None,
    embedder_model: str | None = None,
    instruction_files: Sequence[Path] | None = None,
    notes_folder: Path | None = None,
    markdown_folder: Path | None = None,
) -> Memory:
    """The memory of a log that exists."""
    # Imported when first used: help and wrong use do not pay for a store.
    from refold.infrastructure.opening import open_memory

    return open_memory(
        db,
        create=False,
        window=window,
        model=model,
        summariser=summariser,
        policy_file=policy_file,
        embedder=embedder,
        embedder_model=embedder_model,
        instruction_files=instruction_files,
        notes_folder=notes_folder,
        markdown_folder=markdown_folder,
    )


def require(memory: Memory, thread: str) -> str:
    """The conversation that is meant by an id, or by the beginning of one.

    Raises:
        InvalidThreadId: there is none; says which ones there are.
        AmbiguousId: several begin so.
    """
    return find_thread(memory, thread)


@contextmanager
def naming_commands(db: Path) -> Generator[None]:
    """Where an address is one of another conversation, name the command that reads it.

    Raises:
        ForeignAddress: in words for who types commands.
    """
    try:
        yield
    except ForeignAddress as error:
        command = next_command("read", error.address, db=db)
        error.args = (
            f"{error.address} is a message of conversation {error.thread_id!r}, and {error.asked!r} "
            f"was asked: `{command}` reads it",
        )
        raise


def next_command(*words: object, db: object) -> str:
    """A command of this program, ready to be typed."""
    named = [] if str(db) == os.environ.get(DB_VARIABLE, str(DEFAULT_DB)) else ["--db", str(db)]
    return f"refold {shlex.join([*map(str, words), *named])}"
