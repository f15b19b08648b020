"""``check_store``: append to a store, read it in other memories, and find what it loses.

The probes of appends are here; those of what a store keeps are in ``store_contents``.
"""

import os
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import refold
from refold.application.api.memory import Memory
from refold.infrastructure.files.log_place import hide_password, is_address
from refold.testing import store_contents
from refold.testing.checked_store import (
    CheckedStore,
    Place,
    exception_of,
    file_at,
    in_threads,
    opening_of,
    read,
    talk,
    text_message,
)
from refold.testing.findings import Findings, NeverEnded, Report, describe_error, name_of

Probe = Callable[[CheckedStore], None]
WRITERS = 3
EACH = 6
_COMMIT = "Return from an append after its transaction is committed and synced, not before."
_ONCE = "Look a key up and store its message in one transaction; answer with the first position."
_SERIAL = "Read the newest version and store in one transaction, and lock the conversation for it."

_PROGRAM = """\
import os, signal, sys
import refold
memory = refold.open(sys.argv[1], window=8_000)
conversation = memory.conversation(sys.argv[2])
for n in range(4):
    conversation.append({"role": ("user", "assistant")[n % 2], "content": f"acknowledged {n}"})
    print(n, flush=True)
os._exit(9)
"""


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
        InvalidSetting: ``place`` is not a path or a callable.
        ValueError: ``place`` is ``:memory:``, which ends with its memory.

    >>> check_store(tmp_path / "agent.db")
    >>> check_store(lambda: refold.open(tmp_path / "agent.db", encryption_key=key))
    """
    subject = name_of(open or place) if open or callable(place) else f"The store at {_shown(place)}"
    findings = Findings(subject)
    opening = opening_of(place, open, window=8_000, summariser="extractive", background=False)
    store = CheckedStore(opening, findings, uuid.uuid4().hex[:8], timeout)
    _try_all(store, _probes(place, open), only, timeout)
    return findings.settle()


def _shown(place: Place) -> str:
    return hide_password(str(place)) if is_address(place) else str(place)


def _probes(place: Place, open: Callable[..., Memory] | None) -> list[Probe]:
    if open is not None or callable(place):
        return [*PROBES]
    killed = partial(a_killed_process_lost_nothing, file_at(place))
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


def appends_are_seen_at_once(store: CheckedStore) -> None:
    """Check that an append is visible at once: here, in another memory and in one opened later."""
    expected = talk(8, "seen")
    writer, reader = store.conversation("seen"), store.conversation("seen")
    for n, message in enumerate(expected, 1):
        before = writer.version
        appended = writer.append(message)
        for where, conversation in (
            ("the memory that appended", writer),
            ("a memory that was open before", reader),
            ("a memory that is opened now", store.conversation("seen")),
        ):
            rule = "durable" if "now" in where else "stale"
            store.compare(
                conversation,
                expected[:n],
                rule=rule,
                where=f"{where}, right after append {n}",
                advice=_COMMIT if rule == "durable" else "Read from the log, or check its version.",
            )
            store.findings.require(
                conversation.version == appended.version > before,
                "stale",
                expected=f"version {appended.version}, which the append answered, over {before}",
                seen=f"version {conversation.version} ({where})",
                advice="Count the events of the conversation, and cache no version.",
            )


def nothing_is_lost_without_closing(store: CheckedStore) -> None:
    """Append in a memory that is not closed, and check the content in another one."""
    expected = talk(10, "kept")
    dropped = store.open()
    store.conversation("kept", dropped).append(expected[:9])
    store.conversation("kept", dropped).append(expected[9])
    reader = store.conversation("kept")
    store.compare(reader, expected, rule="durable", where="without closing", advice=_COMMIT)


def a_killed_process_lost_nothing(place: str | Path, store: CheckedStore) -> None:
    """Append in a process that ends at once without closing, and check the content."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(place), store.thread_id("killed")],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    acknowledged = len(done.stdout.split())
    if not acknowledged:
        last = done.stderr.strip().rpartition("\n")[2]
        raise RuntimeError(f"a process of its own could not append: {last}")
    roles = ("user", "assistant")
    expected = [text_message(f"acknowledged {n}", roles[n % 2]) for n in range(acknowledged)]
    reader = store.conversation("killed")
    store.compare(reader, expected, rule="durable", where="a process that died", advice=_COMMIT)


def keys_are_stored_once(store: CheckedStore) -> None:
    """Append the same key again: here, in another memory, in a list and in another conversation."""
    first, other = text_message("Pay invoice INV-1."), text_message("Noted.", "assistant")
    conversation = store.conversation("keys")
    at = conversation.append(first, key="delivery-1").positions
    repeats = (
        ("the same memory", conversation, [first], ["delivery-1"]),
        ("another memory", store.conversation("keys"), [first], ["delivery-1"]),
        ("a list", store.conversation("keys"), [first, other], ["delivery-1", "delivery-2"]),
        ("a list again", store.conversation("keys"), [first, other], ["delivery-1", "delivery-2"]),
    )
    for where, again, messages, keys in repeats:
        answered = again.append(messages, key=keys)
        store.findings.require(
            answered.positions[:1] == at and not answered.messages[0].new,
            "keys",
            expected=f"position {at[0]} and new=False for a key that is stored",
            seen=f"{answered.messages[0]!r} ({where})",
            advice=_ONCE,
        )
    reader = store.conversation("keys")
    store.compare(reader, [first, other], rule="keys", where="one key, five times", advice=_ONCE)
    apart = store.conversation("other-keys").append(first, key="delivery-1")
    store.findings.require(
        apart.messages[0].new,
        "keys",
        expected="a key that holds for its conversation alone",
        seen="a message of another conversation is taken for stored",
        advice="Look keys up by conversation and key.",
    )


