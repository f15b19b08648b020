"""Settings for some models: what holds for a request is what its model's table says (requirement A4)."""

import dataclasses

import pytest

from refold.application.api.memory import Memory
from refold.application.runtime.core import Core, Extras
from refold.application.runtime.memory_settings import ModelSettings, Settings
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import CompactionRequested
from refold.domain.value import replace
from tests.support.fake_ports import MemoryLog, core_of

EARLY = CompactionPolicy(trigger_share=0.2, keep_last=2)


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
def core(log: MemoryLog) -> Core:
    own = ModelSettings(prefix="claude-opus-", window=10_000, policy=EARLY)
    return dataclasses.replace(core_of(log), settings=Settings(window=20_000, models=(own,)))


def say(memory: Memory, times: int) -> None:
    for n in range(times):
        memory.conversation("t").append({"role": "user", "content": f"question {n} " * 40})
        memory.conversation("t").append({"role": "assistant", "content": f"answer {n} " * 40})


def policies(log: MemoryLog) -> list[CompactionPolicy]:
    return [e.policy for e in log.streams["t"] if isinstance(e, CompactionRequested)]


def test_the_budget_is_that_of_the_model_that_answers(core: Core) -> None:
    assert core.budget(Extras()).trigger == 14_000
    assert core.budget(Extras(model="claude-haiku-5-5")).trigger == 14_000
    opus = core.budget(Extras(model="claude-opus-5"))
    assert (opus.window, opus.trigger) == (10_000, 2_000)


def test_the_usual_model_counts_where_a_call_names_none(core: Core) -> None:
    usual = dataclasses.replace(core, settings=replace(core.settings, model="claude-opus-5"))
    assert usual.budget(Extras()).trigger == 2_000
    assert usual.budget(Extras(model="gpt-5")).trigger == 14_000


def test_a_request_compacts_as_the_table_of_its_model_says(core: Core, log: MemoryLog) -> None:
    with Memory(core) as memory:
        say(memory, 12)
        conversation = memory.conversation("t")
        assert conversation.context(model="claude-haiku-5-5").compactions == ()
        assert conversation.context(model="claude-opus-5").compactions != ()
    assert policies(log) == [EARLY], "what is recorded is the policy that held"


def test_a_compaction_on_demand_goes_by_the_usual_model(core: Core, log: MemoryLog) -> None:
    usual = dataclasses.replace(core, settings=replace(core.settings, model="claude-opus-5"))
    with Memory(usual) as memory:
        say(memory, 3)
        assert memory.conversation("t").compact().outcome == "performed"
    assert policies(log) == [EARLY]
