"""What a summariser can take at once, and how a source is parted to fit it (requirements C6 and C7)."""

from collections.abc import Callable
from typing import NamedTuple

from refold.application.errors import SummariserError
from refold.application.ports import BoundedSummariser, SourceMessage, Summariser, SummaryRequest
from refold.domain.budget import SHORTEST_SUMMARY
from refold.domain.events import OmittedMessage
from refold.domain.policy import CompactionPolicy

from .chunking import Chunk, Round, Weighed, chunked, rounds_of
from .leaving_out import note_of, stand_in


class Capacity(NamedTuple):
    """A summariser's own window, and the measure of what would really be sent to it."""

    window: int
    measure: Callable[[SummaryRequest], int]


class Portions(NamedTuple):
    """The messages of a request, parted for several calls in a row."""

    chunks: tuple[Chunk, ...]
    omitted: tuple[OmittedMessage, ...] = ()
    """What was left out of the chunks; calls and results keep a stand-in there."""


def capacity_of(summariser: Summariser) -> Capacity | None:
    """The capacity of a summariser that has one."""
    if isinstance(summariser, BoundedSummariser):
        return Capacity(summariser.window, summariser.measure)
    return None


def fitting_length(request: SummaryRequest, capacity: Capacity, policy: CompactionPolicy) -> int:
    """Return the longest answer to ask for, up to the limit of ``request``, in a window of this size.

    It leaves a chunk's share of the window for messages, beside an answer and one that is carried on;
    where there is no such length, the shortest that says anything.
    """
    usable, bare = capacity.window / policy.chunk_slack, _bare(request)

    def leaves_room(limit: int) -> bool:
        floor = capacity.measure(bare.replaced(limit_tokens=limit))
        return usable - floor - limit >= usable * policy.chunk_share

    least, most = SHORTEST_SUMMARY, request.limit_tokens
    if most <= least or leaves_room(most):
        return most
    while least + 1 < most:
        middle = (least + most) // 2
        least, most = (middle, most) if leaves_room(middle) else (least, middle)
    return least


def carried_room(request: SummaryRequest, capacity: Capacity, policy: CompactionPolicy) -> int:
    """Return what a text that is carried on may take in a window, so that messages fit beside it."""
    usable = capacity.window / policy.chunk_slack
    return int(usable * (1 - policy.chunk_least) - capacity.measure(_bare(request)))


def _bare(request: SummaryRequest) -> SummaryRequest:
    return request.replaced(messages=(), previous=None, previous_block=None)


def portioned(
    thread_id: str, request: SummaryRequest, capacity: Capacity, policy: CompactionPolicy
) -> Portions:
    """Part the messages of ``request``, so that each call fits; all at once where that fits.

    Raises:
        SummariserError: ``too_large``, there is no room for any message beside the rest.
    """
    scale = _Scale(request, capacity, policy)
    if not request.messages or scale.total <= min(scale.chunk, scale.oversized):
        return Portions((request.messages,) if request.messages else ())
    if scale.most <= 0:
        raise SummariserError(
            "too_large",
            f"the summariser's window of {capacity.window:,} tokens has no room for any message "
            "beside instructions, previous summary and answer: use a model with a larger window",
        )
    omitted: list[OmittedMessage] = []
    rounds = [_fitted(thread_id, one, scale, omitted) for one in rounds_of(request.messages)]
    return Portions(tuple(chunked(rounds, scale.chunk)), tuple(sorted(omitted, key=_position)))


def _fitted(
    thread_id: str, messages: Round, scale: "_Scale", omitted: list[OmittedMessage]
) -> list[Weighed]:
    """A round without what is too large in it; the largest goes until the rest fits one call."""
    kept = [Weighed(source, scale.size(source)) for source in messages]
    for at in sorted(range(len(kept)), key=lambda i: kept[i].tokens, reverse=True):
        source, tokens = kept[at]
        if tokens <= scale.oversized and sum(w.tokens for w in kept) <= scale.most:
            break
        left_out = OmittedMessage(position=source.position, tokens=tokens)
        omitted.append(left_out)
        left = stand_in(source, f"[left out: {note_of(thread_id, left_out)}]")
        kept[at] = Weighed(left, scale.size(left)) if left else Weighed(source, 0)
    gone = {one.position for one in omitted}
    return [w for w in kept if w.tokens or w.source.position not in gone]


def _position(omitted: OmittedMessage) -> int:
    return omitted.position


def chunk_share(average: float, usable: float, policy: CompactionPolicy) -> float:
    """Return the share of a window that a chunk takes, for messages of this average size.

    ``chunk_share`` for the smallest messages, falling evenly to ``chunk_least`` for messages of
    ``chunk_large`` of the window and more.
    """
    least = min(policy.chunk_least, policy.chunk_share)
    fallen = min(1.0, average / max(1.0, policy.chunk_large * usable))
    return policy.chunk_share - (policy.chunk_share - least) * fallen


class _Scale:
    """Measures messages as they would really be sent, and tells how much fits."""

    def __init__(
        self, request: SummaryRequest, capacity: Capacity, policy: CompactionPolicy
    ) -> None:
        self._bare = _bare(request)
        self._measure = capacity.measure
        self._floor = capacity.measure(self._bare)
        carried = capacity.measure(self._bare.replaced(previous=request.previous)) - self._floor
        usable = capacity.window / policy.chunk_slack
        self.most = int(usable - self._floor - max(carried, request.limit_tokens))
        """What messages may take of one call, beside what every call carries on."""
        self.oversized = min(self.most, int(usable * policy.oversized_share))
        self.total = self._together(request.messages)
        average = self.total / max(1, len(request.messages))
        self.chunk = min(self.most, int(usable * chunk_share(average, usable, policy)))

    def size(self, source: SourceMessage) -> int:
        """Of one message."""
        return self._together((source,))

    def _together(self, messages: Round) -> int:
        return self._measure(self._bare.replaced(messages=messages)) - self._floor
