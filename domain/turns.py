"""Turns, rounds and tool calls: which messages belong together, and which thinking is shown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .conversation import Conversation, LiveMessage
from .value import replace


def drop_thinking(message: LiveMessage) -> LiveMessage:
    """Return the message without thinking, as it is shown after a changed prefix."""
    if not message.thinking:
        return message
    return message._replace(tokens=message.tokens - message.thinking, thinking=0)


def is_bound(state: Conversation) -> bool:
    """Return whether providers reject thinking after a changed prefix.

    This is assumed unless the newest request frame states otherwise.
    """
    return state.frame is None or state.frame.binds_thinking


def is_after_answer(state: Conversation) -> bool:
    """Return whether the next message would directly follow a complete answer."""
    last = state.live[-1] if state.live else None
    return last is not None and last.role == "assistant" and not last.paused


def thinking_start(state: Conversation, live: Iterable[LiveMessage] | None = None) -> int:
    """Return the position from which thinking stays if the next decision changes the prefix.

    Most models reject thinking after a changed prefix, so all thinking is dropped. Other models accept it,
    and some of them require the thinking of the running tool loop, which therefore stays.
    """
    if is_bound(state):
        return state.length
    some = state.live if live is None else live
    ended = (
        m.position + 1 for m in reversed(tuple(some)) if m.role == "assistant" and _ends_response(m)
    )
    return next(ended, 0)


def _ends_response(message: LiveMessage) -> bool:
    return not message.calls and not message.paused


def change_prefix(state: Conversation, live: Iterable[LiveMessage]) -> Conversation:
    """Return the state after a decision that changes the beginning of the request.

    ``live`` are the messages that remain live, before thinking is dropped from them.
    """
    known = tuple(live)
    first = max(state.thinking_from, thinking_start(state, known))
    shown = tuple(drop_thinking(m) if m.position < first else m for m in known)
    return replace(
        state,
        live=shown,
        live_tokens=state.older_tokens + sum(m.tokens for m in shown),
        thinking_from=first,
        answer_pending=is_bound(state) or state.answer_pending,
    )


def open_calls(state: Conversation) -> tuple[str, ...]:
    """Return the ids of tool calls that can still be answered.

    These are the unanswered calls of the last assistant message. Calls before it are given up: a result
    must follow the turn that made the call.
    """
    last, after = _last_round(state)
    if last is None:
        return ()
    answered = {call_id for message in after for call_id in message.results}
    return tuple(call_id for call_id in last.calls if call_id not in answered)


def pending_position(state: Conversation) -> int | None:
    """Return the position of the assistant message that waits for tool results, or None."""
    last, _ = _last_round(state)
    return last.position if last is not None and open_calls(state) else None


def _last_round(state: Conversation) -> tuple[LiveMessage | None, tuple[LiveMessage, ...]]:
    # Messages before the end of the coverage were excluded on purpose. The search can stop there,
    # because no summary covers or passes a waiting call.
    for index in range(len(state.live) - 1, -1, -1):
        if state.live[index].position < state.covered_to:
            break
        if state.live[index].role == "assistant":
            return state.live[index], state.live[index + 1 :]
    return None, ()


class Round(NamedTuple):
    """A response of the model, with all messages before its next response."""

    response: tuple[LiveMessage, ...]
    """Messages of the response: several if it was paused, none for messages before the first response."""
    replies: tuple[LiveMessage, ...]

    @property
    def results(self) -> tuple[LiveMessage, ...]:
        """Replies with a result of the response's calls. A late result does not count."""
        if not self.response or not self.response[-1].calls:
            return ()
        calls = frozenset(self.response[-1].calls)
        return tuple(m for m in self.replies if not calls.isdisjoint(m.results))

    @property
    def whole(self) -> tuple[LiveMessage, ...]:
        """Messages that are kept or covered together: the response and the results of its calls."""
        return (*self.response, *self.results)


def rounds(messages: Iterable[LiveMessage]) -> list[Round]:
    """Split messages into rounds: a new round starts at each response of the model."""
    found: list[Round] = []
    response: list[LiveMessage] = []
    replies: list[LiveMessage] = []
    for message in messages:
        if message.role != "assistant":
            replies.append(message)
            continue
        if replies or not _continues(response, message):
            found.append(Round(tuple(response), tuple(replies)))
            response, replies = [], []
        response.append(message)
    found.append(Round(tuple(response), tuple(replies)))
    return [r for r in found if r.response or r.replies]


