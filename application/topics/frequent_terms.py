"""Topics by code: what is said in many messages here and not everywhere, and how it is named."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log2
from unicodedata import normalize

from refold.application.ports.summariser import SourceMessage
from refold.application.recall.tokens import tokens_of
from refold.domain.ledger.wording import redact

from .candidates import Candidate, candidates

MOST_WORDS = 4
LONGEST = 40
"""Characters of a name."""
LONGEST_CHINESE = 12
"""Of these, characters of a language that puts no blanks between words."""

_LONGEST_GIVEN = 200
# What would end the list, or a line, or read like markup; quotation marks say nothing in a label.
_APART = re.compile(
    r"""[\s,;:"“”„'‘’`´<>()\[\]{}|*#~=，、；：。！？!?…「」『』【】《》（）·•\\]+"""
)
_CHINESE = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
_EDGE = "-–—_./+&@^%$"
_JOINT = re.compile(r"[^A-Za-z0-9]+")
_HEX = re.compile(r"(?:0x)?(?=[a-f]*[0-9])[0-9a-f]{7,}", re.IGNORECASE)
_MIXED = re.compile(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{12,}|[0-9]{5,}")
_PIECE = re.compile(r"[0-9]+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_RANDOM = 12
"""Letters from which on a word of many changes of case is no word: in a name its pieces are longer."""


def topic_name(text: str) -> str | None:
    """The name as it can be shown, or None where nothing of it can.

    1 to 4 words on one line, 40 characters at most, 12 of them Chinese; nothing in it ends a list or
    opens a bracket, hides, or looks like a credential.
    """
    if len(text) > _LONGEST_GIVEN or not text.isprintable() or redact(text) != text:
        return None
    words = [word.strip(_EDGE) for word in _APART.split(normalize("NFC", text))]
    words = [word for word in words if word]
    name = " ".join(words)
    if not 2 <= len(name) <= LONGEST or len(words) > MOST_WORDS:
        return None
    if len(_CHINESE.findall(name)) > LONGEST_CHINESE or not any(c.isalpha() for c in name):
        return None
    return None if any(map(_is_secret, words)) or redact(name) != name else name


def distinct(names: Iterable[str]) -> list[str]:
    """Those that can be shown, each once, whatever its case."""
    found: dict[str, str] = {}
    for text in names:
        name = topic_name(text)
        if name is not None:
            found.setdefault(name.casefold(), name)
    return list(found.values())


def _is_secret(word: str) -> bool:
    """Whether a word could be a key, a token or a digest: nobody needs one as a label."""
    parts = [part for part in _JOINT.split(word) if part]
    if any(_HEX.fullmatch(part) or _MIXED.fullmatch(part) for part in parts):
        return True
    longest = max(parts, key=len, default="")
    return len(longest) >= _RANDOM and len(longest) < 3 * len(_PIECE.findall(longest))


_LEAST = 2
"""Messages in which a topic comes up at least, where there are more than a few."""
_FEW = 6
_OVERLAP = 0.6
"""A shorter name goes where a longer one with it in it comes up in this share of its messages."""
_FILES = 0.5
"""The share of all that may be files: a session touches many."""

_Key = tuple[str, ...]


@dataclass(slots=True)
class _Term:
    """A candidate, whatever form it stands in."""

    weight: float = 0.0
    messages: set[int] = field(default_factory=set[int])
    forms: Counter[str] = field(default_factory=Counter[str])
    is_file: bool = False
    before: set[str] = field(default_factory=set[str])
    after: set[str] = field(default_factory=set[str])
    """Of a Chinese one, what it stands between; nothing else has any."""

    def take(self, one: Candidate, position: int) -> None:
        self.weight = max(self.weight, one.weight)
        self.messages.add(position)
        self.forms[one.text] += 1
        self.is_file = one.is_file
        if one.beside is not None:
            self.before.add(one.beside[0])
            self.after.add(one.beside[1])

    def score(self, of: int) -> float:
        """Once per message: what somebody repeats in one breath is not more of a topic; and what is in
        every message, a name that people call each other, is none.
        """
        share = len(self.messages) / of
        return self.weight * log2(1 + len(self.messages)) * (1 - share if of > _FEW else 1)

    @property
    def is_whole(self) -> bool:
        """Whether it is no mere part of a Chinese word: those stand beside the same character always."""
        return not self.after or (_varies(self.before) and _varies(self.after))


class FrequentTerms:
    """``TopicExtractor`` without a model: files, identifiers, names and phrases, by how many messages
    they come up in. About half of what it finds would please a person, of Chinese more.
    """

    def topics(self, messages: Sequence[SourceMessage], most: int) -> Sequence[str]:
        """See ``TopicExtractor``."""
        least = _LEAST if len(messages) > _FEW else 1
        common = [
            (key, term)
            for key, term in _terms(messages).items()
            if len(term.messages) >= least and (term.is_whole or least == 1)
        ]
        common.sort(key=lambda one: (-one[1].score(len(messages)), one[0]))
        return _chosen(common[: 20 * most], most)


def _chosen(ranked: Sequence[tuple[_Key, _Term]], most: int) -> list[str]:
    chosen: list[tuple[_Key, _Term, str]] = []
    for key, term in ranked:
        name = topic_name(term.forms.most_common(1)[0][0])
        if name is not None and not any(_is_part(key, term, k, t) for k, t, _ in chosen):
            chosen = [one for one in chosen if not _is_part(one[0], one[1], key, term)]
            chosen.append((key, term, name))
    files = [name for _, term, name in chosen if term.is_file][int(most * _FILES) :]
    names = [name for _, _, name in chosen if name not in files]
    return [*names, *files][:most]


def _terms(messages: Sequence[SourceMessage]) -> dict[_Key, _Term]:
    terms: defaultdict[_Key, _Term] = defaultdict(_Term)
    for source in messages:
        for one in candidates(source.message):
            key = (one.text,) if one.beside is not None else tuple(tokens_of(one.text))
            if key:
                terms[key].take(one, source.position)
    return terms


def _varies(characters: set[str]) -> bool:
    return len(characters) > 1 or "" in characters


def _is_part(key: _Key, term: _Term, other: _Key, longer: _Term) -> bool:
    """Whether the other name says this one as well, mostly where this one is said."""
    if bool(term.after) != bool(longer.after) or key == other:
        return False
    inside = key[0] in other[0] if term.after else set(key) < set(other)
    return inside and len(longer.messages) >= _OVERLAP * len(term.messages)
