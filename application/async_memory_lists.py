"""What a memory lists of all conversations, for asyncio."""

import asyncio
from collections.abc import Sequence
from functools import partial

from .argument_checks import checked
from .blocking import to_the_end
from .core import Core
from .markdown.searching import NotesFound, NotesStatus
from .memory import Memory
from .read_models import ConversationRow, NoteRow
from .recall.results import RecallMode


@checked
class AsyncMemoryLists:
    """``MemoryLists`` for asyncio."""

    def __init__(self, core: Core, memory: Memory) -> None:
        self._opened = core
        self._opened_memory = memory

    @property
    def _memory(self) -> Memory:
        # Before a thread is asked for: the loop of a forked process's parent does not run there.
        self._opened.process.check()
        return self._opened_memory

    async def conversations(self, *, owner: str | None = None) -> Sequence[ConversationRow]:
        """See ``Memory.conversations``."""
        return await asyncio.to_thread(self._memory.conversations, owner=owner)

    async def notes(self, *, owner: str | None = None) -> Sequence[NoteRow]:
        """See ``Memory.notes``."""
        return await asyncio.to_thread(self._memory.notes, owner=owner)

    async def search_notes(
        self,
        query: str,
        *,
        owner: str | None = None,
        limit: int = 5,
        min_score: float = 0.0,
        mode: RecallMode | None = None,
    ) -> NotesFound:
        """See ``Memory.search_notes``."""
        search = partial(self._memory.search_notes, query, owner=owner, limit=limit)
        return await asyncio.to_thread(search, min_score=min_score, mode=mode)

    async def notes_status(self, *, owner: str | None = None) -> NotesStatus:
        """See ``Memory.notes_status``."""
        return await asyncio.to_thread(self._memory.notes_status, owner=owner)

    async def write_notes(self) -> bool:
        """See ``Memory.write_notes``."""
        return await to_the_end(self._memory.write_notes)
