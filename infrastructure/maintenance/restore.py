"""Restore a backup: check it, erase again what was erased since, and keep the old log."""

import os
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Unpack

from refold.application.api.argument_checks import check, check_path
from refold.application.erasure.erasing import erase_again
from refold.application.errors import (
    LogDamaged,
    LogError,
    LogNotFound,
    LogNotWritable,
    NotARefoldLog,
    TargetExists,
)
from refold.application.maintenance.maintenance_results import Restored, Salvaged
from refold.application.maintenance.verifying import (
    Verification,
    drop_derived,
    report_of,
)
from refold.application.ports.log_keeper import Checked
from refold.application.runtime.core import Core
from refold.infrastructure.bootstrap import configuration_of, key_source, open_core
from refold.infrastructure.event_store.anchor import Anchor, anchor_path, read_exported
from refold.infrastructure.event_store.anchor_check import HeldLog
from refold.infrastructure.event_store.file_format import check_place, identify
from refold.infrastructure.event_store.recorder import LOCK_TIMEOUT, DurableDatastore, LogRecorder
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.files.private_files import (
    make_private,
    private_folder,
    refuse,
    sync,
    sync_names,
)
from refold.infrastructure.settings.option_checks import Options
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite
from refold.infrastructure.sqlite.sqlite_failures import (
    as_log_error,
    may_be_damage,
    translate_errors,
)
from refold.infrastructure.write_ahead.damaged_copies import refusal, refuse_damaged
from refold.infrastructure.write_ahead.examination import examine

from . import mended_log as mending
from .backup import copy_connection, earlier_logs, put_in_place, refuse_faulty, refuse_own
from .check import Held
from .mended_log import check_file, is_to_be_mended, known_outside
from .row_proof import DAMAGE


def restore_log(
    source: str | Path, path: str | Path, *, force: bool = False, **options: Unpack[Options]
) -> Restored:
    """Replace the log at ``path`` with the backup ``source``. ``options`` are those of ``refold.open``.

    With ``force``, an existing log is moved away completely; otherwise it is an error. Content that
    this log, or one that was moved away earlier, records as erased is erased again. Read models and
    snapshots are not restored, because they are rebuilt.

    Raises:
        LogNotFound, NotARefoldLog: there is no backup at ``source``.
        BackupDamaged: the backup is damaged; nothing was changed.
        NewerLog: it has an event of a newer refold; nothing was changed.
        TargetExists: a log exists at ``path``, and ``force`` is false.
        LogBusy: another process held the write lock of the existing log for too long.
        InvalidSetting: an argument is invalid.
    """
    check_path("source", source)
    check_path("path", path)
    check("force", force)
    to = Path(os.path.realpath(path))
    # The files of the backup are next to itself, not next to a link.
    backup = Path(os.path.realpath(source))
    _refuse(backup, to, force=force)
    # In a folder of its own, so that nothing of it is left if this is interrupted.
    with translate_errors(to), private_folder(to.parent, to.name) as folder:
        made = folder / to.name
        _copy(backup, made)
        _copy_anchor(backup, made)
        with _open(made, options) as core:
            refuse_faulty(backup, core.log.check())
        with _lock_log(to):
            restored = _replace(made, to, options)
            sync_names(to.parent)
    with _open(to, options) as core:
        # They would detect that they belong to another log, but keep its texts until then.
        drop_derived(core)
    return restored


def _refuse(backup: Path, to: Path, *, force: bool) -> None:
    with translate_errors(backup):
        check_place(backup, create=False)
    with translate_errors(to):
        exists = to.is_file()
        refuse(to, replace=True)
    if exists and not force:
        raise TargetExists(to, "exists already; --force, in Python force=True, moves it away first")
    if exists and to.samefile(backup):
        raise TargetExists(to, "is the backup itself; give the path of another log")
    refuse_own(to, backup)


def _replace(made: Path, to: Path, options: Options) -> Restored:
    """Erase in the copy what was erased since, then move it into place. Needs the write lock."""
    with _open(made, options) as core:
        known = {
            path: core.keeper.erasures_in(path)
            for path in (*earlier_logs(to), to)
            if path.is_file()
        }
        again = erase_again(core, (e for found in known.values() for e in found.erasures))
        sizes = core.keeper.sizes()
    _finish(made)
    moved = put_in_place(made, to)
    unread = [path for path, found in known.items() if not found.complete]
    return Restored(
        path=to,
        events=sizes.events,
        conversations=len(sizes.conversations),
        moved_aside=moved,
        erased_again=again,
        unread=tuple(moved if moved is not None and path == to else path for path in unread),
    )


