"""The calls of a message of the OpenAI API, checked where a program hands it over: nothing is lost in silence."""

from typing import Any

from refold.application.block_checks import refuse_ids_of_two
from refold.domain.errors import InvalidMessage
from refold.domain.json_data import is_list, is_object

from .content import text_or_none


def refuse_calls(item: dict[str, Any], place: str) -> None:
    """Refuse calls that are none, and those of a message that cannot have any.

    Raises:
        InvalidMessage: names the field.
    """
    calls, older = item.get("tool_calls"), item.get("function_call")
    if item["role"] != "assistant":
        for name in ("tool_calls", "function_call"):
            if item.get(name):
                raise InvalidMessage(f"{place}.{name}", "belongs in messages of the assistant")
        if not isinstance(item.get("tool_call_id"), str | None):
            raise _no_id(f"{place}.tool_call_id", item["tool_call_id"])
        return
    if calls is not None and not is_list(calls):
        raise InvalidMessage(f"{place}.tool_calls", f"must be a list of calls, not {_kind(calls)}")
    for index, call in enumerate(calls or ()):
        _refuse_call(call, f"{place}.tool_calls[{index}]")
    given = [(call.get("id"), f"{place}.tool_calls[{n}].id") for n, call in enumerate(calls or ())]
    refuse_ids_of_two(given)
    if older is not None:
        _refuse_function(older, f"{place}.function_call")


def _refuse_call(call: object, place: str) -> None:
    if not is_object(call):
        raise InvalidMessage(place, f"must be a call, not {_kind(call)}")
    if not isinstance(call.get("id"), str | None):
        raise _no_id(f"{place}.id", call["id"])
    field = "custom" if call.get("type") == "custom" else "function"
    _refuse_function(call.get(field), f"{place}.{field}")


def _refuse_function(function: object, place: str) -> None:
    if function is None:
        raise InvalidMessage(place, "is missing: it has the name and the arguments of the call")
    if not is_object(function):
        raise InvalidMessage(place, f"must be an object, not {_kind(function)}")
    if not text_or_none(function.get("name")):
        raise InvalidMessage(f"{place}.name", "must be the name of the tool that is called")


def _no_id(place: str, given: object) -> InvalidMessage:
    return InvalidMessage(place, f"must be the id of a call, not {_kind(given)}")


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"
