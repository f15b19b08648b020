"""The parts of a request as the rules read it (messages, blocks, turns), and what each model accepts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

Json = Mapping[str, Any]

NEVER_SENT = frozenset({"summary_id", "decision", "revision", "answer"})
"""Keys that tests add to a request for the judge. They are not sent."""

ASSISTANT_ONLY = frozenset(
    {"tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"}
)
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
THINKING = frozenset({"thinking", "redacted_thinking"})

_NEW = re.compile(r"claude-([a-z]+)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_OLD = re.compile(r"claude-(\d)(?:[-.](\d))?(?!\d)")
_FAMILIES = frozenset({"opus", "sonnet", "haiku", "fable", "mythos", "instant"})
_FIRST_TO_SIGN_THE_PREFIX = {"fable": (5, 1), "mythos": (5, 2)}
_OTHERS_SIGN_THE_PREFIX = (5, 5)


class Placed(NamedTuple):
    """A block and its place, for use in findings."""

    where: str
    role: str
    block: Json


class Turn(NamedTuple):
    """Consecutive messages with one role, which the API reads as one message."""

    role: str
    blocks: list[Placed]


def mappings(value: object) -> list[Json]:
    """Return the mappings in a list. The rule about shapes reports other values."""
    if not isinstance(value, list | tuple):
        return []
    return [cast(Json, v) for v in cast("Sequence[object]", value) if isinstance(v, Mapping)]


def sent(request: Json) -> dict[str, Any]:
    """Return the request without the keys for tests."""
    return {key: value for key, value in request.items() if key not in NEVER_SENT}


def messages_of(request: Json) -> list[Json]:
    """Return the messages of a request, in order."""
    return mappings(request.get("messages"))


def role_of(message: Json) -> str:
    """Return the role as text, even if it is not a string."""
    return str(message.get("role"))


def blocks_of(content: object) -> list[Json]:
    """Return content as blocks. A string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return mappings(content)


def system_blocks(request: Json) -> list[Placed]:
    """Return the blocks of the system prompt."""
    blocks = blocks_of(request.get("system"))
    return [Placed(f"system[{i}]", "system", block) for i, block in enumerate(blocks)]


def message_blocks(request: Json) -> list[Placed]:
    """Return the blocks of all messages, in order, without nested blocks."""
    return [
        Placed(f"messages[{m}].content[{b}]", role_of(message), block)
        for m, message in enumerate(messages_of(request))
        for b, block in enumerate(blocks_of(message.get("content")))
    ]


def all_blocks(request: Json) -> Iterator[Placed]:
    """Yield every block of system and messages, including those inside results and documents."""
    for placed in (*system_blocks(request), *message_blocks(request)):
        yield placed
        for i, block in enumerate(_nested_blocks(placed.block)):
            yield Placed(f"{placed.where}.content[{i}]", placed.role, block)


def _nested_blocks(block: Json) -> list[Json]:
    # Results of server tools are not checked, and the input of a call is data.
    match block.get("type"):
        case "tool_result" | "search_result":
            return mappings(block.get("content"))
        case "document":
            source: object = block.get("source")
            inner = cast(Json, source).get("content") if isinstance(source, Mapping) else None
            return mappings(inner)
        case _:
            return []


def turns_of(request: Json) -> list[Turn]:
    """Return the turns: runs of one role. System messages are between turns and belong to none."""
    turns: list[Turn] = []
    for m, message in enumerate(messages_of(request)):
        role = role_of(message)
        if role == "system":
            continue
        if not turns or turns[-1].role != role:
            turns.append(Turn(role, []))
        for b, block in enumerate(blocks_of(message.get("content"))):
            turns[-1].blocks.append(Placed(f"messages[{m}].content[{b}]", role, block))
    return turns


def is_result(placed: Placed) -> bool:
    """Return whether a block is the result of a client tool."""
    return placed.block.get("type") == "tool_result"


def is_server_result(placed: Placed) -> bool:
    """Return whether a block is the result of a server tool, such as ``web_search_tool_result``."""
    return str(placed.block.get("type")).endswith("_tool_result")


def call_ids(blocks: Sequence[Placed]) -> list[str]:
    """Return the ids of the tool calls among blocks, in order."""
    return [str(p.block.get("id")) for p in blocks if p.block.get("type") == "tool_use"]


def result_id(placed: Placed) -> str:
    """Return the id of the call that a result answers."""
    return str(placed.block.get("tool_use_id"))


def generation(model: str) -> tuple[str, tuple[int, int]] | None:
    """Return family and generation of a model id: ``("opus", (4, 5))``, or None if it is unknown.

    An unknown model gets the strictest rules.
    """
    if (new := _NEW.search(model)) and new[1] in _FAMILIES:
        return new[1], (int(new[2]), int(new[3] or 0))
    if old := _OLD.search(model):
        return "", (int(old[1]), int(old[2] or 0))
    return None


def accepts_prefill(model: str) -> bool:
    """Return whether the last message may be the assistant's: only before generation 4.6."""
    known = generation(model)
    return known is not None and known[1] < (4, 6)


def accepts_system_messages(model: str) -> bool:
    """Return whether a message may have the role system: from generation 4.8 on."""
    known = generation(model)
    return known is not None and known[1] >= (4, 8)


def signs_the_prefix(model: str) -> bool:
    """Return whether a thinking block is valid only after the exact content it was written after."""
    known = generation(model)
    if known is None:
        return True
    family, number = known
    return number >= _FIRST_TO_SIGN_THE_PREFIX.get(family, _OTHERS_SIGN_THE_PREFIX)
