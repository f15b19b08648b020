"""``refold demo``: play a shipped conversation, damage and repair its read models, and report."""

import json as jsonlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.lab.playing import Player, PlayFigures
from refold.application.maintenance.verifying import Verification
from refold.application.projections.fates import Fate
from refold.application.recall.hits import Recalled
from refold.application.rendering.request_blocks import CONTINUE
from refold.application.rendering.request_parts import RequestPart
from refold.domain.messages import Message
from refold.domain.value import Value
from refold.infrastructure.files.log_place import LogPlace
from refold.infrastructure.palette import FATES
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite

from .arguments import next_command
from .options import Json
from .output import (
    SHORTEST_TEXT,
    Cell,
    clean,
    console,
    one_line,
    pieces_in_short,
    print_json,
    progress_bar,
    say,
    show_table,
    speaker,
)
from .part_colours import SPEAKERS, RequestBars, coloured
from .play_command import show_figures

SUMMARY_LINES = 8
WIDE = 80
"""Width in columns from which every column of the table of compactions is shown."""
BAR = 24
"""Width of a bar at ``WIDE`` columns."""
NARROW_COLUMNS = 26
"""Width of the columns that a narrow terminal shows, without the bar."""
QUESTION = "how many jobs ran twice?"
"""Question that recall answers at the end. The answer is in the first, compacted part."""


class Fold(Value, frozen=True):
    """A compaction during the demo."""

    message: int
    tokens_before: int
    tokens_after: int
    covered: int
    kept: int
    offloaded: int
    parts: tuple[RequestPart, ...]
    """Content of the request afterwards, largest first."""


class Answer(Value, frozen=True):
    """A recall of compacted content."""

    question: str
    position: int
    fate: Fate
    text: str


class Story(Value, frozen=True):
    """Results of the demo."""

    figures: PlayFigures
    folds: tuple[Fold, ...]
    damage_done: tuple[str, ...]
    damage_found: Verification
    after_repair: Verification
    summary: str
    """Active summary at the end."""
    thread_id: str
    answer: Answer | None
    """Recall result from content that the context no longer shows."""
    seen: tuple[str, ...]
    """Messages of the next request, each on one line that begins with its speaker."""
    same_context: bool
    """True if the rendered context has the same bytes after damage, restart and rebuild."""


def print_story(story: Story, db: LogPlace) -> None:
    """Print the results, the best figure first, and suggest next commands."""
    figures = story.figures
    say(
        f"[bold]{figures.tokens_without_compaction:,} → {figures.tokens_sent:,} tokens sent[/bold] in "
        f"{figures.requests:,} requests, none over its budget of {figures.budget:,}; no model was called.\n"
        if not figures.requests_over_budget
        else f"[damage]{figures.requests_over_budget:,} requests were over the budget[/damage]\n"
    )
    _print_folds(story)
    _print_request(story)
    if story.answer is not None:
        say(f'[bold]recall[/bold] "{clean(story.answer.question)}" finds message '
            f"{story.answer.position}, which is {_coloured_fate(story.answer)} in the context:")  # fmt: skip
        say(f"  {one_line(story.answer.text, 2 * (console.width - 12))}\n")
    show_figures("Figures", figures)
    _print_damage(story)
    _print_next(story, db)


def _print_folds(story: Story) -> None:
    budget, is_wide = story.figures.budget, console.width >= WIDE
    taken = WIDE - BAR if is_wide else NARROW_COLUMNS
    bars = RequestBars(console, budget, max(SHORTEST_TEXT, min(2 * BAR, console.width - taken)))
    columns = ["message#", "before#", "after#", "the request after it…", "covers#", "keeps#"]
    rows: list[tuple[Cell, ...]] = [
        (
            fold.message,
            fold.tokens_before,
            fold.tokens_after,
            bars.draw(fold.parts),
            fold.covered,
            fold.kept,
        )
        for fold in story.folds
    ]
    if not is_wide:
        columns, rows = [columns[0], *columns[2:4]], [(row[0], *row[2:4]) for row in rows]
    show_table(f"Compactions (width of a bar: the budget of {budget:,} tokens)", columns, rows)
    if rows:
        say(f"{bars.legend()}\n")


