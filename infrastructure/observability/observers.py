"""Wire observers to the log and the summariser."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple, Self

from refold.application.api.results import CompactionResult
from refold.application.runtime.plain_lines import plain_logger, raised, show_thread_ids

from .log_observer import (
    FallbackObserver,
    LogLines,
    Naming,
    Notice,
    StoredDecisions,
    Watcher,
    naming,
    notify,
)

if TYPE_CHECKING:
    import asyncio

    from refold.application.ports.log_observer import LogObserver
    from refold.application.ports.observer import Observer
    from refold.application.ports.summariser import Summariser
    from refold.domain.events import Trigger
    from refold.infrastructure.settings.settings_model import RefoldSettings

    from .observed_calls import Call
    from .telemetry import Telemetry


logger = plain_logger(__name__)

OnCompaction = Callable[[CompactionResult], Awaitable[object] | object]
"""A callback for the result of a compaction. It may be async."""


class CompactionCallback:
    """An observer that calls a function of the application.

    A plain function runs in the thread that compacted, before it continues, so it should be quick. A
    coroutine runs concurrently with the conversation. Closing waits for it at most ``wait`` seconds. Errors
    of both are logged.
    """

    def __init__(self, call: OnCompaction, *, wait: float) -> None:
        self._call = call
        self._wait = wait
        self._running: set[asyncio.Task[None]] = set()

    def compaction_ended(self, result: CompactionResult) -> None:
        """Call the function with the result."""
        import asyncio
        import inspect

        answer = self._call(result)
        if not inspect.isawaitable(answer):
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(_await_answer(answer))
            return
        task = loop.create_task(_await_answer(answer))
        self._running.add(task)  # The event loop keeps only weak references to tasks.
        task.add_done_callback(self._running.discard)

    async def finish(self) -> None:
        """Wait for the coroutines that are still running in this loop."""
        import asyncio

        loop = asyncio.get_running_loop()
        if mine := [task for task in self._running if task.get_loop() is loop]:
            await asyncio.wait(mine, timeout=self._wait)

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """Ignore the request."""


async def _await_answer(answer: Awaitable[object]) -> None:
    from refold.application.runtime.foreign_code import Contained

    try:
        with Contained():
            await answer
    except Exception as error:  # User code may raise any error.
        logger.warning("on_compaction failed: %s", raised(error))


class Observing(NamedTuple):
    """The observers of one memory."""

    lines: LogLines
    telemetry: LateTelemetry | None
    breaker_after: int
    others: tuple[Observer, ...]

    @classmethod
    def of(
        cls,
        settings: RefoldSettings,
        on_compaction: OnCompaction | None,
        observers: tuple[Observer, ...],
    ) -> Self:
        """Create the observers that these settings ask for."""
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
            telemetry=LateTelemetry(named) if settings.telemetry else None,
            breaker_after=settings.breaker_after,
            others=(*called, *observers),
        )

    def observers(self, summariser: Summariser) -> tuple[Observer, ...]:
        """Return all observers of a memory with this summariser. Those of the application come last."""
        fallback = FallbackObserver(summariser, self._watchers)
        return (*self._own, fallback, *self.others)

    def notify(self, notice: Notice) -> None:
        """Notify the observers of an event in the stores."""
        notify(self._watchers, notice)

    def log_observer(self) -> LogObserver:
        """Return the observer of what is stored in the log."""
        return StoredDecisions(self._watchers, breaker_after=self.breaker_after)

    def summariser(self, summariser: Summariser) -> Summariser:
        """Wrap the summariser so that every call is observed."""
        if self.telemetry is None:
            return summariser
        return self.telemetry.observe(summariser)

    @property
    def _own(self) -> tuple[LogLines | LateTelemetry, ...]:
        return (self.lines,) if self.telemetry is None else (self.lines, self.telemetry)

    @property
    def _watchers(self) -> list[Watcher]:
        return [own.notify for own in self._own]


class LateTelemetry:
    """Telemetry from the moment at which OpenTelemetry is in use; without it, nothing is recorded.

    An application that records has imported it, or names a provider in its environment.
    """

    def __init__(self, named: Naming) -> None:
        self._naming = named
        self._used: Telemetry | None = None

    def find(self) -> Telemetry | None:
        """Return the telemetry, or None while OpenTelemetry is not in use."""
        if self._used is None and ("opentelemetry" in sys.modules or _names_a_provider()):
            self._used = self._begun()
        return self._used

    def _begun(self) -> Telemetry | None:
        """Return new telemetry, or None if OpenTelemetry is not installed."""
        try:
            from .telemetry import Telemetry
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "opentelemetry":
                raise
            return None
        return Telemetry(self._naming)

    def compacting(self, thread_id: str, trigger: Trigger) -> AbstractContextManager[None]:
        """Open a span around a compaction."""
        used = self.find()
        return nullcontext() if used is None else used.compacting(thread_id, trigger)

    def compaction_ended(self, result: CompactionResult) -> None:
        """Count a compaction, and record its outcome in the span."""
        if (used := self.find()) is not None:
            used.compaction_ended(result)

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """Count the tokens of a request, and those that a prompt cache can serve."""
        if (used := self.find()) is not None:
            used.request_made(thread_id, tokens, tokens_repeated)

    def notify(self, notice: Notice) -> None:
        """Count a decision, a repair or damage."""
        if (used := self.find()) is not None:
            used.notify(notice)

    def observe(self, summariser: Summariser) -> Summariser:
        """Wrap the summariser so that each call is observed."""
        from .observed_calls import observe_calls

        return observe_calls(summariser, self.calling)

    def calling(self, summariser: Summariser) -> AbstractContextManager[Call]:
        """Open a span around a call of a summariser."""
        from .observed_calls import Unobserved

        used = self.find()
        return nullcontext(Unobserved()) if used is None else used.calling(summariser)


_PROVIDERS = ("OTEL_PYTHON_TRACER_PROVIDER", "OTEL_PYTHON_METER_PROVIDER")
"""Variables from which the API of OpenTelemetry loads a provider."""


def _names_a_provider() -> bool:
    return any(map(os.environ.__contains__, _PROVIDERS))
