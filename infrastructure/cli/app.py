"""The program ``refold``: its commands, and how it ends."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from refold.domain.errors import RefoldError

from . import demo, importing, looking, maintaining, playing
from .output import clean, errors, print_json

DONE, ANSWER_IS_NO, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="refold",
    help="Conversation memory for LLM agents that can always be rebuilt.",
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
app.command("verify")(maintaining.verify)
app.command("replay")(maintaining.replay)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"refold {version('refold')}")
        raise typer.Exit


@app.callback()
def _main(
    version_wanted: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Conversation memory for LLM agents that can always be rebuilt."""


def main() -> None:
    """Run a command. Exit code 0: done; 1: the answer is no; 2: wrong use or bad input."""
    try:
        app()
    except RefoldError as error:
        _explain(error)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        errors.print("Stopped. What was stored stays; the same command goes on from there.")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(DONE)


def _explain(error: RefoldError) -> None:
    if "--json" in sys.argv:
        print_json({"error": type(error).__name__, "message": str(error)})
    errors.print(f"[red]{type(error).__name__}[/red]: {clean(error)}")
