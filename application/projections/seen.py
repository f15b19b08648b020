"""How does the context show a message now? The one answer of explain, recall, query and lists."""

from collections.abc import Collection
from typing import Literal

from refold.application.loaded import LoadedConversation

from .entries import Entry
from .window import Preview

Fate = Literal[
    "full",
    "condensed",
    "offloaded",
    "summarised",
    "omitted",
    "pinned",
    "protected",
    "preamble",
    "erased",
]
"""How the model sees a message. ``full``: word for word. ``condensed``, ``offloaded``: the same, but
for tool content that is cut short or shown by a preview. ``summarised``: by the active summary only;
``omitted``: not even by it, since it was too large to be summarised: the summary names it.
``pinned``: word for word, whatever is summarised. ``protected``: word for word although the summary
reaches beyond it, because it belongs to an open request
or to the tool round of a pinned message. ``preamble``: as part of the system text. ``erased``: as a
marker in its place, or not at all where a summary covers it."""


def fate_of(
    loaded: LoadedConversation,
    position: int,
    entry: Entry | None,
    previews: Collection[Preview],
    *,
    erased: bool,
) -> Fate:
    """The fate of the message at ``position``: ``entry`` and ``previews`` are what the window has of it."""
    if erased:
        return "erased"
    if entry is None:
        return _fate_of_covered(loaded, position)
    if position < loaded.state.preamble:
        return "preamble"
    if previews:
        offloaded = any(preview.method in ("offload", "left-out") for preview in previews)
        return "offloaded" if offloaded else "condensed"
    if position in loaded.state.pinned_positions:
        return "pinned"
    summary = loaded.window.summary
    is_behind = summary is not None and position < summary.coverage.stop
    return "protected" if is_behind else "full"


def _fate_of_covered(loaded: LoadedConversation, position: int) -> Fate:
    summary = loaded.window.summary
    left_out = () if summary is None else summary.omitted
    return "omitted" if any(one.position == position for one in left_out) else "summarised"
