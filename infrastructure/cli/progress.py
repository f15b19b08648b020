"""Following a play: a bar while somebody watches, and afterwards what went wrong and why."""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from refold.application.lab.playing import Played
from refold.infrastructure.projection_store.derived_places import derived_path

from .output import clean, errors, say

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
