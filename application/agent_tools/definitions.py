"""Tool definitions: those of refold, and checks of those that a program passes."""

import marshal
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

from refold.application.conversation.parsing import plain_json
from refold.application.rendering.kept_tools import CONTENT_ALONE, KeptTools
from refold.domain.errors import InvalidMessage
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import name_problem
from refold.domain.value import is_object

if TYPE_CHECKING:
    from .tool_scope import Tool

CUSTOM = "custom"
_DATED = lazy_pattern(r"[a-z0-9_]+_\d{8}")
_UNDATED = ("mcp_toolset", "tool_search_tool_regex", "tool_search_tool_bm25")
"""Types of the provider's tools whose names have no date."""


class UnknownToolFieldWarning(UserWarning):
    """A tool has a field that the Messages API is not known to accept in it.

    The field is sent unchanged. Each field is reported once.
    """


_told: set[str] = set()


def forget_reported() -> None:
    """Forget the reported fields, so that each is reported again."""
    _told.clear()


def check_tool(tool: Mapping[str, Any], place: str) -> None:
    """Raise if a tool is invalid in any request.

    Raises:
        InvalidMessage: names the field, and for a tool of another API the converter.
    """
    kind = tool.get("type")
    if kind == "function" or is_object(tool.get("function")):
        raise InvalidMessage(
            f"{place}.type",
            "this is a tool of the OpenAI format; convert the tools with "
            "refold.tools_from_openai(tools) first",
        )
    if kind is not None and kind != CUSTOM:
        _check_server_tool(tool, kind, place)
        return
    if not isinstance(tool.get("name"), str) or not tool["name"]:
        keys = ", ".join(repr(key) for key in list(tool)[:5]) or "nothing"
        raise InvalidMessage(f"{place}.name", f"must be the name of the tool; it has {keys}")
    if (problem := name_problem(tool["name"])) is not None:
        raise InvalidMessage(f"{place}.name", problem)
    _check_schema(tool, place)
    _check_fields(tool, place)
    _warn_of_unknown(tool)


def _check_server_tool(tool: Mapping[str, Any], kind: object, place: str) -> None:
    if not isinstance(kind, str) or not kind:
        raise InvalidMessage(f"{place}.type", "must be the type of a server tool, or be omitted")
    if not _DATED.fullmatch(kind) and kind not in _UNDATED:
        raise InvalidMessage(
            f"{place}.type",
            f"{kind[:80]!r} is not a tool type: those of the provider end in a date, such as "
            "web_search_20250305; omit it in your own tools",
        )
    # A set of tools has no name of its own.
    needed = "name" if "toolset" not in kind else "mcp_server_name" if kind in _UNDATED else None
    if needed is not None and not _is_name(tool.get(needed)):
        raise InvalidMessage(f"{place}.{needed}", f"is missing: every {kind} has one")
    _check_fields(tool, place)


def _check_schema(tool: Mapping[str, Any], place: str) -> None:
    schema, place = tool.get("input_schema"), f"{place}.input_schema"
    if not _is_mapping(schema):
        hint = next((f"; it has {k!r}" for k in ("parameters", "inputSchema") if k in tool), "")
        raise InvalidMessage(place, f"must be a JSON schema{hint}{_name_tool(tool)}")
    properties, required = schema.get("properties"), schema.get("required")
    if schema.get("type") != "object":
        wanted = 'must be "object": the input of a tool is one'
        raise InvalidMessage(f"{place}.type", f"{wanted}{_name_tool(tool)}")
    if properties is not None and not _is_mapping(properties):
        raise InvalidMessage(
            f"{place}.properties",
            f"must be an object with a schema for each name{_name_tool(tool)}",
        )
    for name, one in (properties or {}).items():
        if not isinstance(one, Mapping | bool):
            raise InvalidMessage(
                f"{place}.properties.{str(name)[:80]}", f"must be a JSON schema{_name_tool(tool)}"
            )
    if required is not None and not _is_list_of(str, required):
        raise InvalidMessage(f"{place}.required", f"must be a list of names{_name_tool(tool)}")


def _check_fields(tool: Mapping[str, Any], place: str) -> None:
    for field, (fits, wanted) in _FIELDS.items():
        value = tool.get(field)
        if value is not None and not fits(value):
            raise InvalidMessage(f"{place}.{field}", f"must be {wanted}{_name_tool(tool)}")


