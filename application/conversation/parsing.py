"""Parsing of incoming messages: checks their shape and names the invalid field."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, cast, get_args

from refold.domain.errors import InvalidMessage, InvalidThreadId
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import Author, Block, Message, Role, gist, unknown_kinds
from refold.domain.originals import Original
from refold.domain.value import build_unvalidated, is_list, is_object, replace

from .block_checks import (
    check_blocks,
    hint_at_block_format,
    hint_at_format,
    is_id,
    refuse_foreign,
    warn_of_unknown,
)

if TYPE_CHECKING:
    from .transcripts import RecordedMessage

ROLES: tuple[str, ...] = get_args(Role)
AUTHORS: tuple[str, ...] = get_args(Author)
LONGEST_THREAD_ID = 500
LARGEST_INT = 10**4_000
LONGEST_PATH = 160
"""Maximum length of a path in an error message."""
DEEPEST = 200
"""Maximum nesting depth of a content block."""


Json = dict[object, object]
Keys = str | Sequence[str | None] | None
_SURROGATE = lazy_pattern("[\ud800-\udfff]")


class ParsedMessage(NamedTuple):
    """A parsed message, with information about its origin."""

    message: Message
    message_id: str | None
    model: str | None
    stop_reason: str | None
    original: Original | None = None
    """Form in which another API gave the message, shrunk, or None."""


def read_thread_id(thread_id: object) -> str:
    """Return a valid thread id, as plain text: a member of an enumeration has another form in a digest.

    Raises:
        InvalidThreadId: the id is missing, blank or too long, or has control characters.
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
    return str.__str__(thread_id)


def read_author(given: object) -> Author | None:
    """Return the given author, or None.

    Raises:
        InvalidMessage: the author is not one of "person", "program" and "tool".
    """
    if given is not None and given not in AUTHORS:
        raise InvalidMessage("author", f"must be one of {', '.join(AUTHORS)}, not {given!r}")
    return cast("Author | None", str.__str__(given) if isinstance(given, str) else given)


def read_keys(key: Keys, count: int) -> Sequence[str | None]:
    """Return the given keys of so many messages.

    Raises:
        InvalidMessage: their number is another one, or one of them is not a text, or blank.
    """
    if key is None:
        return [None] * count
    keys = [key] if isinstance(key, str) else _several(key)
    if len(keys) != count:
        raise InvalidMessage("key", f"{len(keys)} keys for {count} messages; give one for each")
    for k in keys:
        if k is not None and not _is_key(k):
            raise InvalidMessage("key", f"{k!r} must be text that is not blank")
    return [None if k is None else str.__str__(k) for k in keys]


def _several(keys: Sequence[str | None]) -> list[str | None]:
    if not _is_sequence(keys):
        kind = type(keys).__name__
        raise InvalidMessage(
            "key", f"is of type {kind}; give text, or a list with one for each message"
        )
    return list(keys)


def _is_sequence(given: object) -> bool:
    is_bytes = isinstance(given, bytes | bytearray | memoryview)
    return not is_bytes and isinstance(given, Sequence)


def _is_key(key: object) -> bool:
    return isinstance(key, str) and bool(key.strip()) and is_utf8(key)


def _with_author(message: Message, author: Author | None) -> Message:
    """Set the author of a user message that has text and no author."""
    if author is None or message.author or message.role != "user" or not gist(message).speaks:
        return message
    return replace(message, author=author)


def read_expected_version(given: object) -> int | None:
    """Return the given version, or None.

    Raises:
        InvalidMessage: the value is not a version.
    """
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise InvalidMessage("expected_version", f"must be an integer of 0 or more, not {given!r}")
    return given


def read_messages(
    given: object, *, recorded: bool = False, author: Author | None = None
) -> list[ParsedMessage]:
    """Parse one message or a list of them: mappings, or objects of the SDK (anything with ``model_dump``).

    ``recorded``: accept history unchanged if it has a role and blocks. ``author``: writer of the user
    messages that do not name one.

    Raises:
        InvalidMessage: names the message and the invalid field.
    """
    places = (
        [f"messages[{index}]" for index in range(len(given))] if is_list(given) else ["message"]
    )
    taken = [
        read_message(m, p, recorded=recorded, author=author)
        for m, p in zip(given if is_list(given) else [given], places, strict=True)
    ]
    if author is not None and taken and all(item.message.role != "user" for item in taken):
        raise InvalidMessage("author", "says who wrote user messages, but there is none")
    return taken


