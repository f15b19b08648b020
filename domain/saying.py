"""Whether a text says anything: words outside headings and tags, and not the same few for ever."""

import re
from collections.abc import Iterable

LEAST_WORDS = 3
"""A text of fewer different words says nothing. In Chinese, Japanese and Korean every character counts as one."""
LONGEST_ROUND = 12
"""Words that are repeated again and again are looked for in rounds of at most so many."""
MOST_ROUNDS = 6
"""A text that is nothing but so many rounds of the same words says nothing; of one word, half as many."""

_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters by name, that show nothing."""
_WORD = re.compile(r"\w+", re.UNICODE)
_MARKS = 50
"""A run of so many of the same character is no word."""
_RUN = re.compile(rf"(.)\1{{{_MARKS - 1},}}", re.DOTALL)
_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_CJK_OR_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")
_TAG = re.compile(r"</?[a-z][\w:.-]*(?:\s[^<>\n]*)?/?>", re.IGNORECASE)
_HEADING = re.compile(
    r"""^[ \t>]*(?:
      \#{1,6}(?:[ \t].*)?                           # "## Key Decisions"
    | (?:[-*•+][ \t]+|\d{1,2}[.)][ \t]+)?(?:
        (?:\*\*|__)\S+(?:[ \t]+\S+){0,5}(?:\*\*|__):?   # "**Key Decisions**", alone in its line
      | \w\S*(?:[ \t]+\S+){0,5}[:：](?:\*\*|__)?         # "Key Decisions:", the same
      )
    | 【[^】\n]*】
    )[ \t]*$""",
    re.MULTILINE | re.VERBOSE,
)


def is_blank(text: str) -> bool:
    """Return whether nothing in it is a letter or a digit: blanks, marks, characters of no width."""
    return not any(c.isalnum() and c not in _FILLERS for c in text)


def is_repetition(text: str) -> bool:
    """Return whether it is nothing but one character, word or short phrase, repeated from end to end."""
    if not _RUN.sub("", text).strip():
        return True
    words = [word.casefold() for word in _WORD.findall(text)]
    for size in range(1, min(LONGEST_ROUND, len(words) // 2) + 1):
        rounds = MOST_ROUNDS // 2 if size == 1 else MOST_ROUNDS
        if len(words) >= size * rounds and words[size:] == words[:-size]:
            return True
    return False


def says_nothing(text: str, headings: Iterable[str] = ()) -> bool:
    """Return whether hardly a word stands outside headings and tags, or the same few again and again.

    ``headings``: those that are known to be some, besides what looks like one.
    """
    said = _TAG.sub(" ", _HEADING.sub("", text))
    for heading in headings:
        said = said.replace(heading, " ")
    words = {word.casefold() for word in _CJK_OR_WORD.findall(said)}
    return len(words) < LEAST_WORDS or is_repetition(said)
