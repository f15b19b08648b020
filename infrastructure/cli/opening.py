"""Opening a log that is there, and asking for a conversation in it: what most commands begin with."""

from collections.abc import Sequence
from pathlib import Path

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
