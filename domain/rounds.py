"""Rounds: a response of the model and what is said until its next one; what belongs together in them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .facts import LiveMessage


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
