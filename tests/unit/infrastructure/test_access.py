"""Who may read the pages of the inspector, and the headers of every answer."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from refold.infrastructure.inspector.access import (
    ACCESS,
    HEADERS,
    Access,
    Authorise,
    HeadersForAll,
    ServiceAccess,
)
from refold.infrastructure.inspector.serving import Keys, TokenAccess
from refold.infrastructure.loopback import names_of

PORT = 8123
KEYS = Keys("the-token", "the-session")
COOKIE = {"cookie": f"refold_{PORT}=the-session"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """A page that shows who reads it, or fails."""
    if scope["path"] == "/fails":
        raise RuntimeError("the secret text of a message")
    if scope["path"] == "/fails-late":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("late")
    await PlainTextResponse(repr(scope[ACCESS]))(scope, receive, send)


def local(path: str = "/", host: str = f"127.0.0.1:{PORT}", **headers: str) -> Any:
    """Send a request to the pages of one user of this machine."""
    app = HeadersForAll(TokenAccess(answer, KEYS, names_of("127.0.0.1", PORT), PORT))
    client = TestClient(app, base_url=f"http://127.0.0.1:{PORT}", follow_redirects=False)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.get(path, headers={"host": host, **given})


def service(authorise: Any, path: str = "/") -> Any:
    app = HeadersForAll(ServiceAccess(answer, authorise))
    return TestClient(app, follow_redirects=False).get(path)


def assert_headers(headers: Mapping[str, str]) -> None:
    assert {name: headers.get(name) for name in HEADERS} == HEADERS
    assert headers["content-security-policy"] == POLICY
    assert "server" not in headers


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address() -> None:
    found = local("/conversation?id=a%2Fb&token=the-token&panel=health")
    assert found.status_code == 303
    assert found.headers["location"] == "/conversation?id=a%2Fb&panel=health"
    cookie = found.headers["set-cookie"].lower()
    assert cookie.startswith(f"refold_{PORT}=the-session;")
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.replace(" ", "").split(";"))
    assert "the-token" not in f"{found.headers}"
    assert_headers(found.headers)


@pytest.mark.parametrize(
    ("asked", "to"),
    [
        ("/?token=the-token", "/"),
        ("/?token=wrong&token=the-token", "/"),
        ("/?token=the-token&q=", "/?q="),
        ("/a%3Fb%23c?token=the-token", "/a%3Fb%23c"),
        (f"http://127.0.0.1:{PORT}//evil.example?token=the-token", "/evil.example"),
        (f"http://127.0.0.1:{PORT}/\\evil.example?token=the-token", "/evil.example"),
    ],
)
def test_the_exchange_leads_to_the_same_address_on_this_server(asked: str, to: str) -> None:
    found = local(asked)
    assert (found.status_code, found.headers["location"]) == (303, to)


def test_the_cookie_reads_and_a_program_reads_with_the_token() -> None:
    assert local(**COOKIE).status_code == 200
    assert local(authorization="Bearer the-token").status_code == 200
    found = local("/api/conversations?token=the-token")
    assert (found.status_code, "set-cookie" in found.headers) == (200, False)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/?token=wrong", {}),
        ("/?token=", {}),
        ("/?token=the-session", {}),
        ("/?token=\N{SNOWMAN}", {}),
        ("/?token=%ED%A0%80", {}),
        ("/api/conversations?token=wrong", {}),
        ("/static/style.css", {}),
        ("/nowhere", {}),
        ("/", {"authorization": "Bearer wrong"}),
        ("/", {"authorization": "Basic the-token"}),
        ("/", {"authorization": "Bearer"}),
        ("/", {"cookie": f"refold_{PORT}=the-token"}),
        ("/", {"cookie": f"refold_{PORT}="}),
        ("/", {"cookie": "refold_8124=the-session"}),
    ],
)
def test_who_has_no_token_reads_nothing(path: str, headers: dict[str, str]) -> None:
    found = local(path, **headers)
    assert found.status_code == 401
    assert "refold inspect" in found.text
    assert_headers(found.headers)


@pytest.mark.parametrize(
    "host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LocalHost:{PORT}", f"[::1]:{PORT}"]
)
def test_names_of_this_machine_are_served(host: str) -> None:
    assert local(host=host, **COOKIE).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        f"evil.example:{PORT}",
        f"localhost.:{PORT}",
        f"localhost.evil.example:{PORT}",
        f"127.0.0.1.nip.io:{PORT}",
        f"evil.example@127.0.0.1:{PORT}",
        "127.0.0.1",
        "localhost:80",
        f"[::ffff:127.0.0.1]:{PORT}",
        f"0.0.0.0:{PORT}",
        f"127.0.0.1:{PORT}, evil.example",
    ],
)
def test_other_host_names_are_refused_even_with_the_token(host: str) -> None:
    for path in (
        "/",
        "/?token=the-token",
        "/api/conversations?token=the-token",
        "/static/style.css",
    ):
        found = local(path, host=host, **COOKIE)
        assert found.status_code == 421
        assert_headers(found.headers)


def test_a_request_with_two_host_names_or_none_is_refused() -> None:
    async def ask(*hosts: bytes) -> int:
        app = HeadersForAll(TokenAccess(answer, KEYS, names_of("127.0.0.1", PORT), PORT))
        headers = [(b"host", host) for host in hosts] + [(b"cookie", COOKIE["cookie"].encode())]
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "headers": headers}
        await app({**scope, "query_string": b""}, answer, send)  # type: ignore[arg-type]
        status: int = sent[0]["status"]
        return status

    good = f"127.0.0.1:{PORT}".encode()
    assert asyncio.run(ask(good)) == 200
    assert asyncio.run(ask()) == 421
    assert asyncio.run(ask(good, b"evil.example")) == 421
    assert asyncio.run(ask(good, good)) == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"origin": "http://127.0.0.1:3000"},
        {"origin": f"http://localhost:{PORT}"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "script"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"},
        {"sec_fetch_site": "same-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "embed"},
    ],
)
def test_pages_of_other_sites_load_nothing(headers: dict[str, str]) -> None:
    for path in (
        "/",
        "/static/htmx.min.js",
        "/?token=the-token",
        "/api/conversations?token=the-token",
    ):
        found = local(path, **COOKIE, **headers)
        assert found.status_code == 403
        assert_headers(found.headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": f"http://127.0.0.1:{PORT}"},
        {"sec_fetch_site": "same-origin", "sec_fetch_mode": "cors", "sec_fetch_dest": "empty"},
        {"sec_fetch_site": "none", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"},
        {
            "sec_fetch_site": "cross-site",
            "sec_fetch_mode": "navigate",
            "sec_fetch_dest": "document",
        },
    ],
)
def test_its_own_pages_and_links_from_elsewhere_open_it(headers: dict[str, str]) -> None:
    assert local(**COOKIE, **headers).status_code == 200


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"]
)
def test_only_reading_is_allowed(method: str) -> None:
    app = HeadersForAll(ServiceAccess(answer, lambda _: True))
    found = TestClient(app).request(method, "/")
    assert (found.status_code, found.headers["allow"]) == (405, "GET, HEAD")
    assert_headers(found.headers)


def test_a_connection_for_messages_is_closed() -> None:
    client = TestClient(HeadersForAll(ServiceAccess(answer, lambda _: True)))
    with pytest.raises(WebSocketDisconnect) as closed, client.websocket_connect("/"):
        pass
    assert closed.value.code == 1008


def returning(result: Any) -> Authorise:
    """A function of a service that returns the same for each request."""

    def authorise(_request: Request) -> Any:
        return result

    return authorise


async def later(request: Request) -> Any:
    return request.headers.get("x-user") is None and Access(owner="me")


@pytest.mark.parametrize(
    ("authorise", "status", "text"),
    [
        (returning(True), 200, "Access(owner=None)"),
        (returning(Access(owner="me")), 200, "Access(owner='me')"),
        (later, 200, "Access(owner='me')"),
        (returning(False), 403, "You may not read this.\n"),
        (returning(None), 403, "You may not read this.\n"),
    ],
)
def test_a_function_of_the_service_says_who_may_read(
    authorise: Authorise, status: int, text: str
) -> None:
    found = service(authorise)
    assert (found.status_code, found.text) == (status, text)
    assert_headers(found.headers)


@pytest.mark.parametrize("returned", ["me", {"name": "me"}, 1, object(), "", 0])
def test_another_result_of_the_function_is_no_permission(
    returned: object, caplog: pytest.LogCaptureFixture
) -> None:
    found = service(returning(returned))
    assert found.status_code == 500
    assert "Access(" not in found.text
    assert "TypeError" in caplog.text


def refuse(request: Request) -> bool:
    raise HTTPException(401, "Log in first.", {"www-authenticate": "Basic"})


def test_a_refusal_that_the_function_raises_is_the_answer() -> None:
    found = service(refuse)
    assert (found.status_code, found.text) == (401, "Log in first.\n")
    assert found.headers["www-authenticate"] == "Basic"
    assert_headers(found.headers)


def broken(request: Request) -> bool:
    raise KeyError("secret")


@pytest.mark.parametrize(("authorise", "path"), [(broken, "/"), (returning(True), "/fails")])
def test_an_unexpected_error_is_one_line_of_the_log_and_a_plain_page(
    authorise: Authorise, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "refold")
    found = service(authorise, path)
    assert found.status_code == 500
    assert found.text == "This page could not be made. The log of the program names the error.\n"
    assert_headers(found.headers)
    (line,) = [one for one in caplog.records if one.name.startswith("refold")]
    assert "test_access.py:" in line.getMessage()
    assert "\n" not in line.getMessage()
    assert "secret" not in line.getMessage()
    assert line.exc_info is None


def test_an_error_in_the_middle_of_an_answer_is_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent: list[Any] = []

    async def ask() -> None:
        async def send(message: Any) -> None:
            sent.append(message)

        app = HeadersForAll(ServiceAccess(answer, lambda _: True))
        scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/fails-late"}
        await app({**scope, "headers": [], "query_string": b""}, answer, send)  # type: ignore[arg-type]

    asyncio.run(ask())
    assert [one["type"] for one in sent] == ["http.response.start"]
    assert "RuntimeError" in caplog.text


def test_each_run_has_other_keys_that_cannot_be_guessed() -> None:
    one, other = Keys(), Keys()
    assert len({one.token, one.session, other.token, other.session}) == 4
    assert min(len(key) for key in (one.token, one.session)) >= 32
