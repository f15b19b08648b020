"""A desk where a memory compacts in the background, on a log in memory."""

from collections.abc import Sequence
from dataclasses import replace

from refold.application.api.memory import Memory
from refold.application.ports.summariser import Summariser
from refold.application.runtime.core import Core
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    Event,
    MessageAppended,
)

from .fake_ports import MemoryLog, core_of

WAIT = 20
"""Seconds after which a test that waits has failed."""
WORDS = "word " * 200


class Desk:
    """One conversation, what it has in the log, and how its compactions ended."""

    def __init__(self, summariser: Summariser, beside: "Desk | None" = None) -> None:
        self.log: MemoryLog = beside.log if beside else MemoryLog()
        core = core_of(self.log, summariser=summariser, background=True)
        self.core: Core = replace(core, clock=beside.core.clock) if beside else core
        self.memory = Memory(self.core)
        self.conversation = self.memory.conversation("t")

    def say(self, count: int, words: str = WORDS) -> None:
        """So many messages; 23 of the long ones make a compaction due, 24 still fit."""
        for _ in range(count):
            role = "assistant" if len(self.appended) % 2 else "user"
            self.conversation.append({"role": role, "content": words})

    @property
    def events(self) -> Sequence[Event]:
        return self.log.streams.get("t", [])

    @property
    def appended(self) -> list[MessageAppended]:
        return [event for event in self.events if isinstance(event, MessageAppended)]

    @property
    def ends(self) -> list[CompactionPerformed | CompactionFailed]:
        return [e for e in self.events if isinstance(e, CompactionPerformed | CompactionFailed)]

    @property
    def requests(self) -> list[CompactionRequested]:
        return [event for event in self.events if isinstance(event, CompactionRequested)]

    def failures(self) -> list[str]:
        return [end.reason for end in self.ends if isinstance(end, CompactionFailed)]


def said(words: str) -> dict[str, object]:
    return {"role": "user", "content": words}


def talk(count: int) -> list[dict[str, object]]:
    roles = [("user", "assistant")[n % 2] for n in range(count)]
    return [{"role": role, "content": WORDS} for role in roles]
