"""Deeds that overlap with a compaction, or cut it short: crash, full disk, appends, closing."""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from threading import Thread

import pytest

from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import CompactionResult
from refold.application.compaction.background import Background
from refold.application.errors import LogFull
from refold.application.ports.summariser import Summariser
from refold.domain.events import CompactionFailed

from .breaking_log import FillingSummariser
from .deeds import append_elsewhere, compact, exchange
from .erasing_deeds import erase
from .fake_summarisers import HeldSummariser
from .lasting_deeds import pin_message, revert
from .odd_summarisers import CrashingSummariser
from .witness import THREAD, Witness, as_bytes

WAIT = 30.0
"""Seconds after which what should have happened counts as not happening."""


def crash_while_compacting(witness: Witness, then: str) -> None:
    """The process dies while a summariser works; the next start settles it (invariants 8, 11).

    ``then``: ``"gone"``, it is known that the process is gone; ``"wait"``, nobody knows, and the
    lease runs out; ``""``, nobody knows, and the lease holds.
    """
    before, plugged = as_bytes(witness.shown()), witness.summariser.current
    # Nothing of it reaches the log from then on, as where the process is gone.
    witness.summariser.current = FillingSummariser(witness.disk, CrashingSummariser())
    result, calls = witness.compact()
    died = witness.disk.is_full
    assert died == (calls > 0)
    assert not died or (result.outcome, result.reason) == ("failed", "error")
    witness.summariser.current = plugged
    if then == "gone":
        witness.process.ends()
    else:
        witness.process.vanishes()
    witness.restart()
    witness.disk.is_full = False
    if died:  # Whoever it told is gone as well.
        witness.follower.told.pop()
    assert not died or witness.story.running is not None, "its end was written"
    assert result.outcome == "shortened" or as_bytes(witness.shown()) == before
    if then == "wait":
        witness.clock.now += timedelta(seconds=witness.policy.lease_seconds)
    if died and not then:
        assert compact(witness).outcome == "in_flight"
    if then:
        assert compact(witness).outcome != "in_flight"


def fill_the_disk(witness: Witness) -> None:
    """The disk is full when the summariser answers: nothing is recorded, nothing changes (8). What could
    not be written waits, and the next that can write it does.
    """
    before, plugged = as_bytes(witness.shown()), witness.summariser.current
    version = witness.conversation.version
    witness.summariser.current = FillingSummariser(witness.disk, plugged)
    result, calls = witness.compact()
    witness.summariser.current = plugged
    assert witness.disk.is_full == (calls > 0)
    if witness.disk.is_full:
        assert result.outcome in ("waiting", "failed"), f"the disk was full: {result}"
        assert (result.outcome == "waiting") == (result.reason == "log_full")
        assert witness.story.attempts[-1].version > version
        with pytest.raises(LogFull):
            witness.append(exchange(witness, 0.05))
    assert result.outcome == "shortened" or as_bytes(witness.shown()) == before
    witness.disk.is_full = False
    if calls:
        asked = len(witness.summariser.calls)
        pin_and_unpin(witness)
        assert len(witness.summariser.calls) == asked, "a model was asked once more"
        ended = witness.story.attempts[-1]
        assert ended.ended is not None, "there is room again, and it was not written"
        assert isinstance(ended.ended, CompactionFailed) == (result.outcome == "failed")


def pin_and_unpin(witness: Witness) -> None:
    """Write something that leaves all as it was."""
    assert witness.conversation.unpin(witness.conversation.pin("Write as briefly as you can."))
    witness.is_stale = True


Moment = str
"""``append``, ``elsewhere``, ``pin``, ``compact``, ``revert`` or ``ask``."""


