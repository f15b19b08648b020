"""Passages: the pieces of messages that are looked up, ranked and shown."""

from typing import Literal, NamedTuple

PassageKind = Literal["text", "call", "result"]
"""What was said in words; a tool call with its input; the result of one."""


class Passage(NamedTuple):
    """A piece of one message, as the index holds it: where it stands, and the tokens it is found by.

    The words themselves are not in it: they are read from the log, characters ``start`` up to but not
    including ``stop`` of ``readable(message)``.
    """

    number: int
    """Its place in the index; grows with the log."""
    thread_id: str
    position: int
    version: int
    """Of the event that the message is in."""
    part: int
    """Which piece of the message, from 0."""
    role: str
    """Of the message; ``tool`` for the result of a tool call, whatever role brought it."""
    kind: PassageKind
    tool: str
    """The name of the tool that was called or answered; empty for words."""
    at: str
    """When the message was written, or else logged: ISO 8601, UTC."""
    session: int
    """Counts from 0 in its conversation; a new one begins after a pause."""
    start: int
    stop: int
    is_question: bool
    tokens: str
    """The tokens in their order, each between two blanks: `` port postgr us ``."""
    digest: str
    """Of the words and nothing else: equal words have one vector."""
