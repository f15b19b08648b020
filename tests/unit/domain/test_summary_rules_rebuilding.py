"""A summary that was carried on for long, or grew too long, is built anew from leaf summaries."""

import pytest

from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.compaction.summary_rules import must_rebuild
from refold.domain.events import Event, LeafSummary
from refold.domain.evolve import fold
from tests.support.builders import history, performed, requested, talk

POLICY = CompactionPolicy()
LEAF = LeafSummary(start=0, stop=8, text="extract", tokens=2)


def compacted(
    generation: int = 0, text_tokens: int = 50, leaf: LeafSummary | None = LEAF
) -> list[Event]:
    done = performed(8, generation=generation, text_tokens=text_tokens, leaf=leaf)
    return [*history(*talk(6)), requested(8), done]


@pytest.mark.parametrize(("generation", "due"), [(0, False), (3, False), (4, True), (9, True)])
def test_after_five_generations_it_is_due(generation: int, due: bool) -> None:
    assert must_rebuild(fold(compacted(generation)).summary, POLICY, 8_000) is due


@pytest.mark.parametrize(("tokens", "due"), [(3_000, False), (3_001, True)])
def test_a_text_half_again_as_long_as_is_asked_for_is_built_anew(tokens: int, due: bool) -> None:
    assert must_rebuild(fold(compacted(text_tokens=tokens)).summary, POLICY, 2_000) is due


def test_both_numbers_are_settings() -> None:
    often = CompactionPolicy(rebuild_after=1)
    assert must_rebuild(fold(compacted()).summary, often, 8_000)
    long = fold(compacted(text_tokens=4_000)).summary
    assert must_rebuild(long, POLICY, 2_000)
    assert not must_rebuild(long, CompactionPolicy(rebuild_over_share=2.1), 2_000)
    assert not must_rebuild(long, CompactionPolicy(rebuild_over_tokens=5_000), 2_000)
    assert must_rebuild(long, CompactionPolicy(rebuild_over_tokens=3_000), 8_000)


def test_without_a_summary_there_is_nothing_to_build_anew() -> None:
    assert not must_rebuild(None, POLICY, 8_000)


def test_a_summary_that_leaves_do_not_stand_for_is_never_built_anew() -> None:
    old = compacted(generation=9, leaf=None)
    assert not must_rebuild(fold(old).summary, POLICY, 8_000)
    since = [
        *old,
        requested(10, "a2"),
        performed(10, "a2", summary_id="s2", generation=9, leaf=LEAF),
    ]
    assert not must_rebuild(fold(since).summary, POLICY, 8_000)
