"""``refold why``: say why the agent knows a value or no longer knows it."""

import textwrap
from typing import Annotated

import typer

from refold.application.history.value_history import (
    Occurrence,
    ValueHistory,
)
from refold.domain.text_cuts import beginning
from refold.infrastructure.shown_text import strip_control
from refold.infrastructure.value_words import (
    SHOWN_VALUE,
    cause_words,
    effect_words,
    place_words,
    verdict,
    way_words,
)

from .arguments import next_command, open_existing, require
from .options import DEFAULT_DB, At, Db, Json, Thread, format_time, read_at
from .output import console, print_json, say, say_parts

EXAMPLES = {
    "why": 'Examples: refold why thread-42 6390 --db agent.db; refold why thread-42 "never push to main" --at 120. '
    "Exit code 1: no message and no request has the value."
}
Sought = Annotated[
    str,
    typer.Argument(
        metavar="VALUE", help="A text as a message has it: a number, a path, a part of a sentence."
    ),
]


def why(
    thread: Thread, value: Sought, db: Db = DEFAULT_DB, at: At = None, json: Json = False
) -> None:
    """Explain why the agent no longer knows a value: when it entered, when it left, what brings it back."""
    moment = None if at is None else read_at(at)
    with open_existing(db) as memory:
        thread = require(memory, thread)
        found = memory.conversation(thread).why(value, moment)
    if json:
        print_json({**found.model_dump(), "is_known": found.is_known})
    else:
        _show(found, db, is_past=moment is not None)
    if not found.is_known:
        raise typer.Exit(1)


def _show(found: ValueHistory, db: object, *, is_past: bool) -> None:
    _say(verdict(found, is_past=is_past), style="bold")
    if not found.is_known:
        _show_unknown(found, db)
        return
    _show_messages(found)
    _show_places(found)
    _show_changes(found)
    _show_ways(found, db, is_past=is_past)


def _show_unknown(found: ValueHistory, db: object) -> None:
    if found.erased:
        _say(
            f"{_count(found.erased, 'message was', 'messages were')} erased. What only they had is gone for good."
        )
    if found.similar:
        _heading("Similar lines, found by recall")
        for line in found.similar:
            _say(f"message {line.position}, {line.role}: {line.line}", 2)
    words = beginning(found.value, SHOWN_VALUE)
    how = next_command("recall", found.thread_id, words, db=db)
    _say("Give a part of it, or search by words:")
    say_parts([(f"  {how}", "bold")])


def _show_messages(found: ValueHistory) -> None:
    if found.first is None or found.newest is None:
        return
    _heading("Messages that have it")
    if found.match == "similar":
        _say("No message has it exactly so; these have it with other case or spacing.", 2)
    if found.count == 1:
        _show_message("the only one", found.first)
        return
    _show_message(f"the first of {found.count:,}", found.first)
    _show_message("the newest", found.newest)


def _show_message(which: str, one: Occurrence) -> None:
    who = f"tool {one.tool}" if one.tool else one.role
    _say(
        f"{which}: message {one.position}, {who}, {format_time(one.at)}, version {one.version:,}", 2
    )
    _say(one.line, 6, style="dim")


def _show_places(found: ValueHistory) -> None:
    _heading("Where the request has it")
    if not found.places:
        _say("Nowhere.", 2)
    for place in found.places:
        _say(f"{place_words(place)}:", 2)
        _say(place.line, 6, style="dim")


def _show_changes(found: ValueHistory) -> None:
    if not found.changes:
        return
    _heading("When that changed, by the time of the log")
    if found.change_count > len(found.changes):
        _say(f"{found.change_count - len(found.changes):,} earlier changes are left out.", 2)
    for change in found.changes:
        _say(f"{format_time(change.at)}  version {change.version:,}: {effect_words(change)}", 2)
        _say(cause_words(change), 6)
    if not found.is_certain:
        _say("Older changes may be missing: too many versions have shortened messages.", 2)


def _show_ways(found: ValueHistory, db: object, *, is_past: bool) -> None:
    if not found.ways:
        if is_past and found.standing != "message" and found.count:
            _say("The next request has it word for word now.")
        return
    now = " now" if is_past else ""
    _heading(f"What brings it back{now}, word for word")
    for way in sorted(found.ways, key=lambda one: not one.works):
        say_parts(
            [
                ("  yes  " if way.works else "  no   ", "good" if way.works else "warning"),
                (way_words(way), ""),
            ]
        )
        if way.command and way.works:
            # A command that is cut or wrapped could not be copied.
            say_parts([(f"       {next_command(*way.command, db=db)}", "bold")])
        _say(way.why, 7)


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _heading(text: str) -> None:
    say()
    say_parts([(text, "bold")])


def _say(text: str, indent: int = 0, style: str = "") -> None:
    """Print a sentence, wrapped under its indentation on a terminal."""
    begin = " " * indent
    shown = begin + strip_control(text)
    if console.is_terminal or console.width <= 100:
        shown = textwrap.fill(
            shown,
            max(40, console.width),
            subsequent_indent=begin,
            break_on_hyphens=False,
            break_long_words=False,
        )
    for line in shown.splitlines():
        say_parts([(line, style)])
