"""The text of a summary: history, the beginning of a divided turn (requirement A5), what was left out."""

from refold.domain.events import CompactionPerformed

from .leaving_out import without_naming

DIVIDER = "\n\n---\n\n"
TURN_HEADING = "**Turn Context (split turn):**\n\n"


def joined(history: str, prefix: str | None) -> str:
    """One text of both parts; either may be missing."""
    if not prefix:
        return history
    return f"{history}{DIVIDER}{TURN_HEADING}{prefix}" if history else TURN_HEADING + prefix


def whole_text(summary: CompactionPerformed) -> str:
    """A recorded text as a later one carries it on: what was left out is named anew by each."""
    return without_naming(summary.text) if summary.omitted else summary.text


def history_text(summary: CompactionPerformed) -> str:
    """The part of a recorded text that stands before the divided turn; empty where there is none."""
    text = whole_text(summary)
    if not summary.is_split_turn or not summary.split_turn_prefix:
        return text
    ending = TURN_HEADING + summary.split_turn_prefix
    return text.removesuffix(ending).removesuffix(DIVIDER) if text.endswith(ending) else text
