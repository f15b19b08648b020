"""Print lines, tables, JSON and progress, with a consistent meaning of colours."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import typer
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import THINKING, Message, gist, text_of
from refold.domain.text_cuts import beginning
from refold.infrastructure.shown_text import MISLEADING, strip_control

from .part_colours import THEME

if TYPE_CHECKING:
    from rich.progress import Progress

    from refold.application.lab.playing import Played
    from refold.infrastructure.files.log_place import LogPlace

Cell: TypeAlias = str | int | float | None

PIPE_WIDTH = 160
"""Output width without a terminal. ``COLUMNS`` overrides it."""
SHORTEST_TEXT = 8

# Characters that JSON allows in a string but a terminal may treat as a command.
_NOT_ESCAPED = lazy_pattern(f"[\x7f-\x9f{MISLEADING}]")


class _Output(Console):
    """A console that survives a closed pipe (``| head``), so that the command ends with its own exit code."""

    def on_broken_pipe(self) -> None:
        _write_nowhere(self.file)


# Transcript texts are printed unchanged: no automatic colours, no emoji codes.
console = _Output(highlight=False, emoji=False, theme=THEME)
errors = _Output(stderr=True, highlight=False, emoji=False, theme=THEME)
if not (console.is_terminal or "COLUMNS" in os.environ):
    console.width = PIPE_WIDTH


def show_any_text() -> None:
    """Print characters that the terminal's encoding lacks as ``?``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def keep_free(path: Path | None) -> None:
    """Print sentences and tables on standard error if ``path`` is standard output and leads to a pipe.

    A program at its other end expects only what the command writes to ``path``.
    """
    with suppress(OSError, ValueError):  # There is no such file, or standard output has no number.
        if path is not None and path.is_fifo():
            console.stderr = os.path.samestat(os.fstat(sys.stdout.fileno()), path.stat())


def _write_nowhere(stream: IO[str]) -> None:
    # Python flushes the stream again at exit, and must not fail then either.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def clean(text: object) -> str:
    """Return text of a transcript without control characters and markup."""
    return escape(strip_control(str(text)))


def one_line(text: str, width: int) -> str:
    """Return the beginning of a text on one line."""
    return clean(beginning(" ".join(text[: 8 * width].split()), width))


def width_of(text: str) -> int:
    """Return the number of terminal columns of a text."""
    return cell_len(text)


def cut_to_width(text: str, width: int) -> str:
    """Return as much of a text as fits into this many columns."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text[: width + 1], width - 1).rstrip() + "…"


@contextmanager
def pager() -> Generator[None]:
    """Show the output in a pager if standard output is a terminal."""
    if not (console.is_terminal and sys.stdin.isatty()) or os.environ.get("TERM") == "dumb":
        yield
        return
    # `less` as git configures it: no paging of short output, colours, and the text remains afterwards.
    os.environ.setdefault("LESS", "FRX")
    with console.pager(styles=console.color_system is not None):
        yield


def print_json(value: Any) -> None:
    """Print only one JSON object on standard output."""
    line = json_line(value, sys.stdout.encoding)
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _write_nowhere(sys.stdout)


def print_bytes(content: bytes) -> None:
    """Print the content of a file on standard output."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        _write_nowhere(sys.stdout)


def json_line(value: Any, encoding: str) -> str:
    """Return a JSON object on one line, in which no character can move the cursor or hide text."""
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
    """Print a sentence with markup. Transcript texts in it must be cleaned."""
    _print(console, text)


class Stopped(typer.Exit):
    """The end of a command that Ctrl-C stopped, and that has said itself what it did until then."""


def warn(text: str) -> None:
    """Print a sentence with markup on standard error. Texts in it must be cleaned."""
    _print(errors, text)


def _print(where: Console, text: str) -> None:
    # Wrap lines only on terminals: programs get each sentence on one line.
    where.print(text, soft_wrap=not where.is_terminal)


def say_parts(parts: Iterable[tuple[str, str]]) -> None:
    """Print styled texts one after the other. They need no cleaning."""
    line = Text()
    for text, style in parts:
        line.append(strip_control(text), style)
    console.print(line, soft_wrap=not console.is_terminal)


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table, or one block per row if it is too wide for the terminal.

    A column name ending in ``#`` marks numbers. One ending in ``…`` marks texts, which are cut to one line.
    All other cells are shown in full.
    """
    from rich.table import Table

    cells = [[_cell(value) for value in row] for row in rows]
    names = [column.rstrip("#…") for column in columns]
    room = _room_for_texts(columns, [names, *cells])
    if any(names) and room < SHORTEST_TEXT:
        _show_records(title, names, cells)
        return
    from rich.box import SIMPLE_HEAD

    made = Table(title=title or None, box=SIMPLE_HEAD, title_justify="left")
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
    # Without a terminal, lines are not padded with spaces.
    with console.capture() as captured:
        console.print(made)
    for line in captured.get().rstrip("\n").split("\n"):
        console.print(Text(line.rstrip()), soft_wrap=True)


def _room_for_texts(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return the width left for the text column, negative if the other columns do not fit."""
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
"""Line counts for tool output. Output longer than the first is cut to a head and a tail of the other two lengths."""


class Piece(NamedTuple):
    """Text and style of one message block."""

    text: str
    style: str = ""