def _copy(backup: Path, made: Path) -> None:
    """Copy the backup, without leaving any other file."""
    with translate_errors(backup):
        refuse_damaged(backup)
    # A file without a write-ahead log is not open in any program, so it can be read from a
    # read-only folder.
    mode = "mode=ro" if Path(f"{backup}-wal").exists() else "mode=ro&immutable=1"
    make_private(made)
    with closing(open_sqlite(f"{backup.absolute().as_uri()}?{mode}", uri=True)) as connection:
        with translate_errors(backup):
            if not identify(connection, str(backup)):
                raise NotARefoldLog(f"{backup} does not contain a log; give the path of a backup")
        copy_connection(connection, made)


def _copy_anchor(backup: Path, made: Path) -> None:
    """Copy the anchor of the backup, which reveals whether its end was lost."""
    with suppress(FileNotFoundError):
        anchor_path(made).write_bytes(anchor_path(backup).read_bytes())


@contextmanager
def _open(made: Path, options: Options) -> Generator[Core]:
    core = open_core(made, **options)
    try:
        yield core
    finally:
        core.close_derived()
        core.log.close()


@contextmanager
def _lock_log(log: Path) -> Generator[None]:
    """Hold the write lock of a log that is not opened here."""
    lock = WriteLock(Path(f"{log}.lock"), LOCK_TIMEOUT)
    try:
        with lock.held():
            yield
    finally:
        lock.close()


def _finish(made: Path) -> None:
    """Leave one synced file without derived data, and its first anchor."""
    with closing(DurableDatastore(str(made))) as datastore:
        with datastore.transaction(commit=True) as c:
            c.execute("DELETE FROM stored_snapshots")
        marks = tuple(HeldLog(made, Anchor(None), LogRecorder(datastore)).marks())
    if Path(f"{made}-wal").exists():
        raise LogError(f"the copy {made} could not be closed; nothing was changed, try again")
    Anchor(anchor_path(made)).renew(marks)
    sync(made)


def verify_file(path: Path, refused: LogError, *, anchor: Path | None = None) -> Verification:
    """Check a log that was not opened because of the error ``refused``.

    Raises:
        LogError: ``refused``, if there was no log or a permission is missing.
    """
    if isinstance(refused, LogNotWritable) or _is_no_log(path, refused):
        raise refused
    path = Path(os.path.realpath(path))
    held = known_outside(path)
    if anchor is not None:
        held.append(Held(read_exported(anchor), f"the anchor {anchor}"))
    with translate_errors(path):
        found = check_file(path, *held, key=_key())
    if not found.damage:
        # No damage is visible, but the log cannot be opened: the reason is not damage.
        raise refused
    return report_of(Checked(*found))


def salvage_file(path: Path, to: Path) -> Salvaged:
    """Copy every intact event of the log into the new log ``to``. The old file is not changed.

    Raises:
        LogNotFound: the file is missing or empty.
        NotARefoldLog: it is a folder.
        LogDamaged: SQLite cannot read the file.
        LogNotWritable: a permission is missing.
        TargetExists: a file exists at ``to``.
        LogError: the new log cannot be written; no file was created.
    """
    refuse_own(to, path)
    path = Path(os.path.realpath(path))
    try:
        with translate_errors(path):
            nothing = not path.exists() or not path.stat().st_size
            check_place(path, create=True)
        if nothing and not is_to_be_mended(path):
            raise LogNotFound(f"there is nothing in {path} that could be copied; give another path")
        return mending.salvage_file(path, to, *known_outside(path), key=_key())
    except OSError as error:
        raise as_log_error(to, error) from error
    except DAMAGE as error:
        if not may_be_damage(error):
            raise as_log_error(path, error) from error
        problem = f"SQLite cannot read {path} at all ({error})"
        raise LogDamaged("", 0, problem, advice="restore from a backup") from error


def accept_lost(path: Path) -> bool:
    """Remove the anchor of a log of which nothing is left, so that a new log can be created.

    Return whether nothing was left.

    Raises:
        WriteAheadDamaged: the write-ahead log still has events; whoever needs none of them deletes it first.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and path.stat().st_size:
        return False
    if (orphan := examine(path)) is not None:
        raise refusal(path, orphan)
    anchor = anchor_path(path)
    if not anchor.exists():
        return False
    anchor.unlink()
    return True


def _is_no_log(path: Path, refused: LogError) -> bool:
    if path.exists() and not path.is_file():
        return True
    if isinstance(refused, LogNotFound):
        return not path.exists()
    # An anchor next to the file proves that a log was here, even if the file is not recognisable
    # now.
    return isinstance(refused, NotARefoldLog) and not anchor_path(path.absolute()).exists()


def _key() -> bytes | str | None:
    key = key_source({}, configuration_of({}).settings)
    assert key is None or isinstance(key, bytes | str)
    return key