def plain_message(message: Message) -> Message:
    """Return a recorded message as plain JSON data, with any blocks.

    Raises:
        InvalidMessage: names the value that JSON cannot represent.
    """
    extra = None if message.extra is None else plain_json(message.extra, "extra")
    if isinstance(message.content, str):
        return replace(message, content=_text(message.content), extra=extra)
    content = tuple(plain_json(list(message.content), "content"))
    unknown = unknown_kinds(content, message.role)
    return replace(message, content=content, extra=extra, unknown=unknown)


def read_recorded(messages: object) -> Sequence[RecordedMessage]:
    """Return messages of a transcript.

    Raises:
        InvalidMessage: the value is not a sequence of transcript messages.
    """
    from .transcripts import RecordedMessage

    given = list(cast(Iterable[object], messages)) if isinstance(messages, Iterable) else [messages]
    if not all(isinstance(one, RecordedMessage) for one in given):
        raise InvalidMessage(
            "messages",
            "must be messages of a transcript, as refold.read_transcript(path) returns them "
            "(for others: append(messages, recorded=True))",
        )
    return cast(list[RecordedMessage], given)


def parse_recorded(recorded: RecordedMessage) -> ParsedMessage:
    """Return a recorded message with its origin, as plain JSON data.

    Raises:
        InvalidMessage: names the value that JSON cannot represent.
    """
    message, original = plain_message(recorded.message), recorded.original
    if original is not None:
        data = plain_json(original.data, "original")
        original = replace(original, data=data).shrink(message.content)
    return ParsedMessage(
        message, recorded.message_id, recorded.model, recorded.stop_reason, original
    )


def is_utf8(text: str) -> bool:
    """Return whether a text can be stored as UTF-8, that is, has no lone surrogates."""
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
) -> ParsedMessage:
    """Parse one message; ``place`` names it in errors."""
    if isinstance(given, Message):
        own = {"role": given.role, "content": given.content, "author": given.author}
        given = {**(given.extra or {}), **own}
    fields = plain_json(given, place)
    if not is_object(fields):
        raise InvalidMessage(place, f"must be a message with role and content, not {_kind(given)}")
    if fields.keys() != _REQUIRED:
        refuse_foreign(fields, place)
    role, content = _pop_role_and_content(fields, place)
    # The checks here have clearer messages than a schema.
    message = build_unvalidated(
        Message,
        role=role,
        content=content,
        author=_pop_author(fields, role) if fields else None,
        extra=None,
        unknown=(),
    )
    if not isinstance(content, str) and (unknown := unknown_kinds(content, role)):
        message = replace(message, unknown=unknown)
    if not recorded:
        _check_live(message, f"{place}.content")
    if not fields:
        return ParsedMessage(_with_author(message, author), None, None, None)
    message_id, model, stop_reason = _pop_origin(fields)
    original = _pop_original(fields, message)
    if fields:
        message = replace(message, extra=fields)
    message = _with_author(message, author)
    return ParsedMessage(message, message_id, model, stop_reason, original)


def _pop_role_and_content(fields: Block, place: str) -> tuple[Role, str | tuple[Block, ...]]:
    """Remove role and content from the fields and return them."""
    role = fields.pop("role", None)
    if role not in ROLES:
        hint = hint_at_format(fields, role)
        problem = f"must be one of {', '.join(ROLES)}, not {role!r}{hint}"
        raise InvalidMessage(f"{place}.role", problem)
    if "content" not in fields:
        raise InvalidMessage(f"{place}.content", f"is missing{hint_at_format(fields, role)}")
    return role, _content(fields.pop("content"), f"{place}.content")


def _pop_author(fields: Block, role: Role) -> Author | None:
    # In messages of other programs and other roles, this may be anything.
    found = _pop_field(fields, "author", lambda it: role == "user" and it in AUTHORS)
    return cast("Author | None", found)


_REQUIRED = {"role", "content"}
_OF_THE_ANSWER = ("id", "model", "stop_reason")


