"""Hits of recall: messages with scores, neighbours, excerpts and visibility in the context."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple, overload

from refold.application.conversation.addresses import address_of
from refold.application.conversation.entries import (
    SAID,
    Entry,
    Preview,
    PreviewKey,
    entry_at,
    is_live,
    positions_of,
    start_of_run,
)
from refold.application.conversation.loaded import LoadedConversation
from refold.application.projections.fates import Fate, fate_of
from refold.application.rendering.shortened_blocks import shorten_block
from refold.application.runtime.memory_settings import RecallMode
from refold.application.runtime.plain_lines import ShortRepr
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import Block, Message, readable
from refold.domain.text_cuts import fitting_length
from refold.domain.value import Value, replace

from .passages import PassageKind, with_white_space
from .tokens import tokens_of


class Neighbour(Value, frozen=True):
    """The message right before or after a hit."""

    position: int
    role: str
    text: str
    """The text, cut to a few hundred characters."""
    at: str
    erased: bool = False


class RecallHit(ShortRepr, Value, frozen=True):
    """A passage that answers the question, read from the log."""

    thread_id: str
    position: int
    version: int
    """Version of the conversation right after the message was appended."""
    message_id: str
    address: str
    """Address for reading the whole message with ``conversation.read``."""
    role: str
    kind: PassageKind
    tool: str | None
    at: str
    """Time when the message was written or, if unknown, logged: ISO 8601, UTC."""
    text: str
    """The passage, word for word; cut if it does not fit."""
    start: int
    stop: int
    """First character after ``text``, which begins at ``start`` in ``StoredMessage.text``."""
    score: float
    """Score relative to the best hit: over 0, at most 1."""
    why: tuple[str, ...]
    """Reasons for the hit in short phrases, such as matching words or nearness in meaning."""
    fate: Fate
    """Fate of the message in the context now, as in ``conversation.explain``."""
    in_context: bool
    """True if the context shows this passage in full now."""
    neighbours: tuple[Neighbour, ...] = ()
    """Messages before and after the hit, in order."""


@dataclass(frozen=True, slots=True)
class Recalled(Sequence[RecallHit]):
    """A sequence of hits, best first, with a description of the search."""

    query: str
    hits: tuple[RecallHit, ...]
    mode: RecallMode
    """Search mode that was actually used."""
    notice: str | None = None
    """Deviations from the requested search, such as missing vectors or an absent backend, or None."""
    left_out: int = 0
    """Number of hits that were left out because the context shows them in full."""
    tokens: int = 0
    """Tokens of the texts and neighbours of all hits."""
    topic: str | None = None
    """The requested topic, or None for any."""

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> RecallHit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RecallHit, ...]: ...
    def __getitem__(self, index: int | slice) -> RecallHit | tuple[RecallHit, ...]:
        return self.hits[index]


_WORD = lazy_pattern(r"[^\W_]+")
_SPACED = lazy_pattern(r"[\x00-\u1100]*")
"""Matches scripts with spaces between words; in other scripts, tokens are matched literally."""
_MOST_SPANS = 2_000


class Span(NamedTuple):
    """A match of a question word in a text."""

    start: int
    stop: int
    tokens: frozenset[str]
    """Tokens of the question that match here."""


def spans_of(text: str, tokens: Iterable[str], kind: PassageKind) -> list[Span]:
    """Return the words of a passage that match these tokens, in order and without overlaps."""
    wanted = frozenset(tokens)
    text = with_white_space(text) if kind == "call" else text
    words = frozenset(token for token in wanted if _SPACED.fullmatch(token))
    found = [*_words(text, words), *_literal(text, wanted - words)]
    found.sort(key=lambda span: (span.start, -span.stop))
    kept: list[Span] = []
    for span in found[:_MOST_SPANS]:
        if not kept or span.start >= kept[-1].stop:
            kept.append(span)
    return kept


def excerpt(
    text: str, tokens: Iterable[str], most: int, count: Callable[[str], int], kind: PassageKind
) -> tuple[int, int]:
    """Return the start and stop of the excerpt of a passage that has most words of a question.

    The excerpt has at least one character and at most ``most`` tokens, as measured by ``count``.
    """
    size = count(text)
    if size <= most:
        return 0, len(text)
    spans = spans_of(text, tokens, kind)

    def part(length: int) -> tuple[int, int]:
        return _trim(text, *_best_stretch(text, spans, length))

    def fits(length: int) -> bool:
        return count(text[slice(*part(length))]) <= most

    return part(fitting_length(size, len(text), most, fits))


def _words(text: str, wanted: frozenset[str]) -> Iterator[Span]:
    if not wanted:
        return
    for found in _WORD.finditer(text):
        tokens = wanted.intersection(tokens_of(found[0]))
        if tokens:
            yield Span(found.start(), found.end(), tokens)


def _literal(text: str, wanted: Iterable[str]) -> Iterator[Span]:
    """Yield literal matches; single characters match only if no pair of characters does."""
    pairs = [span for token in wanted if len(token) > 1 for span in _each(text, token)]
    yield from pairs or [span for token in wanted for span in _each(text, token)]


def _each(text: str, token: str) -> Iterator[Span]:
    place = text.find(token)
    while place >= 0:
        yield Span(place, place + len(token), frozenset((token,)))
        place = text.find(token, place + len(token))


def _best_stretch(text: str, spans: Sequence[Span], length: int) -> tuple[int, int]:
    """Return the stretch of this length with the best matches.

    A third of the space around the matches is before them.
    """
    first, last = _densest(spans, length)
    if first is None or last is None:
        return 0, length
    free = max(0, length - (last.stop - first.start))
    start = min(max(0, first.start - free // 3), max(0, len(text) - length))
    return start, min(len(text), start + length)


def _densest(spans: Sequence[Span], length: int) -> tuple[Span | None, Span | None]:
    """Return the first and last match of the best stretch.

    The best stretch is the one whose distinct tokens have most characters. Ties go to the stretch with more
    matches.
    """
    best: tuple[tuple[int, int], Span | None, Span | None] = ((0, 0), None, None)
    inside, first = Counter[str](), 0
    for last, span in enumerate(spans):
        inside.update(span.tokens)
        while first < last and spans[first].start < span.stop - length:
            inside.subtract(spans[first].tokens)
            first += 1
        worth = (sum(len(token) for token, times in inside.items() if times > 0), last - first)
        if worth > best[0]:
            best = (worth, spans[first], span)
    return best[1], best[2]


def _trim(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return the stretch shortened to word boundaries, if there are any near its ends."""
    near = max(1, (stop - start) // 8)
    if start > 0:
        found = re.search(r"\s\S", text[start - 1 : start + near])
        start += found.start() if found else 0
    if stop < len(text):
        found = re.search(r"\s\S*$", text[max(start + 1, stop - near) : stop + 1])
        stop = max(start + 1, stop - near) + found.start() if found else stop
    return start, max(stop, start + 1)


Count = Callable[[str], int]

LEAST_TEXT = 40
"""Number of tokens below which a text is useless; fewer hits are returned instead."""


def fit_hits(
    hits: Sequence[RecallHit], tokens: Sequence[str], room: int, count: Count
) -> tuple[tuple[RecallHit, ...], int]:
    """Fit hits to ``room`` tokens; return the hits and their total tokens with neighbours.

    ``tokens`` are those of the question. Long texts are shortened first, then the last hits lose
    their neighbours, then the last hits are dropped.
    """
    kept = hits[: max(1, room // LEAST_TEXT)]
    size = sum(_size(hit, count) for hit in kept)
    if size <= room:
        return tuple(kept), size
    have_neighbours = any(hit.neighbours for hit in kept)
    shares = _shares([count(hit.text) for hit in kept], room * 4 // 5 if have_neighbours else room)
    cut = [_cut(hit, tokens, share, count) for hit, share in zip(kept, shares, strict=True)]
    left = room - sum(count(hit.text) for hit in cut)
    shown: list[RecallHit] = []
    for hit in cut:
        neighbour_tokens = sum(count(neighbour.text) for neighbour in hit.neighbours)
        fits = neighbour_tokens <= left
        left -= neighbour_tokens if fits else 0
        shown.append(hit if fits else replace(hit, neighbours=()))
    return tuple(shown), room - left


def _size(hit: RecallHit, count: Count) -> int:
    return count(hit.text) + sum(count(neighbour.text) for neighbour in hit.neighbours)


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """Distribute ``room``: short texts get all they need, long ones share the rest equally."""
    shares = [0] * len(sizes)
    left, waiting = room, sorted(range(len(sizes)), key=lambda n: sizes[n])
    while waiting:
        shares[waiting[0]] = share = min(sizes[waiting[0]], left // len(waiting))
        left -= share
        waiting = waiting[1:]
    return shares


def _cut(hit: RecallHit, tokens: Sequence[str], most: int, count: Count) -> RecallHit:
    start, stop = excerpt(hit.text, tokens, max(1, most), count, hit.kind)
    return replace(hit, text=hit.text[start:stop], start=hit.start + start, stop=hit.start + stop)


class ContextVisibility:
    """Visibility of the messages of one conversation in its context."""

    def __init__(self, loaded: LoadedConversation) -> None:
        self.thread_id = loaded.thread_id
        self.length = loaded.state.length
        """Number of messages in the conversation."""
        self._loaded = loaded
        self._window = loaded.window
        self._previews: dict[int, dict[PreviewKey, Preview]] = {}
        for key, preview in loaded.window.previews.items():
            self._previews.setdefault(key[0], {})[key] = preview

    def fate(self, position: int, *, erased: bool = False) -> Fate:
        """Return how the message is shown; ``erased`` tells whether the log marks it as erased."""
        previews = self._previews.get(position, {}).values()
        return fate_of(
            self._loaded,
            position,
            previews,
            is_live=is_live(self._window.entries, position),
            erased=erased,
        )

    def shows(self, position: int, text: str) -> bool:
        """Return whether the context shows these words of the message uncut."""
        if position not in self._previews:
            return is_live(self._window.entries, position)
        return text in self.shortened_text(position)

    def shortened_text(self, position: int) -> str:
        """Return the readable text of a message as the context shows it, with its previews; empty if it is not live."""
        entry = entry_at(self._window.entries, position)
        if entry is None:
            return ""
        return readable(self._shorten(entry, self._previews.get(position, {})))

    def full_positions(self, stop: int | None = None) -> frozenset[int]:
        """Return the positions of all messages before ``stop`` that are shown in full."""
        positions = positions_of(self._window.entries)
        if stop is not None:
            positions = takewhile(lambda position: position < stop, positions)
        return frozenset(positions).difference(self._previews)

    def start_of_run(self, stop: int) -> int:
        """Return the first of the positions up to ``stop`` that are all shown in full."""
        first = max((at + 1 for at in self._previews if at < stop), default=0)
        return max(first, start_of_run(self._window.entries, stop))

    def _shorten(self, entry: Entry, previews: dict[PreviewKey, Preview]) -> Message:
        address = address_of(self.thread_id, entry.position)

        def shown(index: int, block: Block) -> Block:
            preview = previews.get(_key(entry.position, index, block))
            return block if preview is None else shorten_block(block, preview, address)

        blocks = (shown(index, block) for index, block in enumerate(entry.message.blocks()))
        return replace(entry.message, content=tuple(blocks))


def _key(position: int, index: int, block: Block) -> PreviewKey:
    match block.get("type"):
        case "tool_result":
            return (position, str(block.get("tool_use_id")), "result")
        case "tool_use":
            return (position, str(block.get("id")), "call")
        case _:
            return (position, str(index), SAID)
