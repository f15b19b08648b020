"""An attempt without an end: who may still be at work on it, and how it is settled."""

from datetime import datetime, timedelta

import pytest

from refold.application.runtime.core import Extras
from refold.domain.compaction.compacting import (
    CompactionInFlight,
    abandon_compaction,
    fail_compaction,
    request_compaction,
)
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import Conversation
from refold.domain.cuts.planner import CompactionPlan, NothingToCompact, plan_compaction
from refold.domain.events import CompactionFailed, CompactionRequested, Event
from refold.domain.evolve import evolve, fold
from refold.domain.value import replace
from tests.support.builders import NOON, history, requested, talk
from tests.support.fake_ports import core_of

POLICY = CompactionPolicy(lease_seconds=60)


def plan_of(state: Conversation) -> CompactionPlan:
    plan = plan_compaction(state, core_of().budget(Extras()), POLICY, "manual")
    assert not isinstance(plan, NothingToCompact)
    return plan


def begun(owner: str | None = "one") -> Conversation:
    return fold([*history(*talk(10)), replace(requested(8), owner=owner, requested_at=NOON)])


def again(state: Conversation, at: datetime, *, owner_gone: bool = False) -> tuple[Event, ...]:
    return request_compaction(
        state,
        plan_of(state),
        attempt_id="second",
        at=at,
        trigger="size",
        policy=POLICY,
        summariser="good",
        source_digest="d",
        tokens_before=1,
        owner="two",
        owner_gone=owner_gone,
    )


def test_an_attempt_remembers_its_process() -> None:
    attempt = begun().attempt
    assert attempt is not None
    assert attempt.owner == "one"


def test_a_second_attempt_is_refused_while_the_first_holds_its_lease() -> None:
    with pytest.raises(CompactionInFlight, match="running for 59 s"):
        again(begun(), NOON + timedelta(seconds=59))


@pytest.mark.parametrize("seconds", [0, 30, 59])
def test_the_lease_of_a_process_that_is_gone_does_not_hold(seconds: int) -> None:
    state = begun()
    failed, asked = again(state, NOON + timedelta(seconds=seconds), owner_gone=True)
    assert isinstance(failed, CompactionFailed)
    assert failed.reason == "abandoned"
    assert isinstance(asked, CompactionRequested)
    assert asked.owner == "two"
    after = fold([failed, asked], state).attempt
    assert after is not None
    assert after.attempt_id == "second"


def test_the_lease_of_a_living_process_ends_as_well() -> None:
    assert len(again(begun(), NOON + timedelta(seconds=60))) == 2


def test_abandoning_ends_what_is_under_way_and_nothing_else() -> None:
    state = begun()
    [failed] = abandon_compaction(state, "closed")
    assert (failed.reason, failed.detail) == ("abandoned", "closed")
    ended = evolve(state, failed)
    assert ended.attempt is None
    assert abandon_compaction(ended, "closed") == ()
    assert fail_compaction(ended, failed.attempt_id, "late") == ()
