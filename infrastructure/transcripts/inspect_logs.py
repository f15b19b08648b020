"""Convert evaluation logs of Inspect to Anthropic shape: one conversation for each sample and epoch."""

import os
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from refold.application.errors import TranscriptError
from refold.domain.messages import Author, Block, Role

from .conversation_draft import (
    ConversationDraft,
    reading_of,
    result_block,
    thinking_block,
    tool_use,
)
from .openai import convert_content, convert_document, convert_tool
from .transcript_source import (
    MAX_BYTES,
    BrokenJsonError,
    Content,
    Reading,
    Record,
    Source,
    UnknownFormat,
    arguments_of,
    as_blocks,
    as_list,
    as_object,
    moment,
    not_a_message,
    objects_in,
    parse_json,
    text_or_none,
    usable_id,
)

_HEADERS = ("header.json", "_journal/start.json")
"""The header of a log that is complete, and of one that was interrupted."""
_ZSTD = 93
"""Number of zstd in a zip file."""
_LENGTHS = 26
"""Offset of the lengths of a name and of further data in the head of a part. What is packed follows both."""
_ATTACHED = "attachment://"
"""Beginning of a text that is stored once for the whole sample, under its digest."""


_BEGIN = "begin:"
_OF_CALL = "call:"
"""Names of the time at which a sample began, and of the times of calls."""
ARCHIVE = b"PK\x03\x04"
"""Beginning of a log in Inspect's own format ``.eval``, which is a zip file with the header and each sample."""


def open_archive(path: Path) -> Source:
    """Read a log in the format ``.eval``.

    Raises:
        TranscriptError: the file is no such log, is damaged or too large, or is compressed in a way that this Python
            does not know.
    """
    try:
        with ZipFile(path) as archive:
            log = _log_in(path, archive)
    except NotImplementedError as error:
        raise TranscriptError(
            f"{path} is compressed in a way that this Python cannot read ({error}). "
            "Convert it with `inspect log convert --to json`, and import that."
        ) from error
    except (BadZipFile, OSError, EOFError, zlib.error) as error:
        raise TranscriptError(
            f"{path} is a zip file that is broken or cut off ({error})."
        ) from error
    except (BrokenJsonError, UnicodeDecodeError) as error:
        raise TranscriptError(f"{path} has a part that is not JSON ({error}).") from error
    record = Record(line=1, value=log)
    return Source(stem=path.stem, is_document=True, document=log, records=(record,))


def _log_in(path: Path, archive: ZipFile) -> dict[str, Any]:
    names = set(archive.namelist())
    header = next((name for name in _HEADERS if name in names), None)
    if header is None:
        raise UnknownFormat(
            f"{path} is a zip file, and no log of Inspect: {_HEADERS[0]} is not in it."
        )
    if sum(one.file_size for one in archive.infolist()) > MAX_BYTES:
        raise TranscriptError(f"{path} has over {MAX_BYTES:,} bytes unpacked.")
    read = [
        parse_json(_unpack(path, archive, name).decode("utf-8", "surrogatepass"))
        for name in (header, *sorted(filter(_is_sample, names)))
    ]
    return {**(as_object(read[0]) or {}), "samples": read[1:]}


def _unpack(path: Path, archive: ZipFile, name: str) -> bytes:
    """Return a part of an archive. Inspect packs its parts with zstd, which ``zipfile`` does not know before 3.14."""
    part = archive.getinfo(name)
    if part.compress_type != _ZSTD:
        return archive.read(name)
    try:
        import zstandard
    except ImportError:
        raise TranscriptError(
            f"{path} is packed with zstd: pip install 'refold[compression]', or convert it with "
            "`inspect log convert --to json`."
        ) from None
    with path.open("rb") as file:
        file.seek(part.header_offset + _LENGTHS)
        lengths = int.from_bytes(file.read(2), "little") + int.from_bytes(file.read(2), "little")
        file.seek(lengths, os.SEEK_CUR)
        packed = file.read(part.compress_size)
    try:
        unpacked = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    except zstandard.ZstdError as error:
        raise BadZipFile(str(error)) from error
    if zlib.crc32(unpacked) != part.CRC:
        raise BadZipFile(f"{name} has another checksum")
    return unpacked


def _is_sample(name: str) -> bool:
    return name.startswith("samples/") and name.endswith(".json")


def fits(source: Source) -> bool:
    """Return whether the file is a log of an evaluation, or one sample of such a log."""
    return source.has_field("eval", "messages") and any(True for _ in _samples(source))


