"""What the file of the read models consists of."""

from collections.abc import Iterator, Sequence

from sqlite_utils import Database

from refold.application.event_log import Damage, LoggedEvent
from refold.infrastructure.derived.content import Comparable
from refold.infrastructure.derived.outdating import Left
from refold.infrastructure.derived.progress import Progress

from .answers import count_events
from .folding import fold_into
from .tables import (
    LATE_INDEX,
    PROJECTIONS,
    TABLES,
    TALLIES,
    TALLY_COLUMNS,
    create_late_index,
    create_tables,
)

MESSAGES = "messages"


class ViewsContent:
    """``Content`` of the read models: one table for each, with tallies."""

    name = "views"
    title = "the read models"
    projections = PROJECTIONS
    counts = "events"
    late = frozenset({LATE_INDEX})
    compared: Sequence[Comparable] = (
        *(
            Comparable(
                table.name,
                tuple(table.types),
                table.key,
                of_event=table.name in ("messages", "summaries"),
                is_final=table.name == MESSAGES,
                where=table.where,
            )
            for table in TABLES
        ),
        Comparable(TALLIES, tuple(TALLY_COLUMNS), ("thread_id", "projection")),
    )

    def create(self, db: Database) -> None:
        """See ``Content``."""
        create_tables(db)

    def fold(
        self, db: Database, progress: Progress, events: Iterator[LoggedEvent], left: Left
    ) -> tuple[Progress, bool]:
        """See ``Content``."""
        return fold_into(db, progress, events, left)

    def finish(self, db: Database) -> None:
        """See ``Content``."""
        create_late_index(db)

    def count(self, db: Database) -> int:
        """See ``Content``."""
        return count_events(db)

    def forget(self, db: Database) -> None:
        """See ``Content``."""
        db.conn.execute(f"DELETE FROM {MESSAGES}")

    def damage(self, db: Database) -> Iterator[Damage]:
        """See ``Content``. Every table is compared row by row."""
        del db
        return iter(())


VIEWS = ViewsContent()
