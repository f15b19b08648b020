"""The tools of a request as the Messages API takes them, of whatever callers hand over."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

from refold.domain.errors import InvalidMessage

from .tool import Tool
from .tool_checks import check_tool

Tools: TypeAlias = Iterable[Mapping[str, Any] | Tool] | None
"""Definitions as mappings, tools of a ``Toolbox``, or the whole of it."""


def definitions_of(tools: Tools) -> tuple[Mapping[str, Any], ...]:
    """The definition of each tool; what is a mapping is taken as it is.

    Raises:
        InvalidMessage: names the one that is no tool of the Messages API, and what converts it.
    """
    if tools is None:
        return ()
    made = tuple(_definition(tool, f"tools[{index}]") for index, tool in enumerate(_listed(tools)))
    refuse_names_of_two((tool.get("name"), f"tools[{n}].name") for n, tool in enumerate(made))
    return made


def refuse_names_of_two(names: Iterable[tuple[object, str]]) -> None:
    """Refuse a name that two tools have: the API takes each once.

    ``names``: with the place of each.

    Raises:
        InvalidMessage: names the second of the two.
    """
    known: dict[str, str] = {}
    for name, place in names:
        if not isinstance(name, str):  # A set of tools on a server has none.
            continue
        if name in known:
            raise InvalidMessage(
                place,
                f"{name!r} is the name of two tools, here and in {known[name]}: give each its own",
            )
        known[name] = place


def _listed(given: object) -> Iterable[object]:
    if _is_list(given):
        return cast("Iterable[object]", given)
    raise _refused("tools", given, "a list of tool definitions")


def _is_list(given: object) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)


def _definition(tool: object, place: str) -> Mapping[str, Any]:
    if isinstance(tool, Tool):
        return tool.definition
    if isinstance(tool, Mapping):
        definition = cast("Mapping[str, Any]", tool)
        check_tool(definition, place)
        return definition
    raise _refused(place, tool, "a mapping as tools= of the Messages API has it")


def _refused(place: str, given: object, wanted: str) -> InvalidMessage:
    kind = type(given).__name__
    hint = "chat.tools() and chat.tools().definitions can be given as they are"
    return InvalidMessage(place, f"must be {wanted}, not a value of type {kind}; {hint}")
