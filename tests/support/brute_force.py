"""What a plan may be, found by trying every cut: knows the events, and nothing of the rules' code."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from refold.domain.conversation import Conversation, Coverage
from refold.domain.events import CompactionPerformed, Event, MessageAppended
from refold.domain.messages import said


@dataclass(frozen=True)
class Told:
    """A message with what rules depend on."""

    position: int
    role: str
    message_id: str
    size: int
    thinking: int
    words: bool
    """Whether it says something; a user may show it as well."""
    calls: frozenset[str]
    results: frozenset[str]
    paused: bool

    @property
    def ends(self) -> bool:
        return self.role == "assistant" and self.words and not self.calls and not self.paused


def told(events: Iterable[Event]) -> list[Told]:
    """The messages of a history."""
    return [_told(e) for e in events if isinstance(e, MessageAppended)]


def _told(event: MessageAppended) -> Told:
    blocks = event.message.blocks()
    shows = event.message.role == "user" and any(b["type"] in ("image", "document") for b in blocks)
    return Told(
        event.position,
        event.message.role,
        event.message_id,
        event.tokens,
        event.thinking_tokens,
        shows or bool(said(event.message).strip()),
        frozenset(str(b["id"]) for b in blocks if b["type"] == "tool_use"),
        frozenset(str(b["tool_use_id"]) for b in blocks if b["type"] == "tool_result"),
        event.stop_reason == "pause_turn",
    )


@dataclass(frozen=True)
class Everything:
    """All that can be said about cuts of a conversation by looking at each message."""

    messages: Sequence[Told]
    state: Conversation
    coverage: Coverage | None = None
    protected: frozenset[int] = frozenset()
    """The open requests that the allowance has room for."""

    @cached_property
    def preamble(self) -> int:
        return next((m.position for m in self.messages if m.role != "system"), len(self.messages))

    @cached_property
    def covered(self) -> set[int]:
        if self.coverage is None:
            return set()
        return {p for p in range(len(self.messages)) if self.coverage.covers(p)}

    @cached_property
    def live(self) -> list[Told]:
        return [m for m in self.messages if m.position not in self.covered]

    @cached_property
    def tokens(self) -> dict[int, tuple[int, int]]:
        """Of each live message: as it is rendered, and without thinking."""
        return {m.position: (m.tokens, m.tokens - m.thinking) for m in self.state.live}

    @cached_property
    def bonds(self) -> list[tuple[int, int]]:
        """Positions that share one fate: call and result, the parts of a paused response.

        Found in what is live, for that is what requests are made of.
        """
        found: list[tuple[int, int]] = []
        asking: Told | None = None
        for m in self.live:
            if m.role == "assistant":
                if asking and asking.paused and asking.position + 1 == m.position:
                    found.append((asking.position, m.position))
                asking = m
            elif asking is not None and asking.calls & m.results:
                found.append((asking.position, m.position))
        return found

    def _assistant_before(self, position: int) -> Told | None:
        spoken = (m for m in reversed(self.messages[:position]) if m.role == "assistant")
        return next(spoken, None)

    def with_bonds(self, positions: Iterable[int]) -> set[int]:
        found = set(positions)
        while more := {p for bond in self.bonds if found & set(bond) for p in bond} - found:
            found |= more
        return found

    @cached_property
    def pending(self) -> int | None:
        last = self._assistant_before(len(self.messages))
        if last is None:
            return None
        after = (m.results for m in self.messages[last.position :])
        return last.position if last.calls - frozenset[str]().union(*after) else None

    @cached_property
    def unanswered(self) -> list[int]:
        last = self._assistant_before(len(self.messages))
        return [m.position for m in self.messages if last is None or m.position > last.position]

    @cached_property
    def newest_request(self) -> int | None:
        """What the user asked last in the running turn."""
        for m in reversed(self.messages):
            if m.ends:
                return None
            if m.role == "user" and m.words:
                return m.position
        return None

    @cached_property
    def untouchable(self) -> set[int]:
        """What no plan may ever cover, requests that are a matter of room left out."""
        found = {*range(self.preamble), *self.unanswered, len(self.messages) - 1}
        found |= {p for p in (self.pending, self.newest_request) if p is not None}
        return self.with_bonds({*found, *self.pinned})

    @property
    def pinned(self) -> set[int]:
        live = {m.position for m in self.live}
        return {p.position for p in self.state.pins if p.position in live and not p.tokens}

    @cached_property
    def kept_anyway(self) -> set[int]:
        """What stays wherever the cut lies."""
        return self.with_bonds(self.pinned) | self.protected

    def newly_covered(self, cut: int) -> set[int]:
        before = {m.position for m in self.live if self.preamble <= m.position < cut}
        return before - self.kept_anyway

    def is_legal(self, cut: int) -> bool:
        start = self.coverage.stop if self.coverage else 0
        if not start <= cut < len(self.messages) or not self.newly_covered(cut):
            return False
        if any(a < cut <= b for a, b in self.bonds):
            return False
        waiting = [*self.unanswered[:1], *([self.pending] if self.pending is not None else [])]
        return all(cut <= p for p in waiting)

    @cached_property
    def legal(self) -> list[int]:
        return [cut for cut in range(len(self.messages)) if self.is_legal(cut)]

    def kept(self, cut: int) -> int:
        gone = self.newly_covered(cut)
        beside = sum(p.tokens for p in self.state.pins)
        return beside + sum(size for p, (_, size) in self.tokens.items() if p not in gone)

    def newest(self, cut: int) -> int:
        return sum(size for p, (_, size) in self.tokens.items() if p >= cut)

    @cached_property
    def beginnings(self) -> list[int]:
        """Where turns begin among what is not covered, as far as that alone can tell."""
        start = max(self.coverage.stop if self.coverage else 0, self.preamble)
        rest = self.messages[start:]
        found = [m.position for m in rest[:1]]
        for m in rest[1:]:
            since = self.messages[found[-1] : m.position]
            if m.role == "user" and m.words and any(s.ends for s in since):
                found.append(self._with_its_calls(m.position))
        return found

    def _with_its_calls(self, position: int) -> int:
        # What is said while tools run belongs to the turn that their call is in.
        while before := [a for a, b in self.bonds if a < position <= b]:
            position = min(before)
        return position

    def divided(self, cut: int) -> int | None:
        """Where the turn begins that a cut divides, if it covers some of it."""
        begin = max((b for b in self.beginnings if b <= cut), default=cut)
        return begin if any(begin <= p < cut for p in self.newly_covered(cut)) else None

    def told_apart(self, cut: int, most: int) -> int | None:
        """Where a turn of more than ``most`` tokens begins that a cut divides, behind some history."""
        begin = self.divided(cut)
        if begin is None or self.newest(begin) <= most:
            return None
        if self.coverage is None:
            return begin if any(p < begin for p in self.newly_covered(cut)) else None
        asks = self.messages[begin]
        is_asked = asks.role == "user" and asks.words and not asks.results
        return begin if begin != self.beginnings[0] or is_asked else None

    def whole_turns(self, cut: int) -> int:
        return sum(1 for b in self.beginnings if b >= cut)


def everything(
    events: Sequence[Event], state: Conversation, protected: frozenset[int]
) -> Everything:
    """What can be said about cuts of this history now."""
    performed = [e.coverage for e in events if isinstance(e, CompactionPerformed)]
    return Everything(told(events), state, performed[-1] if performed else None, protected)
