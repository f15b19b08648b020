"""The edge where messages come in: checks their shape and names the field that is wrong."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeGuard, cast, get_args

from refold.domain.errors import InvalidMessage, InvalidThreadId
from refold.domain.json_data import is_list, is_object
from refold.domain.messages import Author, Block, Message, Role, gist

ROLES: tuple[str, ...] = get_args(Role)
AUTHORS: tuple[str, ...] = get_args(Author)
LONGEST_THREAD_ID = 500
LARGEST_INT = 10**4_000
DEEPEST = 200
"""Levels of nesting that a content block may have."""


Json = dict[object, object]
_SURROGATE = re.compile("[\ud800-\udfff]")


class Intake(NamedTuple):
    """A message as it came, with what the object said about its origin."""

    message: Message
    message_id: str | None
    model: str | None
    stop_reason: str | None


def read_thread_id(thread_id: object) -> str:
    """A usable thread id.

    Raises:
        InvalidThreadId: it is missing, blank, too long, or has control characters (requirement A11).
    """
    if not isinstance(thread_id, str) or not thread_id.strip():
        raise InvalidThreadId(
            f"a thread id is required, not {thread_id!r}: pass the id of your conversation, "
            'such as memory.conversation("thread-42")'
        )
    if len(thread_id) > LONGEST_THREAD_ID or not thread_id.isprintable():
        raise InvalidThreadId(
            f"the thread id {thread_id[:40]!r}… must be printable text of at most "
            f"{LONGEST_THREAD_ID} characters"
        )
    return thread_id


def read_author(given: object) -> Author | None:
    """Return the author that was given, or None.

    Raises:
        InvalidMessage: the author is not one of "person", "program" and "tool".
    """
    if given is not None and given not in AUTHORS:
        raise InvalidMessage("author", f"must be one of {', '.join(AUTHORS)}, not {given!r}")
    return cast(Author | None, given)


def _with_author(message: Message, author: Author | None) -> Message:
    """Set the author of a message of the role user that says something and names none itself."""
    if author is None or message.author or message.role != "user" or not gist(message).speaks:
        return message
    return message.replaced(author=author)


def read_messages(
    given: object, *, recorded: bool = False, author: Author | None = None
) -> list[Intake]:
    """One message or a list of them: mappings, or objects of the SDK (anything with ``model_dump``).

    ``recorded``: history is taken as it came, as long as it has a role and blocks at all. ``author``: who
    wrote those of the role user that do not say so themselves.

    Raises:
        InvalidMessage: names the message and the field that is wrong.
    """
    if is_list(given):
        places = (f"messages[{index}]" for index in range(len(given)))
        return [
            read_message(m, p, recorded=recorded, author=author)
            for m, p in zip(given, places, strict=True)
        ]
    return [read_message(given, "message", recorded=recorded, author=author)]


def plain_message(message: Message) -> Message:
    """A recorded message, whatever its blocks are, as long as JSON can hold it.

    Raises:
        InvalidMessage: names what JSON cannot hold.
    """
    if isinstance(message.content, str):
        return message.replaced(content=_text(message.content))
    return message.replaced(content=tuple(_plain(list(message.content), "content")))


def is_utf8(text: str) -> bool:
    """Whether a text can be stored as UTF-8: no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_message(
    given: object,
    place: str = "message",
    *,
    recorded: bool = False,
    author: Author | None = None,
) -> Intake:
    """See ``read_messages``."""
    if isinstance(given, Message):
        given = {"role": given.role, "content": given.content, "author": given.author}
    fields = _plain(given, place)
    if not is_object(fields):
        raise InvalidMessage(place, f"must be a message with role and content, not {_kind(given)}")
    role = fields.get("role")
    if role not in ROLES:
        raise InvalidMessage(f"{place}.role", f"must be one of {', '.join(ROLES)}, not {role!r}")
    if "content" not in fields:
        raise InvalidMessage(f"{place}.content", "is missing")
    content = _content(fields["content"], f"{place}.content")
    if not recorded:
        _check_live(content, role, f"{place}.content")
    named = fields.get("author")  # Of other programs' messages this may be anything.
    own = cast(Author, named) if named in AUTHORS else None
    message = Message.trusted({"role": role, "content": content, "author": own})
    return Intake(
        # Checked field by field above, with better words than a schema has.
        _with_author(message, author),
        _text_or_none(fields.get("id")),
        _text_or_none(fields.get("model")),
        _text_or_none(fields.get("stop_reason")),
    )


