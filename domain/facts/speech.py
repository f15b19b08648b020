"""Words of people and models, without text that the agent's harness inserted."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from .headings import Place, lines_under

_TAGGED = re.compile(
    r"<(system-reminder|local-command-\w+|command-message|bash-stdout|bash-stderr|ide_\w+|"
    r"task-notification|user-prompt-submit-hook|environment_context)>.*?</\1>",
    re.DOTALL,
)
_SLASH = re.compile(
    r"<command-name>(.*?)</command-name>\s*(?:<command-args>(.*?)</command-args>)?", re.DOTALL
)
_BASH_INPUT = re.compile(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
_NOISE = re.compile(
    r"\[Request interrupted by user[^\]]*\]|\ACaveat: The messages below.*\Z", re.DOTALL
)
_HANDOVER = re.compile(
    r"(?:This session is being continued from a previous conversation"
    r"|\[Conversation Summary\]|The conversation history before this point was compacted)"
)
_SKILL = re.compile(
    r"\s*(?:Base directory for this skill:|Invoke the \S+ skill and follow it exactly)"
)
_LOCAL = {
    "exit",
    "quit",
    "clear",
    "compact",
    "context",
    "cost",
    "model",
    "resume",
    "help",
    "status",
    "login",
}
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
# Control characters also end a line, because text after them could imitate another line.
_LINE = re.compile(
    r"(?:[^\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff])+"
)
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’)\]*_`]*(?=\s)|[。！？；]+[”’」』）]*")
_BULLET = re.compile(r"[\s>]*(?:(?:[-*•+]|\d{1,2}[.)、]|#{1,6}|\[[ xX]\])\s+)*[*_]*")


class Span(NamedTuple):
    """A sentence in a text."""

    start: int
    stop: int
    line: int
    """Index of its line. Sentences of one line belong together."""
    under: tuple[Place, ...] = ()
    """Places of its headings, nearest last."""


def user_words(text: str) -> str:
    """Return the text of a user message without parts that the agent's harness inserted."""
    if "<" in text:
        text = _SLASH.sub(_slash_command, _TAGGED.sub("", text))
        text = _BASH_INPUT.sub(r"! \1", text)
    return _NOISE.sub("", text).strip()


def inserted_texts(text: str) -> Iterator[str]:
    """Yield the parts of a user message that the agent's harness inserted, without those of the person."""
    if "<" in text:
        for found in _TAGGED.finditer(text):
            yield found[0]


def is_program_text(text: str) -> bool:
    """Return whether the program around the agent clearly wrote this text of the role ``user``."""
    words = user_words(text)
    return not words or _SKILL.match(words) is not None or is_handover(words)


def is_handover(words: str) -> bool:
    """Return whether a user message is the summary of an earlier session."""
    return _HANDOVER.match(words) is not None


def join_words(blocks: Iterator[dict[str, object]]) -> str:
    """Return the words of a message's text blocks, with a mark for each picture or document."""
    parts: list[str] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "text" and isinstance(text := block.get("text"), str):
            parts.append(text)
        elif kind in ("image", "document", "video", "audio"):
            parts.append(f"[{kind}]")
    return "\n".join(parts)


def without_code(text: str) -> str:
    """Return the text with fenced code replaced by newlines, so that positions do not change."""
    return _FENCE.sub(lambda found: "\n" * len(found[0]), text) if "```" in text else text


def lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and stop of each line, without control characters and surrounding spaces."""
    for found in _LINE.finditer(text):
        start, stop = found.span()
        while start < stop and text[start].isspace():
            start += 1
        while start < stop and text[stop - 1].isspace():
            stop -= 1
        if start < stop:
            yield start, stop


def is_line(text: str) -> bool:
    """Return whether a text is a single line without control characters or surrounding spaces."""
    return next(lines(text), None) == (0, len(text))


def sentences(text: str) -> Iterator[Span]:
    """Yield the sentences of a text, with list marks removed."""
    for number, line in enumerate(lines_under(text, lines(text))):
        start, stop = line.start, line.stop
        if marks := _BULLET.match(text, start, stop):
            start = marks.end()
        for end in _SENTENCE_END.finditer(text, start, stop):
            yield from _span(text, start, end.end(), number, line.under)
            start = end.end()
        yield from _span(text, start, stop, number, line.under)


def _span(text: str, start: int, stop: int, line: int, under: tuple[Place, ...]) -> Iterator[Span]:
    while start < stop and text[start].isspace():
        start += 1
    while start < stop and text[stop - 1].isspace():
        stop -= 1
    if start < stop:
        yield Span(start, stop, line, under)


def _slash_command(found: re.Match[str]) -> str:
    name, args = found[1].strip(), (found[2] or "").strip()
    return "" if name.lstrip("/") in _LOCAL else f"{name} {args}"
