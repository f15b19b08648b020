"""Split texts into search tokens, and leave out those that weigh nothing in questions."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, pairwise
from operator import itemgetter
from unicodedata import normalize

from refold.application.ports.stemmer import Stemmer, when_chosen
from refold.domain.lazy_pattern import lazy_pattern

VERSION = 2
"""Version of the tokens; increase it when they change, so that indexes are rebuilt."""
LONGEST = 64
"""Most characters of a token. Longer words (keys, base64 data) are found by their beginning."""
_MOST_KNOWN = 100_000
"""Number of words whose tokens are remembered."""
_FEW_PIECES, _MOST_PIECES = 6, 24
_PIECE_LENGTH = 3
"""Average length of a piece. An identifier with longer pieces is split into at most ``_MOST_PIECES``.

One with shorter pieces is split into at most ``_FEW_PIECES``. An identifier with more pieces is noise, such
as a digest, and is indexed only as a whole.
"""

CJK = (
    r"\u1100-\u11ff\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    r"\u3105-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
    r"\uf900-\ufaff\U0001b000-\U0001b122\U00020000-\U000323af"
)
"""Chinese, Japanese and Korean characters, as ranges for a character class of a regular expression."""
_JOINER = r"(?:_*[-./\\'’]_*|_+|::|,(?=\d{3}(?!\d)))"
_LETTERS = rf"[^\W_{CJK}]+"
_CHUNK = lazy_pattern(rf"[{CJK}]+|{_LETTERS}(?:{_JOINER}{_LETTERS})*")
# Most words are followed by something that is no joiner, so that is looked at first.
_ASCII_CHUNK = lazy_pattern(rf"[A-Za-z0-9]++(?:(?![^-./\\'_:,]){_JOINER}[A-Za-z0-9]++)*+")
_IS_CJK = lazy_pattern(rf"[{CJK}]")
_DIACRITICS = lazy_pattern("[\u0300-\u036f]+")
_CONTRACTION = lazy_pattern(r"['’](?:s|t|d|m|ll|re|ve)$", re.IGNORECASE)
_PATH = lazy_pattern(r"::|[/\\]")
_JOINT = lazy_pattern(r"[^A-Za-z0-9\u0080-\U0010ffff]+|’")
_ASCII_PIECE = lazy_pattern(r"[0-9]+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PIECE = lazy_pattern(r"\d+|[^\W\d]+")
_ORDINAL = lazy_pattern(r"([0-9]+)(?:st|nd|rd|th)", re.IGNORECASE)
_PLAIN = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


def tokens_of(text: str) -> list[str]:
    """Return the tokens of a text in order, with repetitions.

    Latin words lose case, diacritics and endings. Identifiers, numbers and paths give tokens for
    the whole (without joining characters) and for each part. Chinese, Japanese and Korean text
    gives every character and every pair of neighbours. A token has 1 to 64 letters or digits, with
    ASCII letters in lower case. Any string is valid, and no character is special.
    """
    # No token goes across white space, so the texts between are looked up one by one.
    return list(chain.from_iterable(map(_known.__getitem__, text.split())))


def wanted_in(wanted: frozenset[str], line: str) -> frozenset[str]:
    """Return the wanted tokens that a line has. For long texts, ``tokens_among`` is faster."""
    return wanted.intersection(chain.from_iterable(map(_known.__getitem__, _pieces_of(line))))


def tokens_among(wanted: frozenset[str], text: str) -> frozenset[str]:
    """Return the wanted tokens that a text has. Each piece is looked up once."""
    pieces = frozenset(_pieces_of(text))
    return wanted.intersection(chain.from_iterable(map(_known.__getitem__, pieces)))


def pieces_with(wanted: frozenset[str], text: str) -> list[str]:
    """Return the pieces of a text that have a wanted token, each once, in any order."""
    return [piece for piece in frozenset(_pieces_of(text)) if not wanted.isdisjoint(_known[piece])]


def _pieces_of(text: str) -> list[str]:
    """Return the parts of a text that have their tokens by themselves. Many texts have the same."""
    whole = put_apart(text.encode("utf-8", "surrogatepass"))
    return whole.decode("utf-8", "surrogatepass").split()


class _Known(dict[str, tuple[str, ...]]):
    """Tokens of texts without white space. Looking one up makes them."""

    def __missing__(self, text: str) -> tuple[str, ...]:
        plain = text if text.isascii() else _fold_characters(text)
        chunks = (_ASCII_CHUNK if plain.isascii() else _CHUNK).findall(plain)
        if len(plain) <= LONGEST:
            found = tuple(chain.from_iterable(map(_tokens_of_chunk, chunks)))
        else:
            tokens: list[str] = []
            for chunk in chunks:
                tokens += (
                    _tokens_of_chunk(chunk) if len(chunk) <= LONGEST else _tokens_of_long(chunk)
                )
            found = tuple(tokens)
        if len(text) <= LONGEST:  # Longer ones seldom come again.
            if len(self) >= _MOST_KNOWN:
                self.clear()
            self[text] = found
        return found


_known = _Known()

_APART = bytes(
    32 if byte < 128 and not chr(byte).isalnum() and chr(byte) not in "_-./\\':," else byte
    for byte in range(256)
)
"""Translation of UTF-8 that replaces each ASCII character that is in no token and joins none by a space."""


def put_apart(words: bytes) -> bytes:
    """Return words in UTF-8 with spaces between texts that have their tokens by themselves."""
    return words.translate(_APART)


class Vocabulary(dict[str, str]):
    """Tokens of texts without white space, in a line with each token after a space. Equal lines are one object.

    Looking a text up adds it. A vocabulary is used by one thread at a time.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[str, str] = {}

    def __missing__(self, text: str) -> str:
        line = self[text] = self.line_with(_known[text])
        return line

    def line_with(self, tokens: tuple[str, ...]) -> str:
        """Return the line of these tokens."""
        line = "".join([f" {token}" for token in tokens])
        known = self._lines.setdefault(line, line)
        if known is line:
            self.add(line, tokens)
        return known

    def add(self, line: str, tokens: tuple[str, ...]) -> None:
        """Do what a new line needs."""

    def read(self, texts: Iterable[tuple[bytes, str]]) -> Iterator[tuple[str, ...]]:
        """Yield the lines of the texts in words, which are in UTF-8, and their date, in their order."""
        for words, date in texts:
            found = put_apart(words).decode("utf-8", "surrogatepass").split()
            found += date.split()
            # This is twice as fast as a call for each text, but one text alone makes no tuple.
            yield (
                itemgetter(*found)(self) if len(found) > 1 else tuple([self[one] for one in found])
            )

    @property
    def is_full(self) -> bool:
        """True if another vocabulary should take its place."""
        return len(self) > _MOST_KNOWN


