"""Messages too large for a summariser (requirement C7): left out of its prompt, named in the text."""

from collections.abc import Callable, Sequence

from refold.application.addresses import address_of
from refold.application.ports import SourceMessage
from refold.domain.events import OmittedMessage
from refold.domain.messages import Block

_HEADING = (
    "[Left out of this summary, for they were too large; each can be read back by its address]"
)
_MOST_NAMED = 10


def stand_in(source: SourceMessage, note: str) -> SourceMessage | None:
    """What stands for a message that is left out: its calls and results, with a note in place of their
    content, so that no partner loses its pair. None where it has neither.
    """
    blocks = tuple(filter(None, (_emptied(b, note) for b in source.message.blocks())))
    if not blocks:
        return None
    return source.replaced(message=source.message.replaced(content=blocks))


def _emptied(block: Block, note: str) -> Block | None:
    match block.get("type"):
        case "tool_use":
            return {**block, "input": {"left_out": note}}
        case "tool_result":
            return {**block, "content": note}
        case _:
            return None


def skimming(thread_id: str, first: int, last: int, skimmed: int) -> str:
    """The end of a text for which so many of its messages were only looked through; empty where none were."""
    if not skimmed:
        return ""
    start, end = address_of(thread_id, first), address_of(thread_id, last)
    return (
        f"\n\n[Of messages {first} to {last}, {skimmed:,} were only looked through by code, for rules, "
        f"decisions and open requests; each can be read back by its address, {start} to {end}]"
    )


def unread(thread_id: str, first: int, last: int, count: int) -> str:
    """The end of a text for which so many of its messages were not read again; empty where all were."""
    if count <= 0:
        return ""
    start, end = address_of(thread_id, first), address_of(thread_id, last)
    return (
        f"\n\n[Of messages {first} to {last}, {count:,} were not read again when something was erased; each "
        f"can be read back by its address, {start} to {end}]"
    )


def note_of(thread_id: str, omitted: OmittedMessage) -> str:
    """Position, size and address of a message that was left out."""
    address = address_of(thread_id, omitted.position)
    return f"message {omitted.position}, about {omitted.tokens:,} tokens: {address}"


def naming(
    thread_id: str, omitted: Sequence[OmittedMessage], room: int, count: Callable[[str], int]
) -> str:
    """The end of a text from which messages were left out; empty where none were.

    The newest are named within ``room`` tokens, one always and ten at most; the others are counted.
    """
    if not omitted:
        return ""
    lines = [f"- {note_of(thread_id, one)}" for one in reversed(omitted)]
    shown = min(_MOST_NAMED, len(lines))
    while shown > 1 and count(_named(lines, shown)) > room:
        shown -= 1
    return _named(lines, shown)


def _named(lines: Sequence[str], shown: int) -> str:
    rest = [f"- and {len(lines) - shown} earlier ones"] if shown < len(lines) else []
    return "\n".join(["", "", _HEADING, *lines[:shown], *rest])


def without_naming(text: str) -> str:
    """A text without its naming of what was left out."""
    if text.startswith(f"{_HEADING}\n"):
        return ""
    kept, found, _ = text.rpartition(f"\n\n{_HEADING}\n")
    return kept if found else text
