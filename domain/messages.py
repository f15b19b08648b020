"""Messages of the Anthropic Messages API, kept exactly as received, their content blocks, and the words in them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from .lazy_pattern import lazy_pattern
from .value import Value, is_list, is_object

Role = Literal["user", "assistant", "system"]
Author = Literal["person", "program", "tool"]
"""Writer of a message with the role ``user``.

A person, the program around the agent (a loaded skill, a reminder, a summary), or a tool.
"""

# A content block as received: plain JSON data. Never changed in place; code that hands one out
# copies it.
Block = dict[str, Any]

THINKING = frozenset({"thinking", "redacted_thinking"})
SHOWN = frozenset({"image", "document"})
"""Types of blocks that a user shows instead of writing text."""


class Message(Value, frozen=True):
    """A message: a role and its content, which is a string or content blocks.

    Unknown block types and unknown fields are kept as they were received.
    """

    role: Role
    content: str | tuple[Block, ...]
    author: Author | None = None
    """Writer of the message, or None if unknown. Not sent to providers."""
    extra: Block | None = None
    """Other fields that the message had (a name, metadata, usage), as JSON data. Not sent to providers."""
    unknown: tuple[str, ...] = ()
    """Types of blocks that the provider did not accept when the message was appended; they are shown as text.
    """

    def blocks(self) -> tuple[Block, ...]:
        """Return the content as blocks; a string becomes one text block."""
        if isinstance(self.content, str):
            return ({"type": "text", "text": self.content},)
        return self.content


def has_thinking(message: Message) -> bool:
    """Return whether a message contains thinking, readable or redacted."""
    blocks = () if isinstance(message.content, str) else message.content
    return any([block.get("type") in THINKING for block in blocks])  # noqa: C419 (takes half the time)


class Gist(NamedTuple):
    """Tool calls, tool results and speech of a message, without its texts."""

    calls: tuple[str, ...]
    """Ids of the tool calls in the message."""
    results: tuple[str, ...]
    """Ids of the tool calls that the message answers."""
    speaks: bool
    """Whether the message contains words, or an image or document shown by a user."""


def gist(message: Message) -> Gist:
    """Return the tool calls, tool results and speech of a message.

    Makes one pass over the blocks, because it runs for every message of every load.
    """
    content = message.content
    if isinstance(content, str):
        return Gist((), (), bool(content) and not content.isspace())
    calls: list[str] = []
    results: list[str] = []
    speaks = False
    for block in content:
        kind = block.get("type")
        if kind == "text":
            text = block.get("text")
            speaks = speaks or (isinstance(text, str) and bool(text) and not text.isspace())
        elif kind in SHOWN and message.role == "user":
            speaks = True
        elif kind == "tool_use" and message.role == "assistant":
            calls.append(str(block.get("id")))
        elif kind == "tool_result" and message.role == "user":
            results.append(str(block.get("tool_use_id")))
    return Gist(tuple(calls), tuple(results), speaks)


def text_of(block: Mapping[str, Any]) -> str:
    """Return the plain text of a block: its own text, or the texts inside a tool result."""
    text = block.get("text")
    if isinstance(text, str):
        return text
    content = block.get("content")
    if isinstance(content, str):
        return content
    if is_list(content):
        parts = [text_of(b) for b in content if is_object(b)]
        return "\n".join(p for p in parts if p)
    return ""


def said(message: Message) -> str:
    """Return the words of a message: its text blocks, without tool traffic and thinking."""
    return said_content(message.content)


def said_content(content: str | Sequence[Block]) -> str:
    """Return the words in the content of a message, as ``said`` does."""
    if isinstance(content, str):
        return content
    texts = [str(b.get("text", "")) for b in content if b.get("type") == "text"]
    return "\n".join(t for t in texts if t.strip())


_DEEP = 6

_READ = (
    "title",
    "url",
    "text",
    "context",
    "source",
    "content",
    "lines",
    "stdout",
    "stderr",
    "error_code",
)
"""Fields with readable words, in reading order. Encoded or encrypted data is in other fields."""


def block_words(block: Mapping[str, Any]) -> str:
    """Return the words of a block, its parts joined with newlines. Empty for a block such as an image."""
    text = block.get("text")
    if isinstance(text, str):
        return text
    found: list[str] = []
    _collect_words(block, found)
    return "\n".join(found)


def _collect_words(value: object, found: list[str]) -> None:
    if isinstance(value, str):
        if value:
            found.append(value)
    elif is_list(value):
        for part in value:
            _collect_words(part, found)
    elif is_object(value) and (kind := value.get("type")) != "image":
        for name in _READ:
            if name in value:
                _collect_words(value[name], found)
        if kind == "text":  # The source of a document that is plain text.
            _collect_words(value.get("data"), found)


def strings(message: Message) -> Iterator[str]:
    """Yield all strings in the blocks of a message, including tool inputs and results."""
    return strings_in(message.content, deepest=_DEEP)


def strings_in(value: object, *, deepest: int) -> Iterator[str]:
    """Return all strings in JSON data, down to ``deepest`` levels below the value."""
    found: list[str] = []
    _add_strings([value], deepest, found)
    return iter(found)


def _add_strings(values: Iterable[object], deepest: int, found: list[str]) -> None:
    for value in values:
        if isinstance(value, str):
            found.append(value)
        elif deepest and (is_object(value) or is_list(value)):
            _add_strings(value.values() if is_object(value) else value, deepest - 1, found)


CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
"""Types of blocks in which a model calls a tool."""


def _writer() -> Callable[[object], str]:
    """Return a function that writes JSON. Other ones make an encoder of C for every call."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(ensure_ascii=False, default=str).encode
    # Without a record of the objects on the way: data that was stored contains no cycle.
    chunks: Callable[[object, int], Iterable[str]] = make(
        None, str, json.encoder.encode_basestring, None, ": ", ", ", False, False, True
    )
    return lambda value: "".join(chunks(value, 0))