def _samples(source: Source) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the samples, each with the header of its log."""
    for record in source.records:
        log = as_object(record.value) or {}
        if as_object(log.get("eval")) is not None:
            for sample in objects_in(log.get("samples")):
                yield sample, log
        elif (
            as_list(log.get("messages")) is not None and {"epoch", "input", "target"} <= log.keys()
        ):
            yield log, {}


def read(source: Source) -> Reading:
    """Read the messages of each sample, as they were at its end."""
    return reading_of(_Sample(source.stem, sample, log).draft for sample, log in _samples(source))


class _Sample:
    def __init__(self, stem: str, sample: dict[str, Any], log: dict[str, Any]) -> None:
        header = as_object(log.get("eval")) or {}
        run = usable_id(header.get("eval_id")) or usable_id(header.get("task_id")) or stem
        epoch = f"epoch-{sample.get('epoch') or 1}"
        self.draft = ConversationDraft(run, str(sample.get("id")), epoch)
        self.draft.label = text_or_none(header.get("task"))
        self.draft.tools = _tools(sample)
        self._attachments = as_object(sample.get("attachments")) or {}
        output = as_object(sample.get("output")) or {}
        self._model = text_or_none(output.get("model")) or text_or_none(header.get("model"))
        self._times = _times(sample)
        self._input = self._attached(sample.get("input"))
        for place, value in enumerate(as_list(sample.get("messages")) or ()):
            self._take(place, self._attached(as_object(value) or {}))

    def _attached(self, value: Any) -> Any:
        """Return a value with the texts that are stored elsewhere in the sample."""
        if isinstance(value, str) and value.startswith(_ATTACHED):
            return self._attachments.get(value.removeprefix(_ATTACHED), value)
        if (items := as_list(value)) is not None:
            return [self._attached(one) for one in items]
        fields = as_object(value)
        return (
            value if fields is None else {key: self._attached(one) for key, one in fields.items()}
        )

    def _take(self, place: int, message: dict[str, Any]) -> None:
        content = _content(message.get("content"))
        if content is None:
            self.draft.skipped.append(not_a_message(place, "content of an unknown kind"))
            return
        match message.get("role"):
            case "system":
                self._append(place, message, "system", content)
            case "user":
                self._append(place, message, "user", content)
            case "assistant":
                calls = [self._call(place, call) for call in objects_in(message.get("tool_calls"))]
                if calls:
                    content = (*as_blocks(content), *calls)
                self._append(place, message, "assistant", content)
            case "tool":
                self._append(place, message, "user", (self._result(message, content),))
            case _:
                self.draft.skipped.append(not_a_message(place, "no role that is known"))

    def _call(self, place: int, call: dict[str, Any]) -> Block:
        function = call.get("function")
        named = function if isinstance(function, str) else (as_object(function) or {}).get("name")
        given = usable_id(call.get("id")) or f"call_{place}"
        arguments = arguments_of(call.get("arguments"))
        return tool_use(self.draft.call_id(given), text_or_none(named) or "unknown", arguments)

    def _result(self, message: dict[str, Any], content: Content) -> Block:
        given = usable_id(message.get("tool_call_id")) or "unknown"
        error = as_object(message.get("error"))
        if error is not None and not content:
            content = str(error.get("message") or "")
        return result_block(self.draft.answered(given), content, is_error=error is not None)

    def _at(self, given: str | None, message: dict[str, Any]) -> datetime | None:
        """Return the time of an answer, of a result, or of what was said before the first answer."""
        call = usable_id(message.get("tool_call_id"))
        found = self._times.get(given or "") or self._times.get(f"{_OF_CALL}{call}")
        is_input = not any(one.message.role == "assistant" for one in self.draft.messages)
        if found is None and is_input and message.get("role") in ("system", "user"):
            return self._times.get(_BEGIN)
        return found

    def _author(self, message: dict[str, Any]) -> Author:
        """Return the author of a user message. What is neither the sample's input nor typed in is the program's."""
        source, content = message.get("source"), message.get("content")
        given = [one.get("content") for one in objects_in(self._input)]
        is_input = source is None and (content == self._input or content in given)
        return "person" if is_input or source in ("input", "operator") else "program"

    def _append(self, place: int, message: dict[str, Any], role: Role, content: Content) -> None:
        given = usable_id(message.get("id"))
        self.draft.append(
            place,
            role,
            content,
            given_id=given,
            at=self._at(given, message),
            author=self._author(message) if message.get("role") == "user" else None,
            model=text_or_none(message.get("model")) or self._model,
        )


def _content(value: Any) -> Content | None:
    """Return content in Anthropic shape, with reasoning as thinking."""
    if value is None:
        return ""
    content = convert_content(value)
    if content is None or isinstance(content, str):
        return content
    return tuple(map(_block, content))


def _block(block: Block) -> Block:
    match block:
        case {"type": "reasoning"}:
            return _reasoning(block)
        case {"type": "tool_use"} if "input" not in block:
            return _provider_call(block)
        case {"type": "document", "document": str(address)}:
            return convert_document(address, block)
        case _:
            return block


def _reasoning(block: Block) -> Block:
    text, signature = str(block.get("reasoning") or ""), text_or_none(block.get("signature"))
    if block.get("redacted") is True:
        return {"type": "redacted_thinking", "data": text}
    made = thinking_block(text)
    return made if signature is None else {**made, "signature": signature}


def _provider_call(block: Block) -> Block:
    """Return a call that the provider of the model answered itself. It is no call of the agent."""
    title = f"{block.get('name')} {block.get('arguments')}"
    content = str(block.get("error") or block.get("result") or "")
    return {"type": "provider_tool_use", "title": title, "content": content, "id": block.get("id")}


def _tools(sample: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the tools of the newest call of the model that had some."""
    for event in reversed(objects_in(sample.get("events"))):
        if event.get("event") == "model" and (tools := objects_in(event.get("tools"))):
            return tuple(made for tool in tools if (made := convert_tool(tool)) is not None)
    return ()


def _times(sample: dict[str, Any]) -> dict[str, datetime]:
    """Map ids of answers and calls to the time when they were complete, and the beginning to its time."""
    found: dict[str, datetime] = {}
    for event in objects_in(sample.get("events")):
        at = moment(event.get("completed")) or moment(event.get("timestamp"))
        if at is not None:
            for name in _named_in(event):
                found.setdefault(name, at)
    return found


def _named_in(event: dict[str, Any]) -> Iterator[str]:
    match event.get("event"):
        case "sample_init":
            yield _BEGIN
        case "tool" if (call := usable_id(event.get("id"))) is not None:
            yield f"{_OF_CALL}{call}"
        case "model":
            for choice in objects_in((as_object(event.get("output")) or {}).get("choices")):
                given = usable_id((as_object(choice.get("message")) or {}).get("id"))
                if given is not None:
                    yield given
        case _:
            pass
