import threading
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refold.application.recall.tokens import LONGEST, Vocabulary, pad, tokens_of

TEXTS = st.text(st.characters(codec=None, exclude_categories=["Cn"]), max_size=200)
CODE = st.text("abcXYZ019_-./\\:'’, \n中文カが한é", max_size=80)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Running the tests", ["run", "the", "test"]),
        ("retry_policy", ["retri", "polici", "retrypolici"]),
        ("getUserName", ["get", "user", "name", "getusernam"]),
        ("HTTPServer2", ["http", "server", "2", "httpserver2"]),
        ("__init__.py", ["init", "py", "initpi"]),
        ("src/refold/app.py", ["src", "refold", "app", "py", "apppi", "srcrefoldapppi"]),
        ("v1.2.3", ["v", "1", "v1", "2", "3", "v123"]),
        ("5,432 rows", ["5", "432", "5432", "row"]),
        ("2024-05-07", ["2024", "5", "7", "20240507"]),
        ("on May 2nd", ["on", "may", "2"]),
        ("Anna's plan, don't", ["anna", "plan", "don"]),
        ("Crème BRÛLÉE", ["creme", "brule"]),
        ("C++ or C#", ["c", "or", "c"]),
        ("端口号", ["端", "口", "号", "端口", "口号"]),
        ("用Python写", ["用", "python", "写"]),
        ("ＡＢＣ１２", ["abc", "12", "abc12"]),
        ("ガンダム", ["ガ", "ン", "ダ", "ム", "ガン", "ンダ", "ダム"]),
        ("한국어", ["한", "국", "어", "한국", "국어"]),
        ('AND OR NOT col:x "q" *', ["and", "or", "not", "col", "x", "q"]),
        ("\0 \ud800 \n ... 。", []),
    ],
)
def test_a_text_has_these_tokens(text: str, tokens: list[str]) -> None:
    assert tokens_of(text) == tokens


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("retry policies", "the RetryPolicy was set"),
        ("user names", "call getUserName"),
        ("node.js", "we use Node.js"),
        ("nodejs", "we use node.js"),
        ("user exists", "shouldReturnNotFoundWhenUserExists is red"),
        ("progress event", "XMLHttpRequestUploadProgressEventHandlerImpl"),
        ("recall/tokens.py", "see application/recall/tokens.py"),
        ("5432", "port 5,432"),
        ("May 7", "2024-05-07"[5:] + " may"),
    ],
)
def test_what_is_written_otherwise_shares_a_token(asked: str, said: str) -> None:
    assert set(tokens_of(asked)) & set(tokens_of(said))


@pytest.mark.parametrize("noise", ["a1b2c3d4e5f6a7b8", "aGVsbG8gd29ybGQhIQ", "x" * 70])
def test_a_digest_is_found_as_a_whole_only(noise: str) -> None:
    assert len(tokens_of(noise)) == 1


@given(st.one_of(TEXTS, CODE))
@example("İ ŉ ﬁ ﷺ ½ ① ß ς")
def test_every_token_is_letters_and_digits_only(text: str) -> None:
    for token in tokens_of(text):
        assert 1 <= len(token) <= LONGEST
        assert token.isalnum()
        assert not (token.isascii() and token != token.lower())
        token.encode()


@given(st.one_of(TEXTS, CODE))
def test_a_text_always_has_the_same_tokens(text: str) -> None:
    assert tokens_of(text) == tokens_of(text)
    assert tokens_of(f"{text} \n{text}") == tokens_of(text) * 2


@given(CODE.filter(str.isascii))
def test_what_stands_beside_a_text_does_not_change_its_tokens(text: str) -> None:
    assert tokens_of(f"{text} é 中") == [*tokens_of(text), "e", "中"]


@given(st.lists(st.sampled_from(["a", "ab", "b", "中"])))
def test_a_padded_line_has_each_token_between_blanks(tokens: list[str]) -> None:
    line = pad(tokens)
    assert line.split() == tokens
    assert all((f" {token} " in line) == (token in tokens) for token in ("a", "ab", "b", "x"))


def test_a_long_run_without_breaks_is_found_by_its_beginning() -> None:
    assert tokens_of("x" * 100_000) == ["x" * LONGEST]
    assert tokens_of("zx9" * 50_000) == [("zx9" * 50)[:LONGEST]]


def test_huge_texts_are_cut_in_time_that_grows_with_them() -> None:
    for text in ("a.b" * 300_000, "中" * 300_000, "_" * 900_000, "a_" * 300_000, "'" * 900_000):
        assert tokens_of(text) is not None


def test_threads_may_cut_texts_at_the_same_time() -> None:
    words = [f"runn{chr(97 + i % 26)}ing{'ly' * (i % 3)}" for i in range(2_000)]
    alone = tokens_of(" ".join(words))
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append(tokens_of(" ".join(words)))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 4


@given(TEXTS | CODE)
@example("x\u0301 = a\u2003b\u00a8c 1,\u0338234 \ud800f'\u2019s::g")
def test_a_vocabulary_reads_the_same_tokens(text: str) -> None:
    vocabulary = Vocabulary()
    lines: Sequence[str] = ()
    for _ in range(2):
        (lines,) = vocabulary.read([(text.encode("utf-8", "surrogatepass"), "2026 May 7")])
        assert "".join(lines).split() == [*tokens_of(text), *tokens_of("2026 May 7")]
    assert all(one is two for one in lines for two in lines if one == two)


def test_texts_with_the_same_tokens_have_the_same_line() -> None:
    found = Vocabulary().read([(b"Runs running x", "2026"), (b"", "2026"), (b"", "")])
    (one, two, three, date), alone, nothing = found
    assert one is two
    assert (one, three, date) == (" run", " x", " 2026")
    assert (alone, nothing) == ((date,), ())
