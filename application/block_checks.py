"""What a content block of a live message must have: the field that is wrong is named."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

from refold.domain.errors import InvalidMessage
from refold.domain.json_data import is_list, is_object
from refold.domain.messages import Block
from refold.domain.sources import source_problem

from .foreign_messages import hint_at_block_format, refuse_foreign_block


class UnknownBlockWarning(UserWarning):
    """A message has a block of a type that the Messages API does not take there, as far as is known.

    It is kept as it came, and shown to the model as text. Told once for each type.
    """


_told: set[str] = set()


def warn_of_unknown(kinds: Iterable[str]) -> None:
    """Warn of block types that are not known, of each once in a process."""
    for kind in kinds:
        if kind not in _told:
            _told.add(kind)
            warnings.warn(
                f"a content block of the type {kind[:80]!r} is unknown here: it is kept as it came, and "
                "shown to the model as text. Where the type is right, this version of refold is older",
                UnknownBlockWarning,
                stacklevel=2,
            )


def forget_told() -> None:
    """Warn once more of each type."""
    _told.clear()


def check_blocks(content: Sequence[Block], role: str, place: str) -> None:
    """Refuse blocks that no request could have, by themselves or together.

    Raises:
        InvalidMessage: names the field; of a block of another API, its converter.
    """
    for index, block in enumerate(content):
        check_block(block, role, f"{place}[{index}]")
    # Calls of the program's own tools and of the provider's.
    calls = ((n, b) for n, b in enumerate(content) if str(b.get("type")).endswith("tool_use"))
    refuse_ids_of_two((call.get("id"), f"{place}[{n}].id") for n, call in calls)


def check_block(block: Block, role: str, place: str) -> None:
    """Refuse a block that no request could have.

    Raises:
        InvalidMessage: names the field; of a block of another API, its converter.
    """
    kind = str(block.get("type"))
    refuse_foreign_block(block, place)
    for field, check, wanted in _REQUIRED.get(kind, ()):
        if not check(block.get(field)):
            raise InvalidMessage(f"{place}.{field}", f"must be {wanted}")
    allowed = _ROLE_OF.get(kind)
    if allowed is not None and role != allowed:
        raise InvalidMessage(
            f"{place}.type", f"{kind} belongs in {allowed} messages, not in {role}"
        )
    if (problem := source_problem(block)) is not None:
        raise InvalidMessage(f"{place}.{problem.path}", f"must be {problem.wanted}")
    inside = block.get("content")
    if kind == "tool_result" and is_list(inside):
        for index, part in enumerate(inside):
            _check_part(part, f"{place}.content[{index}]")


def refuse_ids_of_two(ids: Iterable[tuple[object, str]]) -> None:
    """Refuse an id that two calls of a message have: a result could be of either.

    ``ids``: with the place of each; what is no id counts for nothing.

    Raises:
        InvalidMessage: names the second of the two, and the first.
    """
    known: dict[str, str] = {}
    for call_id, place in ids:
        if not isinstance(call_id, str) or not call_id:
            continue
        if call_id in known:
            raise InvalidMessage(
                place,
                f"{call_id!r} is the id of two calls, here and in {known[call_id]}: give each its own",
            )
        known[call_id] = place


def is_id(value: object) -> bool:
    """Whether a value is text that names something."""
    return isinstance(value, str) and bool(value)


def _check_part(part: object, place: str) -> None:
    if not is_object(part):
        kind = f"a value of type {type(part).__name__}"
        raise InvalidMessage(place, f"must be a content block, not {kind}")
    if not is_id(part.get("type")):
        raise InvalidMessage(f"{place}.type", f"is missing{hint_at_block_format(part)}")
    if part["type"] in _ROLE_OF:
        raise InvalidMessage(f"{place}.type", f"{part['type']} cannot stand in a tool_result")
    check_block(part, "user", place)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_result(value: object) -> bool:
    return value is None or isinstance(value, str | list)


_Check = tuple[str, Callable[[object], bool], str]
_REQUIRED: Mapping[str, tuple[_Check, ...]] = {
    "text": (("text", _is_text, "a string"),),
    "thinking": (("thinking", _is_text, "a string"),),
    "tool_use": (
        ("id", is_id, "the id of the call"),
        ("name", is_id, "the name of the tool"),
        ("input", is_object, "an object"),
    ),
    "tool_result": (
        ("tool_use_id", is_id, "the id of the call it answers"),
        ("content", _is_result, "a string or a list of blocks"),
    ),
}
_ROLE_OF = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}
