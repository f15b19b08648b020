"""The decision to append messages, live or recorded."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from .conversation import Conversation
from .errors import UnknownToolCall
from .events import MessageAppended
from .messages import Message, gist
from .originals import Original
from .turns import open_calls
from .value import build_unvalidated


class IncomingMessage(NamedTuple):
    """A message to append, with its id and size."""

    message: Message
    message_id: str
    tokens: int
    thinking_tokens: int = 0
    key: str | None = None
    written_at: datetime | None = None
    model: str | None = None
    stop_reason: str | None = None
    stale_thinking: bool = False
    owner: str | None = None
    """Owner of the message, or None for the owner of the conversation."""
    original: Original | None = None
    """Form in which another API gave the message, shrunk, or None."""


def append_messages(
    state: Conversation,
    incoming: Sequence[IncomingMessage],
    *,
    recorded: bool = False,
    owner: str | None = None,
) -> tuple[MessageAppended, ...]:
    """Append all messages in ``incoming`` in order, or none of them.

    ``recorded`` history is kept as received. In live messages a tool result must answer an open call.
    ``owner`` is the owner of the conversation, or None to leave it as recorded. The first message that is
    appended with an owner records it.

    Raises:
        UnknownToolCall: a live tool result answers no call, or one that was answered before.
    """
    whose = state.owner or owner
    calls: set[str] | None = None
    last = len(incoming) - 1
    events: list[MessageAppended] = []
    for index, item in enumerate(incoming):
        if not recorded:
            if item.message.role == "assistant":
                calls = set(gist(item.message).calls) if index < last else None
            elif results := gist(item.message).results:
                # Found only when needed, because most messages answer no call.
                calls = set(open_calls(state)) if calls is None else calls
                _answer(calls, results, index)
        said_once = whose if index == 0 and state.owner is None else None
        events.append(_event(item, state.length + index, whose, said_once))
    return tuple(events)


def _event(
    item: IncomingMessage, position: int, whose: str | None, conversation_owner: str | None
) -> MessageAppended:
    return build_unvalidated(
        MessageAppended,
        position=position,
        message=item.message,
        message_id=item.message_id,
        tokens=item.tokens,
        thinking_tokens=item.thinking_tokens,
        key=item.key,
        written_at=item.written_at,
        model=item.model,
        stop_reason=item.stop_reason,
        stale_thinking=item.stale_thinking,
        owner=None if item.owner == whose else item.owner,
        conversation_owner=conversation_owner,
        original=item.original,
    )


def _answer(calls: set[str], answered: Sequence[str], index: int) -> None:
    for call_id in answered:
        if call_id not in calls:
            raise UnknownToolCall(
                f"messages[{index}].content",
                call_id,
                f"tool result for {call_id!r}, but the open calls are {sorted(calls) or 'none'}: a call "
                "is open until the assistant's next message and takes one result. Append the message with "
                "the call first, or append a late result as text. For recorded history use "
                "append(..., recorded=True)",
            )
        calls.discard(call_id)