def _content(content: object, place: str) -> str | tuple[Block, ...]:
    if isinstance(content, str):
        return content
    if not is_list(content):
        raise InvalidMessage(place, f"must be a string or a list of blocks, not {_kind(content)}")
    for index, block in enumerate(content):
        if not is_object(block):
            raise InvalidMessage(
                f"{place}[{index}]", f"must be a content block, not {_kind(block)}"
            )
        if not _is_id(block.get("type")):
            raise InvalidMessage(f"{place}[{index}].type", "is missing")
    return tuple(content)


def _check_live(content: str | tuple[Block, ...], role: str, place: str) -> None:
    if not content and role != "assistant":
        raise InvalidMessage(place, "is empty")
    if not isinstance(content, str):
        for index, block in enumerate(content):
            _check_block(block, role, f"{place}[{index}]")


def _check_block(block: Block, role: str, place: str) -> None:
    kind = str(block.get("type"))
    for field, check, wanted in _REQUIRED.get(kind, ()):
        if not check(block.get(field)):
            raise InvalidMessage(f"{place}.{field}", f"must be {wanted}")
    allowed = _ROLE_OF.get(kind)
    if allowed is not None and role != allowed:
        raise InvalidMessage(
            f"{place}.type", f"{kind} belongs in {allowed} messages, not in {role}"
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_id(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_result(value: object) -> bool:
    return value is None or isinstance(value, str | list)


_Check = tuple[str, Callable[[object], bool], str]
_REQUIRED: Mapping[str, tuple[_Check, ...]] = {
    "text": (("text", _is_text, "a string"),),
    "thinking": (("thinking", _is_text, "a string"),),
    "tool_use": (
        ("id", _is_id, "the id of the call"),
        ("name", _is_id, "the name of the tool"),
        ("input", is_object, "an object"),
    ),
    "tool_result": (
        ("tool_use_id", _is_id, "the id of the call it answers"),
        ("content", _is_result, "a string or a list of blocks"),
    ),
}
_ROLE_OF = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}


def _plain(value: object, place: str) -> Any:
    """A deep copy as plain JSON data; what JSON cannot say is refused with its place."""
    try:
        return _copied(value, 0)
    except _NotJson:
        return _located(value, place, 0)


class _NotJson(Exception):
    """Something in a value is not plain JSON; where, a slower walk finds out."""


def _copied(value: object, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return _text(cast(str, value))
    if value is None or kind is bool:
        return value
    if kind is dict and depth < DEEPEST:
        return {_key(k): _copied(v, depth + 1) for k, v in cast(Json, value).items()}
    if kind is list and depth < DEEPEST:
        return [_copied(v, depth + 1) for v in cast(list[object], value)]
    if kind is int and -LARGEST_INT < cast(int, value) < LARGEST_INT:
        return value
    if kind is float and math.isfinite(cast(float, value)):
        return value
    raise _NotJson


def _key(key: object) -> str:
    if type(key) is not str:
        raise _NotJson
    return _text(key)


def _text(text: str) -> str:
    # Two halves of a character that stand together are that character: JSON reads them so.
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _located(value: object, place: str, depth: int) -> Any:
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return value
    if depth > DEEPEST:
        raise InvalidMessage(place, f"is nested deeper than {DEEPEST} levels")
    if isinstance(value, int):
        if not -LARGEST_INT < value < LARGEST_INT:
            raise InvalidMessage(place, "is a whole number of more than 4,000 digits")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidMessage(place, f"{value} is not a number of JSON")
        return value
    if _is_mapping(value):
        return {_name(k, place): _located(v, f"{place}.{k}", depth + 1) for k, v in value.items()}
    if is_list(value):
        return [_located(v, f"{place}[{i}]", depth + 1) for i, v in enumerate(value)]
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        # What the server did not send is not sent back: unset fields stay out.
        return _located(dump(mode="json", exclude_unset=True, by_alias=True), place, depth + 1)
    raise InvalidMessage(place, f"is {_kind(value)}, which JSON cannot hold")


def _is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)


def _name(key: object, place: str) -> str:
    if not isinstance(key, str):
        raise InvalidMessage(place, f"has the key {key!r}; keys must be strings")
    return _text(key)


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
