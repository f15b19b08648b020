"""The pictures of the README show what the demo's conversation does today."""

import re
from html import unescape
from pathlib import Path

import pytest

from benchmarks.draw_timeline import FOLDER, PICTURES, Timeline, draw, play
from refold.infrastructure.palette import Theme

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


@pytest.mark.parametrize("name", PICTURES.values())
def test_a_picture_shows_the_requests_of_the_demo(timeline: Timeline, name: str) -> None:
    assert described((FOLDER / name).read_text("utf-8")) == timeline.described(), (
        "run: python benchmarks/draw_timeline.py"
    )


@pytest.mark.parametrize(("theme", "name"), PICTURES.items())
def test_the_script_draws_a_picture_byte_for_byte(
    timeline: Timeline, theme: Theme, name: str, tmp_path: Path
) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    kept = (FOLDER / name).read_text("utf-8")
    if drawn_by(kept) != matplotlib.__version__:
        pytest.skip("the picture was drawn by another version of matplotlib")
    draw(timeline, tmp_path / name, theme)
    assert (tmp_path / name).read_text("utf-8") == kept


@pytest.mark.parametrize("name", PICTURES.values())
def test_a_picture_is_small_and_has_no_date(name: str) -> None:
    picture = (FOLDER / name).read_text("utf-8")
    assert len(picture.encode()) < MOST_BYTES
    assert "<dc:date>" not in picture


def test_the_figures_of_the_picture_are_those_of_the_readme(timeline: Timeline) -> None:
    readme = (FOLDER.parents[1] / "README.md").read_text("utf-8")
    assert f"{timeline.whole:,} → {timeline.sent:,} tokens sent" in readme


def test_the_readme_shows_the_picture_of_the_readers_ground() -> None:
    readme = (FOLDER.parents[1] / "README.md").read_text("utf-8")
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="docs/images/{PICTURES["dark"]}">'
    assert dark in readme
    assert f'src="docs/images/{PICTURES["light"]}"' in readme