def meanwhile(
    witness: Witness, make: Callable[[], Summariser], moments: Sequence[Moment]
) -> CompactionResult:
    """A compaction on demand, and all these deeds while its summariser works (invariant 10)."""
    held = HeldSummariser(make())
    plugged, witness.summariser.current = witness.summariser.current, held
    results: list[CompactionResult] = []
    conversation, said, version = (
        witness.conversation,
        len(witness.spoken),
        witness.conversation.version,
    )
    thread = Thread(
        target=lambda: results.append(conversation.compact(**witness.extras)), daemon=True
    )
    thread.start()
    while thread.is_alive() and not held.started.wait(0.001):
        pass
    try:
        for moment in moments:
            witness.summariser.current = plugged
            do_meanwhile(witness, moment)
    finally:
        held.release()
        thread.join(WAIT)
        witness.summariser.current = plugged
        witness.is_stale = True
    assert not thread.is_alive()
    [result] = results
    if held.calls and set(moments) <= {"append", "elsewhere", "compact"}:
        assert result.reason != "overtaken", "appends alone do not stand in the way"
    if result.outcome == "performed":
        [performed] = [a for a in witness.story.performed if a.version > version]
        assert performed.performed.coverage.stop <= said
    return result


def do_meanwhile(witness: Witness, moment: Moment) -> None:
    """One deed, while a compaction is under way."""
    match moment:
        case "append":
            witness.append(exchange(witness, 0.05))
        case "elsewhere":
            append_elsewhere(witness, "from elsewhere")
        case "pin":
            pin_message(witness, len(witness.spoken) // 2)
        case "compact":
            outcomes = ("in_flight", "nothing_to_do", "shortened", "performed", "failed")
            assert compact(witness).outcome in outcomes
        case "revert":
            revert(witness)
        case "erase":
            erase_what_is_compacted(witness)
        case _:
            witness.ask()


def erase_what_is_compacted(witness: Witness) -> None:
    """Erase what a compaction under way is to cover: whatever its summariser says is refused (10, 15)."""
    witness.is_stale = True
    running = witness.story.running
    if running is None:
        erase(witness, [len(witness.spoken) // 2])
        return
    covers = running.requested.coverage.covers
    erase(witness, [next(s.position for s in witness.spoken if covers(s.position))])


def compact_in_the_background(
    witness: Witness, make: Callable[[], Summariser], moments: Sequence[Moment], *, close: bool
) -> None:
    """Talk until a compaction begins by itself, go on while it works, then wait or close (E1)."""
    held = HeldSummariser(make())
    plugged, witness.summariser.current = witness.summariser.current, held
    core, runner = witness.core(background=True), Runner()
    background = Background(core)
    conversation = ConversationMemory(core, THREAD, runner, background)
    try:
        for _ in range(8):
            talk(witness, conversation)
            if _has_begun(held, runner, background):
                break
        else:
            close = False
        before, version = witness.shown(), witness.conversation.version
        witness.summariser.current = plugged
        for moment in moments if held.calls else ():
            do_meanwhile(witness, moment)
        if not close:
            held.release()
        runner.run(background.finish(0 if close else WAIT))
        witness.is_stale = True
        if close:
            ended = witness.story.attempts[-1]
            assert ended.ended is not None, "it was closed, and the attempt has no end"
            if not moments and ended.version <= version:
                assert as_bytes(witness.shown()) == as_bytes(before)
    finally:
        held.release()
        runner.close()
        core.close_derived()
        core.log.close()
        witness.summariser.current = plugged
        witness.is_stale = True


def talk(witness: Witness, conversation: ConversationMemory) -> None:
    """An exchange by a memory of its own."""
    messages = exchange(witness, 0.12)
    witness.note(messages, conversation.append(list(messages)))


def _has_begun(held: HeldSummariser, runner: Runner, background: Background) -> bool:
    """Whether the summariser is at work; waits for what has begun and did not come that far yet."""
    deadline = time.monotonic() + WAIT
    while not held.started.is_set():
        if runner.run(background.drain(0)):
            return False
        assert time.monotonic() < deadline, "it has begun, and neither asks nor ends"
        time.sleep(0.001)
    return True
