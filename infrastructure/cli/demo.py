"""``refold demo``: the main job on a conversation that ships with refold, told as it happens."""

import json as jsonlib
import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from refold.application.context import Context
from refold.application.memory import Memory
from refold.application.recall.results import Recalled
from refold.application.recordings.playing import Played, Player, PlayFigures
from refold.application.rendering.texts import CONTINUE
from refold.application.results import CompactionResult
from refold.domain.messages import Message
from refold.infrastructure.sqlite_connection import open_sqlite

from .demo_story import QUESTION, Answer, Fold, Story, tell_story
from .options import Json
from .output import print_json, say
from .watching import progress_bar
from .words import pieces_in_short, speaker

WINDOW = 48_000
RESTART_EVERY = 90
DEMO_DB = Path("demo.db")

DemoDb = Annotated[
    Path,
    typer.Option(
        "--db",
        metavar="PATH",
        help="Where its log is left. An earlier demo there is replaced, nothing else is.",
    ),
]

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


def demo(db: DemoDb = DEMO_DB, window: OwnWindow = WINDOW, json: Json = False) -> None:
    """Play a shipped conversation: compactions, restarts, damage and repair. No key, no network.

    It stays in demo.db, to be looked at; the next demo begins anew there.
    """
    from refold.infrastructure.demo.place import make_room
    from refold.infrastructure.demo.session import demo_conversation
    from refold.infrastructure.derived.places import derived_path
    from refold.infrastructure.opening import open_memory

    recorded = demo_conversation()
    # The read models are damaged on purpose here; the story tells it, no warning needs to.
    logging.getLogger("refold").setLevel(logging.ERROR)
    make_room(db, recorded)

    def opened() -> Memory:
        # Whatever the environment says: no key, no network, every compaction in its place.
        return open_memory(db, window=window, summariser="extractive", background=False)

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
        opened, Path(derived_path(db, "views")), recorded.thread_id, figures, folds
    )
    if json:
        print_json({"db": str(db), **story.model_dump()})
    else:
        tell_story(story, db)
    if not (story.after_repair.ok and story.same_context):
        raise typer.Exit(1)


def _damage_and_repair(
    opened: Callable[[], Memory],
    views: Path,
    thread_id: str,
    figures: PlayFigures,
    folds: list[Fold],
) -> Story:
    from refold.infrastructure.demo.session import LABEL

    with opened() as memory:
        memory.conversation(thread_id).label(LABEL, recorded=True)
        before = _bytes(memory, thread_id)
        memory.conversations()
    done = _damage(views)
    with opened() as memory:
        found = memory.verify()
        memory.replay()
        repaired = memory.verify()
        after = _bytes(memory, thread_id)
        chat = memory.conversation(thread_id)
        active = [s for s in chat.summaries() if s.is_active]
        found_again = chat.recall(QUESTION, limit=1)
        context = chat.context(at=chat.version)
    return Story(
        figures=figures,
        folds=tuple(folds),
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
            continue  # Nobody said this: a request must end with the user.
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
