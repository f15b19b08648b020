"""The picture of the README shows what the demo's conversation does today."""

import re
from html import unescape
from pathlib import Path

import pytest

from benchmarks.draw_timeline import PICTURE, Timeline, draw, play

MOST_BYTES = 60_000


@pytest.fixture(scope="module")
def timeline() -> Timeline:
    return play()


def described(picture: str) -> str:
    (description,) = re.findall("<dc:description>(.*?)</dc:description>", picture, re.DOTALL)
    return unescape(description)


def drawn_by(picture: str) -> str:
    (version,) = re.findall(r"Matplotlib v([\d.]+)", picture)
    return str(version)


def test_the_picture_shows_the_requests_of_the_demo(timeline: Timeline) -> None:
    assert described(PICTURE.read_text("utf-8")) == timeline.described(), (
        "run: python benchmarks/draw_timeline.py"
    )


def test_the_script_draws_the_picture_byte_for_byte(timeline: Timeline, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    kept = PICTURE.read_text("utf-8")
    if drawn_by(kept) != matplotlib.__version__:
        pytest.skip("the picture was drawn by another version of matplotlib")
    draw(timeline, tmp_path / "timeline.svg")
    assert (tmp_path / "timeline.svg").read_text("utf-8") == kept


def test_the_picture_is_small_and_has_no_date() -> None:
    picture = PICTURE.read_text("utf-8")
    assert len(picture.encode()) < MOST_BYTES
    assert "<dc:date>" not in picture


def test_the_figures_of_the_picture_are_those_of_the_readme(timeline: Timeline) -> None:
    readme = (PICTURE.parents[2] / "README.md").read_text("utf-8")
    assert f"{timeline.whole:,} → {timeline.sent:,} tokens sent" in readme
