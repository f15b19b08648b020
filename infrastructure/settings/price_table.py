"""The price table: the one that ships, or a file of the user."""

import tomllib
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from refold.application.lab.pricing import Prices
from refold.domain.errors import InvalidSetting

SHIPPED = resources.files("refold.infrastructure.settings").joinpath("prices.toml")


def read_prices(path: Path | None = None) -> Prices:
    """Read the prices in a file, or by default the price table that ships with refold.

    Raises:
        InvalidSetting: the file cannot be read, or an entry is invalid; the message names it.
    """
    place = "prices.toml" if path is None else str(path)
    try:
        text = (path or SHIPPED).read_text("utf-8")
        prices = Prices.model_validate(tomllib.loads(text))
    except OSError as error:
        raise InvalidSetting(f"price table {place} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InvalidSetting(f"price table {place}: {key}: {first['msg']}") from None
    except ValueError as error:  # Not valid TOML, or not UTF-8.
        raise InvalidSetting(f"price table {place} is not valid TOML: {error}") from None
    if prices.default not in prices.models:
        raise InvalidSetting(
            f"price table {place}: default = {prices.default!r}: there is no such entry in models; "
            f"there are: {', '.join(prices.models)}"
        )
    return prices
