from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.ports.recall_index import NO_FILTERS, Filters, Found
from refold.application.recall.features import BY_MEANING, Features, Matches, features_of
from refold.application.recall.passages import Passage
from refold.application.recall.ranking import Ranked, rank
from refold.application.recall.recall_query import ask
from refold.application.recall.tokens import pad, tokens_of

WORDS = st.lists(
    st.sampled_from(["port", "postgres", "redis", "端口", "what", "is", "the", "cache"]), max_size=8
)


@dataclass
class Talk:
    """A conversation, found as the index would: the candidates, and what stands beside them."""

    passages: list[Passage]

    def found(self, question: str, order: int | None = None) -> Found:
        wanted = ask(question).tokens
        candidates = [p for p in self.passages if any(f" {t} " in p.tokens for t in wanted)]
        places = {(p.thread_id, p.position + step) for p in candidates for step in (-1, 1)}
        beside = {
            place: [p for p in self.passages if (p.thread_id, p.position) == place]
            for place in sorted(places)
        }
        if order is not None:
            Random(order).shuffle(candidates)
            beside = dict(Random(order).sample(list(beside.items()), len(beside)))
        counts = {t: sum(f" {t} " in p.tokens for p in self.passages) for t in wanted}
        return Found(candidates, beside, counts, len(self.passages))

    def ask(self, question: str, **how: Any) -> list[Ranked]:
        return rank(ask(question), self.found(question), **how)


def talk(*texts: str, **fields: Any) -> Talk:
    return Talk([said(position, text, **fields) for position, text in enumerate(texts)])


def said(position: int, text: str, **fields: Any) -> Passage:
    plain = Passage(
        number=position + 1,
        thread_id="t",
        position=position,
        version=position + 1,
        part=0,
        role=("user", "assistant")[position % 2],
        kind="text",
        tool="",
        at=f"2026-01-02T03:{position % 60:02}:00.000000+00:00",
        session=position // 8,
        start=0,
        stop=len(text),
        is_question="?" in text or "？" in text,
        tokens=pad(tokens_of(text)),
        token_count=len(tokens_of(text)),
        digest=text,
    )
    return plain._replace(**fields)


def positions(found: list[Ranked]) -> list[int]:
    return [one.passage.position for one in found]


def test_the_message_with_the_words_comes_first() -> None:
    found = talk("We use redis", "Fine", "Postgres listens on port 5432", "Good").ask(
        "which port has postgres?"
    )
    assert positions(found)[0] == 2
    assert found[0].score == 1
    assert found[0].why()[0] == "words: port, postgres"


def test_the_answer_to_a_question_is_found_without_any_word_of_it() -> None:
    others = ["Good morning", "Fine, thanks", "Nice weather", "So it is"] * 3
    asked = ["Which port does postgres use?", "5432, I think"]
    found = talk(*others, *asked, *others).ask("port of postgres")
    assert len(others) + 1 in positions(found)[:3]
    assert "answers the question before it" in found[positions(found).index(13)].why()


def test_the_messages_around_a_passage_speak_for_it() -> None:
    conversation = talk(
        "Morning", "Which port does postgres use?", "5432", "Thanks", "The port of redis?"
    )
    question, found = ask("port of postgres"), conversation.found("port of postgres")
    by_name = zip(
        Features._fields,
        features_of(question, Matches(question, found, conversation.passages), {}),
        strict=True,
    )
    columns = dict(by_name)
    best = {name: max(range(5), key=column.__getitem__) for name, column in columns.items()}
    assert best["own"] == 1
    assert best["before"] == best["answers"] == 2
    assert best["after"] == 0
    assert best["earlier"] == 3
    assert [value > 0 for value in columns["asks"]] == [False, True, False, False, True]


def test_rare_words_count_more() -> None:
    many = ["the cache is warm"] * 10
    found = talk(*many, "the cache of redis", *many).ask("cache redis")
    assert positions(found)[0] == 10


