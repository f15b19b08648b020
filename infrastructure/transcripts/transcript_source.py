"""Read JSON from files of unknown origin. Any text yields values or one typed error."""

import gzip
import hashlib
import io
import json
import math
import sys
import unicodedata
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from pydantic import Field

from refold.application.conversation.transcripts import RecordedConversation, Skipped
from refold.application.errors import TranscriptError
from refold.domain.messages import Block
from refold.domain.value import Value, build_unvalidated

T = TypeVar("T")
MAX_DEPTH = 200
"""Maximum nesting depth. Real messages stay below 30, and pydantic can write up to 255."""

_MAX_DIGITS = 4000  # CPython refuses to convert integers of more than 4,300 digits.


class UnknownFormat(TranscriptError):
    """A file has none of the formats that can be read."""


class BrokenJsonError(ValueError):
    """The text is not JSON, or its JSON cannot be stored."""


def parse_json(text: str) -> Any:
    """Parse one JSON value. Numbers that JSON or Python lacks (NaN, 1e999) become their text.

    Raises:
        BrokenJsonError: the text is not JSON, has something after the value, or exceeds ``MAX_DEPTH``.
    """
    values, problem = parse_run(text)
    if problem is not None:
        raise BrokenJsonError(problem)
    if len(values) != 1:
        raise BrokenJsonError(f"{len(values)} values instead of one")
    return values[0]


def parse_run(text: str, most: int = sys.maxsize) -> tuple[list[Any], str | None]:
    """Parse up to ``most`` consecutive JSON values. The second part describes the error that stopped it."""
    values: list[Any] = []
    start = _next_start(text, 0)
    while start < len(text) and len(values) < most:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except RecursionError:
            return values, "nested too deeply"
        except ValueError as error:
            return values, str(error)
        if _too_deep(value, text, start, end):
            return values, f"nested deeper than {MAX_DEPTH} levels"
        values.append(value)
        start = _next_start(text, end)
    return values, None


def as_object(value: Any) -> dict[str, Any] | None:
    """Return a JSON object as a dict, or None for another value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any] | None:
    """Return a JSON list as a list, or None for another value."""
    is_one = isinstance(value, list)
    return cast("list[Any]", value) if is_one else None


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a JSON list, or an empty list for another value."""
    return [item for item in as_list(value) or () if isinstance(item, dict)]


def _next_start(text: str, start: int) -> int:
    while start < len(text) and text[start] in " \t\r\n\ufeff":  # Joined files keep their marks.
        start += 1
    return start


def _whole_number(literal: str) -> int | str:
    return int(literal) if len(literal) <= _MAX_DIGITS else literal


def _real_number(literal: str) -> float | str:
    number = float(literal)
    return number if math.isfinite(number) else literal


def _too_deep(value: Any, text: str, start: int, end: int) -> bool:
    if text.count("[", start, end) + text.count("{", start, end) <= MAX_DEPTH:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    parts = (as_object(value) or {}).values() or as_list(value) or []
    return [part for part in parts if isinstance(part, dict | list)]


_DECODER = json.JSONDecoder(
    parse_constant=str,
    parse_int=_whole_number,
    parse_float=_real_number,
    strict=False,  # Raw control characters in strings do not invalidate a record.
)


MAX_BYTES = 1 << 30
"""Maximum unpacked size of a transcript. Gzip can hide any size, and the whole text is held in memory."""

_GZIP_MAGIC = b"\x1f\x8b"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_SUFFIXES = {".gz", ".jsonl", ".json", ".traj"}


class Record(NamedTuple):
    """A JSON value on its own line."""

    line: int
    """Line number, starting at 1."""
    value: Any


class Source(Value, frozen=True):
    """Content of a file: one JSON document or JSON lines. A one-line object is both."""

    stem: str
    """File name without the folder and without .gz, .jsonl, .json, .traj."""
    is_document: bool
    document: Any = None
    """Value of the whole text, or None if it is not a single JSON value."""
    records: tuple[Record, ...] = ()
    """Lines of JSON lines in order. A document that is an object is one record on line 1."""
    skipped: tuple[Skipped, ...] = ()
    """Lines that could not be read, or only after a repair."""
    found: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)
    """Answers of ``once``."""

    def once(self, find: Callable[["Source"], T]) -> T:
        """Return what a function says about this source. It is called once, however many formats ask."""
        name = f"{find.__module__}.{find.__qualname__}"
        if name not in self.found:
            self.found[name] = find(self)
        return cast(T, self.found[name])

    def has_field(self, *names: str) -> bool:
        """Return whether a record, or an item of a list, has one of these fields. Most formats have none."""
        return not self.once(_names_in).isdisjoint(names)