def _print_request(story: Story) -> None:
    room = min(96, console.width - 12)
    say(
        f"The next request to the model has {len(story.seen):,} messages. "
        f"It opens with a {coloured('summary', 'summary')} of {len(story.summary):,} characters:"
    )
    margin = "|" if console.options.ascii_only else "│"
    for line in (*story.summary.splitlines()[:SUMMARY_LINES], "…"):
        say(f"{coloured(margin, 'summary')} {one_line(line, room)}".rstrip())
    say("and ends with:")
    for line in story.seen[-3:]:
        who, _, said = line.partition(": ")
        say(f"  {coloured(clean(who), SPEAKERS.get(who))}: {one_line(said, room - len(who) - 2)}")
    say("")


def _coloured_fate(answer: Answer) -> str:
    return coloured(clean(answer.fate), FATES.get(answer.fate))


def _print_damage(story: Story) -> None:
    say("Then the demo damaged the read models:")
    for damage in story.damage_done:
        say(f"  · {damage}")
    kinds = sorted({f"{d.place}: {d.kind}" for d in story.damage_found.damage})
    say(f"[bold]verify[/bold] found it: {clean(', '.join(kinds)) or 'nothing'}")
    word = "[good]all is well[/good]" if story.after_repair.ok else "[damage]still damaged[/damage]"
    say(f"[bold]replay[/bold] rebuilt them from {story.after_repair.events:,} events: {word}.")
    same = "the same bytes as before" if story.same_context else "[damage]not the same[/damage]"
    say(f"The context after the repair: {same}.\n")


def _print_next(story: Story, db: LogPlace) -> None:
    say(f"The conversation is now in {clean(db)}. Look at it:")
    for words in (
        ("show", story.thread_id),
        ("recall", story.thread_id, QUESTION),
        ("explain", story.thread_id),
        ("context", story.thread_id, "--sizes"),
    ):
        say(f"  {clean(next_command(*words, db=db))}")
    say("Or in a browser (pip install 'refold\\[inspect]'):")
    say(f"  {clean(next_command('inspect', db=db))}")
    say("To play your own transcript (of Claude Code, Codex, OpenAI, Anthropic and other tools):")
    say("  refold play FILE --window 200000 --requests requests.jsonl")
    say("To use refold in an agent, see the example in the README.")


WINDOW = 48_000
RESTART_EVERY = 90
DEMO_DB = LogPlace("demo.db")

DemoDb = Annotated[
    LogPlace,
    typer.Option(
        "--db",
        metavar="PATH",
        parser=LogPlace.parse,
        help="The log of the demo. An earlier demo there is replaced; other files are refused.",
    ),
]

OwnWindow = Annotated[
    int,
    typer.Option(
        "--window",
        help="Context window in tokens, at least 8000.",
        min=8_000,
        max=1_000_000,
        metavar="TOKENS",
    ),
]


def demo(db: DemoDb = DEMO_DB, window: OwnWindow = WINDOW, json: Json = False) -> None:
    """Play a shipped conversation: compactions, restarts, damage and repair. No key, no network.

    The log stays in demo.db for inspection; the next demo replaces it.
    """
    from refold.infrastructure.bootstrap import open_memory
    from refold.infrastructure.files.log_place import derived_path

    from .demo_session import demo_conversation, make_room

    path = db.file_for("demo")
    recorded = demo_conversation()
    # The demo damages the read models on purpose and reports it, so warnings are unnecessary.
    logging.getLogger("refold").setLevel(logging.ERROR)
    make_room(path, recorded)

    def opened() -> Memory:
        # Ignore the environment: no key, no network, no compaction in the background.
        return open_memory(path, window=window, summariser="extractive", background=False)

    opened().close()  # Report an invalid setting before the introduction.
    if not json:
        _introduce(len(recorded.messages), window)
    compacted: list[tuple[int, Context]] = []

    def keep(index: int, context: Context) -> None:
        if any(result.outcome == "performed" for result in context.compactions):
            compacted.append((index, context))

    with progress_bar("playing", len(recorded.messages), quiet=json) as bar:
        figures = Player(
            opened, recorded, restart_every=RESTART_EVERY, on_request=keep, on_event=bar.advance
        ).play()
    views = Path(derived_path(path, "views"))
    story = _damage_and_repair(opened, views, recorded.thread_id, figures, compacted)
    if json:
        print_json({"db": str(db), **story.model_dump()})
    else:
        print_story(story, db)
    if not (story.after_repair.ok and story.same_context):
        raise typer.Exit(1)


