"""Open requests: what the user asked for in the turn that is still being worked on."""

from .conversation import Conversation, LiveMessage

MOST_PROTECTED = 16


def open_requests(state: Conversation) -> tuple[LiveMessage, ...]:
    """The user's messages since the model last ended a turn, oldest first.

    A turn ends when the model answers in words and calls no tool. Tool results are no requests.
    """
    requests: list[LiveMessage] = []
    for message in reversed(state.live):
        if message.role == "assistant" and message.speaks and not message.calls:
            break
        if message.role == "user" and message.speaks and not message.results:
            requests.append(message)
    return tuple(reversed(requests))


def protected_requests(state: Conversation, cut: int, allowance: int) -> frozenset[int]:
    """Positions before ``cut`` that stay word for word: the requests of the running turn.

    The newest one always; then the one that began the turn and the others, newest first, as long
    as together they stay within ``allowance`` tokens and are no more than 16: a turn of a thousand
    interjections must not fill the context for ever.
    """
    requests = open_requests(state)
    if not requests:
        return frozenset()
    newest, rest = requests[-1], requests[:-1]
    protected = {newest.position}
    spent = newest.tokens
    for message in (*rest[:1], *reversed(rest[1:])):
        spent += message.tokens
        if spent > allowance or len(protected) >= MOST_PROTECTED:
            break
        protected.add(message.position)
    return frozenset(p for p in protected if p < cut)
