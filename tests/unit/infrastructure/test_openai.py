"""The embedder that asks an endpoint: what it sends, and what becomes of every kind of trouble."""

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from refold.application.errors import EmbedderError
from refold.domain.errors import InvalidSetting
from refold.infrastructure.embedders.openai import BATCH, LONGEST, OpenAIEmbedder

KEY = "sk-very-secret-0123456789"


class Endpoint:
    """A server that answers by a script, and with vectors when the script is over."""

    def __init__(self, server: HTTPServer) -> None:
        self.server = server
        self.script: list[Response | float] = []
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.queries: list[bytes] = []
        self.waited: list[float] = []
        server.expect_request("/v1/embeddings", method="POST").respond_with_handler(self._answer)

    def embedder(self, **options: Any) -> OpenAIEmbedder:
        given: dict[str, Any] = {"model": "m", "url": self.url, "sleep": self.waited.append}
        return OpenAIEmbedder(**{**given, **options})

    @property
    def url(self) -> str:
        return self.server.url_for("/v1")

    def _answer(self, request: Request) -> Response:
        self.keys.append(request.headers.get("Authorization"))
        self.queries.append(request.query_string)
        self.asked.append(json.loads(request.data))
        if self.script:
            step = self.script.pop(0)
            if isinstance(step, Response):
                return step
            time.sleep(step)
        rows = [
            {"index": place, "embedding": [float(len(text)), 1.0]}
            for place, text in enumerate(self.asked[-1]["input"])
        ]
        return Response(json.dumps({"data": rows[::-1], "model": "m"}))  # In any order.


def refusal(status: int, message: str = "", **headers: str) -> Response:
    body = json.dumps({"error": {"message": message, "type": "t"}})
    return Response(body, status=status, headers=headers)


@pytest.fixture(scope="module")
def server() -> Iterator[HTTPServer]:
    with HTTPServer(host="127.0.0.1", threaded=True) as running:
        yield running


@pytest.fixture
def endpoint(server: HTTPServer) -> Endpoint:
    server.clear()
    return Endpoint(server)


def test_texts_are_sent_in_batches_and_vectors_come_back_in_their_order(endpoint: Endpoint) -> None:
    texts = ["x" * n for n in range(1, 2 * BATCH + 2)]
    vectors = endpoint.embedder().embed_documents(texts)
    assert [vector[0] for vector in vectors] == [float(len(text)) for text in texts]
    assert [len(asked["input"]) for asked in endpoint.asked] == [BATCH, BATCH, 1]
    assert endpoint.asked[0].keys() == {"model", "input"}
    assert endpoint.asked[0]["model"] == "m"
    assert list(endpoint.embedder().embed_query("abc")) == [3.0, 1.0]
    assert endpoint.embedder().embed_documents([]) == []


def test_a_key_is_sent_only_where_there_is_one(endpoint: Endpoint) -> None:
    endpoint.embedder().embed_query("a")
    endpoint.embedder(key=KEY).embed_query("a")
    assert endpoint.keys == [None, f"Bearer {KEY}"]


def test_a_slash_at_the_end_of_the_url_makes_no_difference(endpoint: Endpoint) -> None:
    assert endpoint.embedder(url=f"{endpoint.url}/").embed_query("a")


def test_a_query_of_the_url_stays_behind_the_path(endpoint: Endpoint) -> None:
    for query in ("?api-version=1&deployment=a%2Fb", "/?api-version=1&deployment=a%2Fb"):
        assert endpoint.embedder(url=f"{endpoint.url}{query}").embed_query("a")
    assert endpoint.queries == [b"api-version=1&deployment=a%2Fb"] * 2


def test_a_sign_that_is_escaped_in_the_path_stays_so(server: HTTPServer) -> None:
    embedder = OpenAIEmbedder("m", url=server.url_for("/a%2Fb%20c/v1?x=1#top"))
    asked = str(vars(embedder)["_url"])
    assert asked == server.url_for("/a%2Fb%20c/v1/embeddings?x=1")


