"""Real recordings, played as a live agent would have them: every request fits, is legal and stable.

Two short ones are played in every run; with ``--all`` all recordings, the longest ones in the two smaller windows.
The whole table comes from ``python -m tests.support.play_table``.
"""

from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from refold.application.conversation.transcripts import RecordedConversation
from refold.infrastructure.transcripts.read_transcript import read_transcript
from tests.support.judged_play import Judged, judged, recordings
from tests.support.real_data import needs_data

pytestmark = needs_data

SLOW = pytest.mark.slow

WINDOWS = SMALL, MIDDLE, LARGE = 8_000, 32_000, 200_000
QUICK = ("claude-code-entire/83a0bb2f3f73", "tau-bench")
LONG = 120_000
"""Bytes of a packed recording that takes half a minute in a large window."""
REOPENED = MIDDLE
"""In this window the store is closed and opened again every 37 messages."""
MOST_CONVERSATIONS = 10
"""Of a file with more, every so many are played that about ten are."""


def cases() -> list[ParameterSet]:
    """What is played: recording and window; all but a few are slow."""
    quick = recordings(QUICK)
    return [
        pytest.param(path, window, marks=() if path in quick and window < LARGE else SLOW)
        for path in recordings()
        for window in WINDOWS
        if window < LARGE or path.stat().st_size < LONG
    ]


def name_of(case: object) -> str:
    return f"{case.parent.name}/{case.name}" if isinstance(case, Path) else str(case)


@cache
def conversations(path: Path) -> tuple[RecordedConversation, ...]:
    found = read_transcript(path).conversations
    return found[:: max(1, len(found) // MOST_CONVERSATIONS)]


@pytest.mark.parametrize(("path", "window"), cases(), ids=name_of)
def test_every_request_of_a_recording_fits_is_legal_and_repeats_its_prefix(
    path: Path, window: int, tmp_path: Path
) -> None:
    played = judged(
        conversations(path), tmp_path, window, restart_every=37 if window == REOPENED else 0
    )
    assert played.figures.requests_over_budget == 0
    assert played.illegal == ()
    assert played.prefix == ()
    assert played.thinking == ()
    assert played.in_a_row <= 1
    assert played.verified.ok
    assert_all_was_played(played, path)


def assert_all_was_played(played: Judged, path: Path) -> None:
    figures, events = played.figures, played.events
    assert events["MessageAppended"] == figures.messages
    assert figures.messages == sum(len(c.messages) for c in conversations(path))
    assert figures.largest_request <= figures.budget or figures.requests == 0
    assert played.success > 0.99
    assert events["CompactionRequested"] == (
        events["CompactionPerformed"] + events["CompactionFailed"]
    )
