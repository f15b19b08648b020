"""``check_store``: append to a store, read it in other memories, and find what it loses."""

import uuid
from collections.abc import Callable, Collection, Sequence
from functools import partial

from refold.application.api.memory import Memory
from refold.testing import store_contents, store_guarantees, store_history
from refold.testing.checked_store import CheckedStore
from refold.testing.findings import Findings, NeverEnded, Report, name_of
from refold.testing.places import Place, file_at, opening_of

Probe = Callable[[CheckedStore], None]
PROBES: tuple[Probe, ...] = (
    store_guarantees.appends_are_seen_at_once,
    store_guarantees.nothing_is_lost_without_closing,
    store_contents.positions_lead_to_messages,
    store_contents.texts_are_read_back,
    store_contents.blocks_are_read_back,
    store_contents.large_texts_are_whole,
    store_contents.extras_are_kept,
    store_contents.nothing_changes_behind,
    store_contents.conversations_are_apart,
    store_guarantees.keys_are_stored_once,
    store_guarantees.a_key_names_one_message,
    store_guarantees.conflicts_are_refused,
    store_guarantees.several_are_stored_all_or_none,
    store_guarantees.writers_lose_nothing,
    store_guarantees.one_of_several_wins,
    store_history.the_past_stays,
    store_history.compactions_last,
    store_history.decisions_last,
    store_history.erased_is_gone,
    store_history.lists_are_complete,
    store_history.the_log_is_verified,
)


def check_store(
    place: Place,
    *,
    open: Callable[..., Memory] | None = None,
    only: Collection[str] | None = None,
    timeout: float = 60.0,
) -> Report:
    """Check that a store keeps the guarantees of refold about appends.

    The check writes conversations whose ids begin with ``refold-check-``, so pass an empty place or a
    copy. Existing conversations are not changed.

    Args:
        place: the place of the log: a path, a folder for a new log, or a callable without arguments
            that opens a memory. Each call represents another process.
        open: a function that is called with ``place`` instead of ``refold.open``, for a custom store.
        only: the names of the probes to run, as in ``Report.probes``, or None for all.
        timeout: seconds within which each probe must end.

    Returns:
        The report with the names of the probes.

    Raises:
        CheckFailed: rules are broken; the message has the expected and the seen result of each, and
            advice.
        ValueError: ``place`` is ``:memory:``, which ends with its memory.

    >>> check_store(tmp_path / "agent.db")
    >>> check_store(lambda: refold.open(tmp_path / "agent.db", encryption_key=key))
    """
    subject = name_of(open or place) if open or callable(place) else f"The store at {place}"
    findings = Findings(subject)
    opening = opening_of(place, open, window=8_000, summariser="extractive", background=False)
    store = CheckedStore(opening, findings, uuid.uuid4().hex[:8], timeout)
    _try_all(store, _probes(place, open), only, timeout)
    return findings.settle()


def _probes(place: Place, open: Callable[..., Memory] | None) -> list[Probe]:
    if open is not None or callable(place):
        return [*PROBES]
    killed = partial(store_guarantees.a_killed_process_lost_nothing, file_at(place))
    return [*PROBES, killed]


def _try_all(
    store: CheckedStore, probes: Sequence[Probe], only: Collection[str] | None, timeout: float
) -> None:
    try:
        for probe in probes:
            if only is None or _name(probe) in only:
                store.probe(_name(probe), probe)
    except NeverEnded as error:
        store.findings.add(
            "timeout",
            expected=f"an operation that ends within {timeout:g} s",
            seen=str(error),
            advice="Give up a lock that is not granted in time, with LogBusy.",
        )
    finally:
        store.close()


def _name(probe: Callable[[CheckedStore], None]) -> str:
    named = probe.func if isinstance(probe, partial) else probe
    return named.__name__.replace("_", " ")
