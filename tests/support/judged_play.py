"""Plays recordings through log, ladder and rendering, and has every request judged."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.conversation.transcripts import RecordedConversation
from refold.application.errors import TranscriptError
from refold.application.lab.playing import Player, PlayFigures, combine
from refold.application.maintenance.verifying import Verification
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionReverted,
    Event,
    MessageAppended,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.frames import RequestFrameChanged
from refold.domain.notes import MemoriesChosen
from refold.infrastructure.bootstrap import open_memory
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.transcripts.read_transcript import read_transcript
from refold.testing.request_judge import (
    prefix_violations,
    preserved_thinking_violations,
    violations,
)
from tests.support.real_data import files

CHANGES_THE_PREFIX = (
    CompactionPerformed,
    CompactionReverted,
    MemoriesChosen,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    ToolContentOffloaded,
    UserContentShortened,
)
"""The decisions after which what was rendered before may be rendered differently."""


def changes_the_prefix(event: Event) -> bool:
    """Whether it is such a decision, or says that thinking was signed for another request."""
    match event:
        case RequestFrameChanged(binds_thinking=True) | MessageAppended(stale_thinking=True):
            return True
        case _:
            return isinstance(event, CHANGES_THE_PREFIX)


class Judged(NamedTuple):
    """What playing one recording showed, and what the judge of requests says to it."""

    figures: PlayFigures
    illegal: tuple[str, ...]
    """Findings of ``legality.violations``, over all requests."""
    prefix: tuple[str, ...]
    thinking: tuple[str, ...]
    events: Counter[str]
    """How many events of each kind the log has."""
    in_a_row: int
    """The most compactions that were performed without a new message between them."""
    verified: Verification
    seconds: float

    @property
    def success(self) -> float:
        """The share of compaction attempts that were performed; 1 where there was none."""
        done, failed = (
            self.events[kind.__name__] for kind in (CompactionPerformed, CompactionFailed)
        )
        return done / (done + failed) if done + failed else 1.0


class _Requests:
    """All requests of one conversation. Equal messages are kept once, so that they fit in memory."""

    def __init__(self) -> None:
        self.contexts: list[Context] = []
        self._known: dict[str, Any] = {}

    def add(self, _: int, context: Context) -> None:
        context.messages[:] = [
            self._known.setdefault(json.dumps(message), message) for message in context.messages
        ]
        self.contexts.append(context)

    def with_revisions(self, decided: Sequence[int]) -> list[dict[str, Any]]:
        """The requests, each with the number of decisions before it that change what is rendered.

        ``decided``: the versions of those decisions. Where no model is named, the strictest rules hold.
        """
        return [
            {
                **({"model": c.model} if c.model else {}),
                **c.for_anthropic(),
                "revision": sum(version <= c.version for version in decided),
            }
            for c in self.contexts
        ]


def judged(
    conversations: Sequence[RecordedConversation],
    folder: Path,
    window: int,
    *,
    restart_every: int = 0,
) -> Judged:
    """Play conversations into a new log below ``folder`` and judge every request.

    ``window``: in tokens. ``restart_every``: close and open the store after so many messages.
    """
    start = time.perf_counter()
    path = folder / f"{window}.db"

    def opened() -> Memory:
        return open_memory(path, window=window)

    figures: list[PlayFigures] = []
    found: dict[str, list[str]] = {"illegal": [], "prefix": [], "thinking": []}
    kinds: Counter[str] = Counter()
    in_a_row = 0
    for recorded in conversations:
        requests = _Requests()
        figures.append(
            Player(opened, recorded, restart_every=restart_every, on_request=requests.add).play()
        )
        events = _events(path, recorded.thread_id)
        kinds.update(type(event).__name__ for event in events)
        in_a_row = max(in_a_row, most_in_a_row(events))
        decided = [v for v, event in enumerate(events, 1) if changes_the_prefix(event)]
        for name, findings in _findings(requests.with_revisions(decided)).items():
            found[name] += [f"{recorded.thread_id}: {finding}" for finding in findings]
    with opened() as memory:
        verified = memory.verify()
    return Judged(
        figures=combine(figures),
        illegal=tuple(found["illegal"]),
        prefix=tuple(found["prefix"]),
        thinking=tuple(found["thinking"]),
        events=kinds,
        in_a_row=in_a_row,
        verified=verified,
        seconds=time.perf_counter() - start,
    )


def _events(path: Path, thread_id: str) -> list[Event]:
    log = SQLiteLog(path)
    try:
        newest = log.load(thread_id).state.version
        return [item.event for item in log.read(thread_id, 1, newest)]
    finally:
        log.close()


def most_in_a_row(events: Iterable[Event]) -> int:
    """The most compactions that were performed without a new message between them."""
    told = (e for e in events if isinstance(e, CompactionPerformed | MessageAppended))
    runs = groupby(told, lambda event: isinstance(event, CompactionPerformed))
    return max((sum(1 for _ in run) for compacts, run in runs if compacts), default=0)


def _findings(requests: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    illegal = [
        f"requests[{n}]: {finding}"
        for n, request in enumerate(requests)
        for finding in violations(request)
    ]
    prefix = [
        f"requests[{n}]: {finding}"
        for n, pair in enumerate(pairwise(requests), start=1)
        for finding in prefix_violations(pair)
    ]
    return {
        "illegal": illegal,
        "prefix": prefix,
        "thinking": preserved_thinking_violations(requests),
    }


def recordings(names: Iterable[str] = ()) -> list[Path]:
    """The files that can be imported; of those with one of ``names`` in their path, if any."""
    wanted = tuple(names)
    return [p for p in _importable() if not wanted or any(name in str(p) for name in wanted)]


@cache
def _importable() -> tuple[Path, ...]:
    return tuple(path for path in files("*/*") if path.suffix != ".md" and _holds_any(path))


def _holds_any(path: Path) -> bool:
    try:
        return bool(read_transcript(path).conversations)
    except TranscriptError:
        return False
