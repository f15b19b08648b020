"""The frame of a request: system text, instruction files, tools, model and layout."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from refold.application.rendering.request_blocks import copied
from refold.domain.frames import FramePart, RequestFrameChanged, SummaryPlace
from refold.domain.messages import Block

System = str | Sequence[Block] | None
"""A system prompt as the Messages API takes it."""
SHORTEST_PIECE = 1_000
"""Characters. A long text is recorded in pieces, so that a new date does not record all of it again."""
DIGITS = 32
"""Of a digest: 128 bits, in hexadecimal."""
_PARAGRAPH = re.compile(r"(?<=\n\n)(?!\n)")


class Frame(NamedTuple):
    """What one request carries besides the conversation."""

    system: System = None
    instructions: str = ""
    """The text of the instruction files."""
    tools: tuple[Mapping[str, Any], ...] = ()
    model: str | None = None
    place: SummaryPlace = "user"
    signed: bool = False
    """Whether the model takes its provider's own compaction block."""
    binds_thinking: bool = True
    """Whether the model refuses thinking behind another prefix than the one that it was signed for."""

    @property
    def is_bare(self) -> bool:
        """Whether it says nothing that anybody would look up."""
        given = self.system, self.instructions, self.tools, self.model
        return not any(given) and self.place == "user"

    def copied(self) -> "Frame":
        """The frame, which callers cannot change any more, as it is sent."""
        system = self.system
        return self._replace(
            system=system
            if system is None
            else copied(system if isinstance(system, str) else [*system]),
            instructions=copied(self.instructions),
            tools=tuple(copied(dict(tool)) for tool in self.tools),
        )


class RecordedFrame:
    """A frame as it is recorded: its parts with their digests. Made once for many requests."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame = frame.copied()
        self._system = None if frame.system is None else _parts(_pieces(frame.system))
        self._instructions = _parts(_pieces(frame.instructions))
        self._tools = _parts(dict(tool) for tool in frame.tools)
        self.digest = _digest([*frame[3:], isinstance(frame.system, str), *self._digests()])

    def _digests(self) -> list[list[str] | None]:
        groups = self._system, self._instructions, self._tools
        return [None if group is None else [p.digest for p in group] for group in groups]

    def changed(self, known: Collection[str], asked_at: int) -> RequestFrameChanged:
        """The event that records it, with the parts whose digests are not ``known``."""
        frame = self.frame
        system, instructions, tools = self._digests()
        parts = {p.digest: p for p in (*(self._system or ()), *self._instructions, *self._tools)}
        return RequestFrameChanged(
            digest=self.digest,
            model=frame.model,
            place=frame.place,
            signed=frame.signed,
            binds_thinking=frame.binds_thinking,
            asked_at=asked_at,
            system=None if system is None else tuple(system),
            system_is_text=isinstance(frame.system, str),
            instructions=tuple(instructions or ()),
            tools=tuple(tools or ()),
            parts=tuple(part for digest, part in parts.items() if digest not in known),
        )


def frame_of(event: RequestFrameChanged, parts: Mapping[str, FramePart], lost: str) -> Frame:
    """The frame that an event recorded. ``lost`` stands for a piece of text that is not there any more."""

    def texts(digests: Sequence[str]) -> str:
        return "".join(str(parts[digest].value) if digest in parts else lost for digest in digests)

    def objects(digests: Sequence[str]) -> Iterator[dict[str, Any]]:
        for digest in digests:
            value = parts[digest].value if digest in parts else lost
            if isinstance(value, Mapping):
                yield copied(value)

    system: System = None
    if event.system is not None:
        system = texts(event.system) if event.system_is_text else list(objects(event.system))
    return Frame(
        system,
        texts(event.instructions),
        tuple(objects(event.tools)),
        event.model,
        event.place,
        event.signed,
        event.binds_thinking,
    )


def _pieces(given: str | Sequence[Block]) -> Iterator[str | dict[str, Any]]:
    if not isinstance(given, str):
        yield from map(dict, given)
        return
    piece = ""
    for paragraph in _PARAGRAPH.split(given):
        piece += paragraph
        if len(piece) >= SHORTEST_PIECE:
            yield piece
            piece = ""
    if piece:
        yield piece


def _parts(values: Iterator[str | dict[str, Any]]) -> tuple[FramePart, ...]:
    return tuple(FramePart(digest=_digest(value), value=value) for value in values)


def _digest(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
