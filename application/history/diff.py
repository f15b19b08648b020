"""Compare two requests line by line."""

import difflib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from refold.application.api.results import Context
from refold.application.compaction.next_request import context_of
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.stream_places import AT_ONCE
from refold.application.projections.fates import Fate
from refold.application.runtime.core import Core, Extras
from refold.domain.events import Event, MessageErased
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import text_of
from refold.domain.value import Value, is_list, is_object

from .explain import MessageFate, explain
from .moments import At, load_at

LONGEST_DATA = 200
"""Largest number of base64 characters to print; longer data is printed as its digest."""


def format_diff(before: Context, after: Context) -> str:
    """Return the difference in the form of ``diff -u``, or an empty string if none exists."""
    lines = difflib.unified_diff(
        list(_lines(before)),
        list(_lines(after)),
        f"version {before.version}",
        f"version {after.version}",
        lineterm="",
    )
    return "\n".join(lines)


def _lines(made: Context) -> Iterator[str]:
    system = made.system
    texts = [system] if isinstance(system, str) else map(text_of, system)
    for line in "\n".join(texts).splitlines():
        yield f"system: {line}"
    for index, message in enumerate(made.messages):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for number, block in enumerate(blocks):
            if not index and number < made.opening and block.get("type") == "text":
                yield from (f"memory: {line}" for line in text_of(block).splitlines())
            else:
                yield f"{message['role']}: {_to_json(block)}"


def _to_json(block: Mapping[str, Any]) -> str:
    return json.dumps(_shorten_data(block), ensure_ascii=False)


def _shorten_data(value: object) -> object:
    """Return the value with binary data replaced by its length and digest."""
    if is_object(value):
        short = {key: _shorten_data(part) for key, part in value.items()}
        data = value.get("data")
        if value.get("type") == "base64" and isinstance(data, str) and len(data) > LONGEST_DATA:
            digest = sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            short["data"] = f"{len(data):,} characters, SHA-256 {digest}…"
        return short
    if is_list(value):
        return [_shorten_data(part) for part in value]
    return value


_WORD = lazy_pattern(r"(?<!^)(?=[A-Z])")


class EventCount(Value, frozen=True):
    """Number of events of one kind."""

    what: str
    """The kind of event in words, such as ``message appended`` or ``compaction performed``."""
    count: int


class MessageChange(Value, frozen=True):
    """A message that the model sees differently in the two requests."""

    position: int
    message_id: str
    role: str
    before: Fate | None
    """The fate in the first request, or None if the message had not been appended yet."""
    after: Fate | None
    tokens_before: int
    """Tokens of the message in the first request."""
    tokens_after: int
    thinking_dropped: bool
    """True if only the first request includes the thinking of the message."""
    why: str
    """The reason for ``after``, in words."""


class ContextDiff(Value, frozen=True):
    """The difference between the requests at two versions; ``before`` may be the newer one."""

    thread_id: str
    before: int
    """The first version."""
    after: int
    tokens_before: int
    """Tokens of the whole request at ``before``."""
    tokens_after: int
    summary_before: str | None
    """Id of the active summary at ``before``."""
    summary_after: str | None
    events: tuple[EventCount, ...]
    """Number of events of each kind between the two versions."""
    changes: tuple[MessageChange, ...]
    """Changed messages, ordered by position."""
    unified: str
    """Both requests line by line in the form of ``diff -u``. The text that precedes the
    conversation is printed as it is; each content block is one line of JSON.
    """

    @property
    def freed(self) -> int:
        """Number of tokens by which the second request is smaller."""
        return self.tokens_before - self.tokens_after


def diff(core: Core, thread_id: str, before: At, after: At, model: str | None) -> ContextDiff:
    """Compare the requests at two versions or times.

    Raises:
        InvalidSetting: there is no such version, or a time has no time zone.
    """
    extras = Extras(model=model)
    loaded = load_at(core, thread_id, before), load_at(core, thread_id, after)
    older, newer = (context_of(core, then, extras) for then in loaded)
    was, now = older.version, newer.version
    between = list(_events_between(core, thread_id, min(was, now), max(was, now)))
    return ContextDiff(
        thread_id=thread_id,
        before=was,
        after=now,
        tokens_before=older.tokens,
        tokens_after=newer.tokens,
        summary_before=older.summary.summary_id if older.summary else None,
        summary_after=newer.summary.summary_id if newer.summary else None,
        events=_count_events(between),
        changes=_changes(core, *loaded, between),
        unified=format_diff(older, newer),
    )


def _events_between(core: Core, thread_id: str, first: int, last: int) -> Iterator[Event]:
    for version in range(first + 1, last + 1, AT_ONCE):
        for logged in core.log.read(thread_id, version, min(version + AT_ONCE - 1, last)):
            yield logged.event


def _count_events(events: Iterable[Event]) -> tuple[EventCount, ...]:
    # The class name of an event says what happened.
    words = Counter(_WORD.sub(" ", type(event).__name__).lower() for event in events)
    return tuple(EventCount(what=what, count=count) for what, count in words.items())


def _changes(
    core: Core, older: LoadedConversation, newer: LoadedConversation, between: Iterable[Event]
) -> tuple[MessageChange, ...]:
    touched = _changed_positions(older, newer)
    touched |= {event.position for event in between if isinstance(event, MessageErased)}
    if not touched:
        return ()
    first, stop = min(touched), max(touched) + 1
    fates = [
        {
            fate.position: fate
            for fate in explain(core, then.thread_id, first, stop, version=then.state.version)
        }
        for then in (older, newer)
    ]
    pairs = ((fates[0].get(p), fates[1].get(p)) for p in sorted(touched))
    return tuple(change for a, b in pairs if (change := _compare_fates(a, b)) is not None)


def _changed_positions(older: LoadedConversation, newer: LoadedConversation) -> set[int]:
    """Return the positions that may be shown differently; those covered at both versions are excluded."""
    lengths = sorted((older.state.length, newer.state.length))
    views = _views(older), _views(newer)
    either = views[0].keys() | views[1].keys()
    return {*range(*lengths), *(p for p in either if views[0].get(p) != views[1].get(p))}


def _views(loaded: LoadedConversation) -> dict[int, object]:
    window, pinned = loaded.window, loaded.state.pinned_positions
    reaches = loaded.state.covered_to
    previews: dict[int, list[object]] = {}
    for (position, *part), preview in window.previews.items():
        previews.setdefault(position, []).append((*part, preview))
    return {
        e.position: (
            e.tokens,
            e.thinking and e.position < window.thinking_from,
            e.position in pinned,
            e.position < reaches,
            previews.get(e.position),
        )
        for e in window.entries
    }


def _compare_fates(before: MessageFate | None, after: MessageFate | None) -> MessageChange | None:
    known = after or before
    if known is None or (before and after and _appearance(before) == _appearance(after)):
        return None
    return MessageChange(
        position=known.position,
        message_id=known.message_id,
        role=known.role,
        before=before.fate if before else None,
        after=after.fate if after else None,
        tokens_before=before.shown_tokens if before else 0,
        tokens_after=after.shown_tokens if after else 0,
        thinking_dropped=bool(
            before
            and after
            and after.thinking_dropped_at is not None
            and before.thinking_dropped_at is None
        ),
        why=after.why if after else "not appended yet",
    )


def _appearance(fate: MessageFate) -> tuple[object, ...]:
    return fate.fate, fate.shown_tokens, fate.thinking_dropped_at is None
