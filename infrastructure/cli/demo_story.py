"""What ``refold demo`` did and saw, and how that is told."""

from pathlib import Path

from refold.application.recordings.playing import PlayFigures
from refold.application.upkeep.verifying import Verification
from refold.domain.value import Value

from .figures import show_figures
from .opening import next_command
from .output import clean, console, one_line, say, show_table

SUMMARY_LINES = 8
QUESTION = "how many jobs ran twice?"
"""Asked of the conversation at its end: the answer is in its first, compacted part."""


class Fold(Value, frozen=True):
    """One compaction of the story."""

    message: int
    tokens_before: int
    tokens_after: int
    covered: int
    kept: int
    offloaded: int


class Answer(Value, frozen=True):
    """A question about what was compacted, and what recall found."""

    question: str
    position: int
    fate: str
    text: str


class Story(Value, frozen=True):
    """What the demo did and saw."""

    figures: PlayFigures
    folds: tuple[Fold, ...]
    damage_done: tuple[str, ...]
    damage_found: Verification
    after_repair: Verification
    summary: str
    """The active summary at the end."""
    thread_id: str
    answer: Answer | None
    """What recall finds of what the context does not show any more."""
    seen: tuple[str, ...]
    """How the request that the model would be sent begins and ends, message by message."""
    same_context: bool
    """Whether the rendered context is the same bytes after damage, restart and rebuild."""


def tell_story(story: Story, db: Path) -> None:
    """Say what happened, the best figure first, and what to try next."""
    figures = story.figures
    say(
        f"[bold]{figures.tokens_without_compaction:,} → {figures.tokens_sent:,} tokens sent[/bold] in "
        f"{figures.requests:,} requests, none over its budget of {figures.budget:,}; no model was called.\n"
        if not figures.requests_over_budget
        else f"[red]{figures.requests_over_budget:,} requests were over the budget[/red]\n"
    )
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
    _tell_what_is_seen(story)
    if story.answer is not None:
        say(f'[bold]recall[/bold] "{clean(story.answer.question)}" finds message '
            f"{story.answer.position}, which the context has as {clean(story.answer.fate)}:")  # fmt: skip
        say(f"  [dim]{one_line(story.answer.text, 2 * (console.width - 12))}[/dim]\n")
    show_figures("Figures", figures)
    _tell_damage(story)
    _tell_next(story, db)


def _tell_what_is_seen(story: Story) -> None:
    room = min(96, console.width - 12)
    say(
        f"The request that the model would be sent now has {len(story.seen):,} messages. "
        f"It opens with a summary of {len(story.summary):,} characters:"
    )
    for line in story.summary.splitlines()[:SUMMARY_LINES]:
        say(f"  [dim]{one_line(line, room)}[/dim]")
    say("  [dim]…[/dim]\nand ends with:")
    for line in story.seen[-3:]:
        say(f"  [dim]{one_line(line, room)}[/dim]")
    say("")


def _tell_damage(story: Story) -> None:
    say("Then the read models were damaged on purpose:")
    for damage in story.damage_done:
        say(f"  · {damage}")
    kinds = sorted({f"{d.place}: {d.kind}" for d in story.damage_found.damage})
    say(f"[bold]verify[/bold] found it: {clean(', '.join(kinds)) or 'nothing'}")
    word = "[green]all is well[/green]" if story.after_repair.ok else "[red]still damaged[/red]"
    say(f"[bold]replay[/bold] rebuilt them from {story.after_repair.events:,} events: {word}.")
    same = "the same bytes as before" if story.same_context else "[red]not the same[/red]"
    say(f"The context that the model would see: {same}.\n")


def _tell_next(story: Story, db: Path) -> None:
    say(f"The conversation is in {clean(db)} now. Look at it:")
    for words in (
        ("show", story.thread_id),
        ("recall", story.thread_id, QUESTION),
        ("explain", story.thread_id),
        ("context", story.thread_id, "--sizes"),
    ):
        say(f"  {clean(next_command(*words, db=db))}")
    say("The same with a transcript of yours (Claude Code, Anthropic, OpenAI or pi format):")
    say("  refold play FILE --window 200000 --requests requests.jsonl")
    say("and in an agent: the ten lines in the README.")


def _bar(fold: Fold, folds: tuple[Fold, ...]) -> str:
    scale = 24 / max(f.tokens_before for f in folds)
    after, before = round(fold.tokens_after * scale), round(fold.tokens_before * scale)
    kept, freed = "#-" if console.options.ascii_only else "█░"
    return kept * after + "[dim]" + freed * (before - after) + "[/dim]"
