"""Turns texts of any origin into one harmless line: cleaned, shortened, freed of credentials."""

import re

from refold.domain.text_cuts import beginning, ends

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
_BREAKS = re.compile(r"[ \t]*(?:[\n\r\v\f\x1c-\x1e\x85\u2028\u2029][ \t]*)+")
_CONTROL = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_BLANKS = re.compile(r"[ \t\xa0]{2,}|\t")

_CUT = re.compile(r" ⟨… (\d{1,9}) characters cut …⟩ ")

# Each begins with a literal and repeats nothing inside a repetition: tool output may be hostile.
_SECRETS = re.compile(
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bxox[abposr]-[\w-]{10,}|\bAIza[\w-]{30,}|\bhf_[A-Za-z0-9]{20,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_NAMED = (
    r"((?:pass(?:word|wd|phrase)|secret(?:[_-]?key)?|token|api[_-]?key|access[_-]?key|"
    r"private[_-]?key|密码|口令)[\"']?\s{0,2}"
)
_ASSIGNED = re.compile(
    _NAMED + r"(?:=|:=)\s{0,2}[\"']?)(?!\[redacted\])([^\s\"'&;,)}\]⏎]{4,})", re.IGNORECASE
)
# After a colon only what looks like a credential: "token: string" is code.
_LABELLED = re.compile(
    _NAMED
    + r"[:：]\s{0,2}[\"']?)(?!\[redacted\])((?=[^\s\"'&;,)}\]⏎]{0,60}\d)[^\s\"'&;,)}\]⏎]{6,})",
    re.IGNORECASE,
)
_PREFIXES = (
    *("sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *("github_pat_", "glpat-", "AKIA", "ASIA", "xox", "AIza", "hf_", "eyJ", "-----BEGIN"),
)
_HINTS = ("pass", "secret", "token", "key", "密码", "口令")
_BEARER = re.compile(r"(\b(?:Bearer|Basic)\s+)(?!\[redacted\])[A-Za-z0-9._~+/=-]{12,}")
_IN_URL = re.compile(r"(://[^\s:/@]{1,80}:)[^\s@/]{1,200}@")


def clean(text: str) -> str:
    """One line: terminal colours and control characters gone, line breaks as ``⏎``."""
    if _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text = _BREAKS.sub(" ⏎ ", text.strip())
    return _BLANKS.sub(" ", _CONTROL.sub("", text)).strip(" ⏎")


def redact(text: str) -> str:
    """The text without what is obviously a credential."""
    # Plain searches first: most texts hold nothing of the kind, and there are thousands of them.
    if any(prefix in text for prefix in _PREFIXES):
        text = _SECRETS.sub("[redacted]", text)
    folded = text.casefold()
    if any(hint in folded for hint in _HINTS):
        text = _LABELLED.sub(r"\1[redacted]", _ASSIGNED.sub(r"\1[redacted]", text))
    if "@" in text:
        text = _IN_URL.sub(r"\1[redacted]@", text)
    return _BEARER.sub(r"\1[redacted]", text)


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters: the head (two thirds) and the tail around a marker.

    For the words of a person: the marker counts what is gone, and a text cut before keeps one
    marker with the sum, so that repeated cuts stay honest. Where there
    is no room for a marker, an ellipsis.
    """
    if len(text) <= limit:
        return text
    if limit < 90:
        return squeeze(text, limit)
    earlier = _CUT.search(text)
    head, tail = (text[: earlier.start()], text[earlier.end() :]) if earlier else (text, text)
    known = int(earlier[1]) if earlier else 0
    room = limit - len(f" ⟨… {known + len(text)} characters cut …⟩ ")
    kept_tail = tail[len(tail) - min(len(tail), room // 3) :]
    kept_head = head[: room - len(kept_tail)]
    total = known + (len(head) + len(tail) if earlier else len(text))
    return f"{kept_head} ⟨… {total - len(kept_head) - len(kept_tail)} characters cut …⟩ {kept_tail}"


def squeeze(text: str, limit: int) -> str:
    """At most ``limit`` characters: head and tail around an ellipsis, for texts that quote nobody."""
    if len(text) <= limit:
        return text
    tail = max(0, limit - 3) // 3
    head = max(0, limit - 3 - tail)
    if tail < 8:
        return beginning(text, limit, trim=True) if limit > 0 else ""
    return ends(text, head, tail, " … ", trim=True)


def excerpt(text: str, limit: int) -> str:
    """A clean, redacted line of at most ``limit`` characters from a text of any size."""
    if len(text) > 8 * limit:
        # Cleaning is linear: a megabyte of output is not worth reading for a line of it.
        text = text[: 4 * limit] + "\n…\n" + text[-3 * limit :]
    return squeeze(redact(clean(text)), limit)