def _names_in(source: Source) -> frozenset[str]:
    listed = as_list(source.document) if source.is_document else None
    values = [record.value for record in source.records] if listed is None else listed
    objects = [cast("dict[str, Any]", value) for value in values if isinstance(value, dict)]
    return frozenset[str]().union(*objects)


def read_bytes(path: Path) -> bytes:
    """Return the content of a file as UTF-8, unpacked if it is gzip.

    Raises:
        TranscriptError: the file is missing, unreadable, a folder, too large or broken gzip.
    """
    return _utf8(path, _unpack(path, _bytes_of(path)))


def parse_source(path: Path, data: bytes) -> Source:
    """Parse the content of a file.

    Raises:
        TranscriptError: it is empty, or neither JSON nor JSON lines.
    """
    if not data.strip(b" \t\r\n\x00"):
        raise UnknownFormat(f"{path} is empty: there is no conversation in it.")
    stem = stem_of(path)
    document = _only_value(data)
    if document is None:
        return _json_lines(path, stem, data)
    records = (Record(line=1, value=document[0]),) if as_object(document[0]) is not None else ()
    return Source(stem=stem, is_document=True, document=document[0], records=records)


def _only_value(data: bytes) -> list[Any] | None:
    """Return a list with the JSON value that the data is, or None if it is not one value.

    The second value of a file shows that its lines must be read, so the others are not parsed here.
    """
    try:
        values, problem = parse_run(data.decode("utf-8", "surrogatepass"), 2)
    except UnicodeDecodeError:
        return None
    return values if problem is None and len(values) == 1 else None


