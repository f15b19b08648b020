"""The templates of the pages, and how numbers, times and texts are shown in them."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from refold.infrastructure.palette import DARK_GROUND, LIGHT_GROUND, PALETTE
from refold.infrastructure.shown_text import strip_control

HERE = Path(__file__).parent
STATIC = HERE / "static"


@cache
def templates() -> Environment:
    """Return the environment of the templates. Everything is escaped."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[[Any], str]] = {
        "shown": lambda text: strip_control(str(text)),
        "number": lambda value: f"{value:,}",
        "short": short_number,
        "time": shown_time,
        "day": lambda at: shown_time(at)[:16],
        "percent": lambda share: f"{100 * share:.0f} %",
    }
    environment.filters |= filters
    return environment


def templates_for_files(printed: Callable[[object], object]) -> Environment:
    """Return an environment that prints what ``printed`` returns for each value, and then escapes it."""

    def harmless(value: object) -> object:
        return _harmless(printed(value))

    return templates().overlay(finalize=harmless)


def _harmless(value: object) -> object:
    """Return a value of a template without characters that hide or reorder text, or have no UTF-8 form."""
    return (
        strip_control(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
    )


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return a page as HTML."""
    return templates().get_template(template).render(values)


def short_number(value: int) -> str:
    """Return a number with three digits at most: ``950``, ``1.2k``, ``35k``, ``1.2M``."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            amount = value / size
            return f"{amount:.0f}{unit}" if amount >= 10 else f"{amount:.1f}{unit}"
    return str(value)


def shown_time(at: str | None) -> str:
    """Return a time as the pages show it, in UTC, to the second."""
    if not at:
        return ""
    try:
        return datetime.fromisoformat(at).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return strip_control(at)


@cache
def style() -> str:
    """Return the style sheet: the colours of the palette, then the rules."""
    light = "".join(f"--{meaning}:{colour.light};" for meaning, colour in PALETTE.items())
    dark = "".join(f"--{meaning}:{colour.dark};" for meaning, colour in PALETTE.items())
    fills = "".join(
        f".c-{meaning}{{color:var(--{meaning})}}.f-{meaning}{{fill:var(--{meaning})}}"
        f".b-{meaning}{{border-color:var(--{meaning})}}.s-{meaning}{{stroke:var(--{meaning})}}\n"
        for meaning in PALETTE
    )
    rules = (STATIC / "style.css").read_text("utf-8")
    return (
        f":root{{color-scheme:light dark;--ground:{LIGHT_GROUND};{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{--ground:{DARK_GROUND};{dark}}}}}\n"
        f"@media print{{:root{{color-scheme:light;--ground:{LIGHT_GROUND};{light}}}}}\n"
        f"{fills}{rules}"
    )


@cache
def static_file(name: str) -> tuple[bytes, str] | None:
    """Return the bytes and the type of a file that pages load, or None if there is no such file."""
    if name == "style.css":
        return style().encode(), "text/css; charset=utf-8"
    if name == "htmx.min.js":
        return (STATIC / name).read_bytes(), "text/javascript; charset=utf-8"
    return None
