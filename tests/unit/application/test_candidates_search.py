"""The search for the clauses of a question, and how their hits are merged."""

import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.ports.embedder import Vector
from refold.application.ports.recall_index import Found
from refold.application.recall.candidates_search import LONGEST, MOST_CLAUSES, clauses_of, merge
from refold.application.recall.passages import Passage
from refold.application.recall.ranking import Ranked
from refold.application.recall.recall_query import MOST_CHARACTERS, ask
from tests.support.builders import assistant, history, user
from tests.support.recall_scenes import ListedIndex, Scene, TopicEmbedder
from tests.unit.application.test_ranking import said

FACTS = (
    user("My sister lives in Lisbon."),
    assistant("A sunny city."),
    user("My brother has a red boat."),
    assistant("Red is a good colour for boats."),
    user("我同事的家乡是杭州。"),
    assistant("杭州很美。"),
    user("医学论坛的主要内容是远程诊疗。"),
    assistant("听起来不错。"),
    user("Meine Tante wohnt in Graz."),
    assistant("Graz ist schön."),
    user("Mein Onkel sammelt alte Uhren."),
    assistant("Eine teure Sache."),
)


def clauses(text: str) -> list[str]:
    return [clause.text for clause in clauses_of(ask(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Where does Ann live, and which dog did Tom buy?",
            ["Where does Ann live", "which dog did Tom buy?"],
        ),
        ("Who is Ann? What does Tom do?", ["Who is Ann?", "What does Tom do?"]),
        (
            "同事的家乡是哪里呢？另外，医学论坛的内容是什么？",
            ["同事的家乡是哪里呢？", "医学论坛的内容是什么？"],
        ),
        ("同事的家乡是哪里，论坛的内容是什么", ["同事的家乡是哪里", "论坛的内容是什么"]),
        (
            "Wo wohnt Anna und welche Farbe hat das Auto von Tom?",
            ["Wo wohnt Anna", "welche Farbe hat das Auto von Tom?"],
        ),
        ("Wer ist Anna, und was macht Tom?", ["Wer ist Anna", "was macht Tom?"]),
    ],
)
def test_a_question_of_two_parts_has_two_clauses(text: str, expected: list[str]) -> None:
    assert clauses(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Which port does postgres use?",
        "What do Ann and Tom like?",
        "What is the port of postgres, and why?",
        "Which dog did Tom buy, and how old is it?",
        "When and where did Ann marry?",
        "Who did the work and has a boat?",
        "Would Ann read the books of Dr. Seuss?",
        "关于如何放松，你给了我什么建议？",
        "我推荐过一部电影，它的名字是什么？",
        "Wie heißt der Hund, den Anna hat?",
        "I was in Rome. It was warm there. We had ice. Where did we sleep?",
        "",
    ],
)
def test_a_question_of_one_part_has_no_clauses(text: str) -> None:
    assert clauses(text) == []


def test_a_pasted_text_is_not_split() -> None:
    assert clauses("Who is Ann? Who is Tom? " + "x" * LONGEST) == []


@pytest.mark.parametrize("one", ["在", "a", "who? ", "on May 3 ", "前，", "before "])
def test_a_long_question_is_read_in_no_time(one: str) -> None:
    begin = time.process_time()
    clauses_of(ask(one * (MOST_CHARACTERS // len(one))))
    clauses_of(ask(one * ((LONGEST - 1) // len(one))))
    assert time.process_time() - begin < 2


def test_a_clause_with_a_pronoun_has_the_name_that_it_means() -> None:
    _, second = clauses_of(ask("Where does Ann live, and which dog did she buy?"))
    assert set(second.tokens) == {"dog", "buy", "ann"}
    assert second.names == {"ann"}


def test_more_clauses_are_asked_in_groups() -> None:
    text = "Who is Ann? Who is Tom? Who is Eve? Who is Bob? Who is Jim?"
    groups = clauses(text)
    assert len(groups) == MOST_CLAUSES
    assert " ".join(groups) == text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Where does my sister live, and what colour is the boat of my brother?", {0, 2}),
        ("我同事的家乡是哪里呢？另外，医学论坛的主要内容是什么？", {4, 6}),
        ("Wo wohnt meine Tante und was sammelt mein Onkel?", {8, 10}),
    ],
)
def test_both_parts_of_a_question_are_found(text: str, wanted: set[int]) -> None:
    found = Scene(*history(*FACTS)).conversation.recall(text, limit=2)
    assert {hit.position for hit in found} == wanted


@pytest.mark.parametrize("number", [1, 2, 3, 9])
def test_a_question_of_any_length_asks_the_index_four_times_at_most(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[str]] = []
    find = ListedIndex.find

    def counted(self: ListedIndex, tokens: Sequence[str], *args: Any, **more: Any) -> Found:
        asked.append(tokens)
        return find(self, tokens, *args, **more)

    monkeypatch.setattr(ListedIndex, "find", counted)
    names = ("sister", "brother", "aunt", "uncle", "boat", "city", "colour", "watch", "forum")
    text = " ".join(f"Where is the {name} now?" for name in names[:number])
    Scene(*history(*FACTS)).conversation.recall(text)
    assert len(asked) == (1 if number == 1 else min(number, MOST_CLAUSES) + 1)


class ListedQueries(TopicEmbedder):
    """An embedder that lists the questions that it embeds."""

    def __init__(self) -> None:
        super().__init__("sister", "boat")
        self.queries: list[str] = []

    def embed_query(self, text: str) -> Vector:
        self.queries.append(text)
        return super().embed_query(text)


def test_each_clause_has_a_vector_of_its_own() -> None:
    embedder = ListedQueries()
    scene = Scene(*history(*FACTS)).equipped(embedder=embedder)
    scene.conversation.recall("Where is the sister? Where is the boat?")
    clauses = ["Where is the sister?", "Where is the boat?"]
    assert embedder.queries == [" ".join(clauses), *clauses]


lists = st.lists(st.integers(0, 12), unique=True, max_size=8)


def ranked(places: Sequence[int], neighbours: int) -> list[Ranked]:
    """Messages, best first, of which the last ones only stand next to a match."""
    direct = len(places) - min(neighbours, len(places))

    def explain(_: Passage) -> tuple[str, ...]:
        return ()

    return [
        Ranked(said(at, "x"), 1 / (rank + 1), explain, is_neighbour=rank >= direct)
        for rank, at in enumerate(places)
    ]


@given(
    whole=lists,
    parts=st.lists(lists, min_size=2, max_size=3),
    neighbours=st.integers(0, 8),
    limit=st.integers(1, 12),
)
def test_every_clause_keeps_its_share_and_no_neighbour_displaces_a_hit(
    whole: list[int], parts: list[list[int]], neighbours: int, limit: int
) -> None:
    each = [ranked(places, neighbours) for places in parts]
    merged = merge(ranked(whole, neighbours), each, limit)
    found = [one.passage.position for one in merged]
    assert sorted(found) == sorted({*whole, *(at for places in parts for at in places)})
    direct = {one.passage.position for one in merged if not one.is_neighbour}
    assert direct == {
        one.passage.position
        for one in (*ranked(whole, neighbours), *(one for some in each for one in some))
        if not one.is_neighbour
    }
    assert set(found[: len(direct)]) == direct
    scores = {one.is_neighbour: one.score for one in merged}
    assert all(0 < one.score <= 1 for one in merged)
    assert scores.get(True, 0.0) <= min((o.score for o in merged if not o.is_neighbour), default=1)
    for some in each:
        share = [one.passage.position for one in some if not one.is_neighbour]
        assert set(share[: limit // len(each)]) <= set(found[:limit])
