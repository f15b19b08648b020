"""What commands print: lines, tables, JSON and progress, in colours that have one meaning each."""

import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias, TypeVar

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from refold.application.lab.playing import Played
from refold.domain.messages import THINKING, Message, gist, text_of
from refold.domain.text_cuts import beginning
from refold.infrastructure.projection_store.projection_file import derived_path

Cell: TypeAlias = str | int | float | None

PIPE_WIDTH = 160
"""The width of what no terminal shows; ``COLUMNS`` says otherwise."""
SHORTEST_TEXT = 8

# What turns or hides text: marks of direction, spaces without width, tags. Not the joiners of emoji.
_MISLEADING = "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f"
# Everything that could move a cursor, ring a bell or colour a screen.
_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_MISLEADING}\ud800-\udfff]")
# What JSON allows in a string and a terminal may still take for a command.
_NOT_ESCAPED = re.compile(f"[\x7f-\x9f{_MISLEADING}]")


class _Output(Console):
    """A console whose reader may go away (``| head``): the command still ends with its own code."""

    def on_broken_pipe(self) -> None:
        _write_nowhere(self.file)


# Texts of transcripts are shown as they are: no colours by guess, no :smiley: made a picture.
console = _Output(highlight=False, emoji=False)
errors = _Output(stderr=True, highlight=False, emoji=False)
if not (console.is_terminal or "COLUMNS" in os.environ):
    console.width = PIPE_WIDTH


def show_any_text() -> None:
    """Let every text be printed: where the terminal has no such character, it shows ``?``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _write_nowhere(stream: IO[str]) -> None:
    # Python flushes the stream once more at its end, and must not fail then either.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def clean(text: object) -> str:
    """Text of a transcript, made safe for a terminal: no control characters, no markup."""
    return escape(harmless(str(text)))


def harmless(text: str) -> str:
    """The same for what is printed without markup: no character that moves a cursor or hides a text."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text).replace("\t", "    ")


def one_line(text: str, width: int) -> str:
    """The beginning of a text on one line."""
    return clean(beginning(" ".join(text[: 8 * width].split()), width))


def width_of(text: str) -> int:
    """How many columns a terminal needs for a text."""
    return cell_len(text)


