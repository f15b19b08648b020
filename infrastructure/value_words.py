"""Sentences about the history of a value, for the terminal and for pages."""

from refold.application.history.value_history import (
    PlaceKind,
    ValueChange,
    ValueHistory,
    ValuePlace,
)
from refold.application.history.value_timeline import Cause
from refold.application.history.ways_back import WayBack
from refold.domain.text_cuts import beginning

SHOWN_VALUE = 60
"""Characters of a value that a sentence quotes."""


def verdict(found: ValueHistory, *, is_past: bool) -> str:
    """Return whether the request has the value, as a sentence."""
    value = beginning(" ".join(found.value.split()), SHOWN_VALUE)
    request = "the request" if is_past else "the next request"
    where = f"{request} of {found.thread_id} (version {found.version:,})"
    if not found.is_known:
        return f"“{value}”: no message has it up to version {found.version:,} of {found.thread_id}."
    match found.standing:
        case "message":
            return f"“{value}” is word for word in a message of {where}."
        case "memory":
            return f"“{value}” is not in a message of {where}, but in what replaces or joins them."
        case "nowhere":
            return f"“{value}” is not in {where}."


_PLACES: dict[PlaceKind, str] = {
    "message": "word for word in message {position}",
    "preview": "in message {position}, which is shortened but still shows it",
    "summary": "in the text of the summary",
    "topics": "in the list of topics after the summary",
    "ledger": "in the ledger, copied from message {position}",
    "index": "in the index of exact values, copied from message {position}",
    "pin": "in a pinned text",
    "quoted memory": "in an earlier message that the system text quotes",
    "recalled line": "in a line of message {position} that refold added again",
    "system text": "in the system text of your program",
    "other": "in a text that refold adds",
}


def place_words(place: ValuePlace) -> str:
    """Return where in the request the value is."""
    more = f" and {place.count - 1:,} more" if place.count > 1 else ""
    return _PLACES[place.kind].format(position=place.position) + more


_CAUSES: dict[Cause, str] = {
    "appended": "message {position} was appended",
    "compaction": "a compaction ({trigger}) wrote summary {summary}",
    "reverted": "the compaction with summary {summary} was reverted",
    "offloaded": "large tool content was replaced by previews",
    "condensed": "older tool results were cut",
    "shortened": "content of the user was cut",
    "pinned": "it was pinned",
    "unpinned": "it was unpinned",
    "quoted": "other earlier messages were chosen for the system text",
    "recalled": "refold added earlier lines to message {position}",
    "erased": "content was erased",
    "system text": "the system text changed",
}


def cause_words(change: ValueChange) -> str:
    """Return what happened, with the sizes of the request before and after it."""
    cause = _CAUSES[change.cause].format(
        position=change.position,
        summary=(change.summary_id or "")[:8],
        trigger=change.trigger,
    )
    return f"{cause}{_sizes(change)}"


def effect_words(change: ValueChange) -> str:
    """Return what a change did to the value."""
    match change.before, change.after:
        case "nowhere", "message":
            return "it came in, word for word"
        case "memory", "message":
            return "it is word for word in a message again"
        case "nowhere", _:
            return "it came in, outside of the messages"
        case "message", "memory":
            return "it left the messages; a copy stayed"
        case _:
            return "it left the request"


def _sizes(change: ValueChange) -> str:
    if change.tokens_before is None or change.tokens_after is None:
        return ""
    return f"; the request went from {change.tokens_before:,} to {change.tokens_after:,} tokens"


def way_words(way: WayBack) -> str:
    """Return the name of a way to bring a value back."""
    return {
        "recall": "search by words: recall",
        "query": "look for the exact text: query",
        "standing recall": "standing recall, by itself",
        "read": "read the message",
        "pin": "pin it",
        "focus": "compact with a focus",
        "revert": "revert the newest compaction",
        "fork": "fork from before it left",
    }[way.kind]
