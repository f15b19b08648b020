"""Content blocks: which types the Messages API takes, where their data is, and what they say to a reader."""

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from .messages import SHOWN, Block, Message
from .value import is_list, is_object

LONGEST = 128
"""Characters of a name that the Messages API takes."""
LONGEST_OPENAI = 64
"""The same of the OpenAI API."""
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


def name_problem(name: str, longest: int = LONGEST) -> str | None:
    """Say what is wrong with the name of a tool; None where providers take it."""
    if name and len(name) <= longest and not _REFUSED.search(name):
        return None
    shown = name if len(name) <= LONGEST else f"{name[:LONGEST]}…"
    return f"{shown!r} cannot be the name of a tool: give 1 to {longest} letters, digits, _ and -"


def legal_name(name: str, longest: int = LONGEST) -> str:
    """Return a name that the providers take; the same for the same name."""
    legal = _REFUSED.sub("_", name) or "_"
    return legal if len(legal) <= longest else _with_digest(legal, name, longest)


class ToolNames:
    """The names of the calls of one request, in their order: two names never become one."""

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}
        """What each name that is shown stands for."""

    def shown(self, name: str) -> str:
        """Return the name to show.

        A legal one is shown as it is, also behind another that became the same: that other was refused in
        every request, so the legal one is what the tool was named then.
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
_BLANKS = b" \t\r\n"


class SourceProblem(NamedTuple):
    """What is wrong with the source of a block."""

    path: str
    """Within the block, such as ``source.media_type``."""
    wanted: str
    """What must be there."""


def has_source(block: Block) -> bool:
    """Whether an image or a document says where its data is."""
    source = block.get("source")
    return is_object(source) and isinstance(source.get("type"), str)


def is_refused(block: Block) -> bool:
    """Whether it is an image or a document that the Messages API refuses."""
    return source_problem(block) is not None


def source_problem(block: Block) -> SourceProblem | None:
    """Find what the Messages API refuses of an image or a document; None of any other block."""
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
    return _of_data(how, source)


def _of_data(how: str, source: Mapping[str, Any]) -> SourceProblem | None:
    match how:
        case "base64" if not _is_base64(source.get("data")):
            return SourceProblem("source.data", "the bytes of the file in base64")
        case "text" if not isinstance(source.get("data"), str):
            return SourceProblem("source.data", "a string")
        case "url" if not _is_address(source.get("url")):
            return SourceProblem("source.url", "an address; data goes into a base64 source")
        case "file" if not (isinstance(source.get("file_id"), str) and source["file_id"]):
            return SourceProblem("source.file_id", "the id of an uploaded file")
        case "content":
            return _of_parts(source.get("content"))
        case _:
            return None


def _of_parts(content: object) -> SourceProblem | None:
    if isinstance(content, str):
        return None
    if not is_list(content) or not all(map(is_object, content)):
        return SourceProblem("source.content", "a string or a list of blocks")
    for index, part in enumerate(content):
        if (problem := source_problem(part)) is not None:
            return SourceProblem(f"source.content[{index}].{problem.path}", problem.wanted)
    return None


def _is_base64(data: object) -> bool:
    # Padding may be missing and lines may be broken: whether that is refused is not known for sure.
    if not isinstance(data, str) or not data.isascii():
        return False
    given = data.encode().translate(None, _BLANKS)
    digits = given.rstrip(b"=")
    is_whole = len(digits) % 4 != 1 and len(given) - len(digits) <= 2
    return bool(digits) and is_whole and not digits.translate(None, _BASE64)


def _is_address(url: object) -> bool:
    return isinstance(url, str) and bool(url.strip()) and not url.startswith("data:")


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
"""What stands in the message of another speaker is rendered as a short text anyway."""
_OF_RESULTS = frozenset({"text", "image", "document", "search_result", "tool_reference"})
_SOURCED = frozenset({"image", "document"})


def unknown_kinds(message: Message) -> tuple[str, ...]:
    """The types of blocks in a message that the Messages API does not take there, in their order."""
    if isinstance(message.content, str) or message.role == "system":
        return ()  # Of a system message only the texts are shown.
    return tuple(dict.fromkeys(_unknown(message.content, message.role)))


def is_unknown(block: Block, kinds: Iterable[str]) -> bool:
    """Whether a block is one of ``kinds`` that were recorded as unknown."""
    kind = kind_of(block)
    return kind in kinds and not (kind in _SOURCED and has_source(block))


def kind_of(block: Block) -> str:
    """The type of a block as text; empty where it has none."""
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
    if kind.endswith("_tool_result"):  # Of the provider's own tools: shown with its call, or not.
        return True
    if kind == "search_result":
        return role == "user"
    return kind in _REPLACED


def _is_part(part: Block) -> bool:
    kind = kind_of(part)
    return kind in _OF_RESULTS and not (kind in _SOURCED and not has_source(part))


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
"""Fields with words, in the order in which they are read; what is encoded or encrypted is in others."""


def block_words(block: Mapping[str, Any]) -> str:
    """The words of a block, its parts joined with new lines; empty where it has none, as an image."""
    text = block.get("text")
    return text if isinstance(text, str) else "\n".join(part for part in _words_in(block) if part)


def _words_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_list(value):
        for part in value:
            yield from _words_in(part)
    elif is_object(value) and value.get("type") != "image":
        for name in _READ:
            yield from _words_in(value.get(name))
        if value.get("type") == "text":  # The source of a document that is plain text.
            yield from _words_in(value.get("data"))


def strings(message: Message) -> Iterator[str]:
    """Return every string in a message's blocks, also inside inputs and results."""
    return strings_in(message.content, deepest=_DEEP)


def strings_in(value: object, *, deepest: int) -> Iterator[str]:
    """Yield every string in JSON data, down to so many levels below the value."""
    if isinstance(value, str):
        yield value
    elif deepest and is_object(value):
        for inner in value.values():
            yield from strings_in(inner, deepest=deepest - 1)
    elif deepest and is_list(value):
        for inner in value:
            yield from strings_in(inner, deepest=deepest - 1)