_as_json = _writer()


def readable(message: Message) -> str:
    """Return a message as readable text.

    Words are given in full, tool calls as ``→ name {input}``, results and documents as text.
    Thinking is left out.
    """
    return readable_content(message.content)


def readable_content(content: str | Sequence[Block]) -> str:
    """Return the content of a message as readable text, as ``readable`` does."""
    texts = [content] if isinstance(content, str) else [t for _, t in readable_blocks(content)]
    return "\n".join(texts)


def readable_blocks(content: Sequence[Block]) -> list[tuple[Block, str]]:
    """Return the readable blocks of a message, each with its text."""
    parts = [(block, block_text(block)) for block in content if block.get("type") not in THINKING]
    return [part for part in parts if part[1] and not part[1].isspace()]


def call_text(block: Block) -> str:
    """Return the name and the input of a tool call."""
    return f"{block.get('name')} {_as_json(block.get('input'))}"


def block_text(block: Block) -> str:
    """Return a block as readable text, which may be blank."""
    if (kind := block.get("type")) in CALLS:
        return f"→ {call_text(block)}"
    # A blank text block says nothing; a block without text (an image) is at least named.
    return block_words(block) or ("" if kind == "text" else f"[{kind}]")


def has_words(block: Block, text: str) -> bool:
    """Return whether a block has words, given its readable text. An image only has a name."""
    return text != f"[{block.get('type')}]" or bool(block_words(block))


LONGEST = 128
"""Maximum length of a name in the Messages API."""
LONGEST_OPENAI = 64
"""Maximum length of a name in the OpenAI API."""
_REFUSED = lazy_pattern(r"[^a-zA-Z0-9_-]")


def name_problem(name: str, longest: int = LONGEST) -> str | None:
    """Describe why the name of a tool is invalid, or return None if providers accept it."""
    if name and len(name) <= longest and not _REFUSED.search(name):
        return None
    shown = name if len(name) <= LONGEST else f"{name[:LONGEST]}…"
    return f"{shown!r} is not a valid tool name: use 1 to {longest} letters, digits, _ and -"


def legal_name(name: str, longest: int = LONGEST) -> str:
    """Return a valid tool name for a name. The same name always gives the same result."""
    legal = _REFUSED.sub("_", name) or "_"
    return legal if len(legal) <= longest else _with_digest(legal, name, longest)


class ToolNames:
    """Valid tool names for the calls of one request. Different names stay different."""

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}
        """Original names, by valid name."""

    def shown(self, name: str) -> str:
        """Return the valid name for a tool name.

        A name that is already valid is returned unchanged, even if another name was converted to it.
        Requests with that other name were always rejected, so the valid name is the one that the tool
        really had.
        """
        legal = legal_name(name)
        if self._taken.setdefault(legal, name) != name and legal != name:
            return _with_digest(legal, name, LONGEST)
        return legal


def _with_digest(legal: str, name: str, longest: int) -> str:
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{legal[: longest - 9]}_{digest}"


_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MEDIA = {
    ("image", "base64"): _IMAGES,
    ("document", "base64"): ("application/pdf",),
    ("document", "text"): ("text/plain",),
}
_KINDS = {
    "image": ("base64", "url", "file"),
    "document": ("base64", "text", "content", "url", "file"),
}
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BLANKS, _SCHEMES = b" \t\r\n", ("http", "https", "gs", "s3")  # Each has its provider.


class SourceProblem(NamedTuple):
    """A problem in the source of an image or a document."""

    path: str
    """Path within the block, such as ``source.media_type``."""
    wanted: str
    """Description of a valid value."""


