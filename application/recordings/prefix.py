"""How much of a request repeats the beginning of the one before it: what a prompt cache can serve."""

import json
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from refold.application.context import Context
from refold.application.ports import TokenCounter
from refold.application.rendering.turns import FRAME_TOKENS
from refold.domain.messages import Message


class Part(NamedTuple):
    """A part of a request, in the order in which providers cache them: tools, system, messages."""

    kind: Literal["tools", "system", "message"]
    value: Any


Measure = Callable[[Part], int]
"""The size of a part."""


class Repeated(NamedTuple):
    """The size of a request, and of the part that the one before began with."""

    size: int
    repeated: int


class RepeatedPrefix:
    """Compares each request of a conversation with the one before, part by part."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._parts: list[Part] = []
        self._sizes: list[int] = []

    def compare(self, context: Context) -> Repeated:
        """Measure this request, and what of it repeats the beginning of the last one."""
        parts = _parts(context)
        same = 0
        for before, now in zip(self._parts, parts, strict=False):
            if before != now:
                break
            same += 1
        repeated = sum(self._sizes[:same])
        sizes = self._sizes[:same] + [self._measure(part) for part in parts[same:]]
        self._parts, self._sizes = parts, sizes
        return Repeated(sum(sizes), repeated)


def in_characters(part: Part) -> int:
    """The length of a part as JSON."""
    return len(json.dumps(part.value)) if part.value else 0


def in_tokens(counter: TokenCounter) -> Measure:
    """Measures parts as a token counter does."""

    def measure(part: Part) -> int:
        if not part.value:
            return 0
        match part.kind:
            case "tools":
                return counter.count_tools(tuple(part.value))
            case "system":
                text = part.value if isinstance(part.value, str) else json.dumps(part.value)
                return counter.count_text(text) + FRAME_TOKENS
            case "message":
                content = part.value["content"]
                if not isinstance(content, str):
                    content = tuple(content)
                return counter.count_message(
                    Message(role=part.value["role"], content=content)
                ).total

    return measure


def _parts(context: Context) -> list[Part]:
    head = [Part("tools", context.tools), Part("system", context.system)]
    return head + [Part("message", message) for message in context.messages]
