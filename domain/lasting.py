"""Which sentences hold for longer than the moment: words that notes are looked for by, beside the ledger's."""

import re

from .ledger import cues
from .ledger.speech import sentences
from .ledger.values import paths_in

LONGEST = 200
"""Characters: who tells something once and for all does it in one short sentence."""

_ORDER = re.compile(
    r"(?:please |and |so |also |but |from now on,? )*(?:never|always|do not|don['’]?t|you must(?: not)?|must not)\b"
    r"(?! (?:worry|mind|be|think|know|you|get|see|let|a|an|the|have|had|feel|forget|sure|say|believe|want|need)\b)"
    r".{4,}[^?？]\Z"
    r"|(?:请|以后|今后|千万)?(?:不要|别|永远不|绝不|务必|一律|必须|禁止)(?!忘|担心|客气|着急|急|怕|说).{2,}[^?？吗呢]\Z",
    re.IGNORECASE,
)
# "I like it" and "I like the second one" are said of the moment.
_LIKING = re.compile(
    r"(?:^|[,;:] ?|\b(?:and|but|because|so|since|well|actually|personally|also|yes|no) )"
    r"(?:i (?:(?:really|also|do|just|generally|usually|always|still|absolutely) )*(?:(?:don['’]?t|do not) )?"
    r"(?:(?:really|much|even) )*(?:like|love|hate|dislike|prefer)"
    r"(?! (?:it|that|this|these|those|them|him|her|you\w*|how|what|when|where|which|the|option|both|neither|"
    r"to (?:see|know|hear|ask|say|think|thank))\b)(?! ?[.,;:!?]) \S{2,}"
    r"|my favou?rite [\w ]{2,40}? (?:is|are) \S)"
    r"|(?:^|[,，。；;：:、] ?|其实|因为|但是?|而且|不过|所以|平时|一直)"
    r"我(?:们)?(?:也|都|真的|特别|非常|一直|平时|比较|更|最|很|不太|不怎么|不)*(?:喜欢|偏好|讨厌)"
    r"(?![你您它他她这那上])[^\s，,。.！!；;]{2,}",
    re.IGNORECASE,
)
_ABOUT_SELF = re.compile(
    r"(?:and |but |also |by the way,? )?my (?:[\w-]+ )?(?:name|budget|birthday|time zone|timezone) (?:is|are) \S"
    r"|我叫[^\s，。？?]{2,}|我的(?:预算|名字|生日|时区)(?:是|为|有)\S",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？][\"'”’)）]*\Z|[吗呢]\Z")
_POLITE = re.compile(
    r"(?:^|[,;:.] ?|\b(?:so|and|but|also|then|now|ok|okay) )(?:can|could|would|will) (?:you|we)\b|\bplease\b"
    r"|请(?!问)|帮我|(?:能不能|能否|可以|可不可以)帮|麻烦你",
    re.IGNORECASE,
)


def is_order(said: str) -> bool:
    """Whether a sentence of a user tells once and for all what to do or not to do."""
    return len(said) <= LONGEST and _ORDER.match(said) is not None


def is_liking(said: str) -> bool:
    """Whether a sentence of a user tells what that person likes, and nothing that is forbidden."""
    if len(said) > LONGEST or _QUESTION.search(said) or not _LIKING.search(said):
        return False
    return cues.PROHIBITION.search(_LIKING.sub("", said)) is None


def is_about_self(said: str) -> bool:
    """Whether a sentence of a user tells a plain fact of that person."""
    return len(said) <= LONGEST and not _QUESTION.search(said) and bool(_ABOUT_SELF.match(said))


def is_question(said: str) -> bool:
    """Whether a passage only asks to be answered: none of its sentences is an order, however polite."""
    if not _QUESTION.search(said):
        return False
    parts = [said[span.start : span.stop] for span in sentences(said)]
    return not any(
        _POLITE.search(part) or (cues.ORDER.match(part) and not _QUESTION.search(part))
        for part in parts
    )


def is_path(text: str) -> bool:
    """Whether a text is nothing but an address or the name of a file."""
    return "/" in text or any(found.span() == (0, len(text)) for found in paths_in(text))
