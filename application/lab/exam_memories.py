"""The memories that an exam compares: refold, and simple ones to compare it with."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from refold.application.api.memory import Memory
from refold.application.conversation.transcripts import RecordedMessage
from refold.application.ports.token_counter import TokenCounter
from refold.domain.messages import Message

Request = Mapping[str, Any]
"""A request in the form of the Messages API: ``messages``, and ``system`` if the memory adds some."""


class ExamMemory(Protocol):
    """A memory of one conversation that can be examined."""

    def append(self, messages: Sequence[RecordedMessage]) -> None:
        """Take the next messages of the conversation."""
        ...

    def context(self) -> Request:
        """Return the request that would be sent now. Any exception counts as a refused request."""
        ...

    def close(self) -> None:
        """Release what the memory holds."""
        ...


Factory = Callable[[int], ExamMemory]
"""Opens a memory whose requests have a budget of so many tokens."""


class RefoldMemory:
    """refold as an agent uses it, with a log in memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._conversation = memory.conversation("exam")

    def append(self, messages: Sequence[RecordedMessage]) -> None:
        """Append messages as the recording has them."""
        self._conversation.append_recorded(messages)

    def context(self) -> Request:
        """Return the request, compacted if necessary."""
        context = self._conversation.context()
        return {"system": context.system, "messages": context.messages}

    def close(self) -> None:
        """Close the log."""
        self._memory.close()


class _HeldMessages:
    """Holds all messages. A subclass says in what order they are chosen for a request."""

    def __init__(self, counter: TokenCounter, budget: int) -> None:
        self._counter = counter
        self._budget = budget
        self._messages: list[Message] = []
        self._sizes: list[int] = []

    def append(self, messages: Sequence[RecordedMessage]) -> None:
        """Hold the messages."""
        for recorded in messages:
            self._messages.append(recorded.message)
            self._sizes.append(self._counter.count_message(recorded.message).total)

    def context(self) -> Request:
        """Return the chosen messages that fit the budget, in the order of the conversation."""
        left, chosen = self._budget, list[int]()
        for index in self.order(len(self._messages)):
            left -= self._sizes[index]
            if left < 0:
                break
            chosen.append(index)
        held = [self._messages[index] for index in sorted(chosen)]
        return {"messages": [{"role": m.role, "content": m.content} for m in held]}

    def close(self) -> None:
        """Do nothing; there is nothing to release."""

    def order(self, count: int) -> Sequence[int]:
        """Return the indexes of ``count`` messages, those to show first."""
        raise NotImplementedError


class NewestMessages(_HeldMessages):
    """Shows the newest messages that fit, and nothing else."""

    def order(self, count: int) -> Sequence[int]:
        """Return the newest first."""
        return range(count - 1, -1, -1)


class RandomMessages(_HeldMessages):
    """Shows messages chosen by chance, always the same ones for one conversation."""

    def order(self, count: int) -> Sequence[int]:
        """Return the indexes in an order that depends on their number only."""
        order = list(range(count))
        Random(count).shuffle(order)
        return order