def _warn_of_unknown(tool: Mapping[str, Any]) -> None:
    for field in tool:
        if field not in _KNOWN and field not in _told:
            _told.add(field)
            warnings.warn(
                f"the field {field[:80]!r} of the tool {tool['name']!r} is unknown: it is sent "
                "unchanged. If it is valid, this version of refold is too old",
                UnknownToolFieldWarning,
                stacklevel=2,
            )


def _name_tool(tool: Mapping[str, Any]) -> str:
    name = tool.get("name")
    return f" (of the tool {name[:80]!r})" if isinstance(name, str) else ""


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _is_mark(value: object) -> bool:
    return isinstance(value, Mapping) and _is_name(cast("Mapping[str, object]", value).get("type"))


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(one, kind) for one in cast("list[object]", value)
    )


def _is_truth(value: object) -> bool:
    return isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_TRUTH = (_is_truth, "true or false")
_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "description": (_is_text, "a text"),
    "cache_control": (_is_mark, 'an object such as {"type": "ephemeral"}'),
    "strict": _TRUTH,
    "defer_loading": _TRUTH,
    "eager_input_streaming": _TRUTH,
    "allowed_callers": (lambda value: _is_list_of(str, value), "a list of callers"),
    "input_examples": (lambda value: _is_list_of(dict, value), "a list of inputs"),
}
_KNOWN = {"name", "input_schema", "type", *_FIELDS}


Tools: TypeAlias = "Iterable[Mapping[str, Any] | Tool] | None"
"""Tool definitions as mappings, tools of a ``Toolbox``, or a whole toolbox."""


_MOST_KEPT = 32
_kept: dict[bytes, KeptTools] = {}
"""Checked definitions by their plain data. An agent passes the same ones with every request."""


def definitions_of(tools: Tools) -> Sequence[Mapping[str, Any]]:
    """Return the definition of each tool, as plain data.

    Raises:
        InvalidMessage: names the invalid tool of the Messages API, and how to convert it.
    """
    if tools is None:
        return ()
    given = [_definition(tool, f"tools[{index}]") for index, tool in enumerate(_as_list(tools))]
    try:
        key = marshal.dumps(given, CONTENT_ALONE)
    except ValueError:  # There are other objects than plain data.
        return _checked(given)
    known = _kept.get(key)
    if known is None:
        known = _checked(given)
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        # The key of what was passed may be that of bytes or of a number of numpy as well.
        _kept[known.packed] = known
    return known


def _checked(given: Sequence[Mapping[str, Any]]) -> KeptTools:
    for index, tool in enumerate(given):
        check_tool(tool, f"tools[{index}]")
    refuse_duplicate_names((tool.get("name"), f"tools[{n}].name") for n, tool in enumerate(given))
    return KeptTools.of(plain_json(tool, f"tools[{index}]") for index, tool in enumerate(given))


def refuse_duplicate_names(names: Iterable[tuple[object, str]]) -> None:
    """Raise if two tools have the same name: the API accepts each once.

    ``names``: each name with its location.

    Raises:
        InvalidMessage: names the second location.
    """
    known: dict[str, str] = {}
    for name, place in names:
        if not isinstance(name, str):  # A set of tools on a server has no name.
            continue
        if name in known:
            raise InvalidMessage(
                place,
                f"{name!r} is the name of two tools, here and in {known[name]}: use a different name for each",
            )
        known[name] = place


def _as_list(given: object) -> Iterable[object]:
    if _is_list(given):
        return cast("Iterable[object]", given)
    raise _invalid("tools", given, "a list of tool definitions")


def _is_list(given: object) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)


def _definition(tool: object, place: str) -> Mapping[str, Any]:
    if isinstance(tool, Mapping):
        return cast("Mapping[str, Any]", tool)
    # Imported late, because the arguments of the tools are models of pydantic.
    from .tool_scope import Tool

    if isinstance(tool, Tool):
        return tool.definition
    raise _invalid(place, tool, "a mapping as tools= of the Messages API has it")


def _invalid(place: str, given: object, wanted: str) -> InvalidMessage:
    kind = type(given).__name__
    hint = "conversation.tools() and conversation.tools().definitions can be passed unchanged"
    return InvalidMessage(place, f"must be {wanted}, not a value of type {kind}; {hint}")
