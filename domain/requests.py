"""Open requests: what the user asked for in the turn that is still being worked on."""

from .conversation import Conversation
from .facts import LiveMessage

MOST_PROTECTED = 16

Request = tuple[LiveMessage, ...]
"""What must stay for one request to stay: its message, or the whole tool round that it came in."""


def open_requests(state: Conversation) -> tuple[Request, ...]:
    """What the user said since the model last ended a turn, oldest first.

    A turn ends when the model answers in words and calls no tool. Tool results alone are no request;
    words beside them are, and they keep their round: a result is nothing without its call.
    """
    requests: list[Request] = []
    for round_ in _rounds(state):
        pairs = tuple(m for m in round_ if m.role == "assistant" or m.results)
        words = [m for m in round_ if m.role == "user" and m.speaks]
        requests.extend(pairs if message.results else (message,) for message in words)
    return tuple(dict.fromkeys(requests))


def protected_requests(state: Conversation, cut: int, allowance: int) -> frozenset[int]:
    """Positions before ``cut`` that stay word for word: the requests of the running turn.

    The newest one always; then the one that began the turn, then the others, words alone before
    those that keep a round, newest first, as long as together they stay within ``allowance`` tokens
    and are no more than 16: a turn of a thousand interjections must not fill the context for ever.
    """
    requests = open_requests(state)
    if not requests:
        return frozenset()
    newest, first, others = requests[-1], requests[:-1][:1], requests[-2:0:-1]
    protected, spent = [newest], _tokens(newest)
    for request in (*first, *sorted(others, key=len)):
        spent += _tokens(request)
        if spent > allowance or len(protected) >= MOST_PROTECTED:
            break
        protected.append(request)
    positions = (message.position for request in protected for message in request)
    return frozenset(p for p in positions if p < cut)


def _rounds(state: Conversation) -> list[list[LiveMessage]]:
    """The running turn, parted before each message of the model."""
    rounds: list[list[LiveMessage]] = [[]]
    for message in state.live:
        if message.role != "assistant":
            rounds[-1].append(message)
        elif message.speaks and not message.calls:
            rounds = [[]]
        else:
            rounds.append([message])
    return rounds


def _tokens(request: Request) -> int:
    return sum(message.tokens for message in request)
