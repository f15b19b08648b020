"""``refold label``: a name for people."""

from typing import Annotated

import typer

from .opening import opened, require
from .options import DEFAULT_DB, Db, Json, Thread
from .output import clean, print_json, say


def label(
    thread: Thread,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The name; `refold list` shows it.")],
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Give a conversation a name for people."""
    with opened(db) as memory:
        thread = require(memory, thread)
        memory.conversation(thread).label(text)
    if json:
        print_json({"thread_id": thread, "label": text})
    else:
        say(f"{clean(thread)} is called {clean(text)} now.")
