"""Measuring the first summary that code makes before its cut is chosen: it costs no call of a model."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from refold.application.plain_lines import plain_logger, raised
from refold.application.ports import Summariser, is_by_code
from refold.domain.expecting import Expected
from refold.domain.judging import Summary

logger = plain_logger(__name__)

MOST_MESSAGES = 1_000
"""Of a longer history a summary fills its room, and is not worth writing twice."""


class Rehearsal(NamedTuple):
    """A summary that could be written."""

    messages: int
    """What it would cover."""
    write: Callable[[], Awaitable[Summary]]


async def rehearsed(
    summariser: Summariser, rehearsal: Callable[[], Awaitable[Rehearsal | None]]
) -> Expected | None:
    """Return how long a summary by code comes out; None where that is not to be found out."""
    if not is_by_code(summariser):
        return None
    try:
        made = await rehearsal()
        if made is None or made.messages > MOST_MESSAGES:
            return None
        summary = await made.write()
    except Exception as error:  # The attempt itself will tell what is wrong.
        logger.debug("no summary was rehearsed: %s", raised(error))
        return None
    return Expected(summary.text_tokens, summary.tokens - summary.text_tokens)
