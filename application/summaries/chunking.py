"""Split the source of a summary into chunks for a summariser with a smaller window."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from refold.application.conversation.addresses import address_of
from refold.application.errors import SummariserError
from refold.application.ports.summariser import (
    BoundedSummariser,
    SourceMessage,
    Summariser,
    SummaryRequest,
)
from refold.domain.compaction.budget import SHORTEST_SUMMARY
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import OmittedMessage
from refold.domain.messages import Block, gist
from refold.domain.value import build_in_order, replace

_HEADING = (
    "[Left out of this summary, for they were too large; each can be read back by its address]"
)
_MOST_NAMED = 10


def placeholder_for(source: SourceMessage, note: str) -> SourceMessage | None:
    """Return the calls and results of a message with a note in place of their content.

    The pairs of calls and results stay complete. Return None if the message has neither.
    """
    blocks = tuple(filter(None, (_empty_block(b, note) for b in source.message.blocks())))
    if not blocks:
        return None
    return replace(source, message=replace(source.message, content=blocks))


def _empty_block(block: Block, note: str) -> Block | None:
    match block.get("type"):
        case "tool_use":
            return {**block, "input": {"left_out": note}}
        case "tool_result":
            return {**block, "content": note}
        case _:
            return None


def skimming_note(thread_id: str, first: int, last: int, skimmed: int) -> str:
    """Return the note that some messages were only skimmed, or an empty string if none were."""
    if not skimmed:
        return ""
    start, end = address_of(thread_id, first), address_of(thread_id, last)
    return (
        f"\n\n[Of messages {first} to {last}, {skimmed:,} were only looked through by code, for rules, "
        f"decisions and open requests; each can be read back by its address, {start} to {end}]"
    )


def unread_note(thread_id: str, first: int, last: int, count: int) -> str:
    """Return the note that some messages were not read again, or an empty string if all were."""
    if count <= 0:
        return ""
    start, end = address_of(thread_id, first), address_of(thread_id, last)
    return (
        f"\n\n[Of messages {first} to {last}, {count:,} were not read again when something was erased; each "
        f"can be read back by its address, {start} to {end}]"
    )


def note_of(thread_id: str, omitted: OmittedMessage) -> str:
    """Return position, size and address of a message that was left out."""
    address = address_of(thread_id, omitted.position)
    return f"message {omitted.position}, about {omitted.tokens:,} tokens: {address}"


def omission_note(
    thread_id: str, omitted: Sequence[OmittedMessage], room: int, count: Callable[[str], int]
) -> str:
    """Return the note that names omitted messages, or an empty string without any.

    The newest are named within ``room`` tokens, at least one and at most ten; the others are
    counted.
    """
    if not omitted:
        return ""
    lines = [f"- {note_of(thread_id, one)}" for one in reversed(omitted)]
    shown = min(_MOST_NAMED, len(lines))
    while shown > 1 and count(_note_text(lines, shown)) > room:
        shown -= 1
    return _note_text(lines, shown)


def _note_text(lines: Sequence[str], shown: int) -> str:
    rest = [f"- and {len(lines) - shown} earlier ones"] if shown < len(lines) else []
    return "\n".join(["", "", _HEADING, *lines[:shown], *rest])


def remove_omission_note(text: str) -> str:
    """Return a text without its note about omitted messages."""
    if text.startswith(f"{_HEADING}\n"):
        return ""
    kept, found, _ = text.rpartition(f"\n\n{_HEADING}\n")
    return kept if found else text


Round = tuple[SourceMessage, ...]
"""Messages that stay together: a response with its calls and their results, or one message."""
Chunk = tuple[SourceMessage, ...]


class Weighed(NamedTuple):
    """A message and its tokens in a summariser's window."""

    source: SourceMessage
    tokens: int


def rounds_of(messages: Sequence[SourceMessage]) -> tuple[Round, ...]:
    """Group messages in order so that calls stay together with their results."""
    found: list[list[SourceMessage]] = []
    asked: frozenset[str] = frozenset()
    asking = 0
    for source in messages:
        calls, results, _ = gist(source.message)
        if source.message.role == "assistant":
            asked, asking = frozenset(calls), len(found)
        elif not asked.isdisjoint(results):
            # Messages between a call and its result stay with them.
            found[asking:] = [[s for part in found[asking:] for s in part]]
            found[-1].append(source)
            continue
        found.append([source])
    return tuple(map(tuple, found))


def split_into_chunks(rounds: Iterable[Sequence[Weighed]], room: int) -> Iterator[Chunk]:
    """Yield chunks of as many rounds as fit into ``room``; a larger round is a chunk of its own."""
    chunk: list[SourceMessage] = []
    left = room
    for one in rounds:
        needed = sum(weighed.tokens for weighed in one)
        if chunk and needed > left:
            yield tuple(chunk)
            chunk, left = [], room
        chunk.extend(weighed.source for weighed in one)
        left -= needed
    if chunk:
        yield tuple(chunk)


class Capacity(NamedTuple):
    """The window of a summariser, and a function that measures actual requests to it."""

    window: int
    measure: Callable[[SummaryRequest], int]


