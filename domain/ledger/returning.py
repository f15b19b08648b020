"""Tells where a person speaks again behind something that the message quotes."""

import re

from . import cues

ARROW = re.compile(r"->|=>|→")
_VERBS = (
    r"(?:fix|address|handle|resolve|check|look into|investigate|apply|implement|ignore|do|deal with|respond to|"
    r"reply to|"
    r"evaluate|verify|consider|follow)"
)
_RETURNS = re.compile(
    rf"{ARROW.pattern}|—|(?:can|could|would|will|should|do|does|did|is|are|shall) (?:you|we|i)\b|(?:please|pls|plz)\b|"
    rf"but (?:i|we|it|that|the)\b|(?:so|ok(?:ay)?|now|then|also|and)?,? ?(?:{_VERBS}|have a look at|find out)\b|"
    r"(?:any idea|thoughts|ideas|let['’]?s|i['’]?(?:d|m|ve|ll)?|we['’]?(?:d|re|ve|ll)?|my|what|why|how|where|which)\b|"
    r"请|帮|你|我|为什么|怎么|能不能|这是",
    re.IGNORECASE,
)
_REFERS = re.compile(
    rf"{ARROW.pattern}|(?:(?:please|pls|plz|so|now|then|ok(?:ay)?|and),? )*(?:(?:can|could|would|will) (?:you|we)\b|"
    rf"{_VERBS} (?:it|this|that|these|those|them|all|everything|his|her|their|"
    r"the (?:feedback|comments?|review|e?-?mail|issues?|problem))\b|(?:summari[sz]e|translate|explain|analy[sz]e|"
    r"continue|answer|reply|respond|draft|review|eval(?:uate)?|why|what)\b)|so,? (?:please|let['’]?s)\b|any ideas?\b|"
    r"thoughts|what do you think|i (?:dis)?agree\b|帮我|请你|你看|怎么看",
    re.IGNORECASE,
)


def returns(passage: str) -> bool:
    """Whether the person speaks again in a passage behind what a program has printed."""
    speaks = _RETURNS.match(passage) or cues.ORDER.match(passage)
    return speaks is not None or passage.rstrip().endswith(("?", "？"))


def refers(passage: str) -> bool:
    """Whether a passage speaks of what was quoted before it."""
    return _REFERS.match(passage) is not None or passage.rstrip().endswith(("?", "？"))
