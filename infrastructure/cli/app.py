"""The program ``refold``: its commands, warnings and exit codes."""

import logging
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, TextIO

import typer

from refold.domain.errors import RefoldError

from .commands import CommandGroup
from .options import Verbose
from .output import Stopped, clean, print_json, show_any_text, warn

DONE, ANSWER_IS_NO, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

ABOUT = "Event-sourced conversation memory for LLM agents."

app = typer.Typer(
    cls=CommandGroup,
    name="refold",
    help=ABOUT,
    epilog="Start with: refold demo. Then: refold play FILE, with your own transcript. "
    "REFOLD_DB names the log if --db is not given. "
    "Exit codes: 0 success, 1 negative result (nothing found, damage), 2 usage error or bad input.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"refold {version('refold')}")
        raise typer.Exit


@app.callback()
def _main(
    version_wanted: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version.", callback=_version, is_eager=True, metavar=""
        ),
    ] = False,
    verbose: Verbose = 0,
) -> None:
    """Event-sourced conversation memory for LLM agents."""


def main(stopped: Callable[[], str] = lambda: "Give the same command again.") -> None:
    """Run a command.

    Exit codes: 0 success; 1 negative result (nothing found, damage); 2 usage error or bad input; 130
    Ctrl-C.

    ``stopped`` returns a sentence on what Ctrl-C left behind.
    """
    show_any_text()
    logging.getLogger("refold").addHandler(_Lines())
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _Warnings().show
            app()
    except RefoldError as error:
        _explain(type(error).__name__, str(error))
        sys.exit(BAD_INPUT)
    except OSError as error:
        # Errors of the file system (a full disk, a missing folder) are not bugs of refold.
        _explain("OSError", f"{error.strerror or error}: {error.filename or 'input or output'}")
        sys.exit(BAD_INPUT)
    except MemoryError:
        advice = "free some or raise the limit (ulimit -v), then give the command again"
        _explain("MemoryError", f"there is not enough memory: {advice}")
        sys.exit(BAD_INPUT)
    except RuntimeError as error:
        if _NO_THREAD not in str(error):
            raise
        advice = (
            "raise the limit of threads (ulimit -u) or free memory, then give the command again"
        )
        _explain("RuntimeError", f"{error}: {advice}")
        sys.exit(BAD_INPUT)
    except SystemExit as end:
        _explain_end(end, stopped)
        raise


_NO_THREAD = "can't start new thread"
"""Message of Python where the system refuses a thread."""


class _Warnings:
    """Prints each warning once and without its source line, which means nothing to users of commands."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def show(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """Print a warning. This replaces ``warnings.showwarning``."""
        text = str(message)
        if text not in self._shown:
            self._shown.add(text)
            warn(f"[warning]warning[/warning]: {clean(text)}")


class _Lines(logging.Handler):
    """Prints log records of refold as lines on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        colour = "warning" if record.levelno >= logging.WARNING else "dim"
        level = record.levelname.lower()
        warn(f"[{colour}]{level}[/{colour}]: {clean(record.getMessage())}")


def _explain_end(end: SystemExit, stopped: Callable[[], str]) -> None:
    """Explain why a command ended without an explanation of its own."""
    if isinstance(end.__context__, Stopped):
        return  # The command itself said what it did until then.
    if end.code == INTERRUPTED:
        note = stopped()
        warn(f"Stopped. {note}")
        _print_json_error("Interrupted", f"stopped by Ctrl-C. {note}")
    elif end.code == BAD_INPUT and not isinstance(end.__context__, typer.Exit):
        # Usage error: the reason is on standard error already.
        problem = getattr(end.__context__, "format_message", lambda: "no command was given")
        _print_json_error("WrongUse", str(problem()))


def _explain(name: str, message: str) -> None:
    _print_json_error(name, message)
    warn(f"[damage]{name}[/damage]: {clean(message)}")


def _print_json_error(name: str, message: str) -> None:
    if "--json" in sys.argv:
        print_json({"error": name, "message": message})
