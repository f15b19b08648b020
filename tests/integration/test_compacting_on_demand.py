"""A compaction on demand: where it stops, its options, and a focus that was the wrong one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import refold
from tests.support.command_line import ran
from tests.support.fact_summarisers import FactSummariser, facts_in
from tests.support.fake_summarisers import RaisingSummariser, RecordingSummariser


def talk(conversation: refold.ConversationMemory, turns: int = 100, words: int = 60) -> None:
    for n in range(turns):
        conversation.append(
            {"role": "user", "content": f"Question {n}: " + f"word{n} says more. " * words}
        )
        conversation.append(
            {"role": "assistant", "content": f"Answer {n}: " + f"so it{n} is. " * words}
        )


def long_talk(**options: Any) -> refold.Memory:
    memory = refold.open(":memory:", window=60_000, **options)
    talk(memory.conversation("t"))
    return memory


@pytest.mark.slow
def test_a_large_conversation_is_brought_to_the_target_of_an_automatic_compaction() -> None:
    with long_talk() as memory:
        conversation = memory.conversation("t")
        done = conversation.compact()
        assert done.outcome == "performed"
        assert 10_000 < done.tokens_after <= 21_000
        assert done.messages_kept > 20
        again = conversation.compact(all=True)
        assert again.outcome == "performed"
        assert again.messages_kept in (5, 6), "the newest five, or the whole turns that they are in"


@pytest.mark.slow
def test_a_conversation_below_the_target_keeps_the_newest_messages() -> None:
    with refold.open(":memory:", window=200_000) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 30)
        assert conversation.compact().messages_kept in (5, 6)


@pytest.mark.slow
def test_the_target_of_one_call_is_met_and_nothing_is_done_where_it_is_met_already() -> None:
    summariser = RecordingSummariser()
    with long_talk(summariser=summariser) as memory:
        conversation = memory.conversation("t")
        done = conversation.compact(target=20_000)
        assert (done.outcome, done.effective) == ("performed", True)
        assert 9_000 < done.tokens_after <= 20_000
        assert conversation.context().tokens <= 20_000
        again = conversation.compact(target=20_000)
        assert (again.outcome, again.reason, again.model_calls) == (
            "nothing_to_do",
            "within_target",
            0,
        )
        assert len(summariser.requests) == 1
        smaller = conversation.compact(target=8_000)
        assert smaller.outcome == "performed", "a smaller target is something new"
        assert 1_000 < smaller.tokens_after <= 8_000
        assert len(summariser.requests) == 2


@pytest.mark.slow
def test_so_many_messages_stay_as_one_call_says() -> None:
    with long_talk() as memory:
        conversation = memory.conversation("t")
        done = conversation.compact(keep_last=12)
        assert (done.outcome, done.messages_kept) == ("performed", 12)
        assert conversation.compact(keep_last=12).outcome == "nothing_to_do"
        assert conversation.compact(keep_last=5).messages_kept == 5, (
            "just so many, in the midst of a turn"
        )
        assert conversation.compact(keep_last=2).messages_kept == 2
        policy = memory.conversation("t").context().summary
        assert policy is not None
        assert policy.policy.keep_last == 2, "the policy of the call is on record"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"target": 0}, "target"),
        ({"target": "5"}, "target"),
        ({"keep_last": 0}, "keep_last"),
        ({"keep_last": True}, "keep_last"),
        ({"model": " "}, "model"),
        ({"model": 5}, "model"),
        ({"focus": 5}, "focus"),
        ({"target": 20, "system": "Be brief. " * 40}, "target"),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(options: dict[str, Any], field: str) -> None:
    with long_talk() as memory, pytest.raises(refold.InvalidSetting, match=field) as refused:
        memory.conversation("t").compact(**options)
    assert refused.value.setting == field


def test_asyncio_has_the_same_options() -> None:
    async def run() -> refold.CompactionResult:
        async with refold.aopen(":memory:", window=60_000) as memory:
            conversation = memory.conversation("t")
            for n in range(40):
                await conversation.append(
                    {"role": "user", "content": f"Question {n} " + "word " * 99}
                )
                await conversation.append({"role": "assistant", "content": "so it is. " * 50})
            return await conversation.compact(target=6_000, keep_last=3, model="m", focus="the cat")

    done = asyncio.run(run())
    assert done.outcome == "performed"
    assert done.tokens_after <= 6_000


@pytest.mark.slow
def test_a_new_focus_has_the_same_messages_summarised_again() -> None:
    summariser = FactSummariser(300)
    with long_talk(summariser=summariser) as memory:
        conversation = memory.conversation("t")
        conversation.compact()
        talk(conversation, 20)
        first = conversation.compact(focus="the cat", keep_last=6)
        covered, tokens = first.messages_covered, conversation.context().tokens
        again = conversation.compact(focus="the dog")
        assert (again.outcome, again.messages_covered) == ("performed", covered)
        before, after = summariser.requests[1:]
        assert after.focus == "the dog"
        assert after.messages == before.messages
        assert facts_in(after.previous) == [1], "the text that is replaced is no source"
        assert abs(conversation.context().tokens - tokens) < 200
        assert conversation.compact(focus="the dog").outcome == "nothing_to_do"
        assert [row.is_active for row in conversation.summaries()].count(True) == 1
        expanded = conversation.expand(str(again.summary_id))
        assert len(expanded.leaves) == 2, "the leaf of the same messages is there once"
        conversation.revert_compaction()
        undone = conversation.context().summary
        assert undone is not None
        assert facts_in(undone.text) == [1, 2]
        assert memory.verify().ok


@pytest.mark.slow
def test_a_failing_summariser_loses_nothing_of_the_summary_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with refold.open(path, window=60_000) as memory:
        talk(memory.conversation("t"))
        memory.conversation("t").compact()
        before = memory.conversation("t").context().for_anthropic()
    failing = RaisingSummariser("authentication")
    with refold.open(path, window=60_000, summariser=failing) as memory:
        done = memory.conversation("t").compact(focus="the cat")
        assert (done.outcome, failing.calls) == ("failed", 1)
        assert memory.conversation("t").context().for_anthropic() == before


@pytest.mark.slow
def test_the_command_line_has_the_options(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with refold.open(path, window=60_000) as memory:
        talk(memory.conversation("t"))

    def compact(*options: str) -> dict[str, Any]:
        words = ("compact", "t", "--db", "a.db", "--window", "60000", "--json", *options)
        return ran(*words, folder=tmp_path).answer

    done = compact("--target", "9000", "--model", "claude-opus-5-5")
    assert done["outcome"] == "performed"
    assert done["tokens_after"] <= 9_000
    assert compact("--keep-last", "3")["messages_kept"] == 3
    assert compact("--focus", "the cat")["outcome"] == "performed"
    assert compact("--all")["outcome"] == "nothing_to_do"
