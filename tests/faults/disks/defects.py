"""Defects on purpose: each must be found by the simulated losses of power."""

import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from refold.infrastructure.event_store.anchor import Mark
from refold.infrastructure.event_store.recorder import DurablePool
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.sqlite.connection_pool import DurableConnection, OpenedFiles

from .losing import Case
from .watched_folder import Fault


def _nothing(_self: object) -> None:
    return None


@contextmanager
def lost_sync() -> Generator[None]:
    """Let the log commit without a sync."""
    create: Any = DurablePool._create_connection  # pyright: ignore[reportPrivateUsage]

    def create_without_sync(self: DurablePool) -> Any:
        connection = create(self)
        connection._sqlite_conn.execute("PRAGMA synchronous=OFF")
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DurablePool, "_create_connection", create_without_sync)
        yield


@contextmanager
def misdirected_page() -> Generator[None]:
    """Let one write of a life land at the place of another page, on a disk that counts as sound."""

    def faults(self: Case) -> tuple[Fault, ...]:
        return (
            Fault("misdirected write", self.chance.randrange(150), 1, random.choice((-1, 1, 2))),
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Case, "_faults", faults)
        yield


@contextmanager
def acknowledged_before_commit() -> Generator[None]:
    """Let the log commit at its next transaction, after it has acknowledged."""
    waiting: list[DurableConnection] = []
    commit: Callable[[DurableConnection], None] = DurableConnection.commit
    transaction: Any = DurableConnection.transaction
    close: Callable[[DurableConnection], None] = DurableConnection.close

    def commit_later(self: DurableConnection) -> None:
        waiting.append(self)

    def commit_now() -> None:
        while waiting:
            commit(waiting.pop())

    @contextmanager
    def transaction_after(self: DurableConnection, *, commit: bool) -> Generator[Any]:
        commit_now()
        with transaction(self, commit=commit) as cursor:
            yield cursor

    def close_after(self: DurableConnection) -> None:
        commit_now()
        close(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DurableConnection, "commit", commit_later)
        patch.setattr(DurableConnection, "transaction", transaction_after)
        patch.setattr(DurableConnection, "close", close_after)
        yield


@contextmanager
def stale_identity() -> Generator[None]:
    """Let connections go on with a file that was replaced."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenedFiles, "check", _nothing)
        patch.setattr(OpenedFiles, "check_shared", _nothing)
        yield


@contextmanager
def wrong_order() -> Generator[None]:
    """Let the anchor be written before the commit that it records."""
    store: Any = SQLiteLog._store  # pyright: ignore[reportPrivateUsage]

    def store_after_anchor(self: SQLiteLog, thread_id: str, sealed: Any, before: Any) -> None:
        self.held.anchor.keep(
            Mark(thread_id, sealed.head.version, sealed.head.link, 1), self.held.marks
        )
        store(self, thread_id, sealed, before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SQLiteLog, "_store", store_after_anchor)
        yield


@contextmanager
def no_report() -> Generator[None]:
    """Let the log have no anchor, so that a lying disk loses messages and no one reports it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REFOLD_ANCHOR", "false")
        yield


DEFECTS = {
    one.__name__.replace("_", "-"): one
    for one in (
        lost_sync,
        misdirected_page,
        acknowledged_before_commit,
        stale_identity,
        wrong_order,
        no_report,
    )
}