class Portions(NamedTuple):
    """The messages of a request, split for successive calls."""

    chunks: tuple[Chunk, ...]
    omitted: tuple[OmittedMessage, ...] = ()
    """Messages that were left out; their calls and results keep placeholders in the chunks."""


def capacity_of(summariser: Summariser) -> Capacity | None:
    """Return the capacity of a summariser, or None if it has no limit."""
    if isinstance(summariser, BoundedSummariser):
        return Capacity(summariser.window, summariser.measure)
    return None


def fitting_length(request: SummaryRequest, capacity: Capacity, policy: CompactionPolicy) -> int:
    """Return the longest answer to ask for in a window of this size, up to the limit of ``request``.

    The window also needs room for a chunk of messages, and for the answer carried into the next
    call. If no length leaves that room, return the shortest useful one.
    """
    usable, bare = capacity.window / policy.chunk_slack, _bare(request)

    def leaves_room(limit: int) -> bool:
        floor = capacity.measure(replace(bare, limit_tokens=limit))
        return usable - floor - limit >= usable * policy.chunk_share

    least, most = SHORTEST_SUMMARY, request.limit_tokens
    if most <= least or leaves_room(most):
        return most
    while least + 1 < most:
        middle = (least + most) // 2
        least, most = (middle, most) if leaves_room(middle) else (least, middle)
    return least


def carried_room(request: SummaryRequest, capacity: Capacity, policy: CompactionPolicy) -> int:
    """Return how many tokens a carried text may take, so that messages fit in the same window."""
    usable = capacity.window / policy.chunk_slack
    return int(usable * (1 - policy.chunk_least) - capacity.measure(_bare(request)))


def _bare(request: SummaryRequest) -> SummaryRequest:
    return replace(request, messages=(), previous=None, previous_block=None)


def split_messages(
    thread_id: str, request: SummaryRequest, capacity: Capacity, policy: CompactionPolicy
) -> Portions:
    """Split the messages of ``request`` so that each call fits, into one chunk if possible.

    Raises:
        SummariserError: ``too_large``, no message fits in addition to the rest.
    """
    scale = _Scale(request, capacity, policy)
    if not request.messages or scale.total <= min(scale.chunk, scale.oversized):
        return Portions((request.messages,) if request.messages else ())
    if scale.most <= 0:
        raise SummariserError(
            "too_large",
            f"the summariser's window of {capacity.window:,} tokens has no room for any message "
            "in addition to instructions, previous summary and answer: use a model with a larger window",
        )
    omitted: list[OmittedMessage] = []
    rounds = [_fit_round(thread_id, one, scale, omitted) for one in rounds_of(request.messages)]
    return Portions(
        tuple(split_into_chunks(rounds, scale.chunk)), tuple(sorted(omitted, key=_position))
    )


def _fit_round(
    thread_id: str, messages: Round, scale: "_Scale", omitted: list[OmittedMessage]
) -> list[Weighed]:
    """Leave out the largest messages of a round until the rest fits one call."""
    kept = [Weighed(source, scale.size(source)) for source in messages]
    for at in sorted(range(len(kept)), key=lambda i: kept[i].tokens, reverse=True):
        source, tokens = kept[at]
        if tokens <= scale.oversized and sum(w.tokens for w in kept) <= scale.most:
            break
        left_out = build_in_order(OmittedMessage, position=source.position, tokens=tokens)
        omitted.append(left_out)
        left = placeholder_for(source, f"[left out: {note_of(thread_id, left_out)}]")
        kept[at] = Weighed(left, scale.size(left)) if left else Weighed(source, 0)
    gone = {one.position for one in omitted}
    return [w for w in kept if w.tokens or w.source.position not in gone]


def _position(omitted: OmittedMessage) -> int:
    return omitted.position


def chunk_share(average: float, usable: float, policy: CompactionPolicy) -> float:
    """Return the share of a window that a chunk takes, for messages of this average size.

    It is ``chunk_share`` for the smallest messages and falls evenly to ``chunk_least`` for messages
    that take ``chunk_large`` of the window or more.
    """
    least = min(policy.chunk_least, policy.chunk_share)
    fallen = min(1.0, average / max(1.0, policy.chunk_large * usable))
    return policy.chunk_share - (policy.chunk_share - least) * fallen


class _Scale:
    """Measures messages as they would be sent, and computes how much fits."""

    def __init__(
        self, request: SummaryRequest, capacity: Capacity, policy: CompactionPolicy
    ) -> None:
        self._bare = _bare(request)
        self._measure = capacity.measure
        self._floor = capacity.measure(self._bare)
        carried = capacity.measure(replace(self._bare, previous=request.previous)) - self._floor
        usable = capacity.window / policy.chunk_slack
        self.most = int(usable - self._floor - max(carried, request.limit_tokens))
        """Tokens that messages may take in one call, in addition to what every call carries."""
        self.oversized = min(self.most, int(usable * policy.oversized_share))
        self.total = self._together(request.messages)
        average = self.total / max(1, len(request.messages))
        self.chunk = min(self.most, int(usable * chunk_share(average, usable, policy)))

    def size(self, source: SourceMessage) -> int:
        """Return the tokens of one message."""
        return self._together((source,))

    def _together(self, messages: Round) -> int:
        return self._measure(replace(self._bare, messages=messages)) - self._floor
