"""Convert messages and tools of the OpenAI API, and refuse what would be lost silently."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from refold.application.agent_tools.definitions import refuse_duplicate_names
from refold.application.conversation.block_checks import CHUNK, is_chunk, refuse_duplicate_ids
from refold.domain.errors import InvalidMessage
from refold.domain.messages import Block, Message, name_problem
from refold.domain.originals import RESPONSES
from refold.domain.value import is_list, is_object

from .chats import extra_of
from .openai import TAKEN, MessageConverter, convert_content, convert_tool, tool_named
from .transcript_source import text_block, text_or_none


def refuse_calls(item: dict[str, Any], place: str) -> None:
    """Refuse invalid calls, and calls in a message that cannot have any.

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
    refuse_duplicate_ids(given)
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


_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_CALL, _OUTPUT = "function_call", "function_call_output"
_REASONING = "reasoning"


def from_openai(messages: object) -> list[dict[str, Any]]:
    """Turn messages of the OpenAI Chat Completions API into messages that ``conversation.append`` takes.

    ``messages`` is a list, one message, a ``ChatCompletion`` with one choice, or a ``Response``. Messages may be
    mappings or objects of the SDK. Items of the Responses API are accepted as well.

    Each message becomes one message, and a ``function_call`` item belongs to the answer right before it;
    ``developer`` becomes ``system``. Tool calls become ``tool_use``
    blocks, results ``tool_result`` blocks, ``image_url`` an ``image``, a file with its data a ``document``,
    and a refusal or an audio transcript becomes text. ``name`` and all other keys are kept with the
    message. The items of an answer are kept with it as its ``original``, so that ``for_openai(api="responses")``
    sends them back with their reasoning; only the API that made it can read it. A call without
    an id gets an id made from its tool's name. A result that names only a tool (the older ``function``
    role) answers the oldest open call of that tool, even if call and result are converted separately.

    ``context.for_openai()`` converts in the other direction.

    Raises:
        InvalidMessage: names the message and the part that cannot be converted.
    """
    given = _plain(messages)
    converter = MessageConverter([], by_name=True)
    if is_object(given) and is_list(given.get("output")) and "role" not in given:
        return _of_response(given, from_openai(given["output"]))
    if is_object(given):
        return [_convert(converter, 0, given, "message")]
    if not is_list(given):
        raise InvalidMessage(
            "messages", f"must be a list of messages, not a value of type {type(messages).__name__}"
        )
    made: list[dict[str, Any]] = []
    reasoning: list[Any] = []
    for index, item in enumerate(given):
        kind = item.get("type") if is_object(item) and "role" not in item else None
        if kind == _REASONING:
            reasoning.append(item)
            continue
        message = _convert(converter, index, item, f"messages[{index}]")
        items = [*reasoning, item] if message["role"] == "assistant" else []
        if kind == _CALL and made and made[-1]["role"] == "assistant":
            made[-1] = _joined(made[-1], message, items)
        else:
            made.append(_with_original(message, items))
        reasoning = []
    return made


