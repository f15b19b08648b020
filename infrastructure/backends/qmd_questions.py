"""Questions in the language of QMD: typed lines, in which a text of a user can be nothing but words."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from refold.application.recall.asking import ask
from refold.application.recall.tokens import tokens_of

from .message_files import folder_of

MOST_WORDS = 24
"""Each is a search of its own."""
MOST_PAIRED = 8
MOST_CHARACTERS = 2_000
"""Of a text that a vector is made of."""

_WORD = re.compile(r"[^\W_]+")
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_SPACE = re.compile(r"[\s\x00-\x1f\x7f]+")
_MINUS = re.compile(r"(?<!\S)-+")


def document(query: str, thread_id: str | None, *, meaning: bool) -> str:
    """A query document: a ``lex:`` line with all words, one for each two and one for each, since QMD
    joins the words of a line by AND and adds up ranks over the lines. Empty where nothing can be found.

    Every word is quoted, so that none is an operator or the beginning of another. The conversation is
    one of the words: the name of its folder stands in what is searched.
    """
    words = words_of(query)
    if not words:
        return ""
    scope = "" if thread_id is None else f'"{folder_of(thread_id)}" '
    # The first line counts twice.
    together = [words, *_twos(words), *([word] for word in words)] if len(words) > 1 else [words]
    lines = [f"lex: {scope}" + " ".join(f'"{word}"' for word in line) for line in together]
    if meaning and (text := plain(query)):
        lines.append(f"vec: {text}")
    return "\n".join(lines)


def _twos(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Each two words that may stand in one message; what was cut from Chinese stands together anyway."""
    if len(words) > 2:
        yield from combinations([w for w in words if not _IDEOGRAPHS.search(w)][:MOST_PAIRED], 2)


def words_of(query: str) -> list[str]:
    """What to look for, each once: words that say something, and each two characters of Chinese."""
    wanted = set(ask(query).tokens)
    words = (piece for word in _WORD.findall(_clean(query)) for piece in _pieces(word))
    said = [word for word in words if wanted.intersection(tokens_of(word))]
    return list(dict.fromkeys(word.lower() for word in said))[:MOST_WORDS]


def plain(query: str) -> str:
    """The question as one line without signs that mean something."""
    return (
        _MINUS.sub("", _SPACE.sub(" ", _clean(query)))[:MOST_CHARACTERS].replace('"', " ").strip()
    )


def _pieces(word: str) -> list[str]:
    """Chinese has no blanks: each two characters that stand together, and what is Latin between."""
    pieces: list[str] = []
    end = 0
    for found in _IDEOGRAPHS.finditer(word):
        pieces.append(word[end : found.start()])
        run = found.group()
        pieces += ["".join(two) for two in pairwise(run)] or [run]
        end = found.end()
    return [piece for piece in (*pieces, word[end:]) if piece]


def _clean(text: str) -> str:
    return text.encode(errors="replace").decode()
