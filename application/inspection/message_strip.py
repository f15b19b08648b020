"""A strip of all messages of a conversation: how large each is, and how the model sees it."""

from collections import Counter
from collections.abc import Sequence
from heapq import nlargest
from typing import Literal, NamedTuple

from refold.application.conversation.entries import Preview
from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.read_models import RequestSizesRow
from refold.application.projections.decision_index import decisions_of
from refold.application.projections.fates import Fate, fate_of
from refold.application.projections.request_sizes import COARSE, DECISION, FINE, LOST, OTHER
from refold.application.recall.recall_query import whole_number
from refold.application.runtime.core import Core
from refold.domain.value import Value

from .shown_tokens import RowSteps, size_rows

MOST_CELLS, MOST_LARGE = 400, 10
MOST_ASKED = 1_000_000

StripFate = Fate | Literal["lost"]
"""The way the model sees a message, or ``lost`` for a message that damage destroyed."""


class FateTokens(NamedTuple):
    """Tokens of the messages of a cell that have the same fate."""

    fate: StripFate
    tokens: int


class StripCell(Value, frozen=True):
    """One message, or a run of successive messages."""

    start: int
    stop: int
    """Position after its last message."""
    tokens: int
    """Tokens of the whole messages, as they were appended."""
    fates: tuple[FateTokens, ...]
    """Fates of its messages, the one with the most tokens first."""


class MessageStrip(Value, frozen=True):
    """All messages of one conversation, in cells of equal length."""

    thread_id: str
    version: int
    length: int
    """Number of messages."""
    cells: tuple[StripCell, ...]
    largest: tuple[StripCell, ...]
    """The messages with the most tokens, at most 10, the largest first; each in a cell of its own."""
    is_estimate: bool
    """True for a conversation of more than 300,000 events, in which messages that are appended together
    share their tokens evenly.
    """


def message_strip(
    core: Core, thread_id: str, *, at: int | None = None, most: int = MOST_CELLS
) -> MessageStrip:
    """Return the messages in at most ``most`` cells, with the tokens by fate at version ``at``.

    No event is decoded but those that the state itself is loaded from.
    """
    whole_number("most", most, 1, MOST_ASKED)
    loaded = core.log.load(thread_id, at=at)
    length = loaded.state.length
    rows = size_rows(core, thread_id, loaded.state.version) if length else ()
    tokens = _tokens(rows, length)
    fates = _Fates(loaded, rows).all()
    size = max(1, -(-length // most))
    largest = nlargest(MOST_LARGE, range(length), key=tokens.__getitem__)
    return MessageStrip(
        thread_id=thread_id,
        version=loaded.state.version,
        length=length,
        cells=tuple(
            _cell(start, tokens[start : start + size], fates[start : start + size])
            for start in range(0, length, size)
        ),
        largest=tuple(_cell(one, tokens[one : one + 1], fates[one : one + 1]) for one in largest),
        is_estimate=bool(rows) and rows[0].events == COARSE,
    )


def _cell(start: int, tokens: Sequence[int], fates: Sequence[StripFate]) -> StripCell:
    counted = Counter[StripFate]()
    if fates.count(fates[0]) == len(fates):
        counted[fates[0]] = sum(tokens)
    else:
        for fate, one in zip(fates, tokens, strict=True):
            counted[fate] += one
    return StripCell(
        start=start,
        stop=start + len(tokens),
        tokens=sum(tokens),
        fates=tuple(FateTokens(*one) for one in counted.most_common()),
    )


def _tokens(rows: Sequence[RequestSizesRow], length: int) -> list[int]:
    """Return the tokens of each message as appended."""
    tokens: list[int] = []
    for row in rows:
        if row.events == COARSE:
            count = (row.stop or 0) - len(tokens)
            tokens += [row.tokens // count] * count if count > 0 else []
        else:
            tokens += RowSteps(row, (row.number + 1) * FINE).tokens
            tokens += [0] * ((row.stop or 0) - len(tokens))
        if len(tokens) >= length:
            break
    return tokens[:length] + [0] * (length - len(tokens))


class _Fates:
    """The fates of messages, by the window of a loaded conversation and by its rows of sizes."""

    def __init__(self, loaded: LoadedConversation, rows: Sequence[RequestSizesRow]) -> None:
        self._loaded = loaded
        self._erased, self._lost = _erased_in(rows), _lost_in(rows)
        self._previews: dict[int, list[Preview]] = {}
        for key, preview in loaded.window.previews.items():
            self._previews.setdefault(key[0], []).append(preview)

    def all(self) -> list[StripFate]:
        """Return the fates of all messages: most by ranges, the others one by one."""
        state, summary = self._loaded.state, self._loaded.window.summary
        fates: list[StripFate] = ["full"] * state.length
        special = {*self._previews, *self._erased, *self._lost, *state.pinned_positions}
        special |= {*range(state.preamble)}
        if summary is not None:
            coverage = summary.coverage
            covered: list[StripFate] = ["summarised"]
            fates[coverage.start : coverage.stop] = covered * (coverage.stop - coverage.start)
            special |= {*coverage.exclusions, *(one.position for one in summary.omitted)}
            special |= {*range(coverage.start)}
        for position in special:
            if position < len(fates):
                fates[position] = self._fate(position)
        return fates

    def _fate(self, position: int) -> StripFate:
        if position in self._lost:
            return "lost"
        summary = self._loaded.window.summary
        return fate_of(
            self._loaded,
            position,
            self._previews.get(position, ()),
            is_live=summary is None or not summary.coverage.covers(position),
            erased=position in self._erased,
        )


def _erased_in(rows: Sequence[RequestSizesRow]) -> set[int]:
    """Return the positions of all messages that were ever erased, also after the loaded version."""
    newest = len(rows) * COARSE
    return {
        step["position"]
        for row in rows
        if '"erased"' in row.decisions
        for step in decisions_of(row, newest)
        if step["kind"] == "erased"
    }


def _lost_in(rows: Sequence[RequestSizesRow]) -> set[int]:
    """Return the positions of the messages that damage destroyed."""
    lost: set[int] = set()
    length = 0
    for row in rows:
        if LOST in row.kinds:
            kinds = [kind for kind in row.kinds if kind not in (DECISION, OTHER)]
            lost |= {length + place for place, kind in enumerate(kinds) if kind == LOST}
        length = row.stop or length
    return lost
