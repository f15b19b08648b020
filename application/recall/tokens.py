"""Tokens: the pieces of a text that recall finds it by, the same for what is kept and what is asked."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from unicodedata import normalize

from refold.application.ports.stemmer import Stemmer

VERSION = 2
"""Raised whenever equal text gives other tokens: an index of another version is folded anew."""
LONGEST = 64
"""Characters of a token. What is longer (a key, a base64 blob) is found by its beginning."""
_FEW_PIECES, _MOST_PIECES = 6, 24
_PIECE_LENGTH = 3
"""An identifier of more than a few pieces that are shorter than this on the average, or of more than the
most, is noise such as a digest, and is found as a whole only."""

CJK = (
    r"\u1100-\u11ff\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    r"\u3105-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
    r"\uf900-\ufaff\U0001b000-\U0001b122\U00020000-\U000323af"
)
"""Chinese, Japanese and Korean characters, as ranges of a class of a regular expression."""
_JOINER = r"(?:_*[-./\\'’]_*|_+|::|,(?=\d{3}(?!\d)))"
_LETTERS = rf"[^\W_{CJK}]+"
_CHUNK = re.compile(rf"[{CJK}]+|{_LETTERS}(?:{_JOINER}{_LETTERS})*")
_ASCII_CHUNK = re.compile(rf"[A-Za-z0-9]+(?:{_JOINER}[A-Za-z0-9]+)*")
_IS_CJK = re.compile(rf"[{CJK}]")
_DIACRITICS = re.compile("[\u0300-\u036f]+")
_CONTRACTION = re.compile(r"['’](?:s|t|d|m|ll|re|ve)$", re.IGNORECASE)
_PATH = re.compile(r"::|[/\\]")
_JOINT = re.compile(r"[^A-Za-z0-9\u0080-\U0010ffff]+|’")
_ASCII_PIECE = re.compile(r"[0-9]+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PIECE = re.compile(r"\d+|[^\W\d]+")
_ORDINAL = re.compile(r"([0-9]+)(?:st|nd|rd|th)", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


def tokens_of(text: str) -> list[str]:
    """The tokens of a text in their order, with repetitions.

    Latin words without case, diacritics and endings; identifiers, numbers and paths both as a whole
    (without what joins their parts) and by part; every Chinese, Japanese or Korean character and every
    two that stand together. A token has 1 to 64 characters, each a letter or digit, ASCII letters
    lower-case. Takes any string; nothing in it means anything but itself.
    """
    chunk = _ASCII_CHUNK
    if not text.isascii():
        text, chunk = _folded(text), _CHUNK
    tokens: list[str] = []
    for found in chunk.findall(text):
        tokens += _tokens_of_chunk(found) if len(found) <= LONGEST else _tokens_of_long(found)
    return tokens


def padded(tokens: Iterable[str]) -> str:
    """The tokens in one line, each between two blanks, so that ``f" {token} "`` finds whole ones; empty
    without tokens."""
    line = " ".join(tokens)
    return f" {line} " if line else ""


def _folded(text: str) -> str:
    return normalize("NFC", _DIACRITICS.sub("", normalize("NFKD", text)))


def _tokens_of_long(chunk: str) -> Iterator[str]:
    """A run of Chinese, or a path that is too long to be worth remembering."""
    if _IS_CJK.match(chunk):
        yield from chunk
        yield from map("".join, pairwise(chunk))
        return
    for part in _JOINT.split(chunk):
        yield from _tokens_of_chunk(part[:LONGEST])


@lru_cache(maxsize=100_000)
def _tokens_of_chunk(chunk: str) -> tuple[str, ...]:
    if _PLAIN.fullmatch(chunk):
        return (_token(chunk),)
    if _IS_CJK.match(chunk):
        return tuple(_tokens_of_long(chunk))
    return tuple(_tokens_of_compound(_CONTRACTION.sub("", chunk)))


def _tokens_of_compound(chunk: str) -> Iterator[str]:
    """Each piece, then each file or identifier as a whole, then the path."""
    names = [name for name in _PATH.split(chunk) if name]
    for name in names:
        words = [word for word in _JOINT.split(name) if word]
        for word in words:
            yield from _tokens_of_word(word)
        if len(words) > 1:
            yield _token("".join(words))
    if len(names) > 1:
        yield _token("".join(_JOINT.split(chunk)))


def _tokens_of_word(word: str) -> Iterator[str]:
    if ordinal := _ORDINAL.fullmatch(word):
        yield _token(ordinal[1])
        return
    pieces = (_ASCII_PIECE if word.isascii() else _PIECE).findall(word)
    most = _MOST_PIECES if len(word) >= _PIECE_LENGTH * len(pieces) else _FEW_PIECES
    if 1 < len(pieces) <= most:
        yield from map(_token, pieces)
    yield _token(word)


def _token(word: str) -> str:
    """One token: a number without the zero that pads it, a word without its ending."""
    if not word.isascii():
        return _letters(word.casefold())[:LONGEST]
    lower = word.lower()
    if lower.isalpha():
        return _stemmer.stem(lower) if 2 < len(lower) <= LONGEST else lower
    return lower[1:] if len(lower) == 2 and lower[0] == "0" else lower


def _letters(word: str) -> str:
    """Folding case can bring marks back."""
    return word if word.isalnum() else "".join(filter(str.isalnum, word))


class _NoStemmer:
    def stem(self, word: str) -> str:
        raise RuntimeError(f"{word} cannot be stemmed: call stem_with() first")


_stemmer: Stemmer = _NoStemmer()


def stem_with(stemmer: Stemmer) -> None:
    """Have all words of this process stemmed by ``stemmer``, as the composition root says.

    An index and the questions to it need the same one; tokens of another one are forgotten.
    """
    global _stemmer
    if stemmer is not _stemmer:
        _stemmer = stemmer
        _tokens_of_chunk.cache_clear()
