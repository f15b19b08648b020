"""``given(events).when(decide).then(events)``: test a decision by its history and its events."""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TypeVar, cast

from refold.domain.conversation import Conversation
from refold.domain.errors import RefoldError
from refold.domain.events import Event
from refold.domain.evolve import evolve, fold
from refold.domain.value import Value

Decision = Callable[[Conversation], Sequence[Event]]
Refusal = TypeVar("Refusal", bound=RefoldError)


class Outcome:
    """The result of a decision: events, or a refusal."""

    def __init__(self, events: Sequence[Event], error: RefoldError | None) -> None:
        self._events = events
        self._error = error

    def __repr__(self) -> str:
        return repr(self._error) if self._error is not None else repr(list(self._events))

    def is_like(self, other: "Outcome") -> bool:
        """Return whether another outcome has the same events or the same refusal."""
        return self._events == other._events and repr(self._error) == repr(other._error)

    @property
    def events(self) -> list[Event]:
        """Events of the decision. A refusal is raised."""
        if self._error is not None:
            raise self._error
        return list(self._events)

    def then(self, *events: Event) -> None:
        """Assert that the decision returns exactly these events, in this order."""
        seen = self.events
        assert seen == list(events), _difference(seen, events)

    def then_nothing(self) -> None:
        """Assert that the decision returns no events and is not refused."""
        self.then()

    def then_raises(self, kind: type[Refusal]) -> Refusal:
        """Assert that the decision is refused with exactly this kind of error, and return the error."""
        assert self._error is not None, (
            f"expected {kind.__name__}, but the decision was {self._events}"
        )
        if type(self._error) is not kind:
            raise self._error
        assert isinstance(self._error, kind)
        return self._error


class Given:
    """A history to decide on. ``state`` is the fold of its events."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.state = fold(events)

    def when(self, decision: Decision) -> Outcome:
        """Decide twice on the state of this history, as after a conflict.

        Raises:
            AssertionError: the second decision differs, the result is not a sequence of events, or the
            events do not fit the history.
        """
        first, again = self._decide_once(decision), self._decide_once(decision)
        assert first.is_like(again), f"decided {first}, and {again} when the decision was repeated"
        return first

    def _decide_once(self, decision: Decision) -> Outcome:
        try:
            events: object = decision(self.state)
        except RefoldError as error:
            return Outcome((), error)
        assert isinstance(events, list | tuple), f"expected events in a list, decided {events!r}"
        decided = cast("Sequence[object]", events)
        strange = [event for event in decided if not isinstance(event, Value)]
        assert not strange, f"expected events, decided {strange!r}"
        made = cast("Sequence[Event]", decided)
        reduce(evolve, made, self.state)
        return Outcome(made, None)


def given(events: Iterable[Event] = ()) -> Given:
    """Start a test with the history so far. Without events, the conversation is new.

    >>> given([]).when(lambda state: label_conversation(state, "Tuesday")).then(
    ...     ConversationLabelled(label="Tuesday")
    ... )
    >>> given([]).when(lambda state: label_conversation(state, " ")).then_raises(InvalidSetting)
    """
    return Given(events)


def _difference(seen: Sequence[Event], expected: Sequence[Event]) -> str:
    listed = [f"  - {event!r}" for event in expected if event not in seen]
    listed += [f"  + {event!r}" for event in seen if event not in expected]
    lines = "\n".join(listed) or "  the same events in another order"
    return f"expected {len(expected)} events, decided {len(seen)}:\n{lines}"
