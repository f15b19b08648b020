"""Find the reason for a decision and the alternatives that it rejects."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from refold.domain.lazy_pattern import lazy_pattern

from .speech import Span

LONGEST = 240
"""Maximum number of characters of a reason."""
_MOST_REJECTED = 3
_BECAUSE = lazy_pattern(
    r"\b(?:because|since (?:the|this|that|we|it|there|they|our|all|only|both|no)\b|so that\b|due to\b|given that\b"
    r"|as (?:it|we|they|this|that) (?:is|are|has|have|does|do|can|would|was|were)\b|in order to\b"
    r"|to (?:avoid|prevent|ensure|make sure|stay|be (?:safe|sure|consistent))\b|otherwise\b)"
    r"|因为|由于|以便|以(?:避免|防止|确保|便于|减少|保持)|避免|防止|免得|否则",
    re.IGNORECASE,
    signs="because|since |so that|due to|given that|as it|as we|as they|as this|as that|in order to|"
    "to avoid|to prevent|to ensure|to make sure|to stay|to be |otherwise",
)
_EXPLAINS = lazy_pattern(
    r"because\b|(?:this|that|it)(?:['’]s| is) because\b"
    r"|(?:the |my |main |key )*(?:reason|rationale|why)\b(?! (?:not|don))"
    r"|(?:this|that|doing so|which) (?:way|avoids?|keeps?|ensures?|lets?|allows?|prevents?|removes?)\b"
    r"|otherwise\b|since (?:the|this|we|it|there)\b|(?:因为|由于|理由|原因|这样|否则)",
    re.IGNORECASE,
)
_CONCLUDES = lazy_pattern(
    r"(?:so(?! (?:far|that|many|much)\b)|therefore|thus|hence|that['’]s why|for (?:that|this) reason"
    r"|given (?:that|this)|as a result|consequently|accordingly)\b|所以|因此|于是|鉴于此|综上",
    re.IGNORECASE,
)
_NAME = r"(?P<{0}>(?:[^,;:!?，。；：！？()（）|\n.]|[.:!](?=\w)){{2,80}}?)"
_ENDS = (
    r"(?=[,;:!?)|，。；：！？）\n]|\.(?!\w)|\Z| [–—-] | (?:because|since|so that|due to|as (?:it|we|they)|to avoid"
    r"|which|but|and|when|if|while|for now)\b|因为|由于|以便)"
)
_REJECTS = lazy_pattern(
    r"\b(?:instead of|rather than|as opposed to|in place of|ruled out|rejected|decided against|discarded|abandoned"
    rf"|not going to use|won['’]t use|will not use) {_NAME.format('a')}{_ENDS}"
    rf"|(?:,|\() ?not {_NAME.format('b')}{_ENDS}"
    rf"|\b(?:chose|chosen|picked|prefer(?:red)?|went with|go(?:ing)? with|opted for)\b[^.;]{{2,60}}? over "
    rf"{_NAME.format('c')}{_ENDS}"
    rf"|(?:而不是|而非|放弃了?|否决了?|不再?(?:采|使)?用){_NAME.format('d')}{_ENDS}",
    re.IGNORECASE,
)
_ENDS_LATER = lazy_pattern(r"[;；](?=\s|\Z)| [–—] |,? (?:instead of|rather than)\b|而不是")
_ENDS_FIRST = lazy_pattern(rf"[,，]|{_ENDS_LATER.pattern}")
_WORD = lazy_pattern(r"\w")
_EDGES = " \t,.;:|，。；："


class Grounds(NamedTuple):
    """The reason for a decision and the alternatives that it rejects, copied word for word."""

    reason: str = ""
    rejected: tuple[str, ...] = ()


NO_GROUNDS = Grounds()


def grounds_of(words: str, spans: Sequence[Span], at: int) -> Grounds:
    """Return the grounds of the decision in sentence ``at``: in it, in the next sentence, or in the one before.

    A neighbour counts only if no empty line or code is between the two.
    """
    own = _text(words, spans[at])
    before = _text(words, spans[at - 1]) if _are_adjacent(words, spans, at - 1) else ""
    following = _text(words, spans[at + 1]) if _are_adjacent(words, spans, at) else ""
    reason, rest = _split(own)
    if not reason and (_EXPLAINS.match(following) or rest != own):
        reason = following
    elif not reason and _CONCLUDES.match(own):
        reason = before
    rejected = dict.fromkeys(name for text in (rest, following) for name in _rejected_in(text))
    return Grounds(_trim(reason), tuple(rejected)[:_MOST_REJECTED])


def _text(words: str, span: Span) -> str:
    return words[span.start : span.stop]


def _are_adjacent(words: str, spans: Sequence[Span], first: int) -> bool:
    """Return whether sentence ``first`` and the next one are in one paragraph."""
    if not 0 <= first < len(spans) - 1:
        return False
    return words.count("\n", spans[first].stop, spans[first + 1].start) <= 1


def _split(sentence: str) -> tuple[str, str]:
    """Return the reason in a sentence and the rest of the sentence.

    The reason is empty if the sentence only announces it.
    """
    found = _BECAUSE.search(sentence)
    if found is None:
        return "", sentence
    start = found.start()
    # A reason at the beginning ends where the main clause begins.
    ends = _ENDS_FIRST if not _WORD.search(sentence, 0, start) else _ENDS_LATER
    stop = next((end.start() for end in ends.finditer(sentence, found.end())), len(sentence))
    reason = sentence[start:stop]
    return reason if _WORD.search(sentence, found.end(), stop) else "", sentence[:start] + sentence[
        stop:
    ]


def _trim(reason: str) -> str:
    reason = reason.strip(_EDGES)
    return reason if len(reason) <= LONGEST else ""


def _rejected_in(sentence: str) -> Iterator[str]:
    for found in _REJECTS.finditer(sentence):
        name = next(name for name in found.groups() if name is not None).strip(_EDGES)
        if _WORD.search(name):
            yield name
