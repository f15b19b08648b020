"""Messages in the shape of the Anthropic Messages API. They are kept unchanged, block for block."""

from typing import Any

from refold.application.conversation.transcripts import (
    RecordedConversation,
    RecordedMessage,
    Skipped,
)
from refold.domain.messages import Author, Message, Role
from refold.domain.value import build_unvalidated

from .chats import (
    Authors,
    Chat,
    extra_of,
    find_chats,
    has_system_message,
    original_of,
    speaks_anthropic,
    speaks_openai,
    tools_of,
    why_no_role,
)
from .transcript_source import (
    Names,
    Reading,
    Source,
    as_content,
    as_object,
    moment,
    not_a_message,
    objects_in,
    text_or_none,
    usable_id,
)


def detect(source: Source) -> bool:
    """Return whether a source has Anthropic blocks, or plain user and assistant texts as in every format."""
    chats = find_chats(source).chats
    if not chats or speaks_openai(source):
        return False
    return speaks_anthropic(chats) or not has_system_message(chats)


def fits(source: Source) -> bool:
    """Return whether a source is a chat that is not purely in OpenAI shape."""
    chats = find_chats(source).chats
    return bool(chats) and (speaks_anthropic(chats) or not speaks_openai(source))


def read(source: Source) -> Reading:
    """Read the chats of a file, each with its system text as the first message."""
    found = find_chats(source)
    skipped = list(found.skipped)
    conversations = tuple(_conversation(chat, skipped) for chat in found.chats)
    return Reading(conversations=conversations, skipped=tuple(skipped))


def _conversation(chat: Chat, skipped: list[Skipped]) -> RecordedConversation:
    names = Names()
    messages: list[RecordedMessage] = []
    if (system := as_content(chat.envelope.get("system"))) is not None:
        message = Message(role="system", content=system)
        messages.append(RecordedMessage(message=message, key=names.take("system")))
    said = list(enumerate(chat.messages))
    authors = Authors(chat)
    if "role" in (as_object(chat.envelope.get("response")) or {}):
        said.append((len(said), chat.envelope["response"]))
    for index, item in said:
        author = authors.author(index, as_object(item) or {})
        _take(chat.place(index), index, item, author, names, messages, skipped)
    tools = tuple(objects_in(tools_of(chat)))
    return RecordedConversation(thread_id=chat.thread_id, messages=tuple(messages), tools=tools)


# `refold export` writes extra fields next to those of the API.
_TAKEN = frozenset(
    [
        "role",
        "content",
        "id",
        "message_id",
        "author",
        "timestamp",
        "at",
        "position",
        "model",
        "stop_reason",
    ]
)


def _take(
    place: int | None,
    index: int,
    given: Any,
    author: Author | None,
    names: Names,
    messages: list[RecordedMessage],
    skipped: list[Skipped],
) -> None:
    item = as_object(given) or {}
    role = _role(item.get("role"))
    content = as_content(item.get("content")) if role is not None else None
    if role is None or content is None:
        problem = why_no_role(item, _ROLES) if role is None else "no content"
        skipped.append(not_a_message(place, problem))
        return
    message_id = usable_id(item.get("id")) or usable_id(item.get("message_id"))
    original = original_of(item)
    taken = _TAKEN if original is None else _TAKEN | {"original"}
    # Everything was checked above, and a file has many messages.
    message = build_unvalidated(
        Message,
        role=role,
        content=content,
        author=author,
        extra=extra_of(item, taken),
        unknown=(),
    )
    recorded = build_unvalidated(
        RecordedMessage,
        message=message,
        key=names.take(message_id or f"message:{index}"),
        message_id=message_id,
        at=moment(item.get("timestamp", item.get("at"))),
        line=place,
        model=text_or_none(item.get("model")),
        stop_reason=text_or_none(item.get("stop_reason")),
        original=original,
    )
    messages.append(recorded)


def _role(value: Any) -> Role | None:
    return next((role for role in _ROLES if role == value), None)


_ROLES: tuple[Role, ...] = ("user", "assistant", "system")