def test_long_odd_and_empty_texts_can_be_sent(endpoint: Endpoint) -> None:
    endpoint.embedder().embed_documents(["x" * 20_000, "", "half \ud83d of an emoji", "中文 🎉"])
    long, empty, odd, fine = endpoint.asked[0]["input"]
    assert (len(long), empty, odd, fine) == (LONGEST, " ", "half ? of an emoji", "中文 🎉")


def test_a_text_that_is_too_long_for_the_model_is_cut_until_it_fits(endpoint: Endpoint) -> None:
    too_long = refusal(400, "This model's maximum context length is 512 tokens")
    endpoint.script = [too_long, 0.0, too_long, refusal(413), 0.0]
    vectors = endpoint.embedder().embed_documents(["short", "y" * 4_000])
    assert [vector[0] for vector in vectors] == [5.0, 1_000.0]
    sent = [list(map(len, asked["input"])) for asked in endpoint.asked]
    assert sent == [[5, 4_000], [5], [4_000], [2_000], [1_000]]
    endpoint.script = [refusal(413)] * 10
    with pytest.raises(EmbedderError) as refused:
        endpoint.embedder().embed_query("y" * 1_000)
    assert refused.value.reason == "too_large"


@pytest.mark.parametrize(
    ("answer", "reason", "calls"),
    [
        (refusal(401, "bad key"), "authentication", 1),
        (refusal(402), "authentication", 1),
        (refusal(403), "permission", 1),
        (refusal(404, "no such model"), "not_found", 1),
        (refusal(400, "no such field"), "bad_request", 1),
        (refusal(422), "bad_request", 1),
        (refusal(429), "rate_limited", 3),
        (refusal(429, **{"Retry-After": "7"}), "rate_limited", 3),
        (refusal(429, **{"Retry-After": "3600"}), "rate_limited", 1),
        (refusal(429, **{"x-should-retry": "false"}), "rate_limited", 1),
        (refusal(500), "server_error", 3),
        (refusal(503, "busy"), "server_error", 3),
        (refusal(504), "timeout", 3),
        (refusal(529), "overloaded", 3),
        (
            Response("", status=302, headers={"Location": "https://elsewhere.invalid"}),
            "bad_answer",
            1,
        ),
        (Response("<html>a proxy</html>", status=200), "bad_answer", 1),
        (Response("{}", status=200), "bad_answer", 1),
        (Response('{"data": null}', status=200), "bad_answer", 1),
        (Response('{"data": []}', status=200), "bad_answer", 1),
        (Response('{"data": [{"embedding": "AAAA"}]}', status=200), "bad_answer", 1),
        (Response('{"data": [{"embedding": [null]}]}', status=200), "bad_answer", 1),
        (Response('{"data": [{"embedding": [1], "index": 4}]}', status=200), "bad_answer", 1),
        (Response("[" * 100_000, status=200), "bad_answer", 1),
        (Response(b"\xff\xfe", status=500), "server_error", 3),
    ],
)
def test_each_trouble_has_its_reason_and_passing_ones_are_tried_again(
    endpoint: Endpoint, answer: Response, reason: str, calls: int
) -> None:
    endpoint.script = [answer] * 5
    with pytest.raises(EmbedderError) as failed:
        endpoint.embedder(key=KEY).embed_documents(["a"])
    assert failed.value.reason == reason
    assert str(failed.value).startswith("no vectors: ")
    assert len(endpoint.asked) == calls
    assert len(endpoint.waited) == calls - 1


def test_who_asks_to_wait_is_waited_for_and_then_it_works(endpoint: Endpoint) -> None:
    endpoint.script = [refusal(429, **{"Retry-After": "11"}), refusal(503)]
    assert endpoint.embedder().embed_documents(["a"])
    assert endpoint.waited[0] >= 11
    assert 0 < endpoint.waited[1] < 11


def test_a_question_is_tried_twice_at_most(endpoint: Endpoint) -> None:
    endpoint.script = [refusal(500)] * 5
    with pytest.raises(EmbedderError):
        endpoint.embedder().embed_query("a")
    assert len(endpoint.asked) == 2


