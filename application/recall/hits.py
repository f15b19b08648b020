"""Hits of recall: messages with a score, their neighbours and excerpt, and whether the context shows them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, overload

from refold.application.conversation.addresses import address_of
from refold.application.conversation.loaded import LoadedConversation
from refold.application.projections.entries import Entry, entry_at, positions_of
from refold.application.projections.fates import Fate, fate_of
from refold.application.projections.message_list import readable
from refold.application.projections.window import SAID, Preview, PreviewKey
from refold.application.rendering.request_blocks import shortened
from refold.application.runtime.plain_lines import ShortRepr
from refold.domain.messages import Block, Message
from refold.domain.text_cuts import fitting_length
from refold.domain.value import Value, replace

from .passages import PassageKind
from .tokens import tokens_of

RecallMode = Literal["keyword", "vector", "hybrid"]
"""By words; by meaning; by both."""


class Neighbour(Value, frozen=True):
    """The message right before or after a hit."""

    position: int
    role: str
    text: str
    """Cut to a few hundred characters."""
    at: str
    erased: bool = False


class RecallHit(ShortRepr, Value, frozen=True):
    """A passage that answers, read from the log."""

    thread_id: str
    position: int
    version: int
    """Of the conversation when the message was appended."""
    message_id: str
    address: str
    """``conversation.read(address)`` gives the whole message."""
    role: str
    kind: PassageKind
    tool: str | None
    at: str
    """When the message was written, or else logged: ISO 8601, UTC."""
    text: str
    """The passage, word for word; cut where it is longer than the answer's room."""
    start: int
    stop: int
    """Where ``text`` stands in ``StoredMessage.text``."""
    score: float
    """Relative to the best hit: over 0, at most 1."""
    why: tuple[str, ...]
    """Why it was found, in short phrases: which words, whose neighbour, how near in meaning."""
    fate: Fate
    """How the context shows the message now: the same word as ``conversation.explain``."""
    in_context: bool
    """Whether the context shows this very passage in full now."""
    neighbours: tuple[Neighbour, ...] = ()
    """The messages before and after it, in their order."""


@dataclass(frozen=True, slots=True)
class Recalled(Sequence[RecallHit]):
    """The hits, best first, and how they were found. A sequence of hits."""

    query: str
    hits: tuple[RecallHit, ...]
    mode: RecallMode
    """How it was really searched."""
    notice: str | None = None
    """What did not go as asked, in a sentence: no embedder, vectors still being made, a backend that is
    absent. None: all did."""
    left_out: int = 0
    """Hits that were left out since the context shows them in full."""
    tokens: int = 0
    """Of the texts and neighbours of all hits."""
    topic: str | None = None
    """The topic that was asked for; None: any."""

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> RecallHit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RecallHit, ...]: ...
    def __getitem__(self, index: int | slice) -> RecallHit | tuple[RecallHit, ...]:
        return self.hits[index]


_WORD = re.compile(r"[^\W_]+")
_SPACED = re.compile(r"[\x00-\u1100]*")
"""What is written with blanks between words; other scripts are looked for as they stand."""
_MOST_SPANS = 2_000


class Span(NamedTuple):
    """Where a word of the question stands."""

    start: int
    stop: int
    tokens: frozenset[str]
    """What of the question it has."""


def spans_of(text: str, tokens: Iterable[str]) -> list[Span]:
    """The words of a text that a question with these tokens finds, in their order; none overlap."""
    wanted = frozenset(tokens)
    words = frozenset(token for token in wanted if _SPACED.fullmatch(token))
    found = [*_words(text, words), *_literal(text, wanted - words)]
    found.sort(key=lambda span: (span.start, -span.stop))
    kept: list[Span] = []
    for span in found[:_MOST_SPANS]:
        if not kept or span.start >= kept[-1].stop:
            kept.append(span)
    return kept


def excerpt(
    text: str, tokens: Iterable[str], most: int, count: Callable[[str], int]
) -> tuple[int, int]:
    """Start and stop of the part of a text that has the most words of a question, in at most ``most``
    tokens as ``count`` has them; at least one character.
    """
    size = count(text)
    if size <= most:
        return 0, len(text)
    spans = spans_of(text, tokens)

    def part(length: int) -> tuple[int, int]:
        return _trimmed(text, *_around(text, spans, length))

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
    """Single characters count only where no pair of them is there."""
    pairs = [span for token in wanted if len(token) > 1 for span in _each(text, token)]
    yield from pairs or [span for token in wanted for span in _each(text, token)]


