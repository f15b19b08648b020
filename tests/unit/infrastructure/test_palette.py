"""The palette can be read on both grounds, and its colours differ, for the colour-blind as well."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import pytest
from rich.style import Style

from refold.infrastructure.palette import (
    DARK_GROUND,
    LIGHT_GROUND,
    PALETTE,
    SERIES,
    SIGNALS,
    TEXT,
    Theme,
    shade_for,
)

Numbers = Sequence[float]

GROUNDS: Mapping[Theme, str] = {"light": LIGHT_GROUND, "dark": DARK_GROUND}
READABLE, VISIBLE = 4.5, 3.0
"""Contrasts that WCAG 2.2 asks for: of text, and of lines and marks."""
APART = 0.05
"""Smallest distance of two colours in OKLab: black and white are 1 apart."""
SIGHT: Mapping[str, Sequence[Numbers]] = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "no green": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "no blue": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}
"""What linear RGB becomes for an eye without one kind of cones (Machado, Oliveira, Fernandes 2009)."""
TO_LUMINANCE = ((0.2126, 0.7152, 0.0722),)
TO_CONES = ((0.4122, 0.5363, 0.0514), (0.2119, 0.6807, 0.1074), (0.0883, 0.2817, 0.6300))
TO_OKLAB = ((0.2105, 0.7936, -0.0041), (1.9780, -2.4286, 0.4506), (0.0259, 0.7828, -0.8087))


def product(matrix: Sequence[Numbers], vector: Numbers) -> Numbers:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def linear(colour: str) -> Numbers:
    shares = (byte / 255 for byte in bytes.fromhex(colour.removeprefix("#")))
    return [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]


def contrast(one: str, other: str) -> float:
    low, high = sorted(sum(product(TO_LUMINANCE, linear(colour))) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def distance(one: str, other: str, sight: Sequence[Numbers]) -> float:
    seen = [[max(0.0, c) for c in product(sight, linear(colour))] for colour in (one, other)]
    places = [product(TO_OKLAB, [c ** (1 / 3) for c in product(TO_CONES, rgb)]) for rgb in seen]
    return float(sum((a - b) ** 2 for a, b in zip(*places, strict=True)) ** 0.5)


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", GROUNDS)
def test_every_text_can_be_read(theme: Theme) -> None:
    texts = {name: colour for name, colour in PALETTE.items() if name != "free"} | {"text": TEXT}
    for name, colour in texts.items():
        assert contrast(shade_for(theme, colour), GROUNDS[theme]) >= READABLE, name


@pytest.mark.parametrize("theme", GROUNDS)
def test_every_line_of_a_chart_is_visible(theme: Theme) -> None:
    for ink in SERIES:
        assert contrast(shade_for(theme, ink), GROUNDS[theme]) >= VISIBLE, ink


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", GROUNDS)
def test_no_two_colours_look_the_same(theme: Theme, sight: str) -> None:
    for colours in (PALETTE.values(), SERIES):
        for one, other in combinations([shade_for(theme, colour) for colour in colours], 2):
            assert distance(one, other, SIGHT[sight]) >= APART, (one, other)


def test_the_terminal_has_only_colours_that_its_theme_defines() -> None:
    for style in (*(colour.terminal for colour in PALETTE.values()), *SIGNALS.values()):
        colour = Style.parse(style).color
        assert colour is None or colour.is_default or colour.number in range(16), style


def test_no_style_of_the_terminal_vanishes_on_a_light_or_a_dark_ground() -> None:
    for style in (*(colour.terminal for colour in PALETTE.values()), *SIGNALS.values()):
        colour = Style.parse(style).color
        shown = "" if colour is None else colour.name
        assert "white" not in shown, style
        assert "black" not in shown, style
        assert shown in ("bright_blue", "") or not shown.startswith("bright"), style