def test_the_one_whose_words_are_meant_comes_first() -> None:
    conversation = talk("The port is 5432", "The port is 5432", "Bye", "Bye")
    assert positions(conversation.ask("which port did you tell me?"))[0] == 1
    assert positions(conversation.ask("which port did I say?"))[0] == 0
    assert "by the assistant" in conversation.ask("which port did you tell me?")[0].why()


def test_the_one_who_is_named_at_the_head_of_a_message_comes_first() -> None:
    conversation = talk(
        "Ann: I love pottery", "Bob: I love pottery", "Ann: Really?", "Bob: Yes, pottery"
    )
    assert positions(conversation.ask("What does Ann love, pottery?"))[0] == 0
    assert (
        "by the person named in the question" in conversation.ask("Does Ann love pottery?")[0].why()
    )


def test_a_message_of_the_day_that_is_named_comes_first() -> None:
    passages = [said(n, "I ran in the park", at=f"2026-05-{n + 1:02}T08:00:00Z") for n in range(8)]
    assert positions(Talk(passages).ask("When I ran on May 3rd, where was it?"))[0] == 2


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("Where was my first run?", 0),
        ("Where was my latest run?", 6),
        ("What did I say of the run before May 2, 2026?", 0),
        ("What did I say of the run after May 5, 2026?", 6),
        ("Wo war der letzte run in der Stadt?", 6),
        ("我最后一次run是在哪里？", 6),
    ],
)
def test_the_time_that_is_meant_decides_between_equal_messages(question: str, best: int) -> None:
    texts = ["I run in the park", "So it is", "Fine weather"] * 3
    passages = [
        said(n, text, role="user", at=f"2026-05-{n + 1:02}T08:00:00Z")
        for n, text in enumerate(texts)
    ]
    assert positions(Talk(passages).ask(question))[0] == best


def test_an_event_decides_which_of_equal_messages_is_meant() -> None:
    texts = (
        "I eat soup",
        "Fine",
        "Well",
        "The wedding was long",
        "Nice",
        "Yes",
        "I eat soup",
        "No",
    )
    conversation = talk(*texts, role="user", session=0)
    for question, best in (("before", 0), ("after", 6)):
        found = conversation.ask(f"Did I eat the soup {question} the wedding?")
        assert next(at for at in positions(found) if at != 3) == best


def test_a_time_answers_a_question_for_a_time() -> None:
    conversation = talk("I moved house, what a day", "Fine", "I moved house yesterday, yes", "Fine")
    assert positions(conversation.ask("When was the house moved?"))[0] == 2


def test_the_words_of_a_person_come_before_long_output_with_the_same_words() -> None:
    output = "port postgres " + "lorem ipsum dolor sit amet " * 12
    results = [said(n, output, role="tool", kind="result") for n in range(4)]
    person = said(4, "Let us give postgres a port of its own")
    assert positions(Talk([*results, person]).ask("port postgres"))[0] == 4


def test_what_only_stands_next_to_a_hit_comes_after_all_hits() -> None:
    conversation = talk(
        "So?", "Which port?", "Yes", "Well", "The port, then", "No", "A port of call"
    )
    found = conversation.ask("which port was it?")
    assert [one.is_neighbour for one in found] == [False] * 3 + [True] * (len(found) - 3)
    assert {one.passage.position for one in found[:3]} == {1, 4, 6}


def test_vectors_of_the_messages_around_it_speak_for_a_message() -> None:
    conversation = talk("One", "Two", "Three", "Four", "Five", "Six")
    found = Found(conversation.passages, {}, {}, 6)
    near = dict(zip(range(1, 7), (0.1, 0.6, 0.5, 0.6, 0.1, 0.5), strict=True))
    best = positions(rank(ask("what of this"), found, near, weights=BY_MEANING))
    assert best.index(2) < best.index(5)


