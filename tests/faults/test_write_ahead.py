"""A short form of the run over damaged write-ahead logs and power losses; the long one is ``write_ahead.py``."""

from pathlib import Path

import pytest

from .power_writers import SQL
from .striking import missing
from .write_ahead import flipped, lost_power

needs_strace = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def test_a_bit_in_each_zone_costs_at_most_one_message(tmp_path: Path) -> None:
    lines = list(flipped(tmp_path, messages=12, step=100, key=None, seed=3))
    assert [line.zone for line in lines] == ["header", "frame head", "page"]
    assert all(line.fewest >= 11 for line in lines)
    assert all(line.refused == line.flips for line in lines)


@pytest.mark.slow
@needs_strace
def test_a_loss_of_power_is_never_taken_for_damage(tmp_path: Path) -> None:
    losses = lost_power(tmp_path, 60, 7, [SQL])
    assert losses.images == 60
    assert losses.alarms == ()
    assert losses.lost == ()