def _pop_field(fields: Block, name: str, fits: Callable[[Any], bool]) -> object:
    """Remove a field and return its value, or return None if the value does not fit.

    A value that does not fit stays in the fields.
    """
    value = fields.get(name)
    if value is None or not isinstance(value, str) or not fits(value):
        if value is None:
            fields.pop(name, None)
        return None
    return fields.pop(name)


def _pop_origin(fields: Block) -> list[str | None]:
    return [cast("str | None", _pop_field(fields, name, is_id)) for name in _OF_THE_ANSWER]


def _pop_original(fields: Block, message: Message) -> Original | None:
    """Remove the foreign form of a message from its fields and return it without what the message has.

    A field of this name with other contents is the provider's own and stays.
    """
    match fields.get("original"):
        case {"format": str(form), "data": data, **others} if form and not others:
            del fields["original"]
            return Original(format=form, data=data).shrink(message.content)
        case _:
            return None


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
        if not is_id(block.get("type")):
            raise InvalidMessage(
                f"{place}[{index}].type", f"is missing{hint_at_block_format(block)}"
            )
    return tuple(content)


def _check_live(message: Message, place: str) -> None:
    content = message.content
    if not content and message.role != "assistant":
        raise InvalidMessage(place, "is empty")
    if not isinstance(content, str):
        check_blocks(content, message.role, place)
    if message.unknown:
        warn_of_unknown(message.unknown)


def plain_json(value: object, place: str) -> Any:
    """Return a deep copy as plain JSON data, without subclasses such as members of an enumeration.

    Raises:
        InvalidMessage: JSON cannot represent a value; names its path.
    """
    try:
        return _copy(value, 0)
    except _NotJson:
        return _copy_with_path(value, place, 0)


class _NotJson(Exception):
    """A value is not plain JSON; a slower walk then finds its path."""


def _copy(value: Any, depth: int) -> Any:
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is str:
        return value if value.isascii() else _text(value)
    if value is None or kind is bool:
        return value
    if depth < DEEPEST:
        if kind is dict:
            # Most keys and values are short texts, and need no call.
            return {
                k if type(k) is str and k.isascii() else _key(k): (
                    v if type(v) is str and v.isascii() else _copy(v, depth + 1)
                )
                for k, v in value.items()
            }
        if kind is list:
            return [_copy(v, depth + 1) for v in value]
    if kind is int and -LARGEST_INT < value < LARGEST_INT:
        return value
    if kind is float and math.isfinite(value):
        return value
    raise _NotJson


def _key(key: Any) -> str:
    if type(key) is not str:
        raise _NotJson
    return _text(key)


def _text(text: str) -> str:
    # Two adjacent surrogate halves are one character, as in JSON.
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _copy_with_path(value: object, place: str, depth: int) -> Any:
    if isinstance(value, str):
        return _text(str.__str__(value))
    if value is None or isinstance(value, bool):
        return value
    if depth > DEEPEST:
        problem = f"is nested deeper than {DEEPEST} levels, or contains itself"
        raise InvalidMessage(_short(place), problem)
    if isinstance(value, int):
        if not -LARGEST_INT < value < LARGEST_INT:
            raise InvalidMessage(_short(place), "is an integer of more than 4,000 digits")
        return int.__int__(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidMessage(_short(place), f"{value} is not a JSON number")
        return float.__float__(value)
    if _is_mapping(value):
        return {
            _name(k, place): _copy_with_path(v, f"{place}.{k}", depth + 1) for k, v in value.items()
        }
    if is_list(value):
        return [_copy_with_path(v, f"{place}[{i}]", depth + 1) for i, v in enumerate(value)]
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        # Fields that the server did not send are not sent back.
        return _copy_with_path(
            dump(mode="json", exclude_unset=True, by_alias=True), place, depth + 1
        )
    raise InvalidMessage(_short(place), f"is {_kind(value)}, which JSON cannot represent")


def _short(place: str) -> str:
    return place if len(place) <= LONGEST_PATH else f"{place[: LONGEST_PATH - 40]}…{place[-39:]}"


def _is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)


def _name(key: object, place: str) -> str:
    if not isinstance(key, str):
        raise InvalidMessage(_short(place), f"has the key {key!r}; keys must be strings")
    return _text(str.__str__(key))


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"
