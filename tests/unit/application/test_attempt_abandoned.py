"""A compaction whose process is gone is settled by whoever next works on the conversation."""

import pytest

from refold.application.api.memory import Memory
from refold.application.runtime.core import Core
from refold.domain.events import CompactionFailed, CompactionPerformed
from refold.domain.value import replace
from tests.support.builders import requested, results
from tests.support.fake_ports import MemoryLog, core_of

LONG = [{"role": r, "content": "word " * 40} for _ in range(10) for r in ("user", "assistant")]


class Processes:
    """An owner that knows who is gone, and counts how often it is asked."""

    def __init__(self, name: str = "me", *, gone: tuple[str, ...] = ("dead",)) -> None:
        self.name = name
        self.gone = gone
        self.asked = 0

    def is_gone(self, name: str) -> bool:
        self.asked += 1
        return name in self.gone


class Scene:
    """A conversation in which a process began a compaction that has not ended."""

    def __init__(self, owner: str | None = "dead") -> None:
        self.log = MemoryLog()
        self.owner = Processes()
        self.core: Core = core_of(self.log, owner=self.owner)
        self.memory = Memory(self.core)
        self.conversation = self.memory.conversation("t")
        self.conversation.append(LONG)
        attempt = replace(requested(8), owner=owner, requested_at=self.core.clock())
        self.log.streams["t"].append(attempt)

    def failures(self) -> list[str]:
        return [e.reason for e in self.log.streams["t"] if isinstance(e, CompactionFailed)]


def test_an_append_settles_it_in_the_same_write() -> None:
    scene = Scene()
    appended = scene.conversation.append({"role": "user", "content": "And now?"})
    assert scene.failures() == ["abandoned"]
    assert appended.positions == (20,)
    assert appended.version == 23
    assert isinstance(scene.log.streams["t"][-2], CompactionFailed)


def test_an_append_that_is_refused_settles_nothing() -> None:
    scene = Scene()
    with pytest.raises(ValueError, match="open calls"):
        scene.conversation.append(results("nobody asked"))
    assert scene.failures() == []


def test_a_context_settles_it() -> None:
    scene = Scene()
    before = scene.conversation.context(at=20)
    assert scene.conversation.context().messages == before.messages
    assert scene.failures() == ["abandoned"]


def test_a_compaction_by_hand_goes_ahead_at_once() -> None:
    scene = Scene()
    with scene.memory:
        assert scene.conversation.compact().outcome == "performed"
    assert scene.failures() == ["abandoned"]
    assert isinstance(scene.log.streams["t"][-1], CompactionPerformed)


def test_a_compaction_by_hand_with_nothing_to_do_settles_it_as_well() -> None:
    scene = Scene()
    scene.log.streams["t"][:15] = []
    events = scene.log.streams["t"]
    with scene.memory:
        assert scene.conversation.compact().outcome == "nothing_to_do"
    assert [e.reason for e in events if isinstance(e, CompactionFailed)] == ["abandoned"]


def test_who_only_reads_changes_nothing() -> None:
    scene = Scene()
    scene.conversation.context(at=5)
    scene.conversation.messages()
    scene.conversation.compactions()
    assert scene.conversation.version == 21
    assert scene.failures() == []


@pytest.mark.parametrize("owner", ["alive", "", None])
def test_one_that_somebody_may_still_work_on_keeps_its_lease(owner: str | None) -> None:
    scene = Scene(owner)
    with scene.memory:
        scene.conversation.append({"role": "user", "content": "And now?"})
        scene.conversation.context()
        assert scene.conversation.compact().outcome == "in_flight"
    assert scene.failures() == []


def test_nobody_is_asked_about_processes_where_no_compaction_is_under_way() -> None:
    scene = Scene()
    scene.conversation.context()
    asked = scene.owner.asked
    scene.conversation.append(LONG)
    scene.conversation.context()
    assert scene.owner.asked == asked


def test_a_new_compaction_names_its_process() -> None:
    scene = Scene(owner=None)
    scene.log.streams["t"].pop()
    with scene.memory:
        scene.conversation.compact()
    asked = scene.log.streams["t"][20]
    assert getattr(asked, "owner", None) == "me"
