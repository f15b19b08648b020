"""The program ``refold``: its commands, and how it ends."""

import logging
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from refold.domain.errors import RefoldError

from . import (
    compressing,
    configuring,
    deciding,
    demo,
    erasing,
    explaining,
    housekeeping,
    importing,
    indexing,
    looking,
    maintaining,
    playing,
    recalling,
    remembering,
    serving,
    simulating,
    tracing,
    travelling,
    verifying,
)
from .output import clean, print_json, show_any_text, warn

DONE, ANSWER_IS_NO, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

ABOUT = "Conversation memory for LLM agents that can always be rebuilt."

app = typer.Typer(
    name="refold",
    help=ABOUT,
    epilog="Begin with: refold demo. Then: refold play FILE, with a transcript of yours. "
    "Exit codes: 0 done, 1 the answer is no, 2 wrong use or bad input.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("import")(importing.import_files)
app.command("play")(playing.play)
app.command("list")(looking.list_conversations)
app.command("show")(looking.show)
app.command("context")(looking.context)
app.command("compact")(maintaining.compact)
app.command("summaries")(looking.summaries)
app.command("revert")(deciding.revert)
app.command("pin")(deciding.pin)
app.command("unpin")(deciding.unpin)
app.command("pins")(deciding.pins)
app.command("erase")(erasing.erase)
app.command("explain", epilog=explaining.EXPLAIN_EXAMPLE)(explaining.explain)
app.command("read", epilog=explaining.READ_EXAMPLE)(explaining.read)
app.command("recall", epilog=recalling.RECALL_EXAMPLE)(recalling.recall)
app.command("search", epilog=recalling.SEARCH_EXAMPLE)(recalling.search)
app.command("query", epilog=tracing.QUERY_EXAMPLE)(tracing.query)
app.command("expand", epilog=tracing.EXPAND_EXAMPLE)(tracing.expand)
app.command("mcp", epilog=serving.MCP_EXAMPLE)(serving.mcp)
app.command("index", epilog=indexing.EXAMPLE)(indexing.index)
app.command("topics")(remembering.topics)
app.command("notes", epilog=remembering.NOTES_EXAMPLE)(remembering.notes)
app.command("search-notes")(remembering.search_notes)
app.command("fork")(travelling.fork)
app.command("diff", epilog=travelling.DIFF_EXAMPLE)(travelling.diff)
app.command("simulate", epilog=simulating.EXAMPLE)(simulating.simulate)
app.command("verify")(verifying.verify)
app.command("compress")(compressing.compress)
app.command("replay")(verifying.replay)
app.command("anchor")(verifying.anchor)
app.command("salvage")(verifying.salvage)
app.command("stats")(housekeeping.stats)
app.command("backup")(housekeeping.backup)
app.command("restore")(housekeeping.restore)
app.command("export", epilog=housekeeping.EXPORT_EXAMPLE)(housekeeping.export)
app.command("settings")(configuring.settings)


def _version(wanted: bool) -> None:
    if wanted:
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
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            metavar="",
            show_default=False,
            help="Show what refold logs on standard error; -vv shows every request as well.",
        ),
    ] = 0,
) -> None:
    """Conversation memory for LLM agents that can always be rebuilt."""
    if verbose:
        logging.getLogger("refold").setLevel(logging.INFO if verbose == 1 else logging.DEBUG)


def main() -> None:
    """Run a command. Exit code 0: done; 1: the answer is no; 2: wrong use or bad input."""
    show_any_text()
    logging.getLogger("refold").addHandler(_Lines())
    try:
        app()
    except RefoldError as error:
        _explain(type(error).__name__, str(error))
        sys.exit(BAD_INPUT)
    except OSError as error:
        # What the file system refuses (a full disk, a folder that went away) is no fault of refold.
        _explain("OSError", f"{error.strerror or error}: {error.filename or 'input or output'}")
        sys.exit(BAD_INPUT)
    except SystemExit as end:
        _explain_end(end)
        raise


class _Lines(logging.Handler):
    """Shows what refold logs as lines on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        colour = "yellow" if record.levelno >= logging.WARNING else "dim"
        level = record.levelname.lower()
        warn(f"[{colour}]{level}[/{colour}]: {clean(record.getMessage())}")


def _explain_end(end: SystemExit) -> None:
    """Say why a command ended that never came to its own last words."""
    if end.code == INTERRUPTED:
        warn("Stopped. What is in your log (--db) stays; the same command goes on from there.")
        _tell_program("Interrupted", "stopped by Ctrl-C; what is in your log (--db) stays")
    elif end.code == BAD_INPUT and not isinstance(end.__context__, typer.Exit):
        # Wrong use: the reason stands on standard error already, in words for people.
        problem = getattr(end.__context__, "format_message", lambda: "no command was given")
        _tell_program("WrongUse", str(problem()))


def _explain(name: str, message: str) -> None:
    _tell_program(name, message)
    warn(f"[red]{name}[/red]: {clean(message)}")


def _tell_program(name: str, message: str) -> None:
    if "--json" in sys.argv:
        print_json({"error": name, "message": message})