def folded(text: str, width: int) -> str:
    """So much of a text as fits into that many columns."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text[: width + 1], width - 1).rstrip() + "…"


@contextmanager
def paged() -> Generator[None]:
    """Show what is printed in a pager, where somebody sits at a terminal."""
    if not (console.is_terminal and sys.stdin.isatty()) or os.environ.get("TERM") == "dumb":
        yield
        return
    # `less` as git sets it up: no paging of what fits, colours as they are, the text stays afterwards.
    os.environ.setdefault("LESS", "FRX")
    with console.pager(styles=console.color_system is not None):
        yield


def print_json(value: Any) -> None:
    """Print one JSON object, and nothing else, on standard output."""
    line = json_line(value, sys.stdout.encoding)
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _write_nowhere(sys.stdout)


def json_line(value: Any, encoding: str) -> str:
    """A JSON object on one line, in which no character can move a cursor or hide a text."""
    line = json.dumps(value, ensure_ascii=False, default=str)
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        line = json.dumps(value, default=str)
    return _NOT_ESCAPED.sub(_as_json, line)


def _as_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))


def say(text: str = "") -> None:
    """Print a sentence with markup; texts of transcripts in it must be cleaned."""
    _print(console, text)


def warn(text: str) -> None:
    """Print a sentence with markup on standard error; texts in it must be cleaned."""
    _print(errors, text)


def _print(where: Console, text: str) -> None:
    # Lines are broken for people only: a program that reads them finds each sentence whole.
    where.print(text, soft_wrap=not where.is_terminal)


def say_parts(parts: Iterable[tuple[str, str]]) -> None:
    """Print texts one after the other, each in a style of its own; they need no cleaning."""
    line = Text()
    for text, style in parts:
        line.append(harmless(text), style)
    console.print(line, soft_wrap=not console.is_terminal)


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table; where it is too wide for the terminal, its rows one below the other.

    Of a column's name, ``#`` at the end says that it holds numbers, and ``…`` that it holds texts:
    each is shown on one line, as far as there is room. All other cells are shown whole.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    names = [column.rstrip("#…") for column in columns]
    room = _room_for_texts(columns, [names, *cells])
    if any(names) and room < SHORTEST_TEXT:
        _show_records(title, names, cells)
        return
    made = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left")
    made.show_header = any(names)
    for column, name in zip(columns, names, strict=True):
        match column[-1:]:
            case "#":
                made.add_column(name, justify="right", no_wrap=True)
            case "…":
                made.add_column(name, no_wrap=True, overflow="ellipsis", max_width=room)
            case _:
                made.add_column(name, overflow="fold")
    for row in cells:
        made.add_row(*row)
    if console.is_terminal:
        console.print(made)
        return
    # For a program no line is filled up with spaces.
    with console.capture() as captured:
        console.print(made)
    for line in captured.get().rstrip("\n").split("\n"):
        console.print(Text(line.rstrip()), soft_wrap=True)


def _room_for_texts(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """What is left for the column of texts, in characters; negative where the others do not fit."""
    whole = [n for n, column in enumerate(columns) if not column.endswith("…")]
    used = sum(max(Text.from_markup(row[n]).cell_len for row in rows) for n in whole)
    room = console.width - used - 3 * len(columns) - 1
    return room if len(whole) < len(columns) else room + SHORTEST_TEXT


def _show_records(title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = max(map(len, names))
    say(title)
    for row in rows:
        for name, cell in zip(names, row, strict=True):
            if name and cell:
                line = Text.from_markup(f"[dim]{name:<{width}}[/dim]  {cell}")
                line.truncate(max(console.width, width + 40), overflow="ellipsis")
                console.print(line, soft_wrap=True)
        say()


def _cell(value: Cell) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.2f}"
        case _:
            return value


FOLDED_OVER, HEAD, TAIL = 60, 24, 8
"""Lines of a tool's output: over so many it is folded to its beginning and its end."""

COLOURS: Mapping[str, str] = {
    "user": "green",
    "assistant": "cyan",
    "result": "yellow",
    "system": "magenta",
    "program": "dim",
    "tool": "dim",
}


class Piece(NamedTuple):
    """What one block of a message says."""

    text: str
    style: str = ""


def speaker(message: Message) -> str:
    """Who a message is of, as people see it: tool results are of no user."""
    if message.role != "user":
        return message.role
    does = gist(message)
    if does.results and not does.speaks:
        return "result"
    return message.author if message.author in ("program", "tool") else "user"


def begins_turn(message: Message) -> bool:
    """Whether a user says something here, in words."""
    return message.role == "user" and speaker(message) != "result"


def in_words(block: Mapping[str, Any]) -> str:
    """What a content block says: its text, or which tool was called with what."""
    match block.get("type"):
        case "text":
            return text_of(block)
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            return f"→ {block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}"
        case "tool_result":
            return f"← {text_of(block)}"
        case "thinking":
            return f"<thinking> {block.get('thinking')}"
        case kind:
            return f"<{kind}> {text_of(block)}".rstrip()


def pieces_in_short(message: Message) -> Iterator[Piece]:
    """A message for one line: thinking only where nothing else is said, of output how much it is."""
    blocks = message.blocks()
    said = [block for block in blocks if block.get("type") not in THINKING]
    for block in said or blocks:
        yield _in_short(block)


def _in_short(block: Mapping[str, Any]) -> Piece:
    match block.get("type"):
        case "tool_result":
            text = text_of(block)
            lines = text.count("\n") + 1
            much = f"({lines:,} lines) " if lines > 1 else ""
            failed = block.get("is_error") is True
            return Piece(
                f"← {'failed: ' if failed else ''}{much}{text.strip()}", "red" if failed else ""
            )
        case "thinking":
            return Piece(f"(thinking) {block.get('thinking') or ''}", "italic")
        case "redacted_thinking":
            return Piece("(thinking, redacted)", "italic")
        case _:
            return Piece(in_words(block))


