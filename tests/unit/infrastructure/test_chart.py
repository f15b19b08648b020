"""The chart of a simulation: a real picture with a line for each policy, and clear refusals."""

import sys
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.image import imread

from refold.application.conversation.transcripts import RecordedConversation, RecordedMessage
from refold.application.lab.simulating import PRESETS, Contestant, Simulation, simulate
from refold.domain.errors import InvalidSetting
from refold.domain.value import replace
from refold.infrastructure.cli.chart import MOST_POLICIES, check_chart, draw_chart
from refold.infrastructure.palette import (
    DARK_GROUND,
    LIGHT_GROUND,
    SERIES,
    TEXT,
    Theme,
    shade_for,
)
from refold.infrastructure.settings.price_table import read_prices
from tests.support.builders import assistant, user
from tests.support.fake_ports import core_of


def simulation(*names: str, thread_id: str = "t") -> Simulation:
    said = [m for n in range(25) for m in (user(f"{n} " * 300), assistant("a " * 200))]
    recorded = RecordedConversation(
        thread_id=thread_id,
        messages=tuple(RecordedMessage(message=m, key=f"{n}") for n, m in enumerate(said)),
    )
    policies = tuple(PRESETS.values())
    contestants = [
        Contestant(name, partial(core_of, window=4_000, policy=policies[n % 2]))
        for n, name in enumerate(names)
    ]
    return simulate(recorded, contestants, read_prices())


def rgb(colour: str) -> list[int]:
    return [*bytes.fromhex(colour.removeprefix("#"))]


@pytest.mark.parametrize(
    ("name", "theme", "ground"),
    [
        ("a.png", "light", LIGHT_GROUND),
        ("a.PNG", "light", LIGHT_GROUND),
        ("a.png", "dark", DARK_GROUND),
    ],
)
def test_a_png_shows_each_policy_in_its_colour(
    name: str, theme: Theme, ground: str, tmp_path: Path
) -> None:
    draw_chart(simulation("one", "two"), tmp_path / name, theme=theme)
    with (tmp_path / name).open("rb") as file:
        picture = imread(file, format="png")
    assert picture.shape[0] > 600
    assert picture.shape[1] > 1_000
    colours = (255 * picture[:, :, :3]).round().astype(int)
    assert [*colours[0, 0]] == rgb(ground)
    for ink in (*SERIES[:2], TEXT):
        assert (colours == rgb(shade_for(theme, ink))).all(axis=2).any(), ink


def test_an_svg_is_well_formed_and_has_the_names(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    draw_chart(simulation("one", "two"), path)
    root = ElementTree.parse(path).getroot()
    assert root.tag.endswith("svg")
    drawn = path.read_text("utf-8")
    for words in ("one: ", "two: ", "limit of a request", "size of the request, tokens"):
        assert f"<!-- {words}" in drawn


def test_the_chart_shows_costs_and_requests_without_compaction(tmp_path: Path) -> None:
    done = simulation("one")
    (policy,) = done.policies
    draw_chart(done, tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text("utf-8")
    assert f" tokens, {policy.cost:,.2f} USD" in drawn
    assert f"<!-- without compaction: {policy.figures.tokens_without_compaction:,} tokens" in drawn
    assert f"without compaction: up to {policy.steps[-1].whole:,}" in drawn


def test_decisions_about_tool_content_have_a_row_below_the_chart(tmp_path: Path) -> None:
    done = simulation("one")
    draw_chart(done, tmp_path / "without.svg")
    steps = [replace(step, deeds=("offload",)) for step in done.policies[0].steps]
    offloading = replace(done.policies[0], steps=tuple(steps))
    draw_chart(replace(done, policies=(offloading,)), tmp_path / "with.svg")
    row, label = "<!-- one -->", "<!-- tool content offloaded -->"
    drawn = [(tmp_path / f"{name}.svg").read_text("utf-8") for name in ("without", "with")]
    assert [row in svg for svg in drawn] == [label in svg for svg in drawn] == [False, True]


def test_a_history_that_fits_is_drawn_to_its_end(tmp_path: Path) -> None:
    done = simulation("one")
    fitting = replace(done.policies[0], limit=2 * done.policies[0].steps[-1].whole)
    draw_chart(replace(done, policies=(fitting,)), tmp_path / "a.svg")
    assert "without compaction: up to" not in (tmp_path / "a.svg").read_text("utf-8")


@pytest.mark.parametrize("name", ["$x^2$", "_hidden", "中文", "<b>&amp;", "a" * 200, "e\u0301", ""])
def test_any_name_can_be_drawn(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    draw_chart(simulation(name, thread_id=name or "t"), path)
    assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_as_many_policies_as_can_be_told_apart_are_drawn(tmp_path: Path) -> None:
    draw_chart(simulation(*(f"p{n}" for n in range(MOST_POLICIES))), tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text("utf-8")
    assert all(f"<!-- p{n}: " in drawn for n in range(MOST_POLICIES))


def test_a_conversation_without_a_request_gives_an_empty_chart(tmp_path: Path) -> None:
    nothing_asked = RecordedConversation(
        thread_id="t", messages=(RecordedMessage(message=user("a"), key="1"),)
    )
    done = simulate(nothing_asked, [Contestant("one", core_of)], read_prices())
    draw_chart(done, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InvalidSetting, match=r"pip install 'refold\[chart\]'"):
        check_chart(tmp_path / "a.png")


def test_a_place_that_cannot_be_drawn_to_is_refused(tmp_path: Path) -> None:
    check_chart(tmp_path / "a.svg")
    for path, told in ((tmp_path / "a.jpg", ".png or .svg"), (tmp_path / "no" / "a.png", "folder")):
        with pytest.raises(InvalidSetting, match=told):
            check_chart(path)
