"""Events are decoded when they are first used, and what is damaged in them is told as if they had been before."""

import json
from pathlib import Path

import pytest

from refold.application.errors import LogDamaged
from refold.application.projections.row_changes import listed_time
from refold.infrastructure.event_store.envelope import (
    Place,
    parse_frame,
    seal,
)
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.log_files import log_of, rows, set_state


def damaged_log(path: Path, payload: bytes, name: str = "message_appended", shape: int = 3) -> Path:
    """A log of two events whose second has a digest that fits this payload."""
    log_of(path, "one", "two")
    old = parse_frame(rows(path)[1][-1])
    place = Place("t", 2, name)
    set_state(path, 2, seal(place, shape, old.at, old.salt, old.previous, payload)[1])
    return path


@pytest.mark.parametrize("written_at", ["nonsense", 5])
def test_a_time_that_is_none_names_its_event(tmp_path: Path, written_at: object) -> None:
    said = {"role": "user", "content": "two"}
    fields = {"position": 1, "message_id": "a", "message": said, "tokens": 1}
    payload = json.dumps({**fields, "written_at": written_at}).encode()
    log = SQLiteLog(damaged_log(tmp_path / "a.db", payload))
    [logged] = log.read("t", 2, 2)
    assert logged.message
    with pytest.raises(LogDamaged) as found:
        listed_time(logged, logged.message)
    assert (found.value.thread_id, found.value.version) == ("t", 2)
    log.close()
