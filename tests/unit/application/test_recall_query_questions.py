import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.recall.recall_query import Day, ask, days_in
from refold.application.recall.tokens import stop_words, tokens_of

TEXTS = st.text(st.characters(codec=None, exclude_categories=[]), max_size=200)


def test_function_words_are_not_looked_for() -> None:
    assert ask("Which port did the Postgres server use?").tokens == (
        "port",
        "postgr",
        "server",
        "use",
    )


def test_a_question_of_function_words_alone_looks_for_them() -> None:
    assert ask("Who are you?").tokens == ("who", "are", "you")


def test_chinese_function_words_are_not_looked_for_alone_or_in_pairs() -> None:
    tokens = ask("你记得我的端口是什么吗").tokens
    assert "端口" in tokens
    assert not {"你", "我", "的", "是", "吗", "我的", "什么"} & set(tokens)


def test_chinese_filler_weighs_nothing_nor_do_pairs_across_it() -> None:
    tokens = set(ask("另外，我们的新同事上次来的时候说了什么？").tokens)
    assert tokens == {"新", "同", "事", "新同", "同事"}
    assert {"目的", "了解"} <= set(ask("了解目的").tokens)


def test_german_function_words_are_not_looked_for() -> None:
    assert ask("Wo wohnt meine Schwester und wie heißt die Straße?").tokens == (
        "wohnt",
        "schwester",
        "heisst",
        "strasse",
    )
    assert "die" in ask("How did the hamster die?").tokens


def test_each_token_is_looked_for_once() -> None:
    assert ask("port port ports").tokens == ("port",)


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("What did you tell me about locks?", "assistant"),
        ("Which books have you recommended to me?", "assistant"),
        ("What was your suggestion for the index?", "assistant"),
        ("你曾经给我推荐过哪些画家？", "assistant"),
        ("关于如何放松，你给了我什么建议？", "assistant"),
        ("What did I say about locks?", "user"),
        ("Do you remember what my dog is called?", "user"),
        ("What does the user prefer?", "user"),
        ("我曾经和你推荐过一部科幻电影，它的名字是？", "user"),
        ("我喜欢哪些菜系？", "user"),
        ("What did the assistant recommend?", "assistant"),
        ("助手推荐了哪本书？", "assistant"),
        ("What do I like to eat?", "user"),
        ("What did the user ask for?", "user"),
        ("用户喜欢什么？", "user"),
        ("Could you show me my deployment address?", "user"),
        ("Which port does postgres use?", ""),
        ("Can you tell me the deployment address?", ""),
        ("Could you please explain the agent config?", ""),
        ("Which tokenizer does the model we deploy use?", ""),
        ("Tell me the port.", ""),
        ("Please give me the disk error of the user partition", ""),
        ("How do I restart nginx?", ""),
        ("Where is my.cnf?", ""),
        ("我们的数据库端口是多少", ""),
        ("请告诉我数据库端口是多少", ""),
        ("你能帮我找一下端口吗", ""),
        ("用户登录接口在哪里", ""),
        ("助手配置在哪里", ""),
    ],
)
def test_a_question_means_the_words_of(text: str, role: str) -> None:
    assert ask(text).roles == ({role} if role else set())


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on May 2nd", [Day(None, 5, 2)]),
        ("the 31st of December", [Day(None, 12, 31)]),
        ("5 July, 2023", [Day(2023, 7, 5)]),
        ("July 5, 2023", [Day(2023, 7, 5)]),
        ("in June 2023", [Day(2023, 6, None)]),
        ("2023-05-07 or 2023-06", [Day(2023, 5, 7), Day(2023, 6, None)]),
        ("在5月2日和2023年12月", [Day(None, 5, 2), Day(2023, 12, None)]),
        ("4月27号", [Day(None, 4, 27)]),
        ("may I march to room 31?", []),
        ("version 2023.99 of 13月40日", []),
    ],
)
def test_these_days_are_named(text: str, days: list[Day]) -> None:
    assert list(days_in(text)) == days


def test_a_day_fits_the_times_in_it() -> None:
    at = "2023-05-02T10:00:00.000000+00:00"
    assert Day(None, 5, 2).fits(at)
    assert Day(2023, 5, None).fits(at)
    assert not Day(2022, 5, 2).fits(at)
    assert not Day(None, 5, 3).fits(at)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("What did I buy before May 2, 2023?", Day(2023, 5, 2, "before")),
        ("Was habe ich nach dem 2. Mai gekauft?", Day(None, 5, 2, "after")),
        ("我在5月2日之后买了什么？", Day(None, 5, 2, "after")),
        ("What have I bought since May?", Day(None, 5, None, "after")),
    ],
)
def test_the_time_before_or_after_a_day_is_meant(text: str, day: Day) -> None:
    assert ask(text).days[:1] in {(day,), ()}
    assert not day.fits("2023-05-02T10:00:00.000000+00:00")
    assert day.fits("2023-06-02T10:00:00.000000+00:00") == (day.side == "after")
    assert day.fits("2023-04-02T10:00:00.000000+00:00") == (day.side == "before")


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("What was my first job?", "first"),
        ("我第一次量的腰围是多少？", "first"),
        ("Wo habe ich zuerst gewohnt?", "first"),
        ("Which car did I drive last?", "last"),
        ("What is my latest address?", "last"),
        ("我最后一次去北京是什么时候？", "last"),
        ("Was ist meine neueste Adresse?", "last"),
        ("What did I do last week?", None),
        ("我最近去哪里了？", None),
    ],
)
def test_the_first_or_the_last_is_meant(text: str, order: str | None) -> None:
    assert ask(text).order == order


@pytest.mark.parametrize(
    ("text", "side", "token"),
    [
        ("What did Ann do after the road trip?", "after", "road"),
        ("搬到上海之前我住哪里？", "before", "上海"),
        ("Wo wohnte ich vor dem Umzug?", "before", "umzug"),
    ],
)
def test_the_answer_is_before_or_after_an_event(text: str, side: str, token: str) -> None:
    relative = ask(text).relative
    assert relative is not None
    assert relative[0] == side
    assert token in relative[1]


def test_questions_for_a_time_are_known() -> None:
    asked = (
        "When did I move?",
        "我什么时候搬家的？",
        "Wann bin ich umgezogen?",
        "Where did I move?",
    )
    assert [ask(text).asks_when for text in asked] == [True, True, True, False]


def test_a_day_in_chinese_is_looked_for_as_the_index_writes_it() -> None:
    assert {"may", "2"} <= set(ask("5月2日我去了哪里").tokens)


def test_names_are_what_is_written_large() -> None:
    assert ask("When did Caroline meet O'Brien in Xi'an?").names >= {"carolin"}
    assert ask("when did caroline leave?").names == frozenset()


def test_stop_words_are_tokens_and_no_month() -> None:
    assert "may" not in stop_words()
    assert all(tokens_of(token) for token in stop_words())


@given(TEXTS)
def test_any_text_is_a_question(text: str) -> None:
    question = ask(text)
    assert question.text == text
    assert len(set(question.tokens)) == len(question.tokens)
    assert bool(question.tokens) == bool(tokens_of(text))
    assert question.names.isdisjoint(stop_words())
