"""Write events as log lines. A setting decides how they name conversations."""

import json
import logging
from collections.abc import Callable
from functools import partial

from refold.application.api.results import CompactionResult
from refold.application.runtime.plain_lines import ShownThreadIds, shown_id

from .log_observer import Figure, Notice, describe_result

Naming = Callable[[str], str]
"""A function that returns the shown form of a thread id, or an empty string."""


def naming(shown: ShownThreadIds) -> Naming:
    """Return the naming function for a setting."""
    return partial(shown_id, shown=shown)


logging.getLogger("refold").addHandler(logging.NullHandler())

LEVELS = {
    "compaction.requested": logging.DEBUG,
    "compaction.chunk": logging.INFO,
    "compaction.performed": logging.INFO,
    "compaction.shortened": logging.INFO,
    "compaction.nothing_to_do": logging.DEBUG,
    "compaction.failed": logging.WARNING,
    "compaction.waiting": logging.WARNING,
    "compaction.in_flight": logging.INFO,
    "compaction.reverted": logging.INFO,
    "compaction.abandoned": logging.WARNING,
    "compaction.fallback": logging.WARNING,
    "content.offloaded": logging.INFO,
    "content.condensed": logging.INFO,
    "content.shortened": logging.INFO,
    "lines.recalled": logging.DEBUG,
    "message.pinned": logging.DEBUG,
    "message.unpinned": logging.DEBUG,
    "notes.flushed": logging.INFO,
    "memories.chosen": logging.INFO,
    "message.erased": logging.INFO,
    "conversation.erased": logging.INFO,
    "conversation.forked": logging.INFO,
    "breaker.opened": logging.WARNING,
    "breaker.closed": logging.INFO,
    "request.made": logging.DEBUG,
    "views.rebuilt": logging.WARNING,
    "recall.rebuilt": logging.WARNING,
    "embedding.finished": logging.INFO,
    "embedding.replaced": logging.INFO,
    "embedding.failed": logging.WARNING,
    "embedder.failed": logging.WARNING,
    "vectors.damaged": logging.WARNING,
    "snapshot.replaced": logging.WARNING,
    "keys.rebuilt": logging.WARNING,
    "log.damaged": logging.ERROR,
    "log.on_network": logging.WARNING,
}
"""Levels by event name. The keys are all event names."""


class LogLines:
    """An observer that writes to the loggers ``refold.compaction``, ``refold.content`` and others.

    The message is ``NAME key=value …``. As with ``extra``, the record has ``event`` and each key as
    attributes.
    """

    def __init__(self, naming: Naming) -> None:
        self._naming = naming

    def notify(self, notice: Notice) -> None:
        """Write a line if its logger is enabled for the level."""
        level = LEVELS[notice.name]
        logger = logging.getLogger(f"refold.{notice.name.partition('.')[0]}")
        if not logger.isEnabledFor(level):
            return
        figures: dict[str, Figure] = {**notice.figures}
        if shown := self._naming(notice.thread_id):
            figures = {"thread_id": shown, **figures}
        pairs = "".join(f" {key}={_format_value(value)}" for key, value in figures.items())
        logger.log(level, "%s%s", notice.name, pairs, extra={"event": notice.name, **figures})

    def compaction_ended(self, result: CompactionResult) -> None:
        """Write the result of a compaction."""
        self.notify(describe_result(result))

    def chunk_summarised(self, thread_id: str, done: int, chunks: int) -> None:
        """Write the progress of a summary that takes several calls."""
        self.notify(Notice("compaction.chunk", thread_id, {"done": done, "chunks": chunks}))

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """Write the size of a request."""
        figures: dict[str, Figure] = {"tokens": tokens, "tokens_repeated": tokens_repeated}
        self.notify(Notice("request.made", thread_id, figures))


def _format_value(value: Figure) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() if not value or not value.isprintable() or any(map(value.__contains__, ' "=')):
            # The blank is the only printable white space.
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)
