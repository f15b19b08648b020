"""Report where the tokens of a request go."""

from collections import Counter
from typing import Any, Literal, cast

from refold.application.api.results import Context
from refold.application.runtime.core import Core
from refold.domain.messages import THINKING, Block, Message, Role, text_of
from refold.domain.value import Value

from .request_blocks import LEDGER_HEADING, RECALLED_HEADING

PartKind = Literal[
    "system",
    "tools",
    "summary",
    "ledger",
    "recalled lines",
    "user",
    "assistant",
    "thinking",
    "tool calls",
    "tool results",
    "images and documents",
]
_PICTURES = frozenset({"image", "document"})


class RequestPart(Value, frozen=True):
    """One kind of content in a request."""

    kind: PartKind
    """Kind of the content. ``system`` is your system text, instruction files, and the memory's
    guidance; ``user`` and ``assistant`` are words.
    """
    tokens: int
    """Estimated tokens, without the frames of messages."""
    count: int
    """Number of texts, calls or results."""


def request_parts(core: Core, context: Context) -> tuple[RequestPart, ...]:
    """Return the kinds of content in a context, largest first.

    Counting every part is slow; use it to find out why a request is large, not for every request.
    """
    counted = _PartCounter(core)
    system = context.system
    blocks: list[Any] = [{"type": "text", "text": system}] if isinstance(system, str) else system
    for block in blocks:
        if text := text_of(block):
            counted.add("system", core.counter.count_text(text))
    for tool in context.tools:
        counted.add("tools", core.counter.count_tools((tool,)))
    for text in context.memory:
        kind: PartKind = "ledger" if text.startswith(LEDGER_HEADING) else "summary"
        counted.add(kind, core.counter.count_text(text))
    for index, message in enumerate(context.messages):
        content = message["content"]
        own = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in own[context.opening :] if index == 0 else own:
            counted.add_block(message["role"], block)
    return counted.parts()


class _PartCounter:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._tokens = Counter[PartKind]()
        self._counts = Counter[PartKind]()

    def add(self, kind: PartKind, tokens: int) -> None:
        self._tokens[kind] += tokens
        self._counts[kind] += 1

    def add_block(self, role: str, block: Block) -> None:
        said = Message(role=cast("Role", role), content=(block,))
        self.add(_kind_of(role, block), self._core.counter.count_message(said).total)

    def parts(self) -> tuple[RequestPart, ...]:
        return tuple(
            RequestPart(kind=kind, tokens=tokens, count=self._counts[kind])
            for kind, tokens in self._tokens.most_common()
        )


def _kind_of(role: str, block: Block) -> PartKind:
    kind = str(block.get("type"))
    if kind in THINKING:
        return "thinking"
    if kind in _PICTURES:
        return "images and documents"
    if kind.endswith("tool_use"):
        return "tool calls"
    if kind.endswith("tool_result"):
        return "tool results"
    if role == "assistant":
        return "assistant"
    return "recalled lines" if text_of(block).startswith(RECALLED_HEADING) else "user"
