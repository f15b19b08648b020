"""``-v``: how much of what refold logs is shown, asked for before a command or after it."""

import logging
from typing import Annotated

import typer

VERBOSE = "verbose"


def shown_more(times: int) -> int:
    """Show what refold logs: once its information, twice every request as well."""
    if times:
        logging.getLogger("refold").setLevel(logging.INFO if times == 1 else logging.DEBUG)
    return times


def is_verbose() -> bool:
    """Whether more is to be shown than usually."""
    return logging.getLogger("refold").isEnabledFor(logging.INFO)


Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        metavar="",
        show_default=False,
        expose_value=False,
        callback=shown_more,
        help="Show what refold logs on standard error; -vv shows every request as well.",
    ),
]
