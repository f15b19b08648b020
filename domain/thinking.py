"""Which thinking stays when what stands before it changes. It is signed for the request that it answers."""

from collections.abc import Iterable

from .conversation import Conversation, LiveMessage
from .value import replace


def without_thinking(message: LiveMessage) -> LiveMessage:
    """The message as it is shown behind another prefix."""
    return message._replace(tokens=message.tokens - message.thinking, thinking=0)


def is_bound(state: Conversation) -> bool:
    """Whether thinking is refused behind another prefix: so it is unless the newest request says otherwise."""
    return state.frame is None or state.frame.binds_thinking


def follows_an_answer(state: Conversation) -> bool:
    """Whether the next message would stand right behind an answer that is complete."""
    last = state.live[-1] if state.live else None
    return last is not None and last.role == "assistant" and not last.paused


def stays_from(state: Conversation, live: Iterable[LiveMessage] | None = None) -> int:
    """The position from which thinking stays where the next decision changes the prefix.

    Most models refuse thinking behind another prefix: none stays. The others do not look at it, but those
    that think before each call refuse the running tool loop without it: there its thinking stays.
    """
    if is_bound(state):
        return state.length
    some = state.live if live is None else live
    ended = (m.position + 1 for m in reversed(tuple(some)) if m.role == "assistant" and _ends(m))
    return next(ended, 0)


def _ends(message: LiveMessage) -> bool:
    return not message.calls and not message.paused


def behind_new_prefix(state: Conversation, live: Iterable[LiveMessage]) -> Conversation:
    """The state after a decision that changes what stands before messages.

    ``live``: the messages that are live after it, as they were shown before.
    """
    known = tuple(live)
    first = max(state.thinking_from, stays_from(state, known))
    shown = tuple(without_thinking(m) if m.position < first else m for m in known)
    return replace(
        state,
        live=shown,
        live_tokens=state.older_tokens + sum(m.tokens for m in shown),
        thinking_from=first,
        answer_pending=is_bound(state) or state.answer_pending,
    )
