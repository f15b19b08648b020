"""Bars show what fills a request, with and without colours."""

from io import BytesIO, TextIOWrapper
from typing import get_args

import pytest
from rich.console import Console
from rich.style import Style
from rich.text import Text

from refold.application.projections.fates import Fate
from refold.application.rendering.request_parts import PartKind, RequestPart
from refold.infrastructure.cli.part_colours import THEME, RequestBars
from refold.infrastructure.palette import FATES, PALETTE, PARTS, SIGNALS

COLOURED = Console(force_terminal=True, color_system="standard", no_color=False, width=80)
PLAIN = Console(force_terminal=True, no_color=True, width=80)
NARROW = Console(force_terminal=True, no_color=True, width=30)


def parts(**tokens: int) -> list[RequestPart]:
    kinds = {kind.replace(" ", "_"): kind for kind in get_args(PartKind)}
    return [RequestPart(kind=kinds[name], tokens=n, count=1) for name, n in tokens.items()]


def shown(markup: str) -> str:
    return Text.from_markup(markup).plain


def test_every_kind_of_part_has_a_colour() -> None:
    assert PARTS.keys() == set(get_args(PartKind))
    assert set(get_args(Fate)) - FATES.keys() == {"full", "preamble"}
    assert {*PALETTE, *SIGNALS} <= THEME.styles.keys()


def test_without_colours_a_bar_consists_of_letters() -> None:
    bar = RequestBars(PLAIN, budget=1_000, width=20)
    drawn = bar.draw(parts(tool_results=200, user=100, summary=150, tool_calls=50))
    assert shown(drawn) == "MMMUUCCCCC··········"
    assert shown(bar.legend()) == "M summary  U user  C tool use  · free"


def test_with_colours_a_segment_begins_with_its_letter() -> None:
    drawn = RequestBars(COLOURED, budget=1_000, width=10).draw(parts(summary=200, ledger=300))
    text = Text.from_markup(drawn)
    assert text.plain == "M L  ·····"
    summary, ledger, free = (str(span.style) for span in text.spans)
    assert Style.parse(summary) == Style.parse(f"reverse {PALETTE['summary'].terminal}")
    assert Style.parse(ledger) == Style.parse(f"reverse {PALETTE['ledger'].terminal}")
    assert free == "free"


def test_thinking_is_part_of_what_the_assistant_says() -> None:
    drawn = RequestBars(PLAIN, budget=100, width=10).draw(parts(thinking=20, assistant=30))
    assert shown(drawn) == "AAAAA·····"


def test_the_smallest_part_is_visible() -> None:
    drawn = RequestBars(PLAIN, budget=100_000, width=10).draw(parts(user=1, tool_results=80_000))
    assert shown(drawn) == "UCCCCCCCC·"


@pytest.mark.parametrize("budget", [0, 100, 1_000])
def test_a_request_over_its_budget_fills_the_bar(budget: int) -> None:
    many = parts(system=1, tools=1, summary=1, user=1, assistant=1, tool_results=5_000)
    assert shown(RequestBars(PLAIN, budget=budget, width=8).draw(many)) == "STMUACCC"


def test_an_empty_request_is_free() -> None:
    assert shown(RequestBars(PLAIN, budget=10, width=4).draw([])) == "····"


@pytest.mark.parametrize(("console", "lines"), [(PLAIN, 1), (COLOURED, 1), (NARROW, 3)])
def test_the_legend_of_all_segments_fits_and_breaks_between_names(
    console: Console, lines: int
) -> None:
    bars = RequestBars(console, budget=100, width=20)
    bars.draw(parts(system=1, tools=1, summary=1, ledger=1, user=1, assistant=1, tool_results=1))
    drawn = shown(bars.legend()).split("\n")
    assert len(drawn) == lines
    assert max(map(len, drawn)) <= console.width
    assert "  ".join(drawn) == (
        "S system  T tools  M summary  L ledger  U user  A assistant  C tool use  · free"
    )


def test_a_terminal_with_ascii_only_gets_ascii() -> None:
    console = Console(file=TextIOWrapper(BytesIO(), encoding="ascii"), width=80)
    assert shown(RequestBars(console, 100, 4).draw(parts(user=50))) == "UU.."