def _damage_and_repair(
    opened: Callable[[], Memory],
    views: Path,
    thread_id: str,
    figures: PlayFigures,
    compacted: Sequence[tuple[int, Context]],
) -> Story:
    from .demo_session import LABEL

    with opened() as memory:
        conversation = memory.conversation(thread_id)
        folds = tuple(fold for request in compacted for fold in _folds(conversation, *request))
        conversation.label(LABEL, recorded=True)
        before = _bytes(memory, thread_id)
        memory.conversations()
    done = _damage(views)
    with opened() as memory:
        found = memory.verify()
        memory.replay()
        repaired = memory.verify()
        after = _bytes(memory, thread_id)
        conversation = memory.conversation(thread_id)
        active = [s for s in conversation.summaries() if s.is_active]
        found_again = conversation.recall(QUESTION, limit=1)
        context = conversation.context(at=conversation.version)
    return Story(
        figures=figures,
        folds=folds,
        damage_done=done,
        damage_found=found,
        after_repair=repaired,
        summary=active[0].summary_text if active else "",
        same_context=before == after,
        thread_id=thread_id,
        answer=_answer(found_again),
        seen=tuple(_seen(context)),
    )


def _answer(found: Recalled) -> Answer | None:
    return next(
        (
            Answer(question=found.query, position=hit.position, fate=hit.fate, text=hit.text)
            for hit in found
        ),
        None,
    )


def _seen(context: Context) -> Iterator[str]:
    for message in context.messages:
        if message["content"] == CONTINUE:
            continue  # Not a message of the conversation: it makes the request end with the user.
        said = Message(role=message["role"], content=_frozen(message["content"]))
        yield f"{speaker(said)}: {' '.join(piece.text for piece in pieces_in_short(said))}"[:400]


def _frozen(content: Any) -> Any:
    return content if isinstance(content, str) else tuple(content)


def _damage(views: Path) -> tuple[str, ...]:
    with closing(open_sqlite(views)) as connection, connection:
        connection.execute("UPDATE messages SET text = 'something else' WHERE position = 7")
        connection.execute("DELETE FROM summaries WHERE is_active = 1")
        connection.execute("DROP TABLE compactions")
    return (
        "the text of message 7 was changed",
        "the active summary's row was deleted",
        "the table of compactions was dropped",
    )


def _bytes(memory: Memory, thread_id: str) -> bytes:
    conversation = memory.conversation(thread_id)
    context = conversation.context(at=conversation.version)
    return jsonlib.dumps([context.system, context.messages]).encode()


def _folds(conversation: ConversationMemory, index: int, context: Context) -> Iterator[Fold]:
    """Yield the compactions before a request, with the content of the request."""
    parts = conversation.request_parts(context)
    for result in context.compactions:
        if result.outcome == "performed":
            yield Fold(
                message=index,
                tokens_before=result.tokens_before,
                tokens_after=result.tokens_after,
                covered=result.messages_covered,
                kept=result.messages_kept,
                offloaded=result.results_offloaded,
                parts=parts,
            )


def _introduce(messages: int, window: int) -> None:
    say(
        f"\nA coding session of {messages} messages (parallel tool calls, failures, a huge log, "
        f"thinking, 中文, 🙂) is played for a model with a window of {window:,} tokens."
    )
    say(
        "Messages arrive one by one, as in a live agent, and the context is rendered before each "
        f"answer. The log is closed and reopened every {RESTART_EVERY} messages.\n"
    )
