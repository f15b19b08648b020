"""Copy a log between files and servers: open both, copy and compare, and finish what was erased."""

from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from refold.application.api.argument_checks import check_path, invalid_argument
from refold.application.errors import LogError
from refold.application.maintenance.copying import Progress, copy_events, ignore_progress
from refold.application.maintenance.maintenance_results import Copied
from refold.application.ports.log_copy import CopyEnd
from refold.infrastructure.bootstrap import configuration_of, key_source, open_core
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.files.log_place import (
    LogPlace,
    is_address,
    real_place,
    require_psycopg,
)
from refold.infrastructure.settings.option_checks import Options

from .backup import refuse_own

if TYPE_CHECKING:
    from refold.infrastructure.event_store.encryption import KeySource


def copy_log(
    source: str | Path,
    target: str | Path,
    *,
    encryption_key: "KeySource | None" = None,
    progress: Progress = ignore_progress,
) -> Copied:
    """Copy a log into another one: a file or the address of a PostgreSQL server, in any direction.

    The target gets the same events byte for byte, in the same order, and is created if it is missing. The
    source may be in use. Copying again copies what is new, erases what was erased since, and continues a copy
    that was interrupted. Every event is compared at the end.

    Args:
        source: path or address of the log to copy; it is only read.
        target: path or address of the log to copy into.
        encryption_key: key of both logs, as for ``refold.open``. A new log is encrypted with it.
        progress: called with the step, the log position that it reached, and the last one.

    Raises:
        OtherHistory: the target has other events for a conversation of the source; nothing was overwritten.
        LogDamaged: an event of a log was changed.
        LogNotFound: there is no log at ``source``.
        LogError: a log cannot be used; a copy that was begun can be continued.
        InvalidSetting: an argument is invalid.
    """
    check_path("source", source)
    check_path("target", target)
    if not callable(progress):
        raise invalid_argument("progress", progress, "a function")
    options = Options() if encryption_key is None else Options(encryption_key=encryption_key)
    source, target = real_place(source), real_place(target)
    _refuse_same(source, target)
    with (
        _open(source, options, create=False) as from_log,
        _open(target, options, create=True) as into,
    ):
        copied = copy_events(from_log, into, progress)
        is_pending = into.has_pending_erasures()
    if is_pending:
        _finish_erasures(target, options)
    return copied


def _refuse_same(source: str | Path, target: str | Path) -> None:
    if source == target:
        raise LogError(
            f"{LogPlace.parse(source)} cannot be copied into itself; give another target"
        )
    if not is_address(source) and not is_address(target):
        refuse_own(Path(target), Path(source))


@contextmanager
def _open(place: str | Path, options: Options, *, create: bool) -> Generator[CopyEnd]:
    """Open a log without its read models."""
    settings = configuration_of(options).settings
    key = key_source(options, settings)
    if is_address(place):
        require_psycopg()
        from refold.infrastructure.postgres.connections import Address
        from refold.infrastructure.postgres.log import PostgresLog

        address = Address.of(
            str(place), schema=settings.postgres_schema, pool=settings.postgres_pool
        )
        with closing(PostgresLog(address, create=create, key=key)) as log:
            yield log.copy_end()
        return
    with closing(SQLiteLog(place, create=create, anchor=settings.anchor, key=key)) as log:
        yield log.copy_end()


def _finish_erasures(target: str | Path, options: Options) -> None:
    """Remove older bytes of what was erased from the files of the target, read models included."""
    core = open_core(target, **options)
    core.close_derived()
    core.log.close()
