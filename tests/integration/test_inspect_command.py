"""``refold inspect`` as a process: its address, its token, what reaches its socket, and how it ends."""

import importlib.util
import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from email.message import Message
from http.client import HTTPConnection
from pathlib import Path
from signal import SIGINT
from typing import NamedTuple
from urllib.parse import quote

import pytest

from refold.infrastructure.inspector.access import HEADERS
from tests.support.command_line import Refold
from tests.support.inspected import Served, open_quiet, served, user


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("served") / "agent.db"
    with open_quiet(path) as memory:
        for thread in ("t", "a/b", "100%25", "?#"):
            memory.conversation(thread).append(user("the word"))
    return path


@pytest.fixture(scope="module")
def running(log: Path) -> Iterator[Served]:
    with served(log) as serving:
        yield serving


class Answer(NamedTuple):
    """An answer that was read."""

    status: int
    headers: Message
    body: bytes


def ask(serving: Served, path: str, method: str = "GET", **headers: str) -> Answer:
    """Send a request over a new connection."""
    with closing(HTTPConnection(serving.origin.removeprefix("http://"), timeout=20)) as connection:
        connection.request(method, path, headers=headers)
        with connection.getresponse() as found:
            return Answer(found.status, found.headers, found.read())


def raw(serving: Served, request: bytes) -> bytes:
    """Send bytes, and return all that comes back."""
    host, port = serving.origin.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_the_address_has_a_token_and_only_this_machine_is_served(running: Served) -> None:
    assert running.url.startswith("http://127.0.0.1:")
    assert len(running.token) >= 32
    assert ask(running, "/").status == 401


def test_the_token_of_the_address_opens_the_list(running: Served) -> None:
    first = ask(running, f"/?token={running.token}")
    assert (first.status, first.headers["location"]) == (303, "/")
    cookie = str(first.headers["set-cookie"])
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {one.strip() for one in cookie.split(";")}
    again = ask(running, "/", Cookie=cookie.partition(";")[0])
    assert again.status == 200
    assert running.token not in again.body.decode()


@pytest.mark.parametrize("thread", ["t", "a/b", "100%25", "?#"])
def test_a_program_reads_json_with_the_token(running: Served, thread: str) -> None:
    path = f"/api/conversations/{quote(thread, safe='')}/history"
    for given in (
        ask(running, f"{path}?token={running.token}"),
        ask(running, path, Authorization=f"Bearer {running.token}"),
    ):
        assert given.status == 200
        assert json.loads(given.body)["id"] == thread


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 401),
        ("HEAD", "/", 401),
        ("GET", "/static/style.css", 401),
        ("POST", "/", 405),
        ("OPTIONS", "*", 405),
        ("GET", "/nowhere", 401),
    ],
)
def test_every_answer_has_the_headers(running: Served, method: str, path: str, status: int) -> None:
    answer = ask(running, path, method)
    assert answer.status == status
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert answer.headers["server"] is None


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
)
def test_what_is_no_request_to_this_server_gets_no_page(
    running: Served, request_bytes: bytes
) -> None:
    status = raw(running, request_bytes).split(b" ")[1][:1]
    assert status == b"4"
    assert ask(running, "/").status == 401


@pytest.mark.slow
def test_two_servers_show_one_log_and_one_token_is_of_no_use_to_the_other(
    log: Path, running: Served
) -> None:
    before = log.read_bytes()
    with served(log) as other:
        for one in (running, other):
            assert ask(one, f"/api/conversations?token={one.token}").status == 200
        assert ask(other, f"/api/conversations?token={running.token}").status == 401
    assert log.read_bytes() == before


@pytest.mark.slow(but="words0")
@pytest.mark.parametrize("words", [(), ("--no-browser",)])
def test_ctrl_c_ends_it_at_once_and_json_stays_one_object(
    log: Path, words: tuple[str, ...]
) -> None:
    with served(log, *words) as serving:
        # A browser keeps its connection open.
        host, port = serving.origin.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as kept:
            kept.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert kept.recv(10)
            began = time.monotonic()
            serving.process.send_signal(SIGINT)
            out, err = serving.process.communicate(timeout=20)
        assert time.monotonic() - began < 2 + 3  # A busy machine is slower.
    assert serving.process.returncode == 130
    assert (out, "Traceback" in err) == ("", False)


def test_a_port_in_use_is_an_error_that_names_it(
    refold: Refold, running: Served, log: Path
) -> None:
    port = running.origin.rpartition(":")[2]
    ended = refold("inspect", "--db", log, "--port", port, "--no-browser", "--json")
    assert (ended.code, ended.answer["error"]) == (2, "InvalidSetting")
    assert port in ended.answer["message"]


def test_a_log_that_is_not_there_is_an_error_and_makes_none(refold: Refold, tmp_path: Path) -> None:
    ended = refold("inspect", "--db", tmp_path / "none.db", "--json")
    assert (ended.code, ended.answer["error"]) == (2, "LogNotFound")
    assert not (tmp_path / "none.db").exists()


def test_an_encrypted_log_without_its_key_is_an_error(
    refold: Refold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFOLD_ENCRYPTION_KEY", "fTcCXuAXxnwKwvxHDcMsYmn7UnPzeqUoCeyGkQLGBkU=")
    with open_quiet(tmp_path / "agent.db") as memory:
        memory.conversation("t").append(user("the word"))
    monkeypatch.delenv("REFOLD_ENCRYPTION_KEY")
    ended = refold("inspect", "--json")
    assert (ended.code, "key" in ended.answer["message"].lower()) == (2, True)


@pytest.mark.parametrize("package", ["starlette", "jinja2", "uvicorn"])
def test_a_missing_package_is_named_with_what_installs_it(
    refold: Refold, log: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec

    def find_others(name: str) -> object:
        return None if name == package else find(name)

    monkeypatch.setattr("refold.infrastructure.cli.export_command.find_spec", find_others)
    ended = refold("inspect", "--db", log, "--json")
    assert ended.code == 2
    assert "pip install 'refold[inspect]'" in ended.answer["message"]
