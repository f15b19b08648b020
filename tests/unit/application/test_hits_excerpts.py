"""Where the words of a question stand in a text, and the part of the text around them."""

from hypothesis import given
from hypothesis import strategies as st

from refold.application.recall.hits import excerpt, spans_of
from refold.application.recall.recall_query import ask


def found(text: str, question: str) -> list[str]:
    return [text[span.start : span.stop] for span in spans_of(text, ask(question).tokens, "text")]


def test_words_are_found_in_every_form_and_nothing_else_is() -> None:
    assert found("The tests were tested by a tester.", "testing") == ["tests", "tested"]
    assert found("Ports: PORT, port, sport, portal.", "port") == ["Ports", "PORT", "port"]


def test_parts_of_identifiers_and_paths_are_found() -> None:
    assert found("open src/parse_date.py", "parse date") == ["parse", "date"]


def test_chinese_words_are_found_where_they_stand() -> None:
    assert found("我们决定使用缓存。", "缓存") == ["缓存"]
    assert found("存放在这里", "缓存") == ["存"]


def test_an_excerpt_has_the_most_different_words() -> None:
    text = "port " * 50 + "filler " * 200 + "the port of postgres is 5433 " + "filler " * 200
    start, stop = excerpt(text, ask("which port has postgres, 5433?").tokens, 60, len, "text")
    assert "port of postgres is 5433" in text[start:stop]
    assert stop - start <= 60


def test_an_excerpt_without_any_of_the_words_is_the_beginning() -> None:
    text = "one two three four five six"
    start, stop = excerpt(text, ask("zebra").tokens, 13, len, "text")
    assert text[start:stop] == "one two three"


def test_an_excerpt_of_a_call_sees_the_first_word_of_a_line() -> None:
    call = '{"text":"' + r"filler words\n" * 40 + r"redis: 7000\n" + r"filler words\n" * 40 + '"}'
    tokens = ask("redis").tokens
    start, stop = excerpt(call, tokens, 60, len, "call")
    assert "redis: 7000" in call[start:stop]
    assert [call[span.start : span.stop] for span in spans_of(call, tokens, "call")] == ["redis"]
    assert spans_of(r"C:\nredis", tokens, "text") == []


def test_a_short_text_is_its_own_excerpt() -> None:
    assert excerpt("short", ask("anything").tokens, 5, len, "text") == (0, 5)


TEXTS = st.text(max_size=300) | st.lists(
    st.sampled_from(("port", "你好", "a", "word.", "\n", "postgres", "\x00", "É")), max_size=40
).map(" ".join)


@given(text=TEXTS, question=TEXTS, most=st.integers(1, 60))
def test_an_excerpt_fits_and_is_never_empty(text: str, question: str, most: int) -> None:
    start, stop = excerpt(text, ask(question).tokens, most, len, "text")
    assert 0 <= start <= stop <= len(text)
    assert stop - start <= most
    assert stop > start or not text


@given(text=TEXTS, question=TEXTS)
def test_spans_lie_in_the_text_in_order_without_overlap(text: str, question: str) -> None:
    end = 0
    for span in spans_of(text, ask(question).tokens, "text"):
        assert end <= span.start < span.stop <= len(text)
        end = span.stop
