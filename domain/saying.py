"""Whether a text says anything: letters or digits in it, and not the same few words for ever."""

import re

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
