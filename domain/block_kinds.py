"""Which types of content blocks the Messages API takes, and where: others are shown as text.

What a message holds that is not among them is recorded when it is appended, so that a request repeats
the same bytes when a later version of refold knows more of them.
"""

from collections.abc import Iterable, Iterator

from .json_data import is_list, is_object
from .messages import Block, Message
from .sources import has_source

_OF_USERS = frozenset(
    {"text", "image", "document", "search_result", "tool_result", "container_upload"}
)
_OF_MODELS = frozenset(
    {
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "container_upload",
        "compaction",
    }
)
_REPLACED = _OF_USERS | _OF_MODELS
"""What stands in the message of another speaker is rendered as a short text anyway."""
_OF_RESULTS = frozenset({"text", "image", "document", "search_result", "tool_reference"})
_SOURCED = frozenset({"image", "document"})


def unknown_kinds(message: Message) -> tuple[str, ...]:
    """The types of blocks in a message that the Messages API does not take there, in their order."""
    if isinstance(message.content, str) or message.role == "system":
        return ()  # Of a system message only the texts are shown.
    return tuple(dict.fromkeys(_unknown(message.content, message.role)))


def is_unknown(block: Block, kinds: Iterable[str]) -> bool:
    """Whether a block is one of ``kinds`` that were recorded as unknown."""
    kind = kind_of(block)
    return kind in kinds and not (kind in _SOURCED and has_source(block))


def kind_of(block: Block) -> str:
    """The type of a block as text; empty where it has none."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _unknown(content: Iterable[Block], role: str) -> Iterator[str]:
    for block in content:
        kind = kind_of(block)
        if not _is_known(kind, role) or (kind in _SOURCED and not has_source(block)):
            yield kind
        inside = block.get("content") if kind == "tool_result" else None
        if is_list(inside):
            for part in inside:
                if is_object(part) and not _is_part(part):
                    yield kind_of(part)


def _is_known(kind: str, role: str) -> bool:
    if kind.endswith("_tool_result"):  # Of the provider's own tools: shown with its call, or not.
        return True
    if kind == "search_result":
        return role == "user"
    return kind in _REPLACED


def _is_part(part: Block) -> bool:
    kind = kind_of(part)
    return kind in _OF_RESULTS and not (kind in _SOURCED and not has_source(part))