def companions(messages: Iterable[LiveMessage]) -> Mapping[int, tuple[LiveMessage, ...]]:
    """Map positions to the messages that stay together. Messages without companions are left out."""
    wholes = (r.whole for r in rounds(messages))
    return {m.position: whole for whole in wholes if len(whole) > 1 for m in whole}


def add_companions(messages: Sequence[LiveMessage], positions: frozenset[int]) -> frozenset[int]:
    """Return ``positions`` that exist in ``messages``, extended by their companions."""
    found: set[int] = set()
    for index in (
        [i for i, m in enumerate(messages) if m.position in positions] if positions else ()
    ):
        message = messages[index]
        # Build only the round of this message: a conversation has many rounds, and callers ask for
        # few positions.
        [of] = rounds(messages[_begin(messages, index) : _end(messages, index)])
        whole = of.whole if message in of.whole else (message,)
        found.update(one.position for one in whole)
    return frozenset(found)


def _begin(messages: Sequence[LiveMessage], index: int) -> int:
    return next((i for i in range(index, 0, -1) if _begins(messages, i)), 0)


def _end(messages: Sequence[LiveMessage], index: int) -> int:
    later = range(index + 1, len(messages))
    return next((i for i in later if _begins(messages, i)), len(messages))


def _begins(messages: Sequence[LiveMessage], index: int) -> bool:
    """Return whether a round begins at this index, which must not be 0."""
    before, message = messages[index - 1], messages[index]
    if message.role != "assistant":
        return False
    return before.role != "assistant" or not _continues([before], message)


def _continues(response: list[LiveMessage], message: LiveMessage) -> bool:
    # Messages kept from an older part are not adjacent, even if no message is between them in the
    # list.
    last = response[-1] if response else None
    return last is not None and last.paused and last.position + 1 == message.position


def running_turn(state: Conversation) -> tuple[LiveMessage, ...]:
    """Return the live messages since the model last ended a turn."""
    for index in range(len(state.live) - 1, -1, -1):
        if state.live[index].ends_turn:
            return state.live[index + 1 :]
    return state.live


def turn_beginnings(state: Conversation) -> tuple[int, ...]:
    """Return the positions where uncovered turns begin.

    A turn begins with a user message that contains words, after the model has ended the previous turn. The
    first position is the first remembered message that is not covered: it counts as the beginning of a
    turn whose real beginning is covered or forgotten. A message sent while tools run begins its turn at
    the tool call, because a call and its results are never separated.
    """
    start, calls = max(state.covered_to, state.preamble), _running_calls(state)
    found: list[int] = []
    ended = False
    for message in state.live:
        if message.position < start:
            continue
        speaks = message.role == "user" and message.speaks
        if not found or (ended and speaks):
            found.append(calls.get(message.position, message.position))
            ended = False
        ended = ended or message.ends_turn
    return tuple(found)


def _running_calls(state: Conversation) -> Mapping[int, int]:
    """Map the replies up to the last tool result to the position where their response begins."""
    return {
        message.position: done.response[0].position
        for done in rounds(state.live)
        if done.results
        for message in done.replies
        if message.position <= done.results[-1].position
    }


MOST_PROTECTED = 16

Request = tuple[LiveMessage, ...]
"""Messages that must stay for a request to stay: one message, or its whole tool round."""


def open_requests(state: Conversation) -> tuple[Request, ...]:
    """Return the requests of the user since the model last ended a turn, oldest first.

    A turn ends when the model answers in words and calls no tool. Tool results alone are not a request. A
    message with results and words is one, and it keeps its round: a result needs its call.
    """
    turn = running_turn(state)
    together = companions(turn)
    words = (m for m in turn if m.role == "user" and m.speaks)
    return tuple(dict.fromkeys(together.get(m.position, (m,)) for m in words))


def protected_requests(state: Conversation, allowance: int) -> frozenset[int]:
    """Return the positions of requests in the running turn that stay word for word.

    The newest request always stays. Then the first request of the turn is added, then the others: single
    messages before whole rounds, newest first. Adding stops at ``allowance`` tokens or at 16 requests,
    because a turn with a thousand interjections must not fill the context.
    """
    requests = open_requests(state)
    if not requests:
        return frozenset()
    newest = requests[-1]
    # Pinned requests stay anyway, and a pinned one may be all that remains of an earlier turn.
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
