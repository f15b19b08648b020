"""Why a passage was found, in short phrases for people."""

import re
from collections.abc import Iterator, Mapping

from .asking import Question
from .features import Said
from .passages import Passage
from .tokens import CJK, tokens_of

SHOWN = 6
"""Words that are named."""
LONGEST = 40
"""Characters of a word that are shown."""

_WORD = re.compile(rf"[{CJK}]+|(?:(?![{CJK}])\S)+")
_CJK = re.compile(f"[{CJK}]")
_EDGES = re.compile(r"^\W+|\W+$")


class Reasons:
    """What speaks for the passages found for one question."""

    def __init__(self, question: Question, said: Said, cosines: Mapping[int, float]) -> None:
        self._question = question
        self._said = said
        self._cosines = cosines
        self._spelled: dict[frozenset[str], str] = {}
        asked = frozenset(question.tokens)
        self._words = [
            (word, asked.intersection(tokens_of(word)))
            for word in dict.fromkeys(_WORD.findall(question.text))
        ]

    def of(self, passage: Passage) -> tuple[str, ...]:
        """One phrase or more."""
        return tuple(self._phrases(passage)) or ("beside what was found",)

    def _phrases(self, passage: Passage) -> Iterator[str]:
        said = self._said
        if words := self._words_in(passage):
            yield f"words: {words}"
        if said.asked_before(passage):
            yield "answers the question before it"
        elif said.before(passage) > said.words[passage.number]:
            yield "after a message with words of the question"
        if said.after(passage) > said.words[passage.number]:
            yield "before a message with words of the question"
        if passage.role in self._question.roles:
            yield f"by the {passage.role}"
        if said.by_name(passage):
            yield "by the one who is named"
        if any(day.fits(passage.at) for day in self._question.days):
            yield f"of {passage.at[:10]}"
        if (cosine := self._cosines.get(passage.number, 0.0)) > 0:
            yield f"near in meaning ({cosine:.2f})"

    def _words_in(self, passage: Passage) -> str:
        found = self._said.tokens[passage.number]
        if found not in self._spelled:
            self._spelled[found] = self._spell(found)
        return self._spelled[found]

    def _spell(self, found: frozenset[str]) -> str:
        """The words of the question that a passage has, as they were asked."""
        words: list[str] = []
        for word, tokens in self._words:
            if tokens & found:
                words += _runs(word, found) if _CJK.match(word) else [_EDGES.sub("", word)]
        return ", ".join(word[:LONGEST] for word in dict.fromkeys(words[:SHOWN]))


def _runs(word: str, found: frozenset[str]) -> list[str]:
    """Of Chinese, which is not written in words: the longest runs whose pairs were all found."""
    runs: list[str] = []
    last = -2
    for at in range(len(word) - 1):
        if word[at : at + 2] in found:
            if at - 1 == last:
                runs[-1] += word[at + 1]
            else:
                runs.append(word[at : at + 2])
            last = at
    return runs or [character for character in word if character in found]
