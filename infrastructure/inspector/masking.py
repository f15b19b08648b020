"""Mask credentials and names in everything that is written into a file for others."""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from refold.application.api.results import StoredMessage
from refold.domain.errors import InvalidSetting
from refold.domain.facts.cues import redact
from refold.domain.messages import readable
from refold.domain.value import Value, is_list, is_object, replace

CREDENTIAL = "[redacted]"
_MASK = r"\[(?:name [0-9]+|redacted)\]"
_LETTER = r"[^\W_]"
_BLANK = r"(?:[\s_.+-]|%20){1,3}"
# Scripts that put no spaces between words: Thai to Tibetan, Burmese, Khmer, Chinese, Japanese, Korean.
_UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
# A quoted value in JSON needs no digit to be a credential. Quotation marks in a text of JSON are escaped.
_QUOTED = re.compile(
    r"((?:pass(?:word|wd|phrase)|secret|token|(?:api|access|private|secret)[_-]?key)\\*[\"']\s{0,2}:\s{0,2}\\*[\"'])"
    r"(?!\[redacted\])[^\"'\\\n]{4,}",
    re.IGNORECASE,
)


class Masked(NamedTuple):
    """How much was masked in a page."""

    credentials: int
    names: tuple[int, ...]
    """Number of places of each name, in the order in which the names were given."""

    def __add__(self, other: object) -> "Masked":
        if not isinstance(other, Masked):
            return NotImplemented
        both = zip(self.names, other.names, strict=True)
        return Masked(self.credentials + other.credentials, tuple(map(sum, both)))

    def sentence(self) -> str:
        """Return the counts in words."""
        found = [f"{self.credentials:,} credentials" if self.credentials != 1 else "1 credential"]
        found += [f"[name {n}] {count:,} ×" for n, count in enumerate(self.names, 1)]
        return f"Masked: {', '.join(found)}"


class Masker:
    """Replaces credentials by ``[redacted]``, and names by ``[name 1]``, ``[name 2]`` and so on."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        """Raise InvalidSetting if a name has no letter or digit."""
        self._count = len(names)
        for name in names:
            if not re.search(_LETTER, name):
                raise InvalidSetting(
                    f"redact {name!r}: a name needs a letter or a digit",
                    setting="redact",
                    value=name,
                )
        # A longer name first: "Ada Lovelace" before "Ada".
        self._order = sorted(range(len(names)), key=lambda n: -len(names[n]))
        options = [_MASK, *(f"({_pattern(names[n])})" for n in self._order)]
        self._names = re.compile("|".join(options), re.IGNORECASE) if names else None

    def text(self, text: str) -> str:
        """Return a text with its credentials and names masked."""
        text = redact(text)
        if ":" in text:
            text = _QUOTED.sub(rf"\1{CREDENTIAL}", text)
        return text if self._names is None else self._names.sub(self._masked_name, text)

    def printed(self, value: object) -> object:
        """Return what a template prints instead of a value. Finished HTML and numbers are returned unchanged."""
        if isinstance(value, (Markup, int, float)):
            return value
        return self.text(str(value))

    def data(self, value: Any, name: str = "") -> Any:
        """Return JSON data with all texts masked, and every text whose name says that it is secret."""
        if isinstance(value, str):
            return CREDENTIAL if value and _is_secret(name) else self.text(value)
        if is_object(value):
            return {self.text(key): self.data(inner, key) for key, inner in value.items()}
        if is_list(value):
            return tuple(self.data(inner, name) for inner in value)
        return value

    def values(self, value: Any) -> Any:
        """Return values for a template with all of their texts masked, in lists and fields as well."""
        if isinstance(value, str):
            return value if isinstance(value, Markup) else self.text(value)
        if isinstance(value, Value):
            fields = {key: self.values(one) for key, one in vars(value).items()}
            masked = copy(value)
            vars(masked).update(fields)
            return masked
        if is_object(value):
            return {key: self.values(one) for key, one in value.items()}
        if not is_list(value):
            return value
        found, kind = self._lines(value), type(value)
        return kind(*found) if hasattr(kind, "_fields") else kind(found)

    def _lines(self, given: Sequence[Any]) -> list[Any]:
        """Return masked values, and none of a key whose lines are spread over several of them."""
        found = [self.values(one) for one in given]
        texts = [str(getattr(one, "text", "")) for one in given]
        if not any("-----BEGIN" in text for text in texts):
            return found
        whole = self.text("\n".join(texts))
        return [
            one if str(getattr(one, "text", "")) in whole else replace(one, text=CREDENTIAL)
            for one in found
        ]

    def message(self, stored: StoredMessage) -> StoredMessage:
        """Return a message with masked content. It is masked as a whole, before a page cuts it."""
        message = stored.message
        return replace(stored, message=replace(message, content=self.data(message.content)))

    def cut_text(self, text: str, source: StoredMessage) -> str:
        """Return a text that ends with an ellipsis without a half of a masked text at its end.

        ``source``: message that the text is from.
        """
        kept, _, last = text.removesuffix("…").rpartition(" ")
        if last in self.text(readable(source.message)):
            return text
        return f"{kept} {CREDENTIAL}".strip()

    def count(self, page: str) -> Masked:
        """Return how much is masked in a page."""
        names = (page.count(f"[name {n}]") for n in range(1, self._count + 1))
        return Masked(page.count(CREDENTIAL), tuple(names))

    def _masked_name(self, found: re.Match[str]) -> str:
        if found.lastindex is None:
            return found[0]
        return f"[name {self._order[found.lastindex - 1] + 1}]"


def _pattern(name: str) -> str:
    return "|".join(dict.fromkeys(_forms(name.strip())))


def _forms(name: str) -> Iterator[str]:
    """Yield patterns of a name as it is, decomposed, and as JSON and URLs have it."""
    begin = "" if _UNSPACED.match(name) else rf"(?<!{_LETTER})" * (name[0].isalnum())
    end = "" if _UNSPACED.match(name[-1]) else rf"(?!{_LETTER})" * (name[-1].isalnum())
    for form in ("NFC", "NFD"):
        words = unicodedata.normalize(form, name).split()
        for spell in (str, _as_json, quote):
            yield begin + _BLANK.join(re.escape(spell(word)) for word in words) + end


def _as_json(word: str) -> str:
    return json.dumps(word)[1:-1]


def _is_secret(name: str) -> bool:
    return bool(name) and redact(f"{name}=a1b2c3d4") != f"{name}=a1b2c3d4"
