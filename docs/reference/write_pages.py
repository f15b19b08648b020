"""Write the pages of this folder that are made from the code: commands, events and tables.

    python docs/reference/write_pages.py

A test compares the pages with the code.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

from refold.domain.value import Value
from refold.infrastructure.cli.app import app
from refold.infrastructure.cli.commands import GROUPS, load, usage_of
from refold.infrastructure.event_store.codec import NAMES, SHAPES
from refold.infrastructure.projection_store.view_tables import TABLES

FOLDER = Path(__file__).parent
MADE = "<!-- Made by `python docs/reference/write_pages.py`; the texts are in the code. -->"
OF_EVERY_COMMAND = ("help", "verbose", "json", "db")
"""Options that nearly every command has. They are described once, and only named after that."""

COMMANDS = """
Commands use the log that `--db` names, or the variable `REFOLD_DB`, or `agent.db`. Where `--db` is in the table of a
command, it has the default that the table names. `refold COMMAND --help` shows the same as these pages. Exit codes: 0
success, 1 negative result (nothing found, damage), 2 usage error or bad input, 130 after Ctrl-C (0 after `import
--watch`).
"""
EVENTS = f"""
# Events

{MADE}

What happened in a conversation, in the order in which it happened: this is all that a log stores. `refold export THREAD
--format events` writes the events of a conversation, one JSON object a line: `version`, `at`, `name`, and `fields` as
below. Names and fields are never renamed, and each event has a [JSON Schema](../compatibility.md#stored-events). A
field with a default may be absent.
"""
TABLES_PAGE = f"""
# Tables of the read models

{MADE}

Lists and lookups are kept in plain SQLite tables, in `agent.views.db` next to the log. They are the cheapest inspector
that there is.

```python
import refold

with refold.open("agent.db") as memory:
    memory.conversation("thread-42").append({{"role": "user", "content": "Hello."}})
    memory.conversations()  # brings the tables up to date, as `refold list` does
```

`sqlite-utils` comes with refold:

```sh
sqlite-utils tables agent.views.db --counts --table
sqlite-utils agent.views.db "SELECT thread_id, role, tokens, text FROM messages" --table
```

```text
table            count
-------------  -------
conversations        1
messages             1
summaries            0
compactions          0
topics               0
request_sizes        2
notes                0
tallies              …
positions            7
reading_from         1
thread_id    role      tokens  text
-----------  ------  --------  ------
thread-42    user           …  Hello.
```

[Datasette](https://datasette.io/) shows them in a browser, with filters and facets:

<!-- no-test: it starts a server -->
```sh
pip install datasette
datasette agent.views.db
```

Both only read. An encrypted log keeps its tables in memory, so there is no file to look at.

**They are no interface.** A new release may change them, and refold rebuilds what was changed by someone else. In
programs, use [`--json`](commands/index.md) or [the Python API](python.md), or [keep a table of your
own](../howto/keep-a-table-of-your-own.md).

Every table also has a `checksum` of its row, which finds damage.
"""
MORE_TABLES = """
## Other tables and files

| name | what it is |
|---|---|
| `archived_messages` | a view: the messages that the active summary covers, each with the id of the summary |
| `tallies` | rows and sums of checksums by conversation and table |
| `positions`, `reading_from` | how far the tables follow the log |
| `agent.recall.db` | the index of recall: a row in `passages` for each passage of a message, and its words |
| `agent.vectors.db` | vectors by model and text, if an embedder is set |
| `agent.db` | the log itself: a row in `stored_events` for each event, as sealed bytes. Read it with `refold export` |
"""
COLUMN_TYPES = {"str": "text", "int": "integer", "bool": "0 or 1"}


def field_texts(kind: type) -> dict[str, str]:
    """Return the docstrings of the fields of a class, by name."""
    (node,) = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    found: dict[str, str] = {}
    name = ""
    for line in node.body:
        match line:
            case ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = ""
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                found[name] = inspect.cleandoc(text)
                name = ""
            case _:
                name = ""
    return found


def types_of(kind: type) -> dict[str, str]:
    """Return the annotations of the fields of a class as they are written, by name."""
    (node,) = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    return {
        line.target.id: ast.unparse(line.annotation)
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }


def fields_of(kind: type[Value]) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and meaning of each field, also of those that a class inherits."""
    classes = [one for one in kind.__mro__ if issubclass(one, Value) and one is not Value]
    texts = {name: text for one in classes for name, text in field_texts(one).items()}
    types = {name: text for one in classes for name, text in types_of(one).items()}
    for name in kind.model_fields:
        yield name, types[name], texts[name]


def code(text: str) -> str:
    """Return a cell with code."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def prose(text: str) -> str:
    """Return a docstring as one line of Markdown, for a cell of a table."""
    line = " ".join(text.replace("``", "`").split())
    return line.replace("|", "\\|")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    heads = list(heads)
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def text_of(value: type) -> str:
    """Return the docstring of a class as paragraphs of Markdown."""
    return (inspect.getdoc(value) or "").replace("``", "`")


def event_page() -> Iterator[str]:
    """Yield the lines of the page of events."""
    yield EVENTS.strip()
    for name, event in NAMES.items():
        schema = f"../schemas/{name}.{SHAPES[name]}.json"
        yield from ("", f"## {name}", "", text_of(event), "")
        if event.model_fields:
            rows = ((code(n), code(kind), prose(text)) for n, kind, text in fields_of(event))
            yield from table(("field", "type", "meaning"), rows)
            yield ""
        yield f"[Schema of shape {SHAPES[name]}]({schema})"


def column_type(annotation: str) -> str:
    """Return the type of a column as the database has it."""
    kind, _, null = annotation.partition(" | ")
    return f"{COLUMN_TYPES[kind]} or null" if null else COLUMN_TYPES[kind]


def table_page() -> Iterator[str]:
    """Yield the lines of the page of tables."""
    yield TABLES_PAGE.strip()
    for one in TABLES:
        key = ", ".join(code(column) for column in one.key)
        yield from ("", f"## {one.name}", "", f"{text_of(one.row)} Key: {key}.", "")
        rows = ((code(n), column_type(t), prose(text)) for n, t, text in fields_of(one.row))
        yield from table(("column", "type", "meaning"), rows)
    yield MORE_TABLES.rstrip()


def name_of(parameter: Any) -> str:
    """Return a parameter as it is written."""
    if not parameter.opts[0].startswith("-"):
        return str(parameter.metavar or parameter.name.upper())
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return f"{names} {parameter.metavar}" if parameter.metavar else names


def meaning_of(parameter: Any) -> str:
    """Return what a parameter does, with its default."""
    default = parameter.default
    is_shown = not (default in (None, False, 0, "") or callable(default))
    shown = f" Default: {code(str(default))}." if is_shown else ""
    return prose(parameter.help or "") + shown


def options_of_every_command() -> list[Any]:
    """Return the options that nearly every command has, with the meaning that they share."""
    return [one for one in load("explain").params if one.name in OF_EVERY_COMMAND]


def command_lines(name: str) -> Iterator[str]:
    """Yield the section of a command."""
    command = load(name)
    parameters = [one for one in command.params if not getattr(one, "hidden", False)]
    usage = " ".join(["refold", name, *usage_of(parameters)])
    yield from ("", f"## {name}", "", "```bash", usage, "```", "")
    yield str(command.help)
    shared_help = {one.help for one in options_of_every_command()}
    own = [one for one in parameters if one.name != "help" and one.help not in shared_help]
    if own:
        yield ""
        rows = ((code(name_of(one)), meaning_of(one)) for one in own)
        yield from table(("argument or option", "meaning"), rows)
    shared = [code(one.opts[0]) for one in parameters if one.help in shared_help]
    yield from ("", f"Also: {', '.join(shared)}.")
    if command.epilog:
        yield from ("", " ".join(command.epilog.split()))


def command_page(group: str) -> Iterator[str]:
    """Yield the lines of the page of a group of commands."""
    yield from (f"# {group}", "", MADE)
    for name in GROUPS[group]:
        yield from command_lines(name)


def command_index() -> Iterator[str]:
    """Yield the lines of the list of all commands, with the options that nearly all have."""
    yield from ("# Command line", "", MADE, "", str(app.info.help), "", COMMANDS.strip())
    for group, entries in GROUPS.items():
        yield from ("", f"**{group}**", "")
        page = f"{group.lower()}.md"
        rows = (
            (f"[`{name}`]({page}#{name})", prose(entry.help)) for name, entry in entries.items()
        )
        yield from table(("command", "what it does"), rows)
    yield from ("", "## Options of nearly every command", "")
    rows = ((code(name_of(one)), meaning_of(one)) for one in options_of_every_command())
    yield from table(("option", "meaning"), rows)
    names = [group.lower() for group in GROUPS]
    yield from ("", "```{toctree}", ":hidden:", ":titlesonly:", "", *names, "```")


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page."""
    made = {"events.md": event_page(), "tables.md": table_page()}
    made["commands/index.md"] = command_index()
    made |= {f"commands/{group.lower()}.md": command_page(group) for group in GROUPS}
    for name, lines in made.items():
        yield name, re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def main() -> None:
    """Write all pages."""
    for name, text in pages():
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
