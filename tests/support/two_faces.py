"""One way to use a memory through either face: what asyncio awaits is awaited, what it calls a method is called."""

import inspect
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, cast

import refold

HANDLES = (
    refold.Memory,
    refold.ConversationMemory,
    refold.Toolbox,
    refold.AsyncMemory,
    refold.AsyncConversationMemory,
    refold.AsyncToolbox,
    refold.Follower,
    refold.AsyncFollower,
    refold.ConversationTurn,
    refold.AsyncConversationTurn,
)
"""What differs by its type alone; what it does is asked of it."""


@dataclass(frozen=True)
class Refused:
    """An error instead of an answer."""

    kind: type[Exception]
    words: str


class Used:
    """Asks one face, and keeps what it was asked and what it answered."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, object]] = []

    async def ask(self, face: Any, name: str, *args: Any, **options: Any) -> Any:
        """What a method or a property answers; an error of refold's own is an answer as well."""
        where = f"{type(face).__name__.removeprefix('Async')}.{name}"
        try:
            found = getattr(face, name)
            answer: Any = found(*args, **options) if inspect.isroutine(found) else found
            answer = await answer if inspect.isawaitable(answer) else answer
            if isinstance(answer, AsyncIterator):
                answer = [one async for one in cast(AsyncIterator[object], answer)]
            if isinstance(answer, Iterator):
                answer = list(cast(Iterator[object], answer))
        except (refold.RefoldError, TypeError) as error:
            answer = Refused(type(error), str(error))
        self.answers.append((where, None if isinstance(answer, HANDLES) else answer))
        return answer

    async def within(self, turn: Any) -> None:
        """Enter a turn, and leave it."""
        if isinstance(turn, refold.ConversationTurn):
            with turn as entered:
                self.answers.append(("turn", entered.thread_id))
        else:
            async with turn as entered:
                self.answers.append(("turn", entered.thread_id))

    @property
    def asked(self) -> set[str]:
        """The names of what was asked, such as ``ConversationMemory.append``."""
        return {where for where, _ in self.answers}

    @property
    def worked(self) -> set[str]:
        """The names of what answered without an error at least once."""
        return {where for where, answer in self.answers if not isinstance(answer, Refused)}
