"""``given(events).when(decision).then(events)``: a decision, told as what happened and what happens."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from refold.domain.conversation import Conversation
from refold.domain.errors import RefoldError
from refold.domain.events import Event
from refold.domain.evolve import fold

Decision = Callable[[Conversation], Sequence[Event]]
Refusal = TypeVar("Refusal", bound=RefoldError)


class Outcome:
    """What a decision led to: events, or a refusal."""

    def __init__(self, events: Sequence[Event], error: RefoldError | None) -> None:
        self._events = events
        self._error = error

    @property
    def events(self) -> list[Event]:
        """The events that were decided; a refusal is raised here."""
        if self._error is not None:
            raise self._error
        return list(self._events)

    def then(self, *events: Event) -> None:
        """Exactly these events happen; none at all for no argument."""
        assert self.events == list(events)

    def then_raises(self, kind: type[Refusal]) -> Refusal:
        """The decision is refused with an error of exactly this kind, which is returned."""
        assert self._error is not None, f"not refused: {self._events}"
        if type(self._error) is not kind:
            raise self._error
        assert isinstance(self._error, kind)
        return self._error


class Given:
    """A history that a decision is made on."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.state = fold(events)

    def when(self, decision: Decision) -> Outcome:
        """Make the decision on the state of this history."""
        try:
            return Outcome(tuple(decision(self.state)), None)
        except RefoldError as error:
            return Outcome((), error)


def given(events: Iterable[Event] = ()) -> Given:
    """The history so far; without events the conversation is new."""
    return Given(events)