def has_source(block: Block) -> bool:
    """Return whether an image or a document names a source for its data."""
    source = block.get("source")
    return is_object(source) and isinstance(source.get("type"), str)


def is_refused(block: Block) -> bool:
    """Return whether the Messages API rejects this image or document."""
    return source_problem(block) is not None


def source_problem(block: Block) -> SourceProblem | None:
    """Return why the Messages API rejects an image or document, or None if it accepts it.

    Always None for blocks of other types.
    """
    kind = block.get("type")
    if kind not in SHOWN:
        return None
    source = block.get("source")
    if not is_object(source) or not has_source(block):
        wanted = 'an object such as {"type": "base64", "media_type": …, "data": …}'
        return SourceProblem("source", wanted)
    how = source["type"]
    if how not in _KINDS[kind]:
        return SourceProblem("source.type", _one_of(_KINDS[kind]))
    media = _MEDIA.get((kind, how))
    if media is not None and source.get("media_type") not in media:
        return SourceProblem("source.media_type", _one_of(media))
    return _data_problem(how, source)


def _data_problem(how: str, source: Mapping[str, Any]) -> SourceProblem | None:
    match how:
        case "base64" if not _is_base64(source.get("data")):
            return SourceProblem("source.data", "the bytes of the file in base64")
        case "text" if not isinstance(source.get("data"), str):
            return SourceProblem("source.data", "a string")
        case "url" if not _is_address(source.get("url")):
            return SourceProblem("source.url", "a URL; put data into a base64 source")
        case "file" if not (isinstance(source.get("file_id"), str) and source["file_id"]):
            return SourceProblem("source.file_id", "the id of an uploaded file")
        case "content":
            return _parts_problem(source.get("content"))
        case _:
            return None


def _parts_problem(content: object) -> SourceProblem | None:
    if isinstance(content, str):
        return None
    if not is_list(content) or not all(map(is_object, content)):
        return SourceProblem("source.content", "a string or a list of blocks")
    for index, part in enumerate(content):
        if (problem := source_problem(part)) is not None:
            return SourceProblem(f"source.content[{index}].{problem.path}", problem.wanted)
    return None


def _is_base64(data: object) -> bool:
    # Missing padding and line breaks are accepted: it is unknown whether providers reject them.
    if not isinstance(data, str) or not data.isascii():
        return False
    given = data.encode().translate(None, _BLANKS)
    digits = given.rstrip(b"=")
    is_whole = len(digits) % 4 != 1 and len(given) - len(digits) <= 2
    return bool(digits) and is_whole and not digits.translate(None, _BASE64)


def _is_address(url: object) -> bool:
    scheme, _, place = url.partition("://") if isinstance(url, str) else ("", "", "")
    return bool(place.strip().partition("/")[0]) and scheme.strip().lower() in _SCHEMES


def _one_of(names: Iterable[str]) -> str:
    return f"one of {', '.join(names)}"


_OF_USERS = frozenset(
    {"text", "image", "document", "search_result", "tool_result", "container_upload"}
)
_OF_MODELS = frozenset(
    {
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "container_upload",
        "compaction",
    }
)
_REPLACED = _OF_USERS | _OF_MODELS
"""All block types that providers accept.

A block in a message of a role that cannot send it is rendered as a short text.
"""
_OF_RESULTS = frozenset({"text", "image", "document", "search_result", "tool_reference"})
_SOURCED = frozenset({"image", "document"})


def unknown_kinds(content: Iterable[Block], role: Role) -> tuple[str, ...]:
    """Return the types of blocks that the Messages API does not accept in a message of this role, in order."""
    if role == "system":
        return ()  # Only the texts of a system message are shown.
    return tuple(dict.fromkeys(_unknown(content, role)))


def is_unknown(block: Block, kinds: Iterable[str]) -> bool:
    """Return whether a block has one of the ``kinds`` that were recorded as unknown."""
    kind = kind_of(block)
    return kind in kinds and not (kind in _SOURCED and has_source(block))


def kind_of(block: Block) -> str:
    """Return the type of a block, or an empty string if it has none."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _unknown(content: Iterable[Block], role: str) -> Iterator[str]:
    for block in content:
        kind = kind_of(block)
        if not _is_known(kind, role) or (kind in _SOURCED and not has_source(block)):
            yield kind
        inside = block.get("content") if kind == "tool_result" else None
        if is_list(inside):
            for part in inside:
                if is_object(part) and not _is_part(part):
                    yield kind_of(part)


def _is_known(kind: str, role: str) -> bool:
    # Results of the provider's own tools are shown with their call or left out.
    if kind.endswith("_tool_result"):
        return True
    return role == "user" if kind == "search_result" else kind in _REPLACED


def _is_part(part: Block) -> bool:
    kind = kind_of(part)
    return kind in _OF_RESULTS and not (kind in _SOURCED and not has_source(part))