class TextNumbers(dict[bytes, int]):
    """Numbers of texts in UTF-8 without white space. Looking a text up numbers it."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[tuple[str, ...]] = []
        """Tokens of each text, by its number."""
        self.lines: list[str] = []
        """The same in one string, each after a space."""

    def __missing__(self, text: bytes) -> int:
        tokens = _known[text.decode("utf-8", "surrogatepass")]
        number = self[text] = len(self.tokens)
        self.tokens.append(tokens)
        self.lines.append("".join([f" {token}" for token in tokens]))
        return number

    @property
    def is_full(self) -> bool:
        """True if another vocabulary should take its place."""
        return len(self) > _MOST_KNOWN


def line_of(words: str, date: str) -> str:
    """Return the tokens of words and of a date in one padded line, or an empty string if the words have none."""
    tokens = tokens_of(words)
    return f" {' '.join(tokens)} {date_line(date)} " if tokens else ""


def counted_line(words: bytes, date: str) -> tuple[str, int]:
    """Return the same of words in UTF-8, and the number of tokens."""
    line = line_of(words.decode("utf-8", "surrogatepass"), date)
    return line, line.count(" ") - 1


@lru_cache(maxsize=4_096)
def date_line(date: str) -> str:
    """Return the tokens of a date in one line."""
    return " ".join(tokens_of(date))


def digest_of(words: str) -> str:
    """Return the digest of a text, which identifies it."""
    return digest_of_utf8(words.encode("utf-8", "surrogatepass"))


def digest_of_utf8(words: bytes) -> str:
    """Return the digest of a text in UTF-8."""
    return blake2b(words, digest_size=16).hexdigest()


def pad(tokens: Iterable[str]) -> str:
    """Return the tokens in one line, each between two spaces, or an empty string without tokens.

    ``f" {token} "`` then matches whole tokens only.
    """
    line = " ".join(tokens)
    return f" {line} " if line else ""


def _fold_characters(text: str) -> str:
    return normalize("NFC", _DIACRITICS.sub("", normalize("NFKD", text)))


def _tokens_of_long(chunk: str) -> Iterator[str]:
    """Yield the tokens of Chinese text, or of a path that is too long to cache."""
    if _IS_CJK.match(chunk):
        yield from chunk
        yield from map("".join, pairwise(chunk))
        return
    for part in _JOINT.split(chunk):
        yield from _tokens_of_chunk(part[:LONGEST])


@lru_cache(maxsize=_MOST_KNOWN)
def _tokens_of_chunk(chunk: str) -> tuple[str, ...]:
    if _PLAIN.fullmatch(chunk):
        return (_token(chunk),)
    if _IS_CJK.match(chunk):
        return tuple(_tokens_of_long(chunk))
    return tuple(_tokens_of_compound(_CONTRACTION.sub("", chunk)))


def _tokens_of_compound(chunk: str) -> Iterator[str]:
    """Yield the tokens of each piece, then of each file or identifier, then of the path."""
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
    """Return one token: a number without leading zero, or the stem of a word."""
    if not word.isascii():
        return _letters(word.casefold())[:LONGEST]
    lower = word.lower()
    if lower.isalpha():
        return _stemmer.stem(lower) if 2 < len(lower) <= LONGEST else lower
    return lower[1:] if len(lower) == 2 and lower[0] == "0" else lower


def _letters(word: str) -> str:
    """Return only the letters and digits, because folding case can restore diacritics."""
    return word if word.isalnum() else "".join(filter(str.isalnum, word))


_stemmer: Stemmer


def _use(stemmer: Stemmer) -> None:
    """Use a stemmer from now on. Cached tokens of another one are dropped."""
    global _stemmer
    _stemmer = stemmer
    _tokens_of_chunk.cache_clear()
    date_line.cache_clear()
    _known.clear()


when_chosen(_use)


# Function words, and words that frame questions to a memory. "may" is missing because it is a
# month.
_ENGLISH = """
a about above after again against ago all also am an and any are as at be because been before being below
between both but by can could did do does doing don down during each ever few for from further had has have
having he her here hers herself him himself his how i if in into is it its itself just ll me might mine more
most must my myself no nor not now of off on once only or other our ours ourselves out over own please re same
shall she should so some such than that the their theirs them themselves then there these they this those
through to too under until up us ve very was we were what when where whether which while who whom whose why
will with would you your yours yourself yourselves
doesn didn isn aren wasn weren hasn haven hadn wouldn couldn shouldn won
know mention mentioned recall remember remind said say tell told
"""
# Some of these mean something in English, so they weigh nothing only in German questions.
_GERMAN = """
aber alle als also am an auch auf aus bei bin bis bist da damals damit dann das dass dein deine dem den denn der
des dich die dir doch du durch ein eine einem einen einer eines er es für gegen gibt hab habe haben hat hatte
hatten hast ich ihm ihn ihr ihre ihren im in ins ist ja kann kannst mal man mein meine meinem meinen meiner mich
mir mit nach nicht noch nur ob oder ohne schon sein seine seinem seinen sich sie sind so über um und uns unser
unsere unter vom von vor war waren warum was weil welche welchem welchen welcher welches wem wen wenn wer werden
wessen weshalb wie wieso wird wir wo woher wohin womit wurde wurden zu zum zur
erinnerst erwähnt erzählt gesagt
"""
_WORD = lazy_pattern(r"\w+")
_GERMAN_SIGNS = """
der das und ist sind wie wann wer wo wohin welche welchem welchen welcher welches warum ich nicht mein meine dem den
ein eine einen hat haben von für mit wurde
"""
_SAYS_GERMAN = frozenset(_GERMAN_SIGNS.split())
_CHINESE = frozenset(
    "的了是曾我你您他她它们咱吗呢吧啊呀嘛哦和跟与及或在有过这那就也都很还又把被给对向让从到着地得个些之其么什哪谁怎几"
    "另外来去上下里中时说想要会能可以为于用做没不最再更只才并而但因所每该将已正请问叫吃看听点次位件种部样一"
)
"""Characters that weigh nothing by themselves."""
_CHINESE_PARTICLES = frozenset(
    "的了是曾我你您他她它们吗呢吧啊呀嘛和跟与及或在有过这那就也都很还又把被给对向让从到着地得个些之其么什哪谁怎几"
)
"""Characters that weigh nothing as a pair."""
_CHINESE_FILLER = lazy_pattern(
    "是?什么样|什么时候|为什么|是什么|有什么|什么|怎么样|怎么|怎样|如何|哪些|哪个|哪里|哪儿|哪位|哪家|为何|多少|几个|几次"
    "|还记得|记不记得|记得|曾经|之前|以前|之后|以后|上次|请问|想问|告诉|提到|提过|说过|聊过|聊到|关于|对于|另外|还有|以及|并且|而且"
    "|此外|同时|顺便|我们|你们|他们|她们|它们|咱们|大家|自己|这个|那个|这些|那些|这次|那次|这天|那天|这里|那里|有没有|是不是"
    "|是否|能不能|可不可以|可以|的时候|时候|到底|究竟|具体|分别"
    "|(?<!第)一[个些下部种次位件本档家条张直]|名字是|叫做|是(?=[什多哪谁几怎])|[吗呢吧啊呀嘛哦么我你您她它们咱]|(?<!目)的(?!士)|了(?!解)|(?<!其)他"
)
"""Words that weigh nothing, and neither do the pairs of characters across their ends."""


def content_tokens(text: str) -> list[str]:
    """Return the tokens of a question without those that weigh nothing, with repetitions."""
    stopped = stop_words(german=is_german(text))
    tokens = tokens_of(text if text.isascii() else _CHINESE_FILLER.sub(" ", text))
    return [token for token in tokens if token not in stopped and not _is_particle(token)]


def is_german(text: str) -> bool:
    """Return whether a text has two different German function words, so that it is not English."""
    return len(_SAYS_GERMAN.intersection(_WORD.findall(text.lower()))) > 1


@lru_cache
def stop_words(*, german: bool = False) -> frozenset[str]:
    """Return the tokens that weigh nothing by themselves."""
    return frozenset(tokens_of(_GERMAN if german else _ENGLISH)) | _CHINESE


def _is_particle(token: str) -> bool:
    """Return whether the token is two Chinese function characters."""
    return len(token) == 2 and token[0] in _CHINESE_PARTICLES and token[1] in _CHINESE_PARTICLES
