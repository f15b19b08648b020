"""Puts together what looks on: the observers of a memory, and the eyes on its log and summariser."""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from refold.application.event_log import ConversationLog
from refold.application.plain_lines import show_thread_ids
from refold.application.ports import Observer, Summariser
from refold.infrastructure.settings.model import RefoldSettings

from .callbacks import CompactionCallback, OnCompaction
from .calls import watched
from .log_lines import LogLines
from .naming import Naming, naming
from .notices import Notice
from .watching import FallbackObserver, WatchedLog, Watcher, tell

if TYPE_CHECKING:
    from .telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Observing:
    """What looks on at one memory."""

    lines: LogLines
    telemetry: "Telemetry | None"
    breaker_after: int
    others: tuple[Observer, ...]

    @classmethod
    def of(
        cls,
        settings: RefoldSettings,
        on_compaction: OnCompaction | None,
        observers: tuple[Observer, ...],
    ) -> Self:
        """What these settings ask for."""
        if settings.log_level is not None:
            logging.getLogger("refold").setLevel(settings.log_level)
        named = naming(settings.shown_thread_ids)
        lines = LogLines(named)
        show_thread_ids(settings.shown_thread_ids, lines)
        called = () if on_compaction is None else (
            CompactionCallback(on_compaction, wait=settings.close_wait),
        )  # fmt: skip
        return cls(
            lines=lines,
            telemetry=_telemetry(named) if settings.telemetry else None,
            breaker_after=settings.breaker_after,
            others=(*called, *observers),
        )

    def observers(self, summariser: Summariser) -> tuple[Observer, ...]:
        """All observers of a memory with this summariser, those of the program last."""
        fallback = FallbackObserver(summariser.name, self._watchers)
        return (*self._own, fallback, *self.others)

    def noticed(self, notice: Notice) -> None:
        """Tell of something that the stores did by themselves."""
        tell(self._watchers, notice)

    def log(self, log: ConversationLog) -> ConversationLog:
        """``log``, with every decision told."""
        return WatchedLog(log, self._watchers, breaker_after=self.breaker_after)

    def summariser(self, summariser: Summariser) -> Summariser:
        """``summariser``, with every call told."""
        if self.telemetry is None:
            return summariser
        return watched(summariser, self.telemetry.calling)

    @property
    def _own(self) -> "tuple[LogLines | Telemetry, ...]":
        return (self.lines,) if self.telemetry is None else (self.lines, self.telemetry)

    @property
    def _watchers(self) -> list[Watcher]:
        return [own.noticed for own in self._own]


def _telemetry(named: Naming) -> "Telemetry | None":
    try:
        from .telemetry import Telemetry
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        return None
    return Telemetry(named)
