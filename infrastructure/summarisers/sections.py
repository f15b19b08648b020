"""The sections that a summary is asked for, and how their headings are found in a text."""

import re

from refold.application.ports import SummaryRequest

SECTIONS = (
    "Technical Context",
    "Project Overview",
    "Code Changes",
    "Debugging & Issues",
    "Current Status",
    "Pending Tasks",
    "User Preferences",
    "Key Decisions",
)
"""The sections of a summary, in order (requirement D5)."""

PREFIX_SECTIONS = ("Original Request", "Early Progress", "Context for What Follows")
"""The sections of a summary of a divided turn's beginning (requirement A5)."""


TOPICS = "Recallable Topics"
"""The section behind all others: it is asked for, and taken out of the text; a text without it is fine."""


def sections_of(request: SummaryRequest) -> tuple[str, ...]:
    """The sections that this request asks for, in order."""
    return SECTIONS if request.part == "history" else PREFIX_SECTIONS


def heading(name: str) -> str:
    """The line that a section is asked to begin with."""
    return f"## {name}"


def required_headings(text: str, sections: tuple[str, ...]) -> tuple[str, ...]:
    """The headings as they stand in the text; of one that is missing, how it should stand there.

    A heading is a line that begins with the name, whatever marks or number stand before it.
    """
    found = ((name, _pattern(name).search(text)) for name in sections)
    return tuple(match[0].strip() if match else heading(name) for name, match in found)


def without_topics(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without the section of topics, wherever that stands, and what it names.

    It ends at the next heading, or with the text. What is written there may be of any form: names in a
    line, or a line for each.
    """
    found = _TOPICS.search(text)
    if found is None:
        return text, ()
    after = text[found.end() :]
    following = _ANY_HEADING.search(after)
    section = after[: following.start()] if following else after
    rest = after[following.start() :] if following else ""
    kept = text[: found.start()].rstrip() + ("\n\n" + rest if rest else "")
    named = [_LIST_MARK.sub("", part).strip() for part in _BETWEEN.split(f"{found[1]}\n{section}")]
    names = [name for name in named if name and name.casefold() not in _NO_TOPIC]
    more, others = without_topics(kept)
    return more, (*names, *others)


_TOPICS = re.compile(
    rf"^[^\w\n]*(?:\d+[^\w\n]+)?{TOPICS}\b[^\w\n]*(.*)$", re.IGNORECASE | re.MULTILINE
)
_ANY_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_BETWEEN = re.compile(r"[\n,;，、；]")
_LIST_MARK = re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_NO_TOPIC = frozenset({"none", "none.", "n/a", "-"})


def _pattern(name: str) -> re.Pattern[str]:
    words = re.escape(name).replace(re.escape("&"), "(?:&|and)")
    return re.compile(rf"^[^\w\n]*(?:\d+[^\w\n]+)?{words}\b", re.IGNORECASE | re.MULTILINE)