def _of_response(given: Mapping[str, Any], made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of a response, which all have its model."""
    known = {name: given[name] for name in ("model",) if given.get(name)}
    return [{**known, **message} for message in made]


def _with_original(message: dict[str, Any], items: Sequence[Any]) -> dict[str, Any]:
    """Return an answer with its items, if they have the form of the Responses API."""
    if not any(is_object(item) and "type" in item for item in items):
        return message
    return {**message, "original": {"format": RESPONSES, "data": list(items)}}


def _joined(
    answer: Mapping[str, Any], call: Mapping[str, Any], items: Sequence[Any]
) -> dict[str, Any]:
    """Return an answer with the call that follows it: the Responses API has an item for each."""
    said = answer["content"]
    blocks = ([{"type": "text", "text": said}] if said else []) if isinstance(said, str) else said
    earlier = answer["original"]["data"] if "original" in answer else [_as_item(answer)]
    whole = {**answer, "content": [*blocks, *call["content"]]}
    return _with_original(whole, [*earlier, *items])


def _as_item(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": answer["content"]}


def tools_from_openai(tools: Iterable[object]) -> list[dict[str, Any]]:
    """Turn tools of the OpenAI API into those of the Messages API, for ``conversation.context(tools=…)``.

    Raises:
        InvalidMessage: a tool is not a function; the message names it.
    """
    given = _plain(tools)
    if not is_list(given):
        raise InvalidMessage(
            "tools", f"must be a list of tools, not a value of type {type(tools).__name__}"
        )
    places = [f"tools[{index}]" for index in range(len(given))]
    made = [_tool(tool, place) for tool, place in zip(given, places, strict=True)]
    named = [f"{place}{_path(tool)}.name" for tool, place in zip(given, places, strict=True)]
    refuse_duplicate_names((tool["name"], place) for tool, place in zip(made, named, strict=True))
    return made


def _tool(tool: object, place: str) -> dict[str, Any]:
    if not is_object(tool):
        raise InvalidMessage(place, f"must be a tool, not a value of type {type(tool).__name__}")
    kind = tool.get("type", "function")
    if kind != "function":
        raise InvalidMessage(f"{place}.type", _no_function(kind))
    place += _path(tool)
    converted = convert_tool(tool)
    if converted is None:
        raise InvalidMessage(f"{place}.name", "is missing")
    if (problem := name_problem(converted["name"])) is not None:
        raise InvalidMessage(f"{place}.name", problem)
    schema = (tool.get("function") or tool).get("parameters")
    if schema is not None and not is_object(schema):
        raise InvalidMessage(f"{place}.parameters", f"must be a JSON schema, not {schema!r:.60}")
    return converted


def _path(tool: object) -> str:
    """Return the path of a tool's name and parameters.

    Tools of the Responses API have them at the top level.
    """
    return ".function" if is_object(tool) and ("function" in tool or "name" not in tool) else ""


def _no_function(kind: object) -> str:
    if kind == "custom":
        return (
            "'custom' takes free text, which the Messages API cannot ask for: only functions can be "
            "converted; give it as one with a parameter for the text"
        )
    return f"{kind!r} runs on the servers of OpenAI: only functions of your own can be converted"


def _convert(converter: MessageConverter, index: int, given: object, place: str) -> dict[str, Any]:
    if not is_object(given):
        kind = type(given).__name__
        raise InvalidMessage(place, f"must be a message, not a value of type {kind}")
    item = _item(_answer(given, place) if "choices" in given else given, place)
    if item.get("role") not in _ROLES:
        wanted = ", ".join(_ROLES)
        raise InvalidMessage(f"{place}.role", f"must be one of {wanted}, not {item.get('role')!r}")
    _refuse_parts(item.get("content"), f"{place}.content")
    refuse_calls(item, place)
    _refuse_no_call(converter, item, place)
    is_readable = item.get("content") is None or convert_content(item["content"]) is not None
    message = converter.message(None, index, item) if is_readable else None
    if message is None:
        raise InvalidMessage(f"{place}.content", "must be a string or a list of content parts")
    # This validates the message and copies its blocks.
    message = Message(role=message.role, content=message.content)
    content = message.content if isinstance(message.content, str) else list(message.content)
    if not content and message.role != "assistant":
        content = [text_block("")]  # Legal in that API; stored here, but never sent in a request.
    known = {name: item[name] for name in ("id", "model", "stop_reason") if item.get(name)}
    others = extra_of(
        item, TAKEN - {"reasoning", "reasoning_content"} | {"type", "audio", "status"}
    )
    return {**(others or {}), **known, "role": message.role, "content": content}


def _refuse_no_call(converter: MessageConverter, item: dict[str, Any], place: str) -> None:
    if item["role"] not in ("tool", "function") or converter.is_waiting:
        return
    if not (item.get("tool_call_id") or item.get("tool_call_ids") or tool_named(item)):
        raise InvalidMessage(
            f"{place}.tool_call_id",
            "is missing, and no call before it in this list is open: give it, or the name of the tool, "
            "or convert the call and its results in one list",
        )


def _item(given: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a message in the shape of the Chat Completions API. Items of the Responses API are converted."""
    item = dict(given)
    kind = item.get("type")
    if kind == _CALL and "role" not in item:
        if not text_or_none(item.get("name")):
            raise InvalidMessage(f"{place}.name", "must be the name of the tool that is called")
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        return {
            "role": "assistant",
            "tool_calls": [{"id": item.get("call_id"), "function": function}],
        }
    if kind == _OUTPUT and "role" not in item:
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
    audio = item.get("audio")
    if (
        item.get("content") is None
        and is_object(audio)
        and isinstance(audio.get("transcript"), str)
    ):
        item["content"] = audio["transcript"]
    return item


def _answer(completion: Mapping[str, Any], place: str) -> dict[str, Any]:
    choices = completion.get("choices")
    if is_chunk(completion):
        raise InvalidMessage(f"{place}.choices", CHUNK)
    if is_list(choices) and len(choices) > 1:
        raise InvalidMessage(
            f"{place}.choices",
            f"are {len(choices)} answers, but only one can continue the conversation: choose one, such as "
            "refold.from_openai(reply.choices[0].message)",
        )
    choice = choices[0] if is_list(choices) and choices else None
    message = choice.get("message") if is_object(choice) else None
    if not is_object(choice) or not is_object(message):
        raise InvalidMessage(f"{place}.choices", "has no message")
    about = {name: completion.get(name) for name in ("id", "model", "usage")}
    return {**about, "stop_reason": choice.get("finish_reason"), **message}


def _refuse_parts(content: object, place: str) -> None:
    for index, part in enumerate(content) if is_list(content) else ():
        kind = part.get("type") if is_object(part) else None
        if kind == "input_audio":
            problem = "the Messages API does not accept audio: give its transcript as text"
        elif is_object(part) and kind in ("file", "input_file") and not _has_data(part):
            problem = "only files with their data (file_data) can be converted"
        else:
            continue
        raise InvalidMessage(f"{place}[{index}].type", problem)


def _has_data(part: Block) -> bool:
    file = part.get("file")
    return isinstance((file if is_object(file) else part).get("file_data"), str)


def _plain(value: object) -> object:
    """Convert SDK objects to plain data without unset fields."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in cast("Mapping[object, object]", value).items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray):
        return [_plain(one) for one in cast("Iterable[object]", value)]
    return value