@pytest.mark.parametrize(
    ("script", "calls"),
    [
        ([1.5, 1.5], 1),
        ([refusal(500), 1.5], 1),
        ([refusal(429, **{"Retry-After": "5"})], 1),
        ([refusal(413), refusal(413), 1.5], 3),
    ],
)
def test_a_question_has_one_deadline_for_all_that_it_takes(
    endpoint: Endpoint, script: list[Response | float], calls: int
) -> None:
    endpoint.script = script
    begun = time.monotonic()
    with pytest.raises(EmbedderError):
        endpoint.embedder(timeout=0.4, sleep=time.sleep).embed_query("y" * 4_000)
    assert time.monotonic() - begun < 0.8
    assert len(endpoint.asked) == calls


def test_what_is_left_of_the_deadline_is_there_for_the_second_try(endpoint: Endpoint) -> None:
    endpoint.script = [refusal(503), 4.0]
    begun = time.monotonic()
    with pytest.raises(EmbedderError) as failed:
        endpoint.embedder(timeout=2.0, sleep=time.sleep).embed_query("a")
    assert failed.value.reason == "timeout"
    assert time.monotonic() - begun < 2.8
    assert len(endpoint.asked) == 2


def test_an_endpoint_that_hangs_is_given_up(endpoint: Endpoint) -> None:
    endpoint.script = [0.6, 0.6]
    with pytest.raises(EmbedderError) as failed:
        endpoint.embedder(timeout=0.1).embed_query("a")
    assert failed.value.reason == "timeout"


def test_an_answer_that_drips_is_given_up_as_well() -> None:
    given_up = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)

        def drip() -> None:
            while not given_up.is_set():
                with suppress(OSError), server.accept()[0] as connection:
                    connection.recv(65_536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                    for _ in range(50):
                        connection.sendall(b" ")
                        time.sleep(0.05)

        dripping = threading.Thread(target=drip, daemon=True)
        dripping.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        begun = time.monotonic()
        embedder = OpenAIEmbedder("m", url=url, timeout=0.3, sleep=lambda _: None)
        with pytest.raises(EmbedderError) as failed:
            embedder.embed_query("a")
        assert failed.value.reason == "timeout"
        assert time.monotonic() - begun < 3
        given_up.set()
        dripping.join(10)


def test_nobody_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    embedder = OpenAIEmbedder("m", url=f"http://127.0.0.1:{port}", sleep=lambda _: None)
    with pytest.raises(EmbedderError) as failed:
        embedder.embed_query("a")
    assert failed.value.reason == "connection"
    assert "embedder_url" in str(failed.value)


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_the_key_is_never_shown(
    endpoint: Endpoint, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    embedder = endpoint.embedder(key=KEY)
    echo = "x" * 280 + f"your key Bearer {KEY} is bad {KEY}"
    endpoint.script = [refusal(status, echo)] * 3
    with pytest.raises(EmbedderError) as failed:
        embedder.embed_documents(["a"])
    shown = (
        f"{failed.value} {failed.value!r} {embedder!r} {vars(embedder)['_client']!r} {caplog.text}"
    )
    assert failed.value.__cause__ is None
    assert KEY not in shown
    assert KEY[:12] not in shown


@pytest.mark.parametrize("key", ["with space ", "line\nbreak", "ключ"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(InvalidSetting, match="embedder_key") as refused:
        OpenAIEmbedder(key=key)
    assert key not in str(refused.value)


@pytest.mark.parametrize("url", ["", "no url", "ftp://host/v1", "http://", "file:///etc/passwd"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting, match="embedder_url") as refused:
        OpenAIEmbedder("m", url=url)
    assert refused.value.setting == "embedder_url"


def test_an_endpoint_of_ones_own_needs_a_model() -> None:
    with pytest.raises(InvalidSetting, match="embedder_model") as refused:
        OpenAIEmbedder(url="http://user:secret@127.0.0.1/v1?token=secret")
    assert "secret" not in str(refused.value)
    assert OpenAIEmbedder().model == "openai/text-embedding-3-small"
    assert OpenAIEmbedder("m", url="http://127.0.0.1").model == "openai/m"
