"""Find where bytes of erased content may still be on a server, and wait until the write-ahead log has none."""

import time
from collections.abc import Iterator, Sequence

from eventsourcing.persistence import PersistenceError
from psycopg.errors import InsufficientPrivilege

from refold.application.maintenance.maintenance_results import ErasedPlace
from refold.application.runtime.plain_lines import plain_logger

from .connections import PATIENCE, Store
from .failures import code_of

_SEGMENTS = "SELECT substr(name, 9) FROM pg_ls_waldir() WHERE length(name) = 24 ORDER BY 1"
_SAMPLES = """
SELECT FROM pg_stats WHERE schemaname = %s AND starts_with(tablename, 'payload_keys') AND attname = 'key' LIMIT 1
"""
_SERVER_KEEPS = """
SELECT current_setting('archive_mode'), current_setting('log_statement') IN ('mod', 'all')
    OR current_setting('log_min_duration_statement') <> '-1'
    OR current_setting('log_min_duration_sample') <> '-1'
    OR current_setting('log_transaction_sample_rate') <> '0'
    OR current_setting('log_parameter_max_length_on_error') <> '0'
    OR coalesce(current_setting('auto_explain.log_min_duration', true), '-1') <> '-1'
    OR coalesce(current_setting('pgaudit.log_parameter', true), 'off') = 'on'
"""
"""Query for the archive, and whether any setting lets the server write the values of statements into its log."""
_ARE_KEPT = """
SELECT EXISTS (SELECT FROM pg_ls_waldir(), {erased_keys_in_wal}
    WHERE length(name) = 24 AND substr(name, 9) <= substr(pg_walfile_name(written_at), 9))
"""
_SWITCHES = """
SELECT 3 + pg_size_bytes(current_setting('wal_keep_size')) / pg_size_bytes(current_setting('wal_segment_size'))
"""
"""Query for the number of switches after which checkpoints remove the old segments, if nothing keeps them."""
_RIGHTS = "GRANT pg_monitor, pg_checkpoint and EXECUTE ON FUNCTION pg_switch_wal"
_BETWEEN = 0.5
"""Seconds between two looks at segments that something keeps."""

logger = plain_logger(__name__)


