"""``refold demo``: the main job on a conversation that ships with refold, told as it happens."""

import json as jsonlib
import logging
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from refold.application.memory import Memory
from refold.application.recordings.playing import Played, Player, PlayFigures
from refold.application.results import CompactionResult
from refold.application.upkeep.verifying import Verification
from refold.domain.value import Value
from refold.infrastructure.sqlite_connection import open_sqlite

from .figures import show_figures
from .options import Json
from .output import clean, console, one_line, print_json, say, show_table
from .watching import progress_bar

WINDOW = 48_000
RESTART_EVERY = 90
SUMMARY_LINES = 14

OwnWindow = Annotated[
    int,
    typer.Option(
        "--window",
        help="Context window in tokens, from 8000.",
        min=8_000,
        max=1_000_000,
        metavar="TOKENS",
    ),
]


class Fold(Value, frozen=True):
    """One compaction of the story."""

    message: int
    tokens_before: int
    tokens_after: int
    covered: int
    kept: int
    offloaded: int


class Story(Value, frozen=True):
    """What the demo did and saw."""

    figures: PlayFigures
    folds: tuple[Fold, ...]
    damage_done: tuple[str, ...]
    damage_found: Verification
    after_repair: Verification
    summary: str
    """The active summary at the end."""
    same_context: bool
    """Whether the rendered context is the same bytes after damage, restart and rebuild."""


def demo(window: OwnWindow = WINDOW, json: Json = False) -> None:
    """Play a shipped conversation: compactions, restarts, damage and repair. No key, no network."""
    from refold.infrastructure.demo.session import demo_conversation
    from refold.infrastructure.derived.places import derived_path
    from refold.infrastructure.opening import open_memory

    recorded = demo_conversation()
    # The read models are damaged on purpose here; the story tells it, no warning needs to.
    logging.getLogger("refold").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.db"

        def opened() -> Memory:
            # Whatever the environment says: no key, no network, every compaction in its place.
            return open_memory(path, window=window, summariser="extractive", background=False)

        opened().close()  # A wrong setting is told before anything else.
        if not json:
            _introduce(len(recorded.messages), window)
        folds: list[Fold] = []
        with progress_bar("playing", len(recorded.messages), quiet=json) as bar:

            def watch(event: Played) -> None:
                bar.advance(event)
                if event.compaction is not None and event.compaction.outcome == "performed":
                    folds.append(_fold(event.index, event.compaction))

            figures = Player(opened, recorded, restart_every=RESTART_EVERY, on_event=watch).play()
        story = _damage_and_repair(
            opened, Path(derived_path(path, "views")), recorded.thread_id, figures, folds
        )
    if json:
        print_json(story.model_dump())
    else:
        _tell(story)
    if not (story.after_repair.ok and story.same_context):
        raise typer.Exit(1)


def _damage_and_repair(
    opened: Callable[[], Memory],
    views: Path,
    thread_id: str,
    figures: PlayFigures,
    folds: list[Fold],
) -> Story:
    with opened() as memory:
        before = _bytes(memory, thread_id)
        memory.conversations()
    done = _damage(views)
    with opened() as memory:
        found = memory.verify()
        memory.replay()
        repaired = memory.verify()
        after = _bytes(memory, thread_id)
        active = [s for s in memory.conversation(thread_id).summaries() if s.is_active]
    return Story(
        figures=figures,
        folds=tuple(folds),
        damage_done=done,
        damage_found=found,
        after_repair=repaired,
        summary=active[0].summary_text if active else "",
        same_context=before == after,
    )


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
    chat = memory.conversation(thread_id)
    context = chat.context(at=chat.version)
    return jsonlib.dumps([context.system, context.messages]).encode()


def _fold(index: int, result: CompactionResult) -> Fold:
    return Fold(
        message=index,
        tokens_before=result.tokens_before,
        tokens_after=result.tokens_after,
        covered=result.messages_covered,
        kept=result.messages_kept,
        offloaded=result.results_offloaded,
    )


def _introduce(messages: int, window: int) -> None:
    say(
        f"\nA coding session of {messages} messages (parallel tool calls, failures, a huge log, "
        f"thinking, 中文, 🙂) meets a model with a window of {window:,} tokens."
    )
    say(
        "Messages arrive one by one, as in a live agent; before each answer the context is "
        f"rendered. The store is closed and opened again every {RESTART_EVERY} messages.\n"
    )


def _tell(story: Story) -> None:
    show_table(
        "What was folded when",
        ["message#", "tokens…", "before#", "after#", "covers#", "keeps#"],
        [
            (
                fold.message,
                _bar(fold, story.folds),
                fold.tokens_before,
                fold.tokens_after,
                fold.covered,
                fold.kept,
            )
            for fold in story.folds
        ],
    )
    say(f"The summary that the agent has at the end begins ({len(story.summary):,} characters):")
    for line in story.summary.splitlines()[:SUMMARY_LINES]:
        say(f"  [dim]{one_line(line, min(96, console.width - 12))}[/dim]")
    say("")
    show_figures("Figures", story.figures)
    say("Then the read models were damaged on purpose:")
    for damage in story.damage_done:
        say(f"  · {damage}")
    kinds = sorted({f"{d.place}: {d.kind}" for d in story.damage_found.damage})
    say(f"[bold]verify[/bold] found it: {clean(', '.join(kinds)) or 'nothing'}")
    word = "[green]all is well[/green]" if story.after_repair.ok else "[red]still damaged[/red]"
    say(f"[bold]replay[/bold] rebuilt them from {story.after_repair.events:,} events: {word}.")
    same = "the same bytes as before" if story.same_context else "[red]not the same[/red]"
    say(f"The context that the model would see: {same}. No model was called for any of this.\n")
    say("The same with a transcript of yours (Claude Code, Anthropic, OpenAI or pi format):")
    say("  refold play FILE --window 200000 --requests requests.jsonl")
    say("and in an agent: the ten lines in the README.")


def _bar(fold: Fold, folds: tuple[Fold, ...]) -> str:
    scale = 24 / max(f.tokens_before for f in folds)
    after, before = round(fold.tokens_after * scale), round(fold.tokens_before * scale)
    kept, freed = "#-" if console.options.ascii_only else "█░"
    return kept * after + "[dim]" + freed * (before - after) + "[/dim]"
