"""Turns, rounds and tool calls: which messages belong together, and whose thinking is shown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

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


def open_calls(state: Conversation) -> tuple[str, ...]:
    """The calls that a result may still answer: those of the last assistant message without one.

    A call is given up when the model speaks again: a result must follow the turn with its call.
    """
    last, after = _last_round(state)
    if last is None:
        return ()
    answered = {call_id for message in after for call_id in message.results}
    return tuple(call_id for call_id in last.calls if call_id not in answered)


def pending_position(state: Conversation) -> int | None:
    """The position of the assistant message that waits for tool results, if any does."""
    last, _ = _last_round(state)
    return last.position if last is not None and open_calls(state) else None


def _last_round(state: Conversation) -> tuple[LiveMessage | None, tuple[LiveMessage, ...]]:
    # What was said before the end of the summary is there on purpose; the model spoke after it, for
    # no summary covers, or reaches beyond, a call that waits.
    for index in range(len(state.live) - 1, -1, -1):
        if state.live[index].position < state.covered_to:
            break
        if state.live[index].role == "assistant":
            return state.live[index], state.live[index + 1 :]
    return None, ()


class Round(NamedTuple):
    """A response of the model, with everything that others said before it spoke again."""

    response: tuple[LiveMessage, ...]
    """Several messages where it was paused and went on; none for what stands before its first one."""
    replies: tuple[LiveMessage, ...]

    @property
    def results(self) -> tuple[LiveMessage, ...]:
        """The replies with a result of one of its calls; a result that comes later has lost its call."""
        if not self.response or not self.response[-1].calls:
            return ()
        calls = frozenset(self.response[-1].calls)
        return tuple(m for m in self.replies if not calls.isdisjoint(m.results))

    @property
    def whole(self) -> tuple[LiveMessage, ...]:
        """What shares one fate: the response, and the results of its calls (invariants 1 and 6)."""
        return (*self.response, *self.results)


def rounds(messages: Iterable[LiveMessage]) -> list[Round]:
    """Messages in order, parted before each response of the model."""
    found: list[Round] = []
    response: list[LiveMessage] = []
    replies: list[LiveMessage] = []
    for message in messages:
        if message.role != "assistant":
            replies.append(message)
            continue
        if replies or not _goes_on(response, message):
            found.append(Round(tuple(response), tuple(replies)))
            response, replies = [], []
        response.append(message)
    found.append(Round(tuple(response), tuple(replies)))
    return [r for r in found if r.response or r.replies]


def companions(messages: Iterable[LiveMessage]) -> Mapping[int, tuple[LiveMessage, ...]]:
    """For the position of each message that cannot stand alone: all that stay if it stays."""
    wholes = (r.whole for r in rounds(messages))
    return {m.position: whole for whole in wholes if len(whole) > 1 for m in whole}


def with_companions(messages: Sequence[LiveMessage], positions: frozenset[int]) -> frozenset[int]:
    """The messages at ``positions``, and the positions of all that stay with them."""
    found: set[int] = set()
    for index in (
        [i for i, m in enumerate(messages) if m.position in positions] if positions else ()
    ):
        message = messages[index]
        # Only its own round is made: a conversation has many, and few positions are asked for.
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
    """Whether a round begins with this message, which is not the first."""
    before, message = messages[index - 1], messages[index]
    if message.role != "assistant":
        return False
    return before.role != "assistant" or not _goes_on([before], message)


def _goes_on(response: list[LiveMessage], message: LiveMessage) -> bool:
    # Messages that are kept from an older part are no neighbours, although nothing is between them.
    last = response[-1] if response else None
    return last is not None and last.paused and last.position + 1 == message.position


def running_turn(state: Conversation) -> tuple[LiveMessage, ...]:
    """The live messages since the model last ended a turn."""
    for index in range(len(state.live) - 1, -1, -1):
        if state.live[index].ends_turn:
            return state.live[index + 1 :]
    return state.live


def turn_beginnings(state: Conversation) -> tuple[int, ...]:
    """The positions at which turns begin, among what no summary covers yet.

    A turn begins with a user message that speaks after the model has ended the turn before. The first
    position is that of the first uncovered message that is remembered: a turn whose beginning is
    covered, or only counted, begins there as far as anybody can tell. What is said while tools run
    begins its turn with their call: a call and its results are never parted.
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
    """For what is said before the last result of a response's calls came: where the response begins."""
    return {
        message.position: done.response[0].position
        for done in rounds(state.live)
        if done.results
        for message in done.replies
        if message.position <= done.results[-1].position
    }


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
