"""Plays recordings through log, compaction and rendering, and has every request judged.

``python -m tests.support.play_table [--windows 8000,32000] [NAME...]`` prints a table of all
recordings whose path has one of the names in it, or of all of them.
"""

import argparse
import json
import logging
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from refold.application.context import Context
from refold.application.errors import TranscriptError
from refold.application.memory import Memory
from refold.application.playing import Player, PlayFigures, combined
from refold.application.transcripts import RecordedConversation
from refold.application.verifying import Verification
from refold.domain.events import CompactionFailed, CompactionPerformed, ToolContentOffloaded
from refold.infrastructure.log.store import SQLiteLog
from refold.infrastructure.opening import open_memory
from refold.infrastructure.transcripts import read_transcript
from tests.support.legality import prefix_violations, preserved_thinking_violations, violations
from tests.support.real_data import data_folder, files

WINDOWS = (8_000, 32_000, 200_000)


class Judged(NamedTuple):
    """What playing one recording showed, and what the judge of requests says to it."""

    figures: PlayFigures
    illegal: tuple[str, ...]
    """Findings of ``legality.violations``, over all requests."""
    prefix: tuple[str, ...]
    thinking: tuple[str, ...]
    events: Counter[str]
    """How many events of each kind the log has."""
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

        ``decided``: the versions of those decisions. No model is named: the strictest rules hold.
        """
        return [
            {**c.for_anthropic(), "revision": sum(version <= c.version for version in decided)}
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
    events: Counter[str] = Counter()
    for recorded in conversations:
        requests = _Requests()
        figures.append(
            Player(opened, recorded, restart_every=restart_every, on_request=requests.add).play()
        )
        decided = _decisions(path, recorded.thread_id, events)
        for name, findings in _findings(requests.with_revisions(decided)).items():
            found[name] += [f"{recorded.thread_id}: {finding}" for finding in findings]
    with opened() as memory:
        verified = memory.verify()
    return Judged(
        figures=combined(figures),
        illegal=tuple(found["illegal"]),
        prefix=tuple(found["prefix"]),
        thinking=tuple(found["thinking"]),
        events=events,
        verified=verified,
        seconds=time.perf_counter() - start,
    )


def _decisions(path: Path, thread_id: str, events: Counter[str]) -> list[int]:
    """The versions at which what was rendered before may be rendered differently."""
    log = SQLiteLog(path)
    try:
        newest = log.load(thread_id).state.version
        logged = log.read(thread_id, 1, newest)
    finally:
        log.close()
    events.update(type(item.event).__name__ for item in logged)
    return [
        item.version
        for item in logged
        if isinstance(item.event, CompactionPerformed | ToolContentOffloaded)
    ]


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
    found: list[Path] = []
    for path in files("*/*"):
        if path.suffix == ".md" or (wanted and not any(name in str(path) for name in wanted)):
            continue
        try:
            found += [path] if read_transcript(path).conversations else []
        except TranscriptError:
            continue
    return found


HEADINGS = (
    f"{'file':<52} {'window':>7} {'msgs':>5} {'reqs':>5} {'refused':>7} {'over':>4} {'illegal':>7} "
    f"{'prefix':>6} {'think':>5} {'compact':>7} {'failed':>6} {'offload':>7} {'ok %':>6} "
    f"{'largest':>15} {'stable':>6} {'append':>6} {'contxt':>6} {'s':>6} verify"
)


def row(name: str, window: int, played: Judged) -> str:
    """One line of the table; append and context are the 99th percentiles in milliseconds."""
    f, kinds = played.figures, played.events
    largest = f"{f.largest_request:,}/{f.budget:,}"
    return (
        f"{name[:52]:<52} {window:>7} {f.messages:>5} {f.requests:>5} {f.requests_refused:>7} "
        f"{f.requests_over_budget:>4} {len(played.illegal):>7} {len(played.prefix):>6} "
        f"{len(played.thinking):>5} {kinds['CompactionPerformed']:>7} "
        f"{kinds['CompactionFailed']:>6} {kinds['ToolContentOffloaded']:>7} "
        f"{100 * played.success:>6.1f} {largest:>15} {f.unchanged_prefix_share:>6.2f} "
        f"{f.append_p99_ms:>6.1f} {f.context_p99_ms:>6.1f} {played.seconds:>6.1f} "
        f"{'ok' if played.verified.ok else 'DAMAGED'}"
    )


def main() -> None:
    """Print the table, and below it the findings of each row."""
    parser = argparse.ArgumentParser(description="Play all recordings and judge every request.")
    parser.add_argument("names", nargs="*", help="parts of paths; all recordings if left out")
    parser.add_argument("--windows", default=",".join(map(str, WINDOWS)), help="tokens, by commas")
    chosen = parser.parse_args()
    logging.getLogger("refold").setLevel(logging.ERROR)  # Failures are counted in the table.
    data = data_folder()
    if data is None:
        parser.error("no real data: put it at ../shared/data or name its folder in REFOLD_DATA")
    print(HEADINGS, flush=True)
    for path in recordings(chosen.names):
        for window in map(int, chosen.windows.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                played = judged(read_transcript(path).conversations, Path(folder), window)
            print(row(str(path.relative_to(data)), window, played), flush=True)
            for findings in (played.illegal, played.prefix, played.thinking):
                for finding in findings[:3]:
                    print(f"    {finding}", flush=True)


if __name__ == "__main__":
    main()