class ErasedRemains:
    """The places where keys of erased content may still be: their table, and the write-ahead log."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def rewrite_keys(self, number: int) -> bool:
        """Rewrite the partitions of the keys that erasures up to ``number`` deleted.

        Return False if a partition stayed in use, or while a transaction elsewhere can still see deleted rows.
        """
        tables = self._store.rows(
            "SELECT DISTINCT tableoid::regclass::text FROM {payload_keys} WHERE originator_id IN "
            "(SELECT originator_id FROM {pending_erasures} WHERE number <= %s)",
            (number,),
        )
        if tables and not self._forget_samples():
            return False
        if tables:
            self._store.wait_for_older_writers()
        done = [self._rewrite(table.rpartition(".")[2].strip('"')) for (table,) in tables]
        if not all(done):
            return False
        with self._store.transaction():
            self._store.run("DELETE FROM {pending_erasures} WHERE number <= %s", (number,))
            self._store.run(
                "INSERT INTO {erased_keys_in_wal} (written_at) VALUES (pg_current_wal_insert_lsn()) "
                "ON CONFLICT (only_row) DO UPDATE SET written_at = excluded.written_at, highest = NULL"
            )
        return True

    def _forget_samples(self) -> bool:
        """Remove samples of keys from the statistics, and return whether none is left.

        Logs that earlier versions made let the server take them.
        """
        if not self._store.rows(_SAMPLES, (self._store.address.schema,)):
            return True
        try:
            with self._store.transaction():
                self._store.run(f"SET LOCAL lock_timeout = '{PATIENCE}s'")
                self._store.run("ALTER TABLE {payload_keys} ALTER COLUMN key SET STATISTICS 0")
                # The server forgets the statistics of a column when its type is set, also to the same type.
                self._store.run("ALTER TABLE {payload_keys} ALTER COLUMN key TYPE bytea")
        except PersistenceError as error:
            logger.warning("statistics have keys, and stay for now (SQLSTATE %s)", code_of(error))
            return False
        return True

    def _rewrite(self, table: str) -> bool:
        try:
            kept = self._store.rewrite(table)
        except PersistenceError as error:
            logger.warning("a table of keys cannot be rewritten now (SQLSTATE %s)", code_of(error))
            return False
        if kept:
            logger.warning("a transaction elsewhere still sees %d keys of erased content", kept)
        return not kept

    def places(self) -> Iterator[ErasedPlace]:
        """Yield every place with its state."""
        pending = self._are_keys_pending()
        if pending and self._store.is_replica:
            detail = "the primary has not removed them, or this replica is behind: erase again on the primary"
            yield ErasedPlace(place="keys", state="pending", detail=detail)
        elif pending:
            yield ErasedPlace(
                place="keys",
                state="pending",
                detail="another transaction uses or still sees the table of keys, or this role may not rewrite it (it "
                "needs MAINTAIN, or must own it, as it always must where statistics have keys): erase again, or open "
                "the log again",
            )
        else:
            yield ErasedPlace(
                place="keys", state="gone", detail="the keys of the payloads were removed"
            )
        yield self._write_ahead(pending)
        yield from self._out_of_reach()

    def _are_keys_pending(self) -> bool:
        return self._store.rows("SELECT EXISTS (SELECT FROM {pending_erasures})") == [(True,)]

    def _write_ahead(self, are_keys_pending: bool) -> ErasedPlace:
        place = "write-ahead log"
        if are_keys_pending:
            detail = "the keys must be removed from their table first"
            return ErasedPlace(place=place, state="pending", detail=detail)
        if self._store.is_replica and self._store.rows("SELECT FROM {erased_keys_in_wal}"):
            detail = (
                "this server is a replica, and does not say what the primary still has: ask there"
            )
            return ErasedPlace(place=place, state="pending", detail=detail)
        try:
            if self._is_overwritten():
                return ErasedPlace(
                    place=place, state="gone", detail="its segments were overwritten"
                )
        except PersistenceError as error:
            if code_of(error) != InsufficientPrivilege.sqlstate:
                raise
            detail = f"this role may not see it; {_RIGHTS}"
            return ErasedPlace(place=place, state="pending", detail=detail)
        detail = (
            "segments with the keys are not recycled yet: `refold erase --wait` switches and checkpoints them; a "
            "replication slot or an archive that is behind keeps them"
        )
        return ErasedPlace(place=place, state="pending", detail=detail)

    def _is_overwritten(self) -> bool:
        """Return whether every segment that had a key was removed, or renamed and then overwritten."""
        rows = self._store.rows(
            "SELECT substr(pg_walfile_name(written_at), 9), highest, "
            "substr(pg_walfile_name(pg_current_wal_lsn()), 9) FROM {erased_keys_in_wal}"
        )
        if not rows:
            return True
        ((written, highest, current),) = rows
        segments = [name for (name,) in self._store.rows(_SEGMENTS)]
        if any(name <= written for name in segments):
            return False
        if highest is None:
            # Old segments get the names of later ones, and keep their bytes until those are written.
            highest = max(segments)
            self._store.run("UPDATE {erased_keys_in_wal} SET highest = %s", (highest,))
        if current <= highest:
            return False
        self._store.run("DELETE FROM {erased_keys_in_wal} WHERE highest = %s", (highest,))
        return True

    def wait(self, seconds: float) -> bool:
        """Switch and checkpoint the write-ahead log until it has no keys. Return whether that was reached.

        Where something keeps old segments, such as a replication slot, switches do not remove them: they would fill
        the disk. A replica, and a role without the rights, wait for nothing.
        """
        if self._store.is_replica:
            return False
        try:
            return self._wait(seconds)
        except PersistenceError as error:
            if code_of(error) != InsufficientPrivilege.sqlstate:
                raise
            logger.warning("the write-ahead log cannot be waited for by this role; %s", _RIGHTS)
            return False

    def _wait(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        ((switches,),) = self._store.rows(_SWITCHES)
        while not self._is_overwritten():
            if time.monotonic() > until:
                return False
            if self._store.rows(_ARE_KEPT) == [(False,)]:
                self._store.run("SELECT pg_switch_wal()")
            elif switches > 0:
                switches -= 1
                self._store.run("SELECT pg_switch_wal()")
            else:
                time.sleep(_BETWEEN)
            self._store.run("CHECKPOINT")
        return True

    def _out_of_reach(self) -> Sequence[ErasedPlace]:
        ((archiving, logs),) = self._store.rows(_SERVER_KEEPS)
        said = {
            "replicas": "each keeps the write-ahead log that it received: erase its old segments there",
            "archive of the write-ahead log": (
                "the server archives: delete old segments there"
                if archiving != "off"
                else "the server archives none"
            ),
            "base backups": "backups from before have the keys: delete them when your rules say so",
            "server log": (
                "it logs statements with their values: delete its old files"
                if logs
                else "it logs no values"
            ),
        }
        return [
            ErasedPlace(place=place, state="out of reach", detail=detail)
            for place, detail in said.items()
        ]
