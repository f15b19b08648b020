"""The price table that ships is whole, and a table of one's own is read or refused by its entry."""

from pathlib import Path

import pytest

from refold.domain.errors import InvalidSetting
from refold.infrastructure.settings.price_table import read_prices

OWN = """
as_of = 2026-05-06
default = "m"
cache_seconds = 300
[models.m]
input = 1
cached_read = 0.5
cache_write = 2
output = 3
"""


def test_the_table_that_ships_says_when_it_was_made_and_is_plausible() -> None:
    prices = read_prices()
    assert prices.as_of.year >= 2026
    assert prices.default in prices.models
    for price in prices.models.values():
        assert price.cached_read < price.input <= price.cache_write < price.output
        assert price.least_cached in (512, 1_024, 2_048, 4_096)


def test_the_models_of_the_newest_generation_have_prices_of_their_own() -> None:
    prices = read_prices()
    for model in ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-1"):
        assert prices.entry_of(f"{model}-20261001") == model


def test_a_table_of_ones_own_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(OWN)
    prices = read_prices(path)
    assert (prices.models["m"].output, prices.cache_seconds, prices.currency) == (3, 300, "USD")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (OWN.replace("input = 1", "input = -1"), r"models\.m\.input: .*greater than or equal to 0"),
        (OWN.replace("output = 3", ""), r"models\.m\.output: Field required"),
        (OWN.replace("output", "outputs"), r"models\.m\.output"),
        (OWN.replace('default = "m"', 'default = "n"'), "no such entry in models; there are: m"),
        ("as_of = ", "is not valid TOML"),
    ],
)
def test_a_wrong_table_is_refused_by_its_entry(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(InvalidSetting, match=f"p.toml.*{told}"):
        read_prices(path)


def test_a_table_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for name, told in (("none.toml", "cannot be read"), ("bytes.toml", "not valid TOML")):
        with pytest.raises(InvalidSetting, match=told):
            read_prices(tmp_path / name)
