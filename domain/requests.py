"""Open requests: what the user asked for in the turn that is still being worked on."""

from .conversation import Conversation
from .facts import LiveMessage
from .rounds import companions
from .turns import running_turn

MOST_PROTECTED = 16

Request = tuple[LiveMessage, ...]
"""What must stay for one request to stay: its message, or the whole tool round that it came in."""


def open_requests(state: Conversation) -> tuple[Request, ...]:
    """What the user said since the model last ended a turn, oldest first.

    A turn ends when the model answers in words and calls no tool. Tool results alone are no request;
    words beside them are, and they keep their round: a result is nothing without its call.
    """
    turn = running_turn(state)
    together = companions(turn)
    words = (m for m in turn if m.role == "user" and m.speaks)
    return tuple(dict.fromkeys(together.get(m.position, (m,)) for m in words))


def protected_requests(state: Conversation, allowance: int) -> frozenset[int]:
    """The positions that stay word for word: the requests of the running turn.

    The newest one always; then the one that began the turn, then the others, words alone before
    those that keep a round, newest first, as long as together they stay within ``allowance`` tokens
    and are no more than 16: a turn of a thousand interjections must not fill the context for ever.
    """
    requests = open_requests(state)
    if not requests:
        return frozenset()
    newest = requests[-1]
    # What is pinned stays anyway; and of an earlier turn it may be all that is left to see.
    earlier = [r for r in requests[:-1] if not state.pinned_positions.issuperset(_positions(r))]
    protected, spent = [newest], _tokens(newest)
    for request in (*earlier[:1], *sorted(earlier[:0:-1], key=len)):
        spent += _tokens(request)
        if spent > allowance or len(protected) >= MOST_PROTECTED:
            break
        protected.append(request)
    return frozenset(message.position for request in protected for message in request)


def _positions(request: Request) -> list[int]:
    return [message.position for message in request]


def _tokens(request: Request) -> int:
    return sum(message.tokens for message in request)
