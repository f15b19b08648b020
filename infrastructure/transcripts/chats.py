"""Find lists of role/content messages in a file with any surrounding structure."""

from collections.abc import Iterable, Sequence, Set
from typing import Any, cast

from refold.application.conversation.transcripts import Skipped
from refold.domain.late_model import Field
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import Author
from refold.domain.originals import Original
from refold.domain.value import Value

from .transcript_source import Source, as_list, as_object, objects_in, thread_id, usable_id

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

_LISTS = (
    "messages",
    "traj",
    "history",
    "input",
)  # Keys under which recorders store the messages of a chat.
_NAMES = ("session_id", "conversation_id", "thread_id", "instance_id", "id")
_ANTHROPIC_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document"}
)
_OPENAI_PARTS = frozenset({"image_url", "input_text", "output_text", "input_image", "refusal"})


class Chat(Value, frozen=True):
    """One recorded conversation: its messages and the object that contained them."""

    thread_id: str
    messages: tuple[Any, ...]
    places: tuple[int, ...]
    """Line or list index of each message, or of the whole chat if a file holds several."""
    envelope: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Object around the messages, if any: system, tools, response."""

    def place(self, index: int) -> int | None:
        """Return the place of message ``index``, or None after the last one."""
        return self.places[index] if index < len(self.places) else None


class Chats(Value, frozen=True):
    """The chats of a file, and the skipped content between them."""

    chats: tuple[Chat, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def find_chats(source: Source) -> Chats:
    """Find the chats of a file. The result is empty if the file is not a list of messages."""
    return source.once(_find_chats)


def _find_chats(source: Source) -> Chats:
    if not source.is_document:
        places = [record.line for record in source.records]
        return _collect_chats(source.stem, [record.value for record in source.records], places)
    items = as_list(source.document)
    if items is not None:
        return _collect_chats(source.stem, items, list(range(len(items))))
    if is_message(source.document):
        return _collect_chats(source.stem, [source.document], [1])
    chat = _chat(source.document, (source.stem,), None)
    return Chats(chats=(chat,) if chat is not None else ())


def is_message(value: Any) -> bool:
    """Return whether a value is a dict with a known role and with content or calls."""
    if not isinstance(value, dict):
        return False
    message = cast("dict[str, Any]", value)
    role = message.get("role")
    is_said = "content" in message or "tool_calls" in message or "function_call" in message
    return is_said and isinstance(role, str) and role in ROLES


def odd_role(source: Source) -> str | None:
    """Return the place and name of an unknown role, or None if nothing looks like messages."""
    items = [record.value for record in source.records] if not source.is_document else None
    document = as_object(source.document) if source.is_document else None
    if items is None:
        lists = [as_list(source.document), *(as_list((document or {}).get(k)) for k in _LISTS)]
        items = next((one for one in lists if one), [source.document])
    for index, item in enumerate(items):
        message = as_object(item) or {}
        role = message.get("role")
        is_known = isinstance(role, str) and role in ROLES
        if "content" in message and "role" in message and not is_known:
            place = f"index {index}" if source.is_document else f"line {source.records[index].line}"
            return f"at {place}, has {ascii(role)[:40]}"
    return None


def speaks_openai(source: Source) -> bool:
    """Return whether the chats of a file have something that only the OpenAI chat API uses.

    The answer is False for an export of refold, even if it keeps parts in the form of that API.
    """
    return source.once(_speaks_openai)


def _speaks_openai(source: Source) -> bool:
    return any(
        (any(map(_openai_message, chat.messages)) and not any(map(_exported, chat.messages)))
        or _has_choices(chat.envelope.get("response"))
        or any("function" in tool for tool in objects_in(tools_of(chat)))
        for chat in find_chats(source).chats
    )


def speaks_anthropic(chats: Sequence[Chat]) -> bool:
    """Return whether the chats have something that only the Messages API or the export of refold uses."""
    return any(
        any(map(_exported, chat.messages))
        or any(map(_anthropic_message, chat.messages))
        or "system" in chat.envelope
        or any("input_schema" in tool for tool in objects_in(tools_of(chat)))
        for chat in chats
    )


def has_system_message(chats: Sequence[Chat]) -> bool:
    """Return whether a message of the list has the role system, which is typical for OpenAI."""
    return any(
        message.get("role") == "system"
        for chat in chats
        for message in objects_in(list(chat.messages))
    )


def tools_of(chat: Chat) -> list[Any]:
    """Return the recorded tool definitions of a chat."""
    for key in ("tools", "functions"):
        if tools := as_list(chat.envelope.get(key)):
            return tools
    return []


def _collect_chats(stem: str, items: list[Any], places: list[int]) -> Chats:
    if _mostly_messages(items):
        return Chats(
            chats=(Chat(thread_id=thread_id(stem), messages=tuple(items), places=tuple(places)),)
        )
    found: list[Chat] = []
    skipped: list[Skipped] = []
    for index, (item, place) in enumerate(zip(items, places, strict=True)):
        chat = _chat(item, (stem, str(index)), place)
        if chat is not None:
            found.append(chat)
        else:
            skipped.append(Skipped(line=place, reason="record that holds no chat", damage=True))
    return Chats(chats=tuple(found), skipped=tuple(skipped)) if found else Chats()


def _chat(value: Any, name: tuple[str, ...], place: int | None) -> Chat | None:
    """Return the chat in ``value``, a list of messages or an object with one, or None."""
    envelope = as_object(value) or {}
    if "messages" not in envelope and (request := as_object(envelope.get("request"))) is not None:
        envelope = {**envelope, **request}  # A log of requests.
    lists = [as_list(value), *(as_list(envelope.get(key)) for key in _LISTS)]
    messages = next((one for one in lists if one and _mostly_messages(one)), list[Any]())
    if not messages and envelope.get("messages") != []:
        return None
    count = len(messages)
    places = tuple(range(count)) if place is None else (place,) * count
    return Chat(
        thread_id=_name(envelope, name),
        messages=tuple(messages),
        places=places,
        envelope=envelope,
    )


def _name(envelope: dict[str, Any], name: tuple[str, ...]) -> str:
    """Return the name of a chat: its recorded id, or else the file name and its place."""
    task, trial = usable_id(envelope.get("task_id")), usable_id(envelope.get("trial"))
    if task is not None:
        return thread_id(
            name[0], f"task-{task}", *([f"trial-{trial}"] if trial is not None else [])
        )
    given = next((i for key in _NAMES if (i := usable_id(envelope.get(key))) is not None), None)
    return thread_id(name[0], given) if given is not None else thread_id(*name)


def _mostly_messages(items: list[Any]) -> bool:
    return bool(items) and sum(map(is_message, items)) * 2 >= len(items)


def _openai_message(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    given = cast("dict[str, Any]", value).get
    if given("role") in ("tool", "function", "developer"):
        return True
    if given("tool_calls") or given("function_call") or given("tool_call_id"):
        return True
    content = given("content", "")
    if content is None:
        return True
    for part in objects_in(content):
        kind = part.get("type")
        if isinstance(kind, str) and kind in _OPENAI_PARTS:
            return True
        if kind == "image" and "image" in part:
            return True
    return False


_OF_EXPORTS = frozenset({"position", "at", "role", "content", "message_id"})


def _exported(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= _OF_EXPORTS


def original_of(item: dict[str, Any]) -> Original | None:
    """Return the foreign form of a message that an export has next to it, or None.

    In a message of another program, a field of this name is its own.
    """
    match item.get("original"):
        case {"format": str(form), "data": data, **others} if form and not others:
            return Original(format=form, data=data) if _exported(item) else None
        case _:
            return None


def _anthropic_message(value: Any) -> bool:
    for part in objects_in((as_object(value) or {}).get("content")):
        kind = part.get("type")
        if isinstance(kind, str) and kind in _ANTHROPIC_BLOCKS:
            return True
    return False


def _has_choices(response: Any) -> bool:
    return as_list((as_object(response) or {}).get("choices")) is not None


_AUTHORS: tuple[Author, ...] = ("person", "program", "tool")
# Prefixes of command output from agents without tool calls.
_OUTPUT = lazy_pattern(r"\s*(?:EXECUTION RESULT of \[|API output: |<returncode>-?\d+</returncode>)")
_MINI_SWE = lazy_pattern(r"\s*<returncode>-?\d+</returncode>")


def named_author(item: dict[str, Any]) -> Author | None:
    """Return the author that an export of refold names."""
    return next((author for author in _AUTHORS if author == item.get("author")), None)


class Authors:
    """The authors of the user messages of one chat."""

    def __init__(self, chat: Chat) -> None:
        self._observes = _is_agent_loop(chat)
        roles = [(as_object(item) or {}).get("role") for item in chat.messages]
        self._first_answer = roles.index("assistant") if "assistant" in roles else len(roles)

    def author(self, index: int, item: dict[str, Any]) -> Author | None:
        """Return the author of the message with this index.

        In SWE-agent and mini-swe-agent only the program writes to the model. The first message may contain
        a person's words; later ones are observations.
        """
        if item.get("role") != "user":
            return None
        if (named := named_author(item)) or _exported(item):
            return named  # An export names each author that the log knows.
        if item.get("is_demo") is True:
            return "program"
        if _OUTPUT.match(_text(item)) or (self._observes and index > self._first_answer):
            return "tool"
        return None


def _is_agent_loop(chat: Chat) -> bool:
    written_by = chat.envelope.get("trajectory_format")
    if isinstance(written_by, str) and written_by.startswith("mini-swe-agent"):
        return True
    items = objects_in(list(chat.messages))
    if any(item.get("role") == "user" and _MINI_SWE.match(_text(item)) for item in items):
        return True
    return all("agent" in item for item in items) and any("action" in item for item in items)


def _text(item: dict[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    return next(
        (part["text"] for part in objects_in(content) if isinstance(part.get("text"), str)), ""
    )


def why_no_role(item: dict[str, Any], known: Iterable[str]) -> str:
    """Describe why the role of a message is invalid."""
    if "role" not in item:
        return "no role"
    return f"role {ascii(item['role'])[:40]}, which is not one of {', '.join(sorted(known))}"


def extra_of(item: dict[str, Any], taken: Set[str]) -> dict[str, Any] | None:
    """Return the fields of a message that are not ``taken``, including those that an export preserved."""
    if item.keys() <= taken:
        return None
    kept = as_object(item.get("extra")) or {}
    others = {k: v for k, v in item.items() if k not in taken and v is not None}
    if kept:
        others.pop("extra", None)
    return {**kept, **others} or None
