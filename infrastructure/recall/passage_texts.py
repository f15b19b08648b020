"""The texts of the passages of a batch: their tokens, and their terms by passage, with numpy or without it."""

import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate, compress, islice, pairwise
from typing import Any

from refold.application.recall.tokens import TextNumbers, Vocabulary, date_line, put_apart

from .index_tables import term_of
from .posting_runs import Grouped, grouped

MANY = 32
"""Number of passages from which on their texts are looked up and grouped with numpy, if it is loaded."""


BITS = 17
"""Number of bits of the hash of a short text."""
NARROW = 32
"""Number of bits of the numbers that numpy sorts the fastest."""
_SPACE = ord(" ")
_FACTOR = 0x9E37_79B9_7F4A_7C15


class _Slots:
    """Texts of up to so many bytes in arrays of numpy, which look many up at once.

    They are numbered from 1, so that 0 is a text that is not known.
    """

    def __init__(self, longest: int, bits: int) -> None:
        import numpy as np

        self.longest = longest
        self._bits = bits
        self._slots = np.zeros(1 << bits, np.uint32)
        """Numbers of texts. The slot of a text follows from a hash, or is next to that."""
        self._words = [np.zeros(1, np.uint64) for _ in range(0, longest, 8)]
        """Eight bytes of each text after another, by its number. No text has bytes of 0."""
        masks = [(1 << 8 * size) - 1 for size in range(9)]
        self._masks = [
            np.array([masks[min(max(size - at, 0), 8)] for size in range(longest + 1)], np.uint64)
            for at in range(0, longest, 8)
        ]

    def find(self, at: Any, starts: Any, sizes: Any, text_of: Callable[[int, int], int]) -> Any:
        """Return the numbers of the texts that begin there.

        ``at`` has eight bytes from each place on. A text that is not known is numbered by its start and size.
        """
        import numpy as np

        words = [at[8 * n :][starts] & mask[sizes] for n, mask in enumerate(self._masks)]
        mixed = words[0] * np.uint64(_FACTOR)
        for word in words[1:]:
            mixed = (mixed ^ mixed >> np.uint64(29) ^ word) * np.uint64(_FACTOR)
        slots = (mixed >> np.uint64(64 - self._bits)).view(np.int64)
        found = self._look_up(slots, words)
        left = np.flatnonzero(found == 0)
        if len(left):
            found[left] = self._look_up(slots[left] ^ 1, [word[left] for word in words])
            left = left[found[left] == 0]
        if len(left):
            spans = zip(starts[left].tolist(), sizes[left].tolist(), strict=True)
            found[left] = new = [1 + text_of(start, size) for start, size in spans]
            self._add(slots[left].tolist(), [word[left] for word in words], new)
        return found

    def _look_up(self, slots: Any, words: Sequence[Any]) -> Any:
        """Return the numbers of the texts in these slots, or 0 for those that are not there."""
        import numpy as np

        found = self._slots[slots].astype(np.int64)
        is_there = self._words[0][found] == words[0]
        for known, word in zip(self._words[1:], words[1:], strict=True):
            is_there &= known[found] == word
        return np.where(is_there, found, 0)

    def _add(self, slots: Sequence[int], words: Sequence[Any], numbers: Sequence[int]) -> None:
        import numpy as np

        lacking = max(numbers) + 1 - len(self._words[0])
        if lacking > 0:
            more = np.zeros(lacking + len(self._words[0]) // 8, np.uint64)
            self._words = [np.concatenate((known, more)) for known in self._words]
        for known, word in zip(self._words, words, strict=True):
            known[numbers] = word
        for slot, number in zip(slots, numbers, strict=True):
            for one in (slot, slot ^ 1):
                if self._slots[one] in (0, number):
                    self._slots[one] = number
                    break


class TextTable:
    """The texts of a vocabulary in arrays of numpy, where many are looked up at once."""

    def __init__(self, known: TextNumbers) -> None:
        import numpy as np

        self._known = known
        self._slots = [_Slots(8, BITS), _Slots(16, BITS - 1), _Slots(64, BITS - 1)]
        self._lines, self._sizes = np.zeros(0, object), np.zeros(0, np.int64)
        """The line of each text, and its number of tokens."""

    def read(self, texts: Sequence[tuple[bytes, str]]) -> tuple[Any, Any, list[str], Any]:
        """Return the numbers of the texts in words and dates, how many each passage has, its line and its tokens."""
        import numpy as np

        numbers, counts = self._numbers(texts)
        if new := len(self._known.lines) - len(self._lines):
            lines, sizes = self._known.lines[-new:], [*map(len, self._known.tokens[-new:])]
            self._lines = np.concatenate((self._lines, np.array(lines, object)))
            self._sizes = np.concatenate((self._sizes, np.array(sizes, np.int64)))
        every, ends = self._lines.take(numbers).tolist(), np.cumsum(counts)
        lines = ["".join(every[start:stop]) for start, stop in pairwise((0, *ends.tolist()))]
        tokens = np.add.reduceat(self._sizes[numbers], ends - counts) if texts else counts
        return numbers, counts, lines, tokens

    def _numbers(self, texts: Sequence[tuple[bytes, str]]) -> tuple[Any, Any]:
        import numpy as np

        longest = self._slots[-1].longest
        parts = [part for words, date in texts for part in (words, date.encode())]
        whole = put_apart(b" ".join((b"", *parts, b" " * longest)))
        is_text = np.frombuffer(whole, np.uint8) != _SPACE
        edges = np.flatnonzero(is_text[1:] != is_text[:-1]) + 1
        starts, sizes = edges[::2], edges[1::2] - edges[::2]
        ends = [*accumulate(len(words) + len(date) + 2 for words, date in texts)]
        at = np.ndarray((len(whole) - 7,), "<u8", whole, 0, (1,))

        def text_of(start: int, size: int) -> int:
            return self._known[whole[start : start + size]]

        found, least = np.empty(len(starts), np.int64), 1
        for slots in self._slots:
            these = np.flatnonzero((sizes >= least) & (sizes <= slots.longest))
            if len(these):
                found[these] = slots.find(at, starts[these], sizes[these], text_of)
            least = slots.longest + 1
        others = np.flatnonzero(sizes > longest)
        spans = zip(starts[others].tolist(), sizes[others].tolist(), strict=True)
        found[others] = [1 + text_of(start, size) for start, size in spans]
        found -= 1
        return found, np.diff(np.searchsorted(starts, ends), prepend=0)


class NumberedTexts:
    """The texts of the passages of a batch, read and grouped with numpy."""

    def __init__(self) -> None:
        self.known = TextNumbers()
        self.terms = array("Q")
        self.ends = array("I", [0])
        """End of the terms of each text in ``terms``, after a first 0."""
        self.read = array("I")
        """Numbers of the texts that were read, one passage after another."""
        self.counts = array("I")
        """How many numbers in ``read`` belong to each passage."""
        self.ranked: tuple[Any, Any] | None = None
        """All terms, ascending, and the place among them of each in ``terms``: two arrays of numpy."""
        self._table = TextTable(self.known)

    @property
    def is_full(self) -> bool:
        """True if another one should take its place."""
        return self.known.is_full

    def lines_of(self, texts: Sequence[tuple[bytes, str]]) -> list[tuple[str, int]]:
        """Return the tokens of the next passages, which have these words and dates, and their numbers."""
        import numpy as np

        numbers, counts, lines, tokens = self._table.read(texts)
        # A passage has tokens besides those of its date.
        kept = tokens > [date.count(" ") + 1 for _, date in texts]
        found = [
            (f"{line} " if keep else "", count)
            for line, keep, count in zip(lines, kept.tolist(), tokens.tolist(), strict=True)
        ]
        if not kept.all():
            numbers, counts = numbers[np.repeat(kept, counts)], counts[kept]
        self.read.frombytes(numbers.astype(np.uint32).tobytes())
        self.counts.frombytes(counts.astype(np.uint32).tobytes())
        return found

    def forget_read(self) -> None:
        """Forget the passages, but not the texts."""
        self.read, self.counts = array("I"), array("I")

    def grouped(self, first: int, places: Sequence[int]) -> Grouped:
        """Return the terms of the passages from ``first`` on, which are in these places."""
        for found in self.known.tokens[len(self.ends) - 1 :]:
            self.terms.extend(set(map(term_of, found)))
            self.ends.append(len(self.terms))
            self.ranked = None
        begin, stop = sum(self.counts[:first]), first + len(places)
        return _grouped_at_once(self, begin, self.counts[first:stop], places)


class _Terms(Vocabulary):
    """A vocabulary with the terms of its lines."""

    def __init__(self) -> None:
        self.terms: dict[str, float] = {}
        """Terms of lines with one token. Numbers with a point are sorted several times as fast."""
        self.others: set[str] = set()
        self.parts: dict[str, tuple[str, ...]] = {}
        """For each of the other lines, the lines with one token that have its terms."""
        self._of_term: dict[float, str] = {}
        self._of_token: dict[str, str] = {}
        """The line with the term of each token."""
        super().__init__()

    def add(self, line: str, tokens: tuple[str, ...]) -> None:
        """Add the terms of a new line."""
        of_token = self._of_token
        if len(tokens) == 1:
            term = float(term_of(tokens[0]))
            first = of_token[tokens[0]] = self._of_term.setdefault(term, line)
            if first is line:
                self.terms[line] = term
                return
        for token in tokens:
            if token not in of_token:
                self.line_with((token,))
        self.parts[line] = tuple({of_token[token] for token in tokens})
        self.others.add(line)


class PlainTexts:
    """The texts of the passages of a batch, read and grouped without numpy."""

    def __init__(self) -> None:
        self._known = _Terms()
        self._read: list[str] = []
        """The lines of the texts that were read, one passage after another: the garbage collector would visit
        each of many lists several times.
        """
        self._ends = [0]
        """Where the lines of each passage end, after a first 0."""
        self._places: dict[str, array[int]] = {}
        """For each line that has a term, an empty array while nothing is grouped."""
        self._terms: list[int] = []
        """All terms in ascending order."""
        self._ordered: list[array[int]] = []
        """The arrays of their lines."""

    @property
    def is_full(self) -> bool:
        """True if another one should take its place."""
        return self._known.is_full

    def lines_of(self, texts: Sequence[tuple[bytes, str]]) -> list[tuple[str, int]]:
        """Return the tokens of the next passages, which have these words and dates, and their numbers."""
        found = list[tuple[str, int]]()
        # A passage has tokens besides those of its date.
        least = {date: 2 + len(date_line(date)) for _, date in texts}
        for (_, date), lines in zip(texts, self._known.read(texts), strict=True):
            line = "".join(lines)
            if len(line) >= least[date]:
                found.append((f"{line} ", line.count(" ")))
                self._read += lines
                self._ends.append(len(self._read))
            else:
                found.append(("", 0))
        return found

    def forget_read(self) -> None:
        """Forget the passages, but not the texts."""
        self._read, self._ends = [], [0]

    def grouped(self, first: int, places: Sequence[int]) -> Grouped:
        """Return the terms of the passages from ``first`` on, which are in these places."""
        self._add_terms()
        others, parts, by_line = self._known.others, self._known.parts, self._places
        ends = self._ends[first : first + len(places) + 1]
        for place, (begin, end) in zip(places, pairwise(ends), strict=True):
            having = set(self._read[begin:end])
            if several := having & others:
                having -= several
                having.update(*[parts[line] for line in several])
            for line in having:
                by_line[line].append(place)
        found = [*filter(None, self._ordered)]
        grouped = Grouped(
            array("Q", compress(self._terms, self._ordered)).tobytes(),
            array("I", [*map(len, found)]).tobytes(),
            b"".join(found),
        )
        for one in found:
            del one[:]
        return grouped

    def _add_terms(self) -> None:
        terms = self._known.terms
        if len(self._places) < len(terms):
            new = islice(terms, len(self._places), None)
            self._places |= {line: array("I") for line in new}
            ordered = sorted(terms, key=terms.__getitem__)
            self._ordered = [self._places[line] for line in ordered]
            self._terms = [int(terms[line]) for line in ordered]


_spare_numbered: list[NumberedTexts] = []
_spare_plain: list[PlainTexts] = []
"""Texts that no batch uses now. Filling their vocabularies takes longer than using them."""


class BatchTexts:
    """The texts of the passages of a batch, in their order."""

    def __init__(self) -> None:
        self._texts: NumberedTexts | PlainTexts | None = None

    def lines_of(self, texts: Sequence[tuple[bytes, str]]) -> list[tuple[str, int]]:
        """Return the tokens of the next passages, which have these words and dates, and their numbers."""
        if self._texts is None:
            at_once = len(texts) >= MANY and "numpy" in sys.modules
            try:
                self._texts = (_spare_numbered if at_once else _spare_plain).pop()
            except IndexError:
                self._texts = NumberedTexts() if at_once else PlainTexts()
        return self._texts.lines_of(texts)

    def done(self) -> None:
        """Forget the texts, and leave the vocabulary to another batch."""
        texts, self._texts = self._texts, None
        if texts is None or texts.is_full:
            return
        texts.forget_read()
        if isinstance(texts, PlainTexts):
            _spare_plain.append(texts)
        else:
            _spare_numbered.append(texts)

    def grouped(self, first: int, places: Sequence[int]) -> Grouped:
        """Return the terms of the passages from ``first`` on, which are in these places."""
        return grouped({}) if self._texts is None else self._texts.grouped(first, places)


def _grouped_at_once(
    vocabulary: NumberedTexts, begin: int, of_passages: "array[int]", places: Sequence[int]
) -> Grouped:
    """Group passages by one sort. Their texts are read from ``begin`` on, so many for each."""
    import numpy as np

    if vocabulary.ranked is None:
        known, ranks = np.unique(np.frombuffer(vocabulary.terms, np.uint64), return_inverse=True)
        vocabulary.ranked = known, ranks.astype(np.uint32)
    known, ranks = vocabulary.ranked
    counts = np.frombuffer(of_passages, np.uint32)
    texts = np.frombuffer(vocabulary.read, np.uint32)[begin : begin + int(counts.sum())]
    ends = np.frombuffer(vocabulary.ends, np.uint32).astype(np.int64)
    # A text or term and the index of a passage are one number.
    bits = len(places).bit_length()
    kind: Any = np.uint32 if max(len(ends), len(known)).bit_length() + bits <= NARROW else np.uint64
    low, index = kind(bits), kind((1 << bits) - 1)
    having = np.repeat(np.arange(len(places), dtype=kind), counts)
    pairs = _distinct(texts.astype(kind) << low | having)
    texts, having = pairs >> low, pairs & index
    starts = ends[texts]
    sizes = ends[1:][texts] - starts
    # The place of each term of each text: those before it in the whole list, moved to where its text's begin.
    moved = np.repeat(starts + sizes - np.cumsum(sizes), sizes)
    moved += np.arange(len(moved))
    pairs = _distinct(ranks[moved].astype(kind) << low | np.repeat(having, sizes))
    found = pairs >> low
    starts = np.flatnonzero(np.diff(found, prepend=~found[:1]))
    return Grouped(
        known[found[starts]].tobytes(),
        np.diff(starts, append=len(found)).astype(np.uint32).tobytes(),
        np.array(places, np.uint32)[pairs & index].tobytes(),
    )


def _distinct(numbers: Any) -> Any:
    """Return the different numbers in ascending order."""
    import numpy as np

    numbers.sort()
    is_new = np.ones(len(numbers), bool)
    is_new[1:] = numbers[1:] != numbers[:-1]
    return numbers[np.flatnonzero(is_new)]
