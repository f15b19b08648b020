"""The names of topics: a few words that stand in a line of ours and cannot leave it, or pass for more."""

import re
from collections.abc import Iterable
from unicodedata import normalize

from refold.domain.ledger.wording import redact

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