def pieces_in_full(message: Message, address: str, *, whole: bool) -> Iterator[Piece]:
    """A message as it is; unless ``whole``, long output is folded."""
    for block in message.blocks():
        match block.get("type"):
            case "tool_result":
                failed = block.get("is_error") is True
                text = text_of(block)
                shown = text if whole else "\n".join(_folded(text.split("\n"), address))
                yield Piece(f"←{' failed:' if failed else ''} {shown}", "red" if failed else "")
            case "thinking":
                yield Piece(f"(thinking) {block.get('thinking') or ''}", "dim italic")
            case "redacted_thinking":
                yield Piece("(thinking, redacted)", "dim italic")
            case _:
                yield Piece(in_words(block))


def _folded(lines: Sequence[str], address: str) -> Sequence[str]:
    if len(lines) <= FOLDED_OVER:
        return lines
    hidden = len(lines) - HEAD - TAIL
    return [*lines[:HEAD], f"  … {hidden:,} lines: refold read {address}", *lines[-TAIL:]]


Step = TypeVar("Step")


class Troubles:
    """What did not go as wished, over all conversations of a play."""

    def __init__(self) -> None:
        self.refused: list[dict[str, Any]] = []
        """Requests that could not be made: conversation, message, why."""
        self._failed: Counter[tuple[str, str]] = Counter()

    def note(self, thread_id: str, event: Played) -> None:
        """Keep what an event says about trouble."""
        if event.refused is not None:
            why = {"thread_id": thread_id, "message": event.index, "reason": event.refused}
            self.refused.append(why)
        if event.compaction is not None and event.compaction.outcome == "failed":
            self._failed[event.compaction.reason, event.compaction.detail] += 1

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Why compactions failed, the most frequent reason first."""
        return [
            {"reason": reason, "detail": detail, "count": count}
            for (reason, detail), count in self._failed.most_common()
        ]

    def tell(self) -> None:
        """Say each kind of trouble once, with an example."""
        for item in self.failed:
            say(
                f"  [yellow]compaction failed[/yellow]: {item['count']:,} × "
                f"{clean(item['reason'])}: {clean(item['detail'])}"
            )
        for item in self.refused[:1]:
            more = f" (and {len(self.refused) - 1:,} more)" if self.refused[1:] else ""
            say(
                f"  [yellow]request not made[/yellow]{more}: at message {item['message']}: "
                f"{clean(item['reason'])}"
            )


class Bar:
    """How far a play is."""

    def __init__(self, progress: Progress, name: str, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task(clean(name), total=total)

    def advance(self, event: Played) -> None:
        """Show that this message was played."""
        self._progress.update(self._task, completed=event.index + 1)


@contextmanager
def indexing(db: Path, *, quiet: bool) -> Generator[None]:
    """Say what somebody waits for who asks for what was said: at first the index is made."""
    if quiet or not errors.is_terminal:
        yield
        return
    there = Path(derived_path(db, "recall")).exists()
    first = "Making the index of what was said. Later questions only add what is new …"
    with errors.status("Looking …" if there else first):
        yield


def steps(items: Sequence[Step], name: str, *, quiet: bool) -> Iterator[Step]:
    """The items one by one, with a bar on standard error where that is a terminal."""
    with _bar(quiet=quiet or len(items) < 2) as progress:
        yield from progress.track(items, description=name)


def _bar(*, quiet: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=errors,
        disable=quiet or not errors.is_terminal,
        transient=True,
    )


@contextmanager
def progress_bar(name: str, total: int, *, quiet: bool) -> Generator[Bar]:
    """A bar on standard error where that is a terminal; else nothing is shown."""
    with _bar(quiet=quiet) as progress:
        yield Bar(progress, name, total)
