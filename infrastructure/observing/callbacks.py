"""Callbacks of the program: called with the result of every compaction."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

from refold.application.containing import Contained
from refold.application.plain_lines import plain_logger, raised
from refold.application.results import CompactionResult

logger = plain_logger(__name__)

OnCompaction = Callable[[CompactionResult], Awaitable[object] | object]
"""Takes the result of a compaction; may be async."""


class CompactionCallback:
    """An observer that calls a function of the program.

    A plain function is called in the thread, and before the answer, of whoever compacted: it should be
    quick. A coroutine runs on while the conversation does, and closing waits for it, at most ``wait``
    seconds. What either raises is logged.
    """

    def __init__(self, call: OnCompaction, *, wait: float) -> None:
        self._call = call
        self._wait = wait
        self._running: set[asyncio.Task[None]] = set()

    def compaction_ended(self, result: CompactionResult) -> None:
        """Call it."""
        answer = self._call(result)
        if not inspect.isawaitable(answer):
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(_awaited(answer))
            return
        task = loop.create_task(_awaited(answer))
        self._running.add(task)  # The loop itself holds tasks only weakly.
        task.add_done_callback(self._running.discard)

    async def finish(self) -> None:
        """Wait for the coroutines that still run in this loop."""
        loop = asyncio.get_running_loop()
        if mine := [task for task in self._running if task.get_loop() is loop]:
            await asyncio.wait(mine, timeout=self._wait)

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """Nothing that it tells."""


async def _awaited(answer: Awaitable[object]) -> None:
    try:
        with Contained():
            await answer
    except Exception as error:  # A callback of the user's own may raise anything.
        logger.warning("on_compaction failed: %s", raised(error))
