"""A compaction in the background changes the prefix about as often as one that a request waits for."""

from pathlib import Path

import pytest

import refold
from refold.application.conversation.transcripts import RecordedConversation
from refold.infrastructure.transcripts.read_transcript import read_transcript
from tests.support.judged_play import recordings
from tests.support.real_data import needs_data

pytestmark = [needs_data, pytest.mark.slow]

RECORDINGS = ("claude-code-entire/",)
LONGEST = 600_000
"""Bytes of a packed recording; longer ones take minutes."""
MOST = 3


def prefix_changes(
    recorded: RecordedConversation, place: Path, *, background: bool
) -> tuple[int, int]:
    """Play a recording. Return the requests that do not begin with the one before, and all requests."""
    changes, requests, before = 0, 0, list[object]()
    with refold.open(place, window=32_000, telemetry=False, background=background) as memory:
        conversation = memory.conversation("t")
        for message, following in zip(recorded.messages, recorded.messages[1:], strict=False):
            conversation.append_recorded([message])
            assert memory.drain(60)
            if message.message.role == "user" and following.message.role == "assistant":
                now = conversation.context().messages
                changes += now[: len(before)] != before
                requests, before = requests + 1, [*now]
    return changes, requests


def test_the_background_costs_no_cache(tmp_path: Path) -> None:
    paths = [p for p in recordings(RECORDINGS) if p.stat().st_size < LONGEST]
    longest = sorted(paths, key=lambda path: -path.stat().st_size)[:MOST]
    waited = behind = 0
    for number, path in enumerate(longest):
        for recorded in read_transcript(path).conversations:
            changes, requests = prefix_changes(recorded, tmp_path / f"{number}a", background=False)
            others, again = prefix_changes(recorded, tmp_path / f"{number}b", background=True)
            assert requests == again
            waited, behind = waited + changes, behind + others
    assert waited > 10
    assert behind <= 1.1 * waited
