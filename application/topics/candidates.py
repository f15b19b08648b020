"""What could name a topic: files, identifiers, names of people and things, phrases, Chinese nouns."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from refold.domain.block_words import strings_in
from refold.domain.ledger.speech import user_words, without_code
from refold.domain.messages import Message, said

from .everyday import CHINESE_EDGES, CHINESE_PARTICLES, frames_everyday, is_everyday

_SCANNED = 4_000
"""Characters of what a message says; beyond that it is pasted."""
_INPUT = 400
"""Characters of one text in a tool call: a path, or a command that names files."""
_DEEP = 4

_FILE = re.compile(
    r"(?<![\w.-])[A-Za-z_][\w-]{0,60}(?:\.[\w-]{1,30}){0,2}\.(?:bash|c|cc|cfg|conf|cpp|cs|css|csv|go|h|hpp|html|"
    r"ini|ipynb|java|js|json|jsonl|jsx|kt|lock|lua|md|mjs|pdf|php|proto|py|pyi|rb|rs|rst|scss|sh|sql|svelte|swift|"
    r"toml|ts|tsx|txt|vue|xml|yaml|yml)(?![\w-]|\.\w)"
)
_IDENTIFIER = re.compile(
    r"(?<![\w./-])(?:[A-Za-z]\w*_\w*[A-Za-z]|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+)(?![\w./-])"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9'’+#-]*")
_GAP = re.compile(r"[^\S\n]{1,2}")
_BEGINS = re.compile(r"(?:\A|[\n.!?:;\"“*>-])\s*\Z")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_TITLE = re.compile(r"《([^》\n]{1,20})》")
_SHORTEST = 3
_MOST_CAPITALISED = 3
_LONGEST_HAN = 4


class Candidate(NamedTuple):
    """A text that could name a topic."""

    text: str
    weight: float
    """How likely a text of this kind is one."""
    is_file: bool = False
    beside: tuple[str, str] | None = None
    """Of a Chinese one: the characters before and after it, each empty where nothing is."""


def candidates(message: Message) -> Iterator[Candidate]:
    """Everything in a message that could name what it is about; some more than once."""
    words = said(message)[: 2 * _SCANNED]
    text = without_code(user_words(words) if message.role == "user" else words)[:_SCANNED]
    for named in (text, *_inputs(message)):
        yield from (Candidate(found[0], 2.0, is_file=True) for found in _FILE.finditer(named))
    yield from (Candidate(found[0], 1.5) for found in _IDENTIFIER.finditer(text))
    yield from (Candidate(found[1], 3.0, beside=("", "")) for found in _TITLE.finditer(text))
    for run in _runs(text):
        yield from _phrases(run)
    for found in _HAN.finditer(text):
        yield from _chinese(found[0])


class _Word(NamedTuple):
    text: str
    begins: bool
    """Whether a sentence may begin with it."""

    @property
    def is_name(self) -> bool:
        return self.text[0].isupper() and not is_everyday(self.text)


def _runs(text: str) -> Iterator[list[_Word]]:
    """Words that follow each other with nothing but a blank between them."""
    run: list[_Word] = []
    last = 0
    for found in _WORD.finditer(text):
        between = text[last : found.start()]
        if run and not _GAP.fullmatch(between):
            yield run
            run = []
        begins = not run and bool(_BEGINS.search(text[max(0, found.start() - 8) : found.start()]))
        run.append(_Word(found[0], begins))
        last = found.end()
    if run:
        yield run


def _phrases(run: list[_Word]) -> Iterator[Candidate]:
    names: list[_Word] = []
    for word in (*run, _Word(".", False)):
        if word.text != "." and word.is_name:
            names.append(word)
            continue
        yield from _name(names)
        names = []
    plain = [w.text if _tells(w.text) else "" for w in run]
    yield from (Candidate(text, 0.6) for text in plain if len(text) > _SHORTEST)
    for first, second in pairwise(plain):
        if first and second:
            yield Candidate(f"{first} {second}", 1.6)


def _name(words: list[_Word]) -> Iterator[Candidate]:
    if not words or len(words) > _MOST_CAPITALISED:
        return
    # A single word at the beginning of a sentence is capitalised for that alone.
    if len(words) > 1 or not words[0].begins:
        yield Candidate(" ".join(word.text for word in words), 1.5 if len(words) == 1 else 2.2)


def _tells(word: str) -> bool:
    return len(word) >= _SHORTEST and not is_everyday(word) and "'" not in word and "’" not in word


def _chinese(run: str) -> Iterator[Candidate]:
    """Every stretch of two to four characters that neither begins nor ends like a sentence goes on."""
    for start in range(len(run)):
        if run[start] in CHINESE_EDGES:
            continue
        for stop in range(start + 2, min(len(run), start + _LONGEST_HAN) + 1):
            piece = run[start:stop]
            if piece[-1] in CHINESE_PARTICLES:
                break
            if piece[-1] not in CHINESE_EDGES and not frames_everyday(piece):
                beside = (run[start - 1 : start], run[stop : stop + 1])
                yield Candidate(piece, 0.8 + 0.2 * len(piece), beside=beside)


def _inputs(message: Message) -> Iterator[str]:
    if isinstance(message.content, str):
        return
    for block in message.content:
        if block.get("type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
            yield from (said[:_INPUT] for said in strings_in(block.get("input"), deepest=_DEEP))
