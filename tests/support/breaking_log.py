"""A log whose disk is full when a test says so: nothing of that write is stored."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogFull
from refold.application.ports.conversation_log import Decision
from refold.application.ports.summariser import Summariser, SummaryDraft, SummaryRequest
from refold.domain.events import Event
from refold.infrastructure.event_store.store import SQLiteLog


@dataclass
class Disk:
    """What logs are on."""

    is_full: bool = False


class BreakingLog(SQLiteLog):
    """``SQLiteLog``; refuses writes while the disk is full."""

    def __init__(self, path: Path, disk: Disk) -> None:
        super().__init__(path)
        self._disk = disk

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        if self._disk.is_full:
            raise LogFull("the disk is full: make room, then try again")
        return super().transact(thread_id, decide, at=at)


class FillingSummariser:
    """Passes on to another; the disk is full when it answers."""

    def __init__(self, disk: Disk, inner: Summariser) -> None:
        self._disk = disk
        self._inner = inner

    @property
    def name(self) -> str:
        return self._inner.name

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        self._disk.is_full = True
        return await self._inner.summarise(request)
