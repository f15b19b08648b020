"""Rules about the order of roles, and the blocks that a role may send."""

from collections.abc import Iterator

from refold.testing.request_rules.models import accepts_prefill, accepts_system_messages
from refold.testing.request_rules.request import (
    ASSISTANT_ONLY,
    Json,
    blocks_of,
    call_ids,
    message_blocks,
    messages_of,
    role_of,
    turns_of,
)

_ROLES = frozenset({"user", "assistant", "system"})


def role_names(request: Json) -> Iterator[str]:
    """Report roles that do not exist."""
    for m, message in enumerate(messages_of(request)):
        if message.get("role") not in _ROLES:
            yield f"role-name: messages[{m}]: unknown role {message.get('role')!r}"


def first_role(request: Json) -> Iterator[str]:
    """Report a first message that is not the user's (older models, Bedrock, Vertex).

    A compaction block must be the first block of all, in a message of either role.
    """
    messages = messages_of(request)
    if not messages or role_of(messages[0]) == "user":
        return
    blocks = blocks_of(messages[0].get("content"))
    if not (blocks and blocks[0].get("type") == "compaction"):
        yield "first-role: messages[0]: the first message must be from the user"


def alternation(request: Json) -> Iterator[str]:
    """Report two consecutive messages of one role (portability). System messages are not counted."""
    previous = ""
    for m, message in enumerate(messages_of(request)):
        role = role_of(message)
        if role == "system":
            continue
        if role == previous:
            yield f"alternation: messages[{m}]: a second {role} message in a row"
        previous = role


def system_messages(request: Json, *, model: str) -> Iterator[str]:
    """Report system messages that the model does not support, or not between user and assistant."""
    messages = messages_of(request)
    for m, message in enumerate(messages):
        if role_of(message) != "system":
            continue
        if not accepts_system_messages(model):
            yield f"system-role: messages[{m}]: {model} takes no system messages"
        before = role_of(messages[m - 1]) if m else ""
        after = role_of(messages[m + 1]) if m + 1 < len(messages) else "assistant"
        if before != "user" or after != "assistant":
            yield f"system-role: messages[{m}]: must follow the user and precede the assistant"


def block_roles(request: Json) -> Iterator[str]:
    """Report blocks that the role of their message cannot send."""
    for placed in message_blocks(request):
        kind = str(placed.block.get("type"))
        if kind == "tool_result" and placed.role != "user":
            yield f"block-role: {placed.where}: tool_result in a message of {placed.role}"
        elif kind in ASSISTANT_ONLY and placed.role != "assistant":
            yield f"block-role: {placed.where}: {kind} in a message of {placed.role}"
        elif placed.role == "system" and kind != "text":
            yield f"block-role: {placed.where}: {kind} in a system message"


def prefill(request: Json, *, model: str, allow_pending_at_end: bool = False) -> Iterator[str]:
    """Report a final assistant message for models from generation 4.6 on.

    While calls wait for results, the request is not sent yet, so this is not a prefill.
    """
    messages = messages_of(request)
    if not messages or role_of(messages[-1]) != "assistant" or accepts_prefill(model):
        return
    if allow_pending_at_end and call_ids(turns_of(request)[-1].blocks):
        return
    yield f"prefill: messages[{len(messages) - 1}]: {model} refuses a final assistant message"


def trailing_space(request: Json) -> Iterator[str]:
    """Report a final assistant text that ends in white space."""
    messages = messages_of(request)
    if not messages or role_of(messages[-1]) != "assistant":
        return
    blocks = blocks_of(messages[-1].get("content"))
    text = str(blocks[-1].get("text", "")) if blocks else ""
    if text != text.rstrip():
        yield f"trailing-space: messages[{len(messages) - 1}]: the final text ends in white space"