def test_nearness_in_meaning_lifts_a_message_without_the_words() -> None:
    conversation = talk(
        "The dog barks", "Noise", "Our database", "listens there", "The port", "is open"
    )
    question, found = ask("port"), conversation.found("port")
    everything = found._replace(candidates=conversation.passages)
    near = {passage.number: 0.1 for passage in conversation.passages} | {1: 0.9}
    plain = positions(rank(question, everything))
    lifted = rank(question, everything, near)
    assert positions(lifted).index(0) < plain.index(0)
    assert "near in meaning (0.90)" in lifted[positions(lifted).index(0)].why()


def test_a_message_is_found_once_by_its_best_passage() -> None:
    pieces = [
        said(0, "nothing here", part=0, number=1),
        said(0, "the port of postgres", part=1, number=2),
        said(1, "port", number=3),
    ]
    found = Talk(pieces).ask("port of postgres")
    assert positions(found) == [0, 1]
    assert found[0].passage.part == 1


def test_of_two_as_good_the_newer_comes_first() -> None:
    conversation = Talk([said(n, "the port", role="user", session=0) for n in (0, 4, 8)])
    assert positions(conversation.ask("port")) == [8, 4, 0]


def test_chinese_is_explained_by_whole_words() -> None:
    found = talk("我喜欢看科幻电影", "好的", "天气不错", "是的").ask("我看过什么科幻电影？")
    assert positions(found)[0] == 0
    assert "科幻电影" in found[0].why()[0]


def test_nothing_found_is_nothing_ranked() -> None:
    assert rank(ask("port"), Found((), {}, {}, 0)) == []
    assert talk("Good morning").ask("port") == []


@pytest.mark.parametrize(
    "filters",
    [
        Filters(roles=frozenset({"assistant"})),
        Filters(positions=(1, 2)),
        Filters(leave_out=frozenset({0, 2, 3})),
        Filters(since="2026-01-02T03:01", until="2026-01-02T03:02"),
    ],
)
def test_what_stands_beside_a_hit_passes_the_filters_or_is_none(filters: Filters) -> None:
    conversation = talk("the port", "the port", "port", "other")
    found = rank(ask("port"), conversation.found("port"), filters=filters)
    assert found
    assert set(positions(found)) <= {1, 3}
    assert found[0].score == 1


def test_a_filter_that_lets_nothing_through_leaves_nothing() -> None:
    conversation = talk("the port", "port")
    assert conversation.ask("port", filters=Filters(thread_id="another")) == []
    assert conversation.ask("port", filters=Filters(kinds=frozenset({"call"}))) == []
    assert conversation.ask("port", filters=Filters(tools=frozenset({"bash"}))) == []


def test_no_more_are_ranked_than_asked_for() -> None:
    conversation = talk(*["the port"] * 80)
    assert len(conversation.ask("port")) == 50
    assert positions(conversation.ask("port", limit=3)) == positions(conversation.ask("port"))[:3]


@given(st.lists(WORDS, min_size=1, max_size=30), WORDS, st.integers(0, 99), st.booleans())
def test_the_order_of_what_was_found_does_not_matter(
    texts: list[list[str]], asked: list[str], order: int, with_cosines: bool
) -> None:
    conversation, question = talk(*map(" ".join, texts)), " ".join(asked)
    cosines = (
        {p.number: Random(p.number).random() for p in conversation.passages} if with_cosines else {}
    )
    plain = rank(ask(question), conversation.found(question), cosines)
    other = rank(ask(question), conversation.found(question, order), cosines)
    assert list(map(told, other)) == list(map(told, plain))


def told(one: Ranked) -> tuple[Passage, float, tuple[str, ...]]:
    return one.passage, one.score, one.why()


@given(st.lists(WORDS, min_size=1, max_size=30), st.one_of(WORDS.map(" ".join), st.text()))
def test_scores_are_relative_to_the_best_and_every_hit_says_why(
    texts: list[list[str]], question: str
) -> None:
    found = talk(*map(" ".join, texts)).ask(question, filters=NO_FILTERS)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert scores[:1] in ([], [1.0])
    assert all(one.why() and all(one.why()) for one in found)
    assert len(set(positions(found))) == len(found)
