"""``refold show``: print a conversation for people, with the fate of each message."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import StoredMessage
from refold.application.conversation.addresses import SCHEME, address_of
from refold.application.history.explain import MessageFate
from refold.application.history.moments import At as Moment
from refold.application.ports.read_models import ConversationRow
from refold.application.projections.fates import Fate
from refold.domain.value import replace
from refold.infrastructure.palette import FATES

from .arguments import (
    as_json,
    find_place,
    next_command,
    open_existing,
    refuse_unknown,
    single_span,
    span_of_options,
)
from .list_commands import unique_beginnings
from .options import (
    DEFAULT_DB,
    TO_SECONDS,
    At,
    Db,
    Full,
    Json,
    Place,
    Positions,
    Range,
    Start,
    Stop,
    format_time,
    read_at,
)
from .output import (
    begins_turn,
    clean,
    console,
    cut_to_width,
    pager,
    pieces_in_full,
    pieces_in_short,
    print_json,
    say,
    say_parts,
    speaker,
    width_of,
)
from .part_colours import SPEAKERS

COVERED = ("summarised", "omitted")
QUIET = ("full", "preamble")
"""Fates without a badge."""
MOST_COUNTED = 5_000
"""Position up to which turns are counted from the start of the conversation."""
NARROW = 72
"""Width in columns below which the tokens are left out."""


class _Row(NamedTuple):
    stored: StoredMessage
    fate: Fate


class _Turn(NamedTuple):
    """A user request and everything until the next one."""

    number: int | None
    rows: list[_Row]

    @property
    def covered(self) -> int:
        """Number of its messages that a summary covers."""
        return sum(row.fate in COVERED for row in self.rows)


def show(
    thread: Place,
    positions: Positions = None,
    db: Db = DEFAULT_DB,
    range: Range = None,
    at: At = None,
    full: Full = False,
    start: Start = None,
    stop: Stop = None,
    json: Json = False,
) -> None:
    """Show the original messages of a conversation, compacted or not.

    Each line shows one message: position, author, tokens and fate, grouped by turns. With --full texts are
    complete, except for long tool output. With --at the conversation is shown as it was then.
    """
    moment = None if at is None else read_at(at)
    with open_existing(db) as memory:
        where = find_place(memory, thread, positions or ())
        span = single_span(where, span_of_options(range, start, stop))
        conversation = memory.conversation(where.thread)
        fates = {f.position: f for f in conversation.explain(span.start or 0, span.stop, at=moment)}
        if not fates:
            refuse_unknown(conversation, span, moment)
        messages = _messages(conversation, fates)
        if json:
            print_json({"thread_id": where.thread, "messages": _as_json(messages, fates)})
            return
        if not messages:
            _say_none(len(conversation.explain(at=moment)))
            return
        known = memory.conversations()
        about = _row_at(conversation, known, moment)
        names = unique_beginnings([row.thread_id for row in known])
        turns = list(_turns(messages, fates, _turns_before(conversation, messages[0].position)))
    with pager():
        _say_heading(about, messages, at)
        _show_turns(where.thread, turns, full=full)
        _say_next(where.thread, names, messages, turns, db, full=full)


def _row_at(
    conversation: ConversationMemory, known: Sequence[ConversationRow], moment: Moment | None
) -> ConversationRow:
    """Return the row of the conversation, with its size at ``moment``."""
    row = next(row for row in known if row.thread_id == conversation.thread_id)
    if moment is None:
        return row
    then = conversation.explain(at=moment)
    return replace(row, messages=len(then), tokens=sum(fate.tokens for fate in then))


def _say_none(length: int) -> None:
    there = f": positions 0 to {length - 1} exist" if length else ""
    say(f"No message there{there}.")


def _messages(
    conversation: ConversationMemory, fates: Mapping[int, MessageFate]
) -> list[StoredMessage]:
    return conversation.messages(min(fates), max(fates) + 1) if fates else []


def _as_json(
    messages: Sequence[StoredMessage], fates: Mapping[int, MessageFate]
) -> list[dict[str, object]]:
    return [{**as_json(m), "fate": fates[m.position].fate} for m in messages]


def _turns_before(conversation: ConversationMemory, position: int) -> int | None:
    """Count the turns that begin before a position, or return None if counting would take too long."""
    if position > MOST_COUNTED:
        return None
    return (
        sum(begins_turn(m.message) for m in conversation.messages(0, position)) if position else 0
    )


def _turns(
    messages: Sequence[StoredMessage], fates: Mapping[int, MessageFate], before: int | None
) -> Iterator[_Turn]:
    turn = _Turn(before, [])
    for stored in messages:
        if begins_turn(stored.message) and not _still_asking(turn):
            if turn.rows:
                yield turn
            number = None if turn.number is None else turn.number + 1
            turn = _Turn(number, [])
        turn.rows.append(_Row(stored, fates[stored.position].fate))
    yield turn


def _still_asking(turn: _Turn) -> bool:
    """Return whether the turn has only user messages so far."""
    return bool(turn.rows) and all(begins_turn(row.stored.message) for row in turn.rows)


def _say_heading(row: ConversationRow, messages: Sequence[StoredMessage], at: str | None) -> None:
    then = "" if at is None else f", as it was at {clean(at)} (version {messages[-1].version})"
    say(
        f"[bold]{clean(row.thread_id)}[/bold]  {clean(row.title)}\n"
        f"[dim]{row.messages:,} messages, {row.tokens:,} tokens{then}[/dim]"
    )


def _show_turns(thread: str, turns: Sequence[_Turn], *, full: bool) -> None:
    covered = False
    for turn in turns:
        _say_turn(turn)
        for row in turn.rows:
            now = row.fate in COVERED
            if covered and not now and row.fate in (*QUIET, "offloaded", "condensed"):
                _say_mark(row.stored)
            covered = now
            if full:
                _show_whole(thread, row)
            else:
                _show_line(row, dim=turn.covered == len(turn.rows))


def _say_turn(turn: _Turn) -> None:
    first = turn.rows[0].stored
    number = "" if turn.number is None else f"turn {turn.number}"
    name = number if turn.number else "before the first turn" if turn.number == 0 else "turn"
    when = format_time(first.at)
    badge = ""
    if turn.covered == len(turn.rows):
        badge = " · compacted"
    elif turn.covered:
        badge = f" · split: {turn.covered:,} of {len(turn.rows):,} messages compacted"
    say_parts([(f"\n── {name} · {when}", "bold"), (badge, "summary")])


def _say_mark(stored: StoredMessage) -> None:
    if stored.mark is not None:
        say_parts(
            [(f"══ the messages above are in summary {stored.mark.summary_id[:8]} ══", "summary")]
        )


def _show_line(row: _Row, *, dim: bool) -> None:
    stored, who = row.stored, speaker(row.stored.message)
    badge = "" if row.fate in QUIET or (dim and row.fate in COVERED) else f"[{row.fate}] "
    tokens = f"{stored.tokens:>7,} " if console.width > NARROW else ""
    head = f"{stored.position:>5} "
    room = console.width - width_of(f"{head}{who:<10}{tokens}{badge}") - 1
    parts = [
        (head, "dim" if dim else "bold"),
        (f"{who:<10}", "dim" if dim else SPEAKERS.get(who, "")),
        (tokens, "dim"),
        (badge, FATES.get(row.fate, "")),
    ]
    for number, piece in enumerate(pieces_in_short(stored.message)):
        text = cut_to_width(("  " if number else "") + " ".join(piece.text.split()), max(room, 8))
        parts.append((text, "dim" if dim else piece.style))
        room -= width_of(text)
        if room < 8:
            break
    say_parts(parts)


def _show_whole(thread: str, row: _Row) -> None:
    stored, who = row.stored, speaker(row.stored.message)
    badge = "" if row.fate in QUIET else f"  [{row.fate}]"
    when = format_time(stored.at, TO_SECONDS)
    say_parts(
        [
            (f"{stored.position} ", "bold"),
            (who, SPEAKERS.get(who, "")),
            (f"  {when}  {stored.tokens:,} tokens  version {stored.version}", "dim"),
            (badge, FATES.get(row.fate, "")),
        ]
    )
    address = address_of(thread, stored.position)
    for piece in pieces_in_full(stored.message, address, whole=False):
        say_parts([(piece.text.rstrip(), piece.style)])
    say()


def _say_next(
    thread: str,
    names: Mapping[str, str],
    messages: Sequence[StoredMessage],
    turns: Sequence[_Turn],
    db: object,
    *,
    full: bool,
) -> None:
    name, longest = names[thread], max(messages, key=lambda m: m.tokens)
    place = f"{name}/{longest.position}"
    if place.startswith(SCHEME) or place in names:  # It reads as another message or conversation.
        place = address_of(thread, longest.position)
    words = ["show", place, "--full"]
    if full:
        words = ["explain", name] if any(turn.covered for turn in turns) else ["context", name]
    say(f"\n[dim]Next: {clean(next_command(*words, db=db))}[/dim]")
