"""Frames of requests that were sent: recorded ones read back byte for byte, and one recorded before an erasure."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogDamaged
from refold.application.rendering.request_blocks import copied
from refold.application.runtime.core import Core, Extras, Layout
from refold.domain.events import WITHDRAWN, LinesRecalled
from refold.domain.frames import FramePart, RequestFrameChanged
from refold.domain.quoted_text import IsQuoted, is_quoting

from .request_frames import Frame, System

NEXT = 16
"""Maximum number of other processes' events between a request and its recorded frame.

A frame is recorded with the next append or decision of the process that made the request.
"""


def load_sent(
    core: Core, loaded: LoadedConversation, extras: Extras
) -> tuple[LoadedConversation, Extras]:
    """Return the conversation and the extras of the request at this version, with its recalled lines.

    Explicit ``extras`` override recorded ones; if none are recorded, only ``extras`` are used.
    """
    frames, lines = _recorded_later(core, loaded.thread_id, loaded.state.version)
    if not frames:
        # The newest request of this process, whose frame is recorded with its next event.
        asked = core.asked.made_at(loaded.thread_id, loaded.state)
        frames = [asked] if asked is not None else []
    unrecorded = None if lines else core.asked.lines(loaded.thread_id, loaded.state)
    if unrecorded is not None and unrecorded.asked_at <= loaded.state.version:
        lines = [unrecorded]
    loaded = loaded.after((*frames, *lines)) if frames or lines else loaded
    event = frames[0] if frames else _recorded_frame(core, loaded)
    if event is None:
        return loaded, extras
    frame = frame_of(event, _parts(core, loaded, event), WITHDRAWN)
    model = frame.model if extras.model is None else extras.model
    return loaded, Extras(
        frame.system if extras.system is None else extras.system,
        tuple(extras.tools) or frame.tools,
        model,
        Layout(frame.instructions, frame.place, frame.signed and model == frame.model),
    )


def expect_extras(core: Core, thread_id: str, extras: Extras) -> Extras:
    """Return the expected extras of the next request: the given ones, else those of the newest request.

    Used for decisions between two requests, which could not know the sizes otherwise. Instruction files are
    the current ones.

    Raises:
        LogError: the log cannot be read.
    """
    frame = core.asked.newest(thread_id) or _newest_recorded(core, thread_id)
    if frame is None:
        return extras
    system = frame.system if extras.system is None else extras.system
    return Extras(system, tuple(extras.tools) or frame.tools, extras.model or frame.model)


def _newest_recorded(core: Core, thread_id: str) -> Frame | None:
    loaded = core.log.load(thread_id)
    event = _recorded_frame(core, loaded)
    return None if event is None else frame_of(event, _parts(core, loaded, event), WITHDRAWN)


def _recorded_later(
    core: Core, thread_id: str, version: int
) -> tuple[list[RequestFrameChanged], list[LinesRecalled]]:
    """Return the frame and the lines of the request at a version if they were recorded after it."""
    frames, lines = list[RequestFrameChanged](), list[LinesRecalled]()
    with suppress(LogDamaged):  # Events before the damage can still be read.
        for logged in core.log.read(thread_id, version + 1, version + NEXT):
            match logged.event:
                case RequestFrameChanged(asked_at=asked_at) as event if asked_at <= version:
                    frames.append(event)
                case LinesRecalled(asked_at=asked_at) as event if asked_at <= version:
                    lines.append(event)
                case _:
                    pass
    return frames[:1], lines[:1]


def _recorded_frame(core: Core, loaded: LoadedConversation) -> RequestFrameChanged | None:
    known = loaded.state.frame
    if known is None:
        return None
    for logged in core.log.read_at(loaded.thread_id, [known.version]):
        if isinstance(logged.event, RequestFrameChanged):
            return logged.event
    return None


def _parts(
    core: Core, loaded: LoadedConversation, event: RequestFrameChanged
) -> dict[str, FramePart]:
    known = loaded.state.frame
    wanted = {*(event.system or ()), *event.instructions, *event.tools}
    wanted -= {part.digest for part in event.parts}
    versions = {p.version for p in known.parts if p.digest in wanted} if known else set[int]()
    found = {part.digest: part for part in event.parts}
    for logged in core.log.read_at(loaded.thread_id, versions) if versions else ():
        if isinstance(logged.event, RequestFrameChanged):
            found |= {part.digest: part for part in logged.event.parts if part.digest in wanted}
    return found


def frame_of(event: RequestFrameChanged, parts: Mapping[str, FramePart], lost: str) -> Frame:
    """Return the frame recorded by an event. ``lost`` replaces pieces of text that no longer exist."""

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


def record_quoting_frame(core: Core, loaded: LoadedConversation, is_quoted: IsQuoted) -> bool:
    """Record the frame of the newest request if it quotes messages that are about to be erased.

    The erasure then finds it in the log. Return whether there was one to record.
    """
    thread_id = loaded.thread_id
    frame = core.asked.change(thread_id, loaded.state)
    if frame is None or not is_quoting(frame, frozenset(), is_quoted):
        return False
    _, stored = core.log.transact(thread_id, core.asked.record_frame, at=core.clock())
    core.asked.mark_recorded(thread_id, stored)
    return True
