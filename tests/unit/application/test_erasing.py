import asyncio
from collections.abc import Sequence

import pytest

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.erasure.erasing import erase, erase_all
from refold.application.history.explain import explain
from refold.application.runtime.core import Core
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import CompactionPerformed, EventLost, MessageErased
from tests.support.builders import coverage, history, performed, talk
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import EchoingSummariser, RaisingSummariser, covered_by


def spoken(core: Core, turns: int) -> None:
    with Memory(core) as memory:
        say(memory.conversation("t"), turns)


def say(conversation: ConversationMemory, turns: int) -> None:
    for n in range(turns):
        conversation.append({"role": "user", "content": f"secret {n} " + "word " * 30})
        conversation.append({"role": "assistant", "content": f"answer {n} " + "word " * 30})
    assert conversation.compact().outcome == "performed"


def texts_in(log: MemoryLog, thread_id: str = "t") -> str:
    return str([event.model_dump() for event in log.streams[thread_id]])


def active(log: MemoryLog, thread_id: str = "t") -> CompactionPerformed:
    summary = log.load(thread_id).window.summary
    assert summary is not None
    return summary


def test_the_new_summary_covers_the_same_and_speaks_of_what_remains() -> None:
    log = MemoryLog()
    core = core_of(log)
    spoken(core, 20)
    before = active(log)
    erase(core, "t", [4])
    after = active(log)
    assert after.trigger == "erasure"
    assert after.coverage == before.coverage
    assert after.leaf is not None
    assert covered_by(after.leaf.text) == set(range(before.coverage.stop)) - {4}
    assert "secret 2 " not in texts_in(log)


def test_a_note_stands_where_the_embedded_summariser_fails() -> None:
    log = MemoryLog()
    spoken(core_of(log), 20)
    core = core_of(log, fallback=RaisingSummariser())
    erase(core, "t", 4)
    after = active(log)
    assert "could not be summarised" in after.leaf.text if after.leaf else False
    assert after.text.strip()
    assert "secret 2 " not in texts_in(log)


def test_a_summary_without_leaves_is_made_from_the_messages() -> None:
    log = MemoryLog()
    old = performed(10, text="they said secret 2", leaf=None, tokens=400, text_tokens=0)
    log.streams["t"] = [*history(*talk(8)), old]
    core = core_of(log)
    erase(core, "t", 4)
    assert covered_by(str(active(log).leaf)) == set(range(10)) - {4}
    assert active(log).tokens <= 400


def test_where_all_is_erased_the_summary_says_so() -> None:
    log = MemoryLog()
    core = core_of(log)
    spoken(core, 20)
    stop = active(log).coverage.stop
    erase(core, "t", range(stop))
    assert "was erased" in active(log).text
    assert not active(log).ledger
    first_left = (stop + 1) // 2
    assert "secret" not in texts_in(log).partition(f"secret {first_left}")[0]


def test_a_summary_that_changed_meanwhile_is_the_one_that_is_replaced() -> None:
    log = MemoryLog()
    core = core_of(log)
    spoken(core, 20)
    newer = performed(
        36, "a9", summary_id="s9", text="newer", tokens=600, coverage=coverage(36), leaf=None
    )
    read = log.read
    calls = 0

    def reading(thread_id: str, a: int, b: int) -> Sequence[object]:
        nonlocal calls
        calls += 1
        found = read(thread_id, a, b)
        if calls == 3:  # It has been prepared by then.
            log.streams["t"].append(newer)
        return found

    log.read = reading  # type: ignore[method-assign, assignment]
    erase(core, "t", 4)
    erasures = [e for e in log.streams["t"] if isinstance(e, MessageErased)]
    assert len(erasures) == 1
    assert active(log).coverage.stop == 36
    assert "newer" not in active(log).text


def test_erasing_two_that_one_summary_covers_rewrites_it_once() -> None:
    log = MemoryLog()
    core = core_of(log)
    spoken(core, 20)
    report = erase(core, "t", [2, 4])
    versions = [
        r.version for e in log.streams["t"] if isinstance(e, MessageErased) for r in e.rewritten
    ]
    assert len(versions) == len(set(versions))
    assert len(report.rebuilt) == 1
    assert erase(core, "t", 6).removed
    assert [f.fate for f in explain(core, "t", 2, 7)] == [
        "erased",
        "summarised",
        "erased",
        "summarised",
        "erased",
    ]


def test_copies_of_copies_are_erased_and_what_they_added_is_not() -> None:
    log = MemoryLog()
    core = core_of(log)
    with Memory(core) as memory:
        conversation = memory.conversation("t")
        say(conversation, 12)
        copy = conversation.fork(thread_id="f")
        copy.append({"role": "user", "content": "added"})
        copy.fork(thread_id="g")
        report = conversation.erase(4)
    assert report.copies == ("f", "g")
    assert "secret 2 " not in texts_in(log, "f") + texts_in(log, "g")
    assert "added" in texts_in(log, "g")
    assert {one.thread_id for one in report.rebuilt} == {"t", "f", "g"}


def test_an_erased_conversation_takes_its_copies_along() -> None:
    log = MemoryLog()
    core = core_of(log, policy=CompactionPolicy(), fallback=EchoingSummariser())
    with Memory(core) as memory:
        conversation = memory.conversation("t")
        say(conversation, 12)
        conversation.fork(thread_id="f").append({"role": "user", "content": "added"})
    report = erase_all(core, "t")
    assert report.copies == ("f",)
    assert all(isinstance(e, EventLost) for e in log.streams["t"][:-1])
    assert "secret" not in texts_in(log, "f")
    assert "added" in texts_in(log, "f")


@pytest.mark.parametrize("where", [2, "2", "refold://t/2", [2]])
def test_a_message_is_named_by_position_or_address(where: int | str | list[int | str]) -> None:
    log = MemoryLog()
    core = core_of(log)
    spoken(core, 12)
    assert erase(core, "t", where).positions == (2,)


def test_it_runs_beside_a_running_loop() -> None:
    log = MemoryLog()
    core = core_of(log)
    spoken(core, 12)

    async def inside() -> None:
        with Memory(core) as memory:
            assert memory.conversation("t").erase(2).changed

    asyncio.run(inside())
