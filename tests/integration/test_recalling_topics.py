"""Recall by topic, as an agent, its tools and the command line ask for it."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

import refold
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.errors import InvalidSetting
from tests.properties.test_recalling_topics import Naming
from tests.support.command_line import ran

LATER = 12
"""Turns about nothing behind those about something."""


def fill(conversation: refold.ConversationMemory) -> None:
    for number, about in enumerate(
        ("the retry policy", "the 支付接口", "lunch and the retry policy")
    ):
        conversation.append(
            [
                {"role": "user", "content": f"Let us talk of {about}, part {number}."},
                {"role": "assistant", "content": "Fine."},
            ]
        )
    call = {"type": "tool_use", "id": "c", "name": "recall_memory", "input": {"query": "zeta.toml"}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "Nothing."}
    conversation.append(
        [
            {"role": "user", "content": "Look it up."},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": "There is none."},
        ]
    )
    for _ in range(LATER):
        conversation.append(
            [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "ok " * 60}]
        )
    conversation.compact()


@pytest.fixture
def memory(tmp_path: Path) -> Generator[refold.Memory]:
    names = Naming(["retry policy", "支付接口", "zeta.toml"])
    policy = CompactionPolicy(topics_shown=3, keep_last=2)
    with refold.open(tmp_path / "a.db", window=8_000, summariser=names, policy=policy) as memory:
        fill(memory.conversation("t"))
        yield memory


def test_a_topic_leads_to_its_messages_and_to_no_others(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    listed = {seen.topic: seen for seen in conversation.topics()}
    found = conversation.recall(topic="retry policy")
    assert {hit.position for hit in found} == {0, 4}
    assert (found.query, found.topic, listed["retry policy"].count) == ("", "retry policy", 2)
    assert [hit.position for hit in conversation.recall(topic="支付接口")] == [2]


def test_a_question_is_answered_from_the_messages_of_the_topic(memory: refold.Memory) -> None:
    found = memory.conversation("t").recall("what was said of lunch?", topic="Retry Policy")
    assert [hit.position for hit in found] == [4, 0]


def test_a_topic_that_no_index_has_leads_to_its_newest_message(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    [seen] = [seen for seen in conversation.topics() if seen.topic == "zeta.toml"]
    for found in (conversation.recall(topic="zeta.toml"), memory.search(topic="zeta.toml")):
        [hit] = found
        assert (hit.position, hit.why) == (seen.last_position, ("topic zeta.toml",))
        assert "zeta.toml" in hit.text
    assert not conversation.recall(topic="zeta.toml", roles="user")


def test_a_topic_that_is_not_listed_is_told_of_with_those_that_are(memory: refold.Memory) -> None:
    found = memory.conversation("t").recall(topic="lunch")
    assert [hit.position for hit in found] == [4]
    assert found.notice is not None
    assert found.notice.startswith(
        "topic 'lunch' is not listed, its words were looked for; the topics are: "
    )
    assert "retry policy" in found.notice


def test_the_tool_takes_a_topic_a_question_or_both(memory: refold.Memory) -> None:
    tools = memory.conversation("t").tools()
    assert (
        '2 passages found for topic "retry policy"'
        in tools.call("recall_memory", {"topic": "retry policy"}).text
    )
    both = tools.call("recall_memory", {"topic": "retry policy", "query": "lunch"}).text
    assert 'found for "lunch" in topic "retry policy"' in both
    neither = tools.call("recall_memory", {"limit": 3})
    assert neither.is_error
    assert "query is missing; give one, or a topic, or both" in neither.text


@pytest.mark.parametrize("topic", ["", " ", 3])
def test_what_is_no_topic_is_refused(memory: refold.Memory, topic: object) -> None:
    with pytest.raises(InvalidSetting, match="topic="):
        memory.conversation("t").recall(topic=topic)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
def test_the_command_line_takes_a_topic(memory: refold.Memory, tmp_path: Path) -> None:
    found = ran("recall", "t", "--topic", "支付接口", "--db", "a.db", "--json", folder=tmp_path)
    assert [hit["position"] for hit in json.loads(found.out)["hits"]] == [2], memory
    refused = ran("recall", "t", "--db", "a.db", folder=tmp_path)
    assert refused.code == 2
    assert "--topic" in refused.err