def _bytes_of(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise TranscriptError(f"{path} is a folder: name a transcript file in it.")
        with path.open("rb") as file:
            return _check_size(path, file.read(MAX_BYTES + 1))
    except FileNotFoundError:
        raise TranscriptError(f"{path} does not exist: check the path.") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte.
        if isinstance(error, TranscriptError):
            raise
        raise TranscriptError(f"{path} cannot be read: {error}. Check its permissions.") from error


def _unpack(path: Path, data: bytes) -> bytes:
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
            return _check_size(path, unpacked.read(MAX_BYTES + 1))
    except (OSError, EOFError, zlib.error) as error:
        raise TranscriptError(
            f"{path} is a gzip file that is broken or cut off ({error}). Fetch it again, or "
            "unpack the intact part with `gzip -dc` and import that."
        ) from error


def _check_size(path: Path, data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        raise TranscriptError(
            f"{path} has over {MAX_BYTES:,} bytes: split it into one file per conversation."
        )
    return data


def _utf8(path: Path, data: bytes) -> bytes:
    if not data.startswith(_UTF16_MARKS):
        return data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-16").encode("utf-8", "surrogatepass")
    except UnicodeError as error:
        raise _not_text(path, error) from error


def _not_text(path: Path, problem: Exception) -> UnknownFormat:
    return UnknownFormat(
        f"{path} is not a transcript: no line of it is JSON text in UTF-8 ({str(problem)[:120]})."
    )


def _json_lines(path: Path, stem: str, data: bytes) -> Source:
    records: list[Record] = []
    skipped: list[Skipped] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        _read_line(number, line, records, skipped)
    if not any(isinstance(record.value, dict | list) for record in records):
        raise _not_text(path, _problem_with(data))
    return build_unvalidated(
        Source,
        stem=stem,
        is_document=False,
        records=tuple(records),
        skipped=tuple(skipped),
    )


def _problem_with(data: bytes) -> Exception:
    """Return why the data is not one JSON value."""
    try:
        parse_json(data.decode("utf-8", "surrogatepass"))
    except (UnicodeDecodeError, BrokenJsonError) as problem:
        return problem
    return BrokenJsonError("it is not an object or a list")


def _read_line(number: int, raw: bytes, records: list[Record], skipped: list[Skipped]) -> None:
    line = raw.strip(b" \t\r\x00")
    if not line:
        if b"\x00" in raw:
            skipped.append(_damage(number, "line of zero bytes", f"{len(raw)} bytes"))
        return
    try:
        values, problem = parse_run(line.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError as error:
        skipped.append(_damage(number, "line that is not UTF-8", str(error)))
        return
    if len(values) > 1:
        detail = f"{len(values)} records, all recovered" if problem is None else "recovered in part"
        skipped.append(Skipped(line=number, reason="records run together", detail=detail))
    if problem is not None:
        skipped.append(_damage(number, "broken line", problem))
    records += [Record(number, value) for value in values]


def _damage(line: int, reason: str, detail: str) -> Skipped:
    return Skipped(line=line, reason=reason, detail=detail[:160], damage=True)


def stem_of(path: Path) -> str:
    """Return the file name without the endings of transcripts."""
    name = Path(path.name)
    while name.suffix.lower() in _SUFFIXES and name.stem:
        name = Path(name.stem)
    return name.name


MAX_THREAD_ID = 180
"""Maximum length of a suggested thread id. It is below the allowed 200, with room for ``#2``."""

_MAX_ID = 200
_UNPRINTABLE = {"Cc", "Cs", "Cn", "Zl", "Zp"}
_FIRST_MILLISECONDS = 100_000_000_000  # As seconds this is the year 5138, as milliseconds 1973.


def usable_id(value: Any) -> str | None:
    """Return an id from a file if it can be used as a name, or None."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_ID:
        return None
    if value.isascii() and value.isprintable():
        return value  # The usual case: no lookup of each character.
    return None if any(unicodedata.category(c) in _UNPRINTABLE for c in value) else value


def thread_id(*parts: str) -> str:
    """Return a printable thread id made of ``parts``, at most ``MAX_THREAD_ID`` characters long.

    If a part had to be changed or cut, a digest of the original keeps the id unique.
    """
    wanted = ":".join(parts)
    clean = "".join(c if c.isprintable() else "_" for c in wanted).strip()
    if clean == wanted and 0 < len(clean) <= MAX_THREAD_ID:
        return clean
    digest = hashlib.sha256(wanted.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{clean[: MAX_THREAD_ID - 13].strip() or 'transcript'}-{digest}"


class Names:
    """Generates unique names: the second ``x`` becomes ``x#2``.

    The same sequence of names always gets the same results.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._repeats: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """Return the wanted name, or the first free name derived from it."""
        name = wanted
        while name in self._taken:
            self._repeats[wanted] = self._repeats.get(wanted, 1) + 1
            name = f"{wanted}#{self._repeats[wanted]}"
        self._taken.add(name)
        return name


def moment(value: Any) -> datetime | None:
    """Parse a recorded time:

    ISO 8601, or seconds or milliseconds since 1970. The default time zone is UTC.
    """
    try:
        match value:
            case bool():
                return None
            case str():
                at = datetime.fromisoformat(value)
                return at if at.utcoffset() is not None else at.replace(tzinfo=UTC)
            case int() | float():
                seconds = value / 1000 if abs(value) >= _FIRST_MILLISECONDS else value
                return datetime.fromtimestamp(seconds, UTC)
            case _:
                return None
    except (ValueError, OverflowError, OSError):
        return None


Content = str | tuple[Block, ...]


class Reading(Value, frozen=True):
    """Conversations and skipped content that a format found in a source."""

    conversations: tuple[RecordedConversation, ...]
    skipped: tuple[Skipped, ...]


def as_content(value: Any) -> Content | None:
    """Return content unchanged: a string, or blocks. A bare string among blocks becomes a text block.

    Return None for other values.
    """
    if isinstance(value, str):
        return value
    items = as_list(value)
    if items is None:
        return None
    blocks = [text_block(item) if isinstance(item, str) else as_object(item) for item in items]
    return None if None in blocks else cast("tuple[Block, ...]", tuple(blocks))


def as_blocks(content: Content) -> list[Block]:
    """Return content as blocks. An empty string has no blocks."""
    if isinstance(content, str):
        return [text_block(content)] if content else []
    return list(content)


def text_block(text: str) -> Block:
    """Return a text block."""
    return {"type": "text", "text": text}


def arguments_of(raw: Any) -> dict[str, Any]:
    """Return the arguments of a call as an object. Other values become ``{"_arguments": text}``."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}  # Calls without arguments are often streamed this way.
    parsed = raw
    if isinstance(raw, str):
        try:
            parsed = parse_json(raw)
        except BrokenJsonError:
            return {"_arguments": raw}
    found = as_object(parsed)
    if found is not None:
        return found
    return {"_arguments": raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)}


def text_or_none(value: Any) -> str | None:
    """Return a non-blank string, or None."""
    return value if isinstance(value, str) and value.strip() else None


def not_a_message(line: int | None, problem: str) -> Skipped:
    """Report a message that is too broken to keep. No other kind of skipping loses content."""
    return Skipped(line=line, reason="message that cannot be read", detail=problem, damage=True)
