"""Whichever bit of a covered row turns over, it is known after so many openings, and appends work until then."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.errors import LogDamaged
from refold.infrastructure.maintenance.scrubber import checked_path
from tests.support.scrubbing import covered, flip_at, quiet, scrubbed

BUDGET = 30_000
"""Bytes of an opening: what 10 MB are for a large log."""
MORE = {"role": "user", "content": "one more"}


class Made(NamedTuple):
    """A closed log, its size in rows, and where each covered row of ``t`` lies in the file."""

    path: Path
    size: int
    rows: tuple[tuple[int, bytes], ...]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    path = covered(tmp_path_factory.mktemp("made") / "agent.db")
    content = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("SELECT sum(length(state)) FROM stored_events").fetchone()
        found = connection.execute(
            "SELECT state FROM stored_events WHERE originator_id='t' AND originator_version<40"
        ).fetchall()
    # Behind the columns that name its place: 't', the name of the event and the header of the row.
    places = tuple((content.find(state) - len("tmessage_appended"), state) for (state,) in found)
    assert all(at > 0 for at, _ in places)
    return Made(path, size, places)


@given(
    row=st.integers(0, 38),
    share=st.floats(0, 1, exclude_max=True),
    bit=st.integers(0, 7),
    before=st.integers(0, 8),
)
def test_whichever_bit_turns_over_it_is_known_in_the_end(
    made: Made, row: int, share: float, bit: int, before: int
) -> None:
    with TemporaryDirectory() as folder:
        log = Path(folder) / "agent.db"
        for file in made.path.parent.iterdir():
            shutil.copy(file, folder)
        for _ in range(before):
            scrubbed(log, BUDGET)
        at, state = made.rows[row]
        flip_at(log, at + int(share * (len(state) + len("tmessage_appended"))), bit)
        assert checked_path(log).exists() == (before > 0)
        with quiet(log) as memory:
            memory.conversation("t").append(MORE)  # It is not known yet.
        for _ in range(-(-made.size // BUDGET) + 1):
            scrubbed(log, BUDGET)
        with quiet(log) as memory:
            memory.conversation("u").append(MORE)
            with pytest.raises(LogDamaged):
                memory.conversation("t").append(MORE)
