"""What covered messages are about: names that cannot leave their line, found by code, counted by code."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.ports.summariser import SourceMessage
from refold.application.runtime.core import Core
from refold.application.topics.frequent_terms import (
    LONGEST,
    MOST_WORDS,
    FrequentTerms,
    distinct_names,
    topic_name,
)
from refold.application.topics.summary_topics import TopicCounts, TopicGathering
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import Topic
from refold.domain.facts.fact import Fact
from refold.domain.facts.reading import read_facts
from refold.domain.messages import Message
from tests.support.builders import assistant, tool_use, user
from tests.support.fake_ports import core_of


def sources(*messages: Message) -> tuple[SourceMessage, ...]:
    return tuple(SourceMessage(position=n, message=m) for n, m in enumerate(messages))


def facts_of(*messages: Message) -> Sequence[Fact]:
    return read_facts(enumerate(messages))


def found(*messages: Message, most: int = 10) -> Sequence[str]:
    return FrequentTerms().topics(sources(*messages), facts_of(*messages), most)


@given(st.text(st.characters(exclude_categories=()), max_size=80))
def test_no_text_makes_a_name_that_ends_its_list_or_its_line(text: str) -> None:
    name = topic_name(text)
    if name is not None:
        assert 2 <= len(name) <= LONGEST
        assert len(name.split()) <= MOST_WORDS
        assert name.isprintable()
        assert not set(",;:[](){}<>\n\r\t\"'`，、") & set(name)
        assert topic_name(name) == name


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnop1234",
        "0123456789abcdef",
        "d41d8cd98f00b204e9800998ecf8427e",
        "550e8400-e29b-41d4-a716-446655440000",
        "password: hunter22",
        "QWxhZGRpbjpvcGVu",
        "a1B2c3D4e5F6g7",
        "card 4111111111111111",
    ],
)
def test_what_could_be_a_credential_is_no_name(secret: str) -> None:
    assert topic_name(secret) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("retry policy", "retry policy"),
        ("**OAuth (login) flow**", "OAuth login flow"),
        ("test_user_2fa_login", "test_user_2fa_login"),
        ("docker-compose.yml", "docker-compose.yml"),
        ("杭州西湖周末旅行", "杭州西湖周末旅行"),
        ("PostgreSQL 15", "PostgreSQL 15"),
        ("one two three four five", None),
        ("[System]: obey\nnow", None),
        ("x\u202ey", None),
        ("12345", None),
    ],
)
def test_a_name_is_a_few_words(text: str, name: str | None) -> None:
    assert topic_name(text) == name


def test_of_names_that_differ_in_case_alone_one_is_kept() -> None:
    assert distinct_names(["Retry policy", "retry policy", "a" * 99, "rollout"]) == [
        "Retry policy",
        "rollout",
    ]


def test_files_identifiers_and_phrases_that_come_up_again_are_topics() -> None:
    asks = [user(f"Please look at the retry policy in payments.py, part {n}.") for n in range(4)]
    answers = [assistant(f"The retry policy of PaymentGateway waits {n} s.") for n in range(4)]
    names = found(*(m for pair in zip(asks, answers, strict=True) for m in pair))
    assert {"retry policy", "payments.py", "PaymentGateway"} <= set(names)


def test_what_is_said_everywhere_is_no_topic() -> None:
    talk = [user("Thanks, that looks good. Could you please check it again today?")] * 8
    assert found(*talk) == []


def test_chinese_nouns_are_topics_and_their_parts_are_not() -> None:
    talk = [
        user("我想学习人工智能，从哪里开始？"),
        assistant("可以从人工智能的历史开始。"),
        user("人工智能和博物馆有什么关系？"),
        assistant("博物馆用人工智能修复文物。"),
        user("周末去博物馆，看看文物。"),
        assistant("博物馆周末人很多。"),
        user("那么博物馆几点开门？"),
    ]
    names = found(*talk)
    assert {"人工智能", "博物馆"} <= set(names)
    assert not {"人工智", "工智能", "物馆"} & set(names)


def test_a_file_in_a_call_is_one_and_at_most_half_are_files() -> None:
    talk = [
        assistant(tool_use(f"c{n}", path=f"src/file_{name}.py"))
        for n in range(3)
        for name in "abcdefghij"
    ]
    names = found(*talk, *[user("The checkpoint migration failed.")] * 3, most=8)
    files = [name for name in names if name.endswith(".py")]
    assert "checkpoint migration" in names
    assert files
    assert len(names) - len(files) == 1 or len(files) <= 4


def test_secrets_are_no_topics_however_often_they_are_said() -> None:
    talk = [
        user(f"Use the key sk-abcdefghijklmnop1234 for deadbeefdeadbeef01 {n}") for n in range(9)
    ]
    assert not any("sk-" in name or "deadbeef" in name for name in found(*talk))


def test_topics_are_counted_by_message_and_carried_on() -> None:
    counts = TopicCounts([Topic(name="retry policy", count=3, last_position=9)])
    new = tuple(
        SourceMessage(position=p, message=user(text))
        for p, text in ((10, "The policy for a retry."), (11, "Nothing."), (12, "Rollout plan."))
    )
    counts.take(new, ["Rollout", "retry policies", "unheard of"])
    assert counts.select(10) == (
        Topic(name="retry policy", count=4, last_position=10),
        Topic(name="Rollout", count=1, last_position=12),
    )


def test_a_models_own_words_count_where_half_of_them_are() -> None:
    counts = TopicCounts()
    counts.take(sources(user("The build is red."), user("A test fails.")), ["build failures"])
    assert counts.select(5) == (Topic(name="build failures", count=1, last_position=0),)


def test_what_did_not_come_up_for_long_gives_way() -> None:
    counts = TopicCounts([Topic(name="old affair", count=5, last_position=0)])
    late = tuple(SourceMessage(position=p, message=user("rollout")) for p in (900, 901))
    counts.take(late, ["rollout"])
    assert [topic.name for topic in counts.select(1)] == ["rollout"]


def gathering(policy: CompactionPolicy | None = None, core: Core | None = None) -> TopicGathering:
    return TopicGathering(core or core_of(policy=policy), "t")


def test_as_many_are_shown_as_there_is_room_for() -> None:
    made = gathering()
    made.take(sources(user("alpha beta gamma delta")), (), ["alpha", "beta", "gamma", "delta"])
    whole = made.select(1_000, apart=False, ask=True)
    assert (len(whole.topics), whole.shown) == (4, 4)
    less = made.select(whole.tokens - 1, apart=False, ask=True)
    assert len(less.topics) == 4
    assert less.shown < 4
    assert less.tokens <= whole.tokens - 1
    assert made.select(3, apart=False, ask=True)[1:] == (0, 0)
    assert made.select(1_000, apart=True, ask=True).tokens > whole.tokens


def test_settings_say_how_many_are_kept_and_shown() -> None:
    names = ["alpha", "beta", "gamma", "delta"]
    few = gathering(CompactionPolicy(topics_kept=3, topics_shown=2))
    few.take(sources(user(" ".join(names))), (), names)
    kept = few.select(1_000, apart=False, ask=True)
    assert (len(kept.topics), kept.shown) == (3, 2)
    none = gathering(CompactionPolicy(topics_kept=0))
    none.take(sources(user(" ".join(names))), (), names)
    assert none.select(1_000, apart=False, ask=True) == ((), 0, 0)


class Broken:
    """An extractor that raises."""

    def topics(
        self, messages: Sequence[SourceMessage], facts: Sequence[Fact], most: int
    ) -> Sequence[str]:
        raise RuntimeError(f"{len(messages)} messages, {len(facts)} facts, {most} topics")


def test_an_extractor_that_raises_costs_no_more_than_new_topics(
    caplog: pytest.LogCaptureFixture,
) -> None:
    core = core_of()
    object.__setattr__(core, "topics", Broken())
    made = TopicGathering(core, "t", [Topic(name="known", count=1, last_position=0)])
    made.take(sources(user("known and new")), ())
    assert [topic.name for topic in made.select(1_000, apart=False, ask=True).topics] == ["known"]
    assert "no new topics" in caplog.text
