"""Opening a log that is there, and asking for a conversation in it: what most commands begin with."""

import shlex
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from refold.application.errors import ForeignAddress
from refold.application.memory import Memory
from refold.domain.errors import InvalidThreadId

from .options import EmbedderChoice


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


def require(memory: Memory, thread: str) -> None:
    """Refuse a thread that the log does not know.

    Raises:
        InvalidThreadId: says which ones there are.
    """
    chat = memory.conversation(thread)
    if chat.version == 0:
        known = [row.thread_id for row in memory.conversations()[:5]]
        raise InvalidThreadId(
            f"there is no conversation {thread!r} in this log; "
            f"there are: {', '.join(known) or 'none'}"
        )


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


def next_command(*words: object, db: Path) -> str:
    """A command of this program, ready to be typed."""
    return f"refold {shlex.join([*map(str, words), '--db', str(db)])}"
