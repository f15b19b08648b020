"""Says how a heading changes what stands under it: it forbids, rules or asks."""

import re
from collections.abc import Sequence
from typing import Literal

Sense = Literal["forbids", "rules", "asks"]

CUT_MARK = "… "
"""Stands before the end of a heading that is too long to be shown."""

_POLITE = (
    r"(?:(?:please|and|so|also|but|always|just|you|we|i want you to|i do not want you to|"
    r"i don['’]?t want you to|under no circumstances),? )*"
)
_NOT = (
    r"(?:never|do not|don['’]?ts?|(?:must|should|shall|may) (?:not|never)|(?:must|should|ca)n['’]?t|cannot|"
    r"avoid|refrain from|stay away from|keep (?:off|out of)|no[- ]gos?|not (?:allowed|permitted)|forbidden|"
    r"prohibited|unacceptable|anti[- ]patterns?|stop (?:doing|using|adding|making)|"
    r"off[- ]limits|hands off|(?:i|we) (?:do not|don['’]?t) want (?:you|this|these|any)|"
    # German, French, Spanish, Italian, Portuguese, Russian.
    r"niemals|nie|bitte nicht|nicht (?:erlaubt|gestattet|tun)|keinesfalls|auf keinen fall|verboten|vermeide\w*|"
    r"(?:du|sie) (?:darfst|dürfen|sollst|sollen) (?:nicht|nie\w*)|"
    r"jamais|ne (?:\w+ )?(?:pas|jamais)|interdit\w*|à éviter|évite[rz]?|nunca|jamás|no (?:hagas|hacer|debes|usar)|"
    r"prohibid\w+|evita\w*|mai|non (?:fare|devi)|vietat\w+|proibid\w+|não (?:fazer|faça|deve)|"
    r"никогда|нельзя|не (?:надо|делай\w*)|запрещ\w+|избега\w+)\b"
    r"(?! (?:forget|hesitate|worry|mind|see|know|think|understand|miss|fail|only|get|have)\b)"
)
_ZH_NOT = (
    r"不要|不许|不准|不得|不可以|不应|不允许|禁止|严禁|[切请]勿|切忌|千万别|绝不|避免|禁忌|红线|しないで|"
    r"してはいけない|決して|금지|절대"
)
_NEGATED = re.compile(
    rf"{_POLITE}(?:to )?{_NOT}"
    r"|.{0,80}\b(?:(?:must|should|may|shall) (?:not|never)|(?:must|should)n['’]?t|"
    r"not to (?:do|touch|use|change|be)|not (?:allowed|permitted)|forbidden|prohibited|prohibitions?|"
    r"off[- ]limits|no[- ]gos|"
    r"under no circumstances|(?:please|but|also),? (?:do not|don['’]?t|never|avoid)|"
    r"(?:things|what) to avoid|don['’]ts)\b"
    r"|.*\b(?:never|do not|don['’]t|(?:must|should|may|shall) not)(?:\s*:\Z|"
    r" (?:ever )?do (?:any|this|these|those|the following)\b)"
    rf"|.{{0,30}}(?:{_ZH_NOT})"
    r"|(?:请|也|都|你)?(?:别|勿|不能|不可)(?![人的墅处名致样])",
    re.IGNORECASE,
)
_RULES = re.compile(
    rf"{_POLITE}(?:always|must|make sure|ensure|remember|keep to|stick to)\b"
    r"|.{0,80}\b(?:rules|constraints|conventions|requirements|guidelines|preferences)\b.{0,20}"
    r"|.{0,30}(?:规则|约束|规范|约定|偏好|必须|务必|一律|记住)",
    re.IGNORECASE,
)
_PERMITTED = re.compile(
    rf"{_POLITE}(?:do|instead|fix|add|allowed|you (?:may|can|should)|(?:can|could|would) you|"
    r"i(?:['’]d)? (?:want|need|like))\b"
    r"|.{0,10}(?:请|可以|允许|应该|帮我)",
    re.IGNORECASE,
)
_SENSES: dict[Sense, re.Pattern[str]] = {
    "forbids": _NEGATED,
    "rules": _RULES,
    "asks": _PERMITTED,
}
# Whatever such a heading means exactly, what stands under it is not simply asked for.
_DENIES = re.compile(
    r"\b(?:not|never|none|no|without|unless|stop|nothing|nicht|kein\w*|ohne|jamais|sans|nunca|sin|mai|senza|"
    r"не|без|leave (?:\w+ ){0,2}alone)\b|n['’]t\b|[不别勿禁]",
    re.IGNORECASE,
)
_FORBIDDING_SIGNS, _ALLOWING_SIGNS = frozenset("❌🚫⛔✗✘🛑"), frozenset("✅✔✓")
SIGNS = _FORBIDDING_SIGNS | _ALLOWING_SIGNS
_TAG = re.compile(r"</?[A-Za-z][\w-]*>")
# Without a colon it announces only where it says itself that what follows is forbidden.
_BARE = re.compile(
    rf"{_POLITE}{_NOT}(?: (?:ever|do|any|of|this|these|the|following|things?|actions?|changes?|below))*[.!]*"
    r"|(?=.*\b(?:things?|these|those|following|actions?|what|which|list|below)\b)"
    r".*\b(?:(?:(?:must|should|may|shall)(?: not|n['’]t| never)|cannot|can['’]t|do not|don['’]t|never)"
    r"(?: ever)?(?: (?:do|touch|change|use|break|delete|try|want)\b.*|[.!?]*\Z)|"
    r"(?:forbidden|prohibited|not (?:allowed|permitted)|off[- ]limits)\b.*)"
    r"|.{0,12}(?:不要|不许|不准|不得|不可以|不允许|禁止|严禁|[切请]勿|千万别|绝不|避免|别|勿)(?:做|以下|这些|事项|操作|的事)*",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？]\Z")


def sense(lead: str) -> Sense | None:
    """Return how a heading changes what stands under it, or None if it only names it."""
    signs = SIGNS.intersection(lead)
    lead = _plain(lead.removeprefix(CUT_MARK))
    if not lead:
        return "forbids" if signs & _FORBIDDING_SIGNS else None
    if _QUESTION.search(lead):
        return "rules" if _BARE.fullmatch(lead) else None
    found: Sense | None = next(
        (one for one, pattern in _SENSES.items() if pattern.match(lead)), None
    )
    if found is None and _DENIES.search(lead):
        return "rules"
    return found


def forbids_what_follows(line: str) -> bool:
    """Return whether a line without a colon forbids the list that stands right under it."""
    plain = _plain(line)
    if not plain:
        return bool(_FORBIDDING_SIGNS.intersection(line))
    return _BARE.fullmatch(plain) is not None


def sense_of(leads: Sequence[str]) -> Sense | None:
    """Return how these headings change what stands under them: the nearest one with a sense decides."""
    return next((found for lead in reversed(leads) if (found := sense(lead))), None)


def _plain(lead: str) -> str:
    """Return the words of a heading without tags, signs and marks around them."""
    lead = _TAG.sub("", lead)
    start, stop = 0, len(lead)
    while start < stop and not lead[start].isalnum():
        start += 1
    while start < stop and not (lead[stop - 1].isalnum() or lead[stop - 1] in "?？:.!"):
        stop -= 1
    return lead[start:stop].replace("：", ":")
