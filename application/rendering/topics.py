"""The topics that are named beside a summary: one line of labels, which are data (requirement B3)."""

from collections.abc import Callable, Sequence

from refold.application.tools.names import RECALL_MEMORY
from refold.domain.facts import Topic

from .texts import TOPICS_GUIDANCE, TOPICS_HEADING
from .turns import FRAME_TOKENS

_BETWEEN = ", "


def topics_line(topics: Sequence[Topic], *, ask: bool) -> str:
    """The line; empty where there is none to name. ``ask``: it says which tool knows more."""
    if not topics:
        return ""
    names = _BETWEEN.join(topic.name for topic in topics)
    return f"{TOPICS_HEADING}: {names}" + (f" (ask {RECALL_MEMORY})" if ask else "")


def topics_tokens(
    topics: Sequence[Topic], count: Callable[[str], int], *, apart: bool, ask: bool
) -> int:
    """What the line costs with the guidance that goes with it; ``apart``: in a block of its own."""
    if not topics:
        return 0
    frame = FRAME_TOKENS if apart else 0
    return count(f"\n\n{topics_line(topics, ask=ask)}") + count(f" {TOPICS_GUIDANCE}") + frame