def speaker(message: Message) -> str:
    """Return the author of a message for people. Tool results do not count as user messages."""
    if message.role != "user":
        return message.role
    does = gist(message)
    if does.results and not does.speaks:
        return "result"
    return message.author if message.author in ("program", "tool") else "user"


def begins_turn(message: Message) -> bool:
    """Return whether a user says something in this message."""
    return message.role == "user" and speaker(message) != "result"


def describe_block(block: Mapping[str, Any]) -> str:
    """Return the content of a block: its text, or the called tool with its input."""
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
    """Yield a message for one line: thinking only without other content, tool output only as its size."""
    blocks = message.blocks()
    said = [block for block in blocks if block.get("type") not in THINKING]
    for block in said or blocks:
        yield _shorten_block(block)


def _shorten_block(block: Mapping[str, Any]) -> Piece:
    match block.get("type"):
        case "tool_result":
            text = text_of(block)
            lines = text.count("\n") + 1
            much = f"({lines:,} lines) " if lines > 1 else ""
            failed = block.get("is_error") is True
            return Piece(
                f"← {'failed: ' if failed else ''}{much}{text.strip()}", "damage" if failed else ""
            )
        case "thinking":
            return Piece(f"(thinking) {block.get('thinking') or ''}", "thinking")
        case "redacted_thinking":
            return Piece("(thinking, redacted)", "thinking")
        case _:
            return Piece(describe_block(block))


def pieces_in_full(message: Message, address: str, *, whole: bool) -> Iterator[Piece]:
    """Yield a full message. Long output is shortened unless ``whole``."""
    for block in message.blocks():
        match block.get("type"):
            case "tool_result":
                failed = block.get("is_error") is True
                text = text_of(block)
                shown = text if whole else "\n".join(_fold_lines(text.split("\n"), address))
                yield Piece(f"←{' failed:' if failed else ''} {shown}", "damage" if failed else "")
            case "thinking":
                yield Piece(f"(thinking) {block.get('thinking') or ''}", "thinking")
            case "redacted_thinking":
                yield Piece("(thinking, redacted)", "thinking")
            case _:
                yield Piece(describe_block(block))


def _fold_lines(lines: Sequence[str], address: str) -> Sequence[str]:
    if len(lines) <= FOLDED_OVER:
        return lines
    hidden = len(lines) - HEAD - TAIL
    return [
        *lines[:HEAD],
        f"  … {hidden:,} lines: refold read {shlex.quote(address)}",
        *lines[-TAIL:],
    ]


Step = TypeVar("Step")


class Troubles:
    """Collects the problems of all conversations of a play."""

    def __init__(self) -> None:
        self.refused: list[dict[str, Any]] = []
        """Requests that could not be made: conversation, message, reason."""
        self._failed: Counter[tuple[str, str]] = Counter()

    def note(self, thread_id: str, event: Played) -> None:
        """Record the problems of an event."""
        if event.refused is not None:
            why = {"thread_id": thread_id, "message": event.index, "reason": event.refused}
            self.refused.append(why)
        if event.compaction is not None and event.compaction.outcome == "failed":
            self._failed[event.compaction.reason, event.compaction.detail] += 1

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Failed compactions by reason, most frequent first."""
        return [
            {"reason": reason, "detail": detail, "count": count}
            for (reason, detail), count in self._failed.most_common()
        ]

    def print(self) -> None:
        """Print each kind of problem once, with an example."""
        for item in self.failed:
            say(
                f"  [warning]compaction failed[/warning]: {item['count']:,} × "
                f"{clean(item['reason'])}: {clean(item['detail'])}"
            )
        for item in self.refused[:1]:
            more = f" (and {len(self.refused) - 1:,} more)" if self.refused[1:] else ""
            say(
                f"  [warning]request not made[/warning]{more}: at message {item['message']}: "
                f"{clean(item['reason'])}"
            )


class Bar:
    """The progress of a play or an exam."""

    def __init__(self, progress: Progress, name: str, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task(clean(name), total=total)

    def advance(self, event: Played) -> None:
        """Advance by the played message."""
        self._progress.update(self._task, completed=event.index + 1)

    def step(self) -> None:
        """Advance by one."""
        self._progress.advance(self._task)


@contextmanager
def indexing(db: LogPlace, *, quiet: bool) -> Generator[None]:
    """Show a status while the recall index is being built or searched."""
    if quiet or not errors.is_terminal:
        yield
        return
    from refold.infrastructure.files.log_place import derived_path

    there = db.path is None or Path(derived_path(db.path, "recall")).exists()
    first = "Building the search index. Later searches only add new messages …"
    with errors.status("Searching …" if there else first):
        yield


def steps(items: Sequence[Step], name: str, *, quiet: bool) -> Iterator[Step]:
    """Yield the items, with a progress bar on standard error if it is a terminal."""
    with _bar(quiet=quiet or len(items) < 2) as progress:
        yield from progress.track(items, description=name)


def _bar(*, quiet: bool) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    is_off = quiet or not errors.is_terminal
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=errors,
        auto_refresh=not is_off,  # Takes a thread, also for a bar that is not shown.
        disable=is_off,
        transient=True,
    )


@contextmanager
def progress_bar(name: str, total: int, *, quiet: bool) -> Generator[Bar]:
    """Show a progress bar on standard error if it is a terminal."""
    with _bar(quiet=quiet) as progress:
        yield Bar(progress, name, total)
