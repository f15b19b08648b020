"""Where an image or a document has its data, and what of that the Messages API takes.

What it refuses would make every later request fail: a live message with it is not stored, and what is
recorded already is shown as text.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .json_data import is_list, is_object
from .messages import SHOWN, Block

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
