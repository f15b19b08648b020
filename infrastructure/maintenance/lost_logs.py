"""Logs that cannot be opened any more: looked into, salvaged or given up, from their files alone."""

from pathlib import Path

from refold.application.errors import (
    LogDamaged,
    LogError,
    LogNotFound,
    LogNotWritable,
    NotARefoldLog,
)
from refold.application.maintenance.maintenance_results import Salvaged
from refold.application.maintenance.verifying import Verification, report_of
from refold.application.ports.log_keeper import Checked
from refold.infrastructure.bootstrap import configuration_of, key_source
from refold.infrastructure.event_store.anchor import anchor_path, read_exported
from refold.infrastructure.sqlite.second_look import translated
from refold.infrastructure.sqlite.sqlite_failures import may_be_damage, typed
from refold.infrastructure.write_ahead.damaged_copies import keep_copy
from refold.infrastructure.write_ahead.examination import examine, write_ahead_path

from . import mended_log as mending
from .check import Held
from .mended_log import check_file, is_to_be_mended, known_outside
from .own_files import refuse_own
from .row_reads import DAMAGE


def verify_file(path: Path, refused: LogError, *, anchor: Path | None = None) -> Verification:
    """What is wrong with a log that could not be opened since it ``refused`` to be.

    Raises:
        LogError: ``refused``, where there was no log, or a permission is missing.
    """
    if isinstance(refused, LogNotWritable) or _is_no_log(path, refused):
        raise refused
    held = known_outside(path.absolute())
    if anchor is not None:
        lines = {line.fingerprint: line for line in read_exported(anchor)}
        held.append(Held(lines, f"the anchor {anchor}"))
    with translated(path):
        found = check_file(path, *held, key=_key())
    if not found.damage:
        # Sound as far as can be seen, and yet not to be opened: the reason is not damage.
        raise refused
    return report_of(Checked(*found))


def salvage_file(path: Path, to: Path) -> Salvaged:
    """Copy every intact event of the log into the new log ``to``; the file is only read.

    Raises:
        LogNotFound: there is no file, or it is empty.
        LogDamaged: SQLite cannot read it at all.
        LogNotWritable: a permission is missing.
        TargetExists: there is something at ``to``.
    """
    refuse_own(to, path)
    try:
        with translated(path):
            nothing = not path.exists() or not path.stat().st_size
        if nothing and not is_to_be_mended(path):
            raise LogNotFound(f"there is nothing in {path} that could be copied; give another path")
        return mending.salvage_file(path, to, *known_outside(path.absolute()), key=_key())
    except DAMAGE as error:
        if not may_be_damage(error):
            raise typed(path, error) from error
        problem = f"SQLite cannot read {path} at all ({error})"
        raise LogDamaged("", 0, problem, advice="restore from a backup") from error


def accept_lost(path: Path) -> bool:
    """Forget a log of which nothing is left, so that a new one can begin; whether it was so.

    A copy of its write-ahead log is kept.
    """
    if path.exists() and path.stat().st_size:
        return False
    anchor = anchor_path(path.absolute())
    orphan = examine(path)
    if orphan is None and not anchor.exists():
        return False
    if orphan is not None:
        keep_copy(path)
        write_ahead_path(path).unlink()
    anchor.unlink(missing_ok=True)
    return True


def _is_no_log(path: Path, refused: LogError) -> bool:
    if path.exists() and not path.is_file():
        return True
    if isinstance(refused, LogNotFound):
        return not path.exists()
    # An anchor beside it says that there was a log here, whatever the file looks like now.
    return isinstance(refused, NotARefoldLog) and not anchor_path(path.absolute()).exists()


def _key() -> bytes | str | None:
    key = key_source({}, configuration_of({}).settings)
    assert key is None or isinstance(key, bytes | str)
    return key