def _each(text: str, token: str) -> Iterator[Span]:
    place = text.find(token)
    while place >= 0:
        yield Span(place, place + len(token), frozenset((token,)))
        place = text.find(token, place + len(token))


def _around(text: str, spans: Sequence[Span], length: int) -> tuple[int, int]:
    """The stretch of this length that has most of the question, a third of what is free before it."""
    first, last = _densest(spans, length)
    if first is None or last is None:
        return 0, length
    free = max(0, length - (last.stop - first.start))
    start = min(max(0, first.start - free // 3), max(0, len(text) - length))
    return start, min(len(text), start + length)


def _densest(spans: Sequence[Span], length: int) -> tuple[Span | None, Span | None]:
    """First and last word of the stretch with the longest different tokens, then the most words."""
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


def _trimmed(text: str, start: int, stop: int) -> tuple[int, int]:
    """The same between two blanks, where there are any near the ends."""
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
"""Tokens below which a text is of no use: then fewer hits are shown."""


def fitted(
    hits: Sequence[RecallHit], tokens: Sequence[str], room: int, count: Count
) -> tuple[tuple[RecallHit, ...], int]:
    """As many of the hits, as long as fit ``room`` tokens, and what they take with their neighbours.

    ``tokens``: of the question. Where all is too much, long texts are cut first, then neighbours of the
    last hits go, then the last hits.
    """
    kept = hits[: max(1, room // LEAST_TEXT)]
    size = sum(_size(hit, count) for hit in kept)
    if size <= room:
        return tuple(kept), size
    beside = any(hit.neighbours for hit in kept)
    shares = _shares([count(hit.text) for hit in kept], room * 4 // 5 if beside else room)
    cut = [_excerpted(hit, tokens, share, count) for hit, share in zip(kept, shares, strict=True)]
    left = room - sum(count(hit.text) for hit in cut)
    shown: list[RecallHit] = []
    for hit in cut:
        beside_it = sum(count(neighbour.text) for neighbour in hit.neighbours)
        fits = beside_it <= left
        left -= beside_it if fits else 0
        shown.append(hit if fits else replace(hit, neighbours=()))
    return tuple(shown), room - left


def _size(hit: RecallHit, count: Count) -> int:
    return count(hit.text) + sum(count(neighbour.text) for neighbour in hit.neighbours)


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """How much each may take: short ones all they need, long ones an equal part of the rest."""
    shares = [0] * len(sizes)
    left, waiting = room, sorted(range(len(sizes)), key=lambda n: sizes[n])
    while waiting:
        shares[waiting[0]] = share = min(sizes[waiting[0]], left // len(waiting))
        left -= share
        waiting = waiting[1:]
    return shares


def _excerpted(hit: RecallHit, tokens: Sequence[str], most: int, count: Count) -> RecallHit:
    start, stop = excerpt(hit.text, tokens, max(1, most), count)
    return replace(hit, text=hit.text[start:stop], start=hit.start + start, stop=hit.start + stop)


class Sight:
    """How the window of one conversation shows its messages."""

    def __init__(self, loaded: LoadedConversation) -> None:
        self.thread_id = loaded.thread_id
        self.length = loaded.state.length
        """How many messages the conversation has."""
        self._loaded = loaded
        self._window = loaded.window
        self._previews: dict[int, dict[PreviewKey, Preview]] = {}
        for key, preview in loaded.window.previews.items():
            self._previews.setdefault(key[0], {})[key] = preview

    def fate(self, position: int, *, erased: bool = False) -> Fate:
        """How the message is shown; ``erased``: whether the log says that it was."""
        previews = self._previews.get(position, {}).values()
        entry = self._entry(position)
        return fate_of(self._loaded, position, entry, previews, erased=erased)

    def shows(self, position: int, text: str) -> bool:
        """Whether these words of the message are in the context now, none of them cut."""
        entry = self._entry(position)
        if entry is None:
            return False
        previews = self._previews.get(position)
        return not previews or text in readable(self._shortened(entry, previews))

    def in_full(self) -> frozenset[int]:
        """The positions of all messages that are shown as they are."""
        return frozenset(
            at for at in positions_of(self._window.entries) if at not in self._previews
        )

    def _entry(self, position: int) -> Entry | None:
        return entry_at(self._window.entries, position)

    def _shortened(self, entry: Entry, previews: dict[PreviewKey, Preview]) -> Message:
        address = address_of(self.thread_id, entry.position)

        def shown(index: int, block: Block) -> Block:
            preview = previews.get(_key(entry.position, index, block))
            return block if preview is None else shortened(block, preview, address)

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
