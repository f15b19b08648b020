"""The tools of a request as the Messages API takes them, of whatever callers hand over."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

from refold.domain.errors import InvalidMessage

from .tool import Tool

Tools: TypeAlias = Iterable[Mapping[str, Any] | Tool] | None
"""Definitions as mappings, tools of a ``Toolbox``, or the whole of it."""


def definitions_of(tools: Tools) -> tuple[Mapping[str, Any], ...]:
    """The definition of each tool; what is a mapping is taken as it is.

    Raises:
        InvalidMessage: names the one that is neither.
    """
    if tools is None:
        return ()
    return tuple(_definition(tool, f"tools[{index}]") for index, tool in enumerate(_listed(tools)))


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
        return cast("Mapping[str, Any]", tool)
    raise _refused(place, tool, "a mapping as tools= of the Messages API has it")


def _refused(place: str, given: object, wanted: str) -> InvalidMessage:
    kind = type(given).__name__
    hint = "chat.tools() and chat.tools().definitions can be given as they are"
    return InvalidMessage(place, f"must be {wanted}, not a value of type {kind}; {hint}")