def a_key_names_one_message(store: CheckedStore) -> None:
    """Check that the same key with another message is rejected."""
    conversation = store.conversation("reused")
    conversation.append(text_message("first"), key="k")
    error = exception_of(lambda: conversation.append(text_message("second"), key="k"))
    _require_refusal(store, error, refold.KeyReused, "a key with another message", "keys", _ONCE)
    reader = store.conversation("reused")
    store.compare(reader, [text_message("first")], rule="keys", where="a reused key", advice=_ONCE)


def conflicts_are_refused(store: CheckedStore) -> None:
    """Check that an append with an outdated expected version is rejected and stores nothing."""
    conversation, other = store.conversation("conflict"), store.conversation("conflict")
    seen = conversation.append(text_message("first")).version
    other.append(text_message("second", "assistant"))
    late = text_message("third")
    error = exception_of(lambda: conversation.append(late, expected_version=seen))
    _require_refusal(
        store, error, refold.VersionConflict, "an append after another", "conflict", _SERIAL
    )
    expected = [text_message("first"), text_message("second", "assistant")]
    store.compare(other, expected, rule="conflict", where="after a conflict", advice=_SERIAL)
    conversation.append(late, expected_version=other.version)
    store.compare(other, [*expected, late], rule="lost", where="after a retry", advice=_SERIAL)


def several_are_stored_all_or_none(store: CheckedStore) -> None:
    """Check that a list with one rejected message is not stored at all."""
    conversation = store.conversation("atomic")
    expected = [text_message("first")]
    conversation.append(expected)
    wrong = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "unknown"}]}
    advice = "Store all messages of an append in one transaction, and none where one is refused."
    error = exception_of(
        lambda: conversation.append([text_message("a", "assistant"), text_message("b"), wrong])
    )
    _require_refusal(
        store, error, refold.RefoldError, "a result without its call", "atomic", advice
    )
    reader = store.conversation("atomic")
    store.compare(reader, expected, rule="atomic", where="after a refused list", advice=advice)


def _require_refusal(
    store: CheckedStore,
    error: Exception | None,
    kind: type[Exception],
    what: str,
    rule: str,
    advice: str,
) -> None:
    store.findings.require(
        isinstance(error, kind),
        rule,
        expected=f"{kind.__name__} for {what}",
        seen="it was acknowledged" if error is None else describe_error(error),
        advice=advice,
    )


def writers_lose_nothing(store: CheckedStore) -> None:
    """Append to one conversation through several memories at the same time."""

    def write(writer: int) -> None:
        conversation = store.conversation("writers")
        for n in range(EACH):
            conversation.append(text_message(f"writer {writer} says {n}"))

    errors = in_threads([partial(write, writer) for writer in range(WRITERS)])
    for error in errors:
        raise error
    found = [str(one.content) for one in read(store.conversation("writers"))]
    counted = Counter(found)
    wanted = [f"writer {writer} says {n}" for writer in range(WRITERS) for n in range(EACH)]
    store.findings.require(
        counted == Counter(wanted),
        "concurrent",
        expected=f"{len(wanted)} messages of {WRITERS} writers, each once",
        seen=f"{len(found)}, {len(counted)} of them different",
        advice=_SERIAL,
    )
    for writer in range(WRITERS):
        own = [text for text in found if text.startswith(f"writer {writer} ")]
        store.findings.require(
            own == sorted(own),
            "order",
            expected="the messages of each writer in the order of its appends",
            seen=f"{own}",
            advice=_SERIAL,
        )


def one_of_several_wins(store: CheckedStore) -> None:
    """Append through several memories at once, with the same expected version and with the same key."""
    seen = store.conversation("race").append(text_message("first")).version
    conversations = [store.conversation("race") for _ in range(WRITERS)]
    works = [
        partial(one.append, text_message(f"answer {n}", "assistant"), expected_version=seen)
        for n, one in enumerate(conversations)
    ]
    errors = in_threads(works)
    stored = len(read(store.conversation("race"))) - 1
    conflicts = sum(isinstance(error, refold.VersionConflict) for error in errors)
    store.findings.require(
        (stored, conflicts) == (1, WRITERS - 1),
        "conflict",
        expected=f"one of {WRITERS} appends with the same expected_version, {WRITERS - 1} refused",
        seen=f"{stored} stored, {conflicts} refused with VersionConflict",
        advice=_SERIAL,
    )
    keyed = [partial(one.append, text_message("once"), key="one") for one in conversations]
    for error in in_threads(keyed):
        raise error
    times = sum(one.content == "once" for one in read(store.conversation("race")))
    store.findings.require(
        times == 1,
        "keys",
        expected="one message for one key, from any writer",
        seen=f"{times} after {WRITERS} deliveries at once",
        advice=_ONCE,
    )


PROBES: tuple[Probe, ...] = (
    appends_are_seen_at_once,
    nothing_is_lost_without_closing,
    store_contents.positions_lead_to_messages,
    store_contents.texts_are_read_back,
    store_contents.blocks_are_read_back,
    store_contents.large_texts_are_whole,
    store_contents.extras_are_kept,
    store_contents.nothing_changes_behind,
    store_contents.conversations_are_apart,
    keys_are_stored_once,
    a_key_names_one_message,
    conflicts_are_refused,
    several_are_stored_all_or_none,
    writers_lose_nothing,
    one_of_several_wins,
    store_contents.the_past_stays,
    store_contents.compactions_last,
    store_contents.decisions_last,
    store_contents.erased_is_gone,
    store_contents.lists_are_complete,
    store_contents.the_log_is_verified,
)
