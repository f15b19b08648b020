"""The decision to append messages: what a live agent may say next, and what a recording may hold."""

from collections.abc import Sequence
from datetime import datetime

from .conversation import Conversation
from .errors import UnknownToolCall
from .events import MessageAppended
from .messages import Message, gist
from .turns import open_calls
from .value import Value, build_unvalidated


class IncomingMessage(Value, frozen=True):
    """A message that is to be appended, with identity and measure given from outside."""

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
    """Whose it is; None: the owner's of the conversation."""


def append_messages(
    state: Conversation,
    incoming: Sequence[IncomingMessage],
    *,
    recorded: bool = False,
    owner: str | None = None,
) -> tuple[MessageAppended, ...]:
    """Append ``incoming`` in order; all or none.

    ``recorded``: history is kept as it came. A live tool result must answer an open call. ``owner``:
    whose the conversation is; the first message that says so records it. None: as recorded.

    Raises:
        UnknownToolCall: a live tool result answers no call, or one that was answered before.
    """
    whose = state.owner or owner
    calls = None if recorded else set(open_calls(state))
    events: list[MessageAppended] = []
    for index, item in enumerate(incoming):
        if calls is not None:
            does = gist(item.message)
            _answer(calls, does.results, index)
            if item.message.role == "assistant":
                calls = set(does.calls)
        position = state.length + index
        said_once = whose if index == 0 and state.owner is None else None
        events.append(_event(item, position, whose, said_once))
    return tuple(events)


def _event(
    item: IncomingMessage, position: int, whose: str | None, said_once: str | None
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
        conversation_owner=said_once,
    )


def _answer(calls: set[str], answered: Sequence[str], index: int) -> None:
    for call_id in answered:
        if call_id not in calls:
            raise UnknownToolCall(
                f"messages[{index}].content",
                call_id,
                f"tool result for {call_id!r}, but the open calls are {sorted(calls) or 'none'}: a call "
                "is open from its message to the assistant's next one, for one result. Append the message "
                "with the call first; what comes later than that, append as text "
                "(recorded history: append(..., recorded=True))",
            )
        calls.discard(call_id)
