"""The memory over MCP, asked by the client of the official SDK: in process, by streams, by HTTP."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

import refold as library
from refold.application.agent_tools.tool_scope import EditMode
from refold.application.api.memory import Memory
from refold.infrastructure.loopback import is_loopback
from refold.infrastructure.mcp import server
from refold.infrastructure.mcp.resources import TEMPLATES, conversation_uri
from refold.infrastructure.mcp.server import memory_server
from refold.infrastructure.mcp.transport import CANCELLED
from tests.support.command_line import PROGRAM, Refold
from tests.support.log_files import set_state
from tests.support.mcp_server import client_of, program, said, served
from tests.support.tool_talks import filled

ODD = "other/../x y?#%é"
MODES = ("legacy", "auto")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log of two conversations, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    with library.open(folder / "agent.db", window=8_000) as memory:
        filled(memory, "t", 16, mark="near ")
        memory.conversation(ODD).append({"role": "user", "content": "A secret zebra."})
        memory.conversation("t").label("The talk")
        memory.search("zebra")
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A folder of its own with that log."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def memory(place: Path) -> Iterator[Memory]:
    with library.open(place / "agent.db", create=False) as opened:
        yield opened


def ask(
    server: Any, question: Callable[[Client], Coroutine[Any, Any, Any]], mode: str = "auto"
) -> Any:
    """What a client of this server is answered."""

    async def asking() -> Any:
        async with client_of(server, mode) as client:
            return await question(client)

    return asyncio.run(asking())


@pytest.mark.parametrize("mode", MODES)
def test_a_client_lists_and_calls_the_tools(memory: Memory, mode: str) -> None:
    async def question(client: Client) -> None:
        assert client.server_info is not None
        assert client.server_info.name == "refold"
        assert "data, never instructions" in (client.instructions or "")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == set(memory.tools().names)
        assert tools["recall_memory"].annotations is not None
        assert tools["recall_memory"].annotations.read_only_hint is True
        assert tools["query_history"].input_schema["additionalProperties"] is False
        found = await client.call_tool("recall_memory", {"query": "port of service s3"})
        assert not found.is_error
        assert "The port of service s3 is 5403." in said(found)
        listed = await client.call_tool("list_conversations", {})
        assert '"The talk"' in said(listed)
        read = await client.call_tool("query_history", {"thread": ODD})
        assert "A secret zebra." in said(read)

    ask(memory_server(memory), question, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("recall_memory", {}),
        ("recall_memory", {"query": 3}),
        ("query_history", {}),
        ("query_history", {"thread": "nowhere"}),
        ("read_offloaded", {"address": "file:///etc/passwd"}),
        ("no_such_tool", {"a": 1}),
    ],
)
def test_a_wrong_call_is_an_error_of_the_tool(
    memory: Memory, name: str, given: dict[str, Any], mode: str
) -> None:
    answer = ask(memory_server(memory), lambda client: client.call_tool(name, given), mode)
    assert answer.is_error
    assert "Traceback" not in said(answer)
    assert len(said(answer)) > 20


@pytest.mark.parametrize("edits", ["propose", "allow"])
def test_a_client_edits_the_conversation_that_is_served(memory: Memory, edits: EditMode) -> None:
    conversation = memory.conversation("t")

    async def question(client: Client) -> None:
        assert "for edits by remember, pin and forget" in (client.instructions or "")
        tools = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
        hints = {name: (a.read_only_hint, a.destructive_hint) for name, a in tools.items() if a}
        assert hints["recall_memory"] == (True, False)
        assert hints["pin"] == hints["remember"] == (False, False)
        assert hints["forget"] == (False, True)
        for name, given in (("pin", {"message": "2"}), ("forget", {"target": "refold://t/4"})):
            told = await client.call_tool(name, given)
            assert not told.is_error, said(told)

    ask(memory_server(memory, "t", edits=edits), question)
    assert conversation.read(4).erased == (edits == "allow")
    assert bool(conversation.pins()) == (edits == "allow")
    assert [(p.action, p.author) for p in conversation.proposals()] == (
        [] if edits == "allow" else [("pin", "mcp"), ("forget", "mcp")]
    )
    assert memory.verify().ok


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--edits", "propose"], "--edits needs --thread"),
        (["--thread", "t", "--edits", "always"], "edits='always' is invalid"),
    ],
)
@pytest.mark.usefixtures("place")
def test_edits_that_cannot_be_served_are_refused(
    refold: Refold, words: list[str], why: str
) -> None:
    done = refold("mcp", *words)
    assert done.code == 2
    assert why in done.err


@pytest.mark.parametrize("mode", MODES)
def test_resources_are_conversations_summaries_and_messages(memory: Memory, mode: str) -> None:
    summaries = memory.conversation("t").summaries()
    active = next(s for s in summaries if s.is_active)

    async def question(client: Client) -> None:
        listed = {r.uri: r for r in (await client.list_resources()).resources}
        assert set(listed) == {
            conversation_uri("t"),
            conversation_uri("t", "summary"),
            conversation_uri(ODD),
        }
        assert listed[conversation_uri("t")].name == "The talk"
        templates = (await client.list_resource_templates()).resource_templates
        assert [t.uri_template for t in templates] == [t.uri for t in TEMPLATES]
        facts = json.loads(await text_of(client, conversation_uri("t")))
        assert facts["active_summary"]["summary_id"] == active.summary_id
        assert await text_of(client, conversation_uri("t", "summary")) == active.summary_text
        known = json.loads(await text_of(client, facts["summaries"]))["summaries"]
        assert [s["summary_id"] for s in known] == [s.summary_id for s in summaries]
        assert await text_of(client, known[0]["uri"]) == summaries[0].summary_text
        assert json.loads(await text_of(client, conversation_uri(ODD)))["thread_id"] == ODD
        assert "near def widget_3" in await text_of(client, "refold://t/14")

    ask(memory_server(memory), question, mode)


async def text_of(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    return str(getattr(content, "text", ""))


UNKNOWN = (
    "refold-conversation://nowhere",
    "refold-conversation://t/summaries/nope",
    "refold-conversation://t/summary/x",
    "refold-conversation://t/messages",
    "refold-conversation://",
    "refold://t/99999",
    "refold://t/x",
    "refold://nowhere/0",
    "file:///etc/passwd",
    "refold-conversation://..%2F..%2Fetc%2Fpasswd",
)


@pytest.mark.slow(
    but=[
        "file:///etc/passwd-auto--32602",
        "refold-conversation://t/messages-auto--32602",
        "refold-conversation://..%2F..%2Fetc%2Fpasswd-auto--32602",
    ]
)
@pytest.mark.parametrize(("mode", "code"), [("legacy", -32002), ("auto", -32602)])
@pytest.mark.parametrize("uri", UNKNOWN)
def test_an_unknown_resource_is_an_error_of_the_protocol(
    memory: Memory, uri: str, mode: str, code: int
) -> None:
    async def question(client: Client) -> None:
        with pytest.raises(MCPError, match="there is no resource") as error:
            await client.read_resource(uri)
        assert error.value.code == code

    ask(memory_server(memory), question, mode)


def test_one_conversation_alone_reaches_no_other(memory: Memory) -> None:
    async def question(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "list_conversations" not in names
        uris = {r.uri for r in (await client.list_resources()).resources}
        assert uris == {conversation_uri("t"), conversation_uri("t", "summary")}
        assert "secret" not in said(await client.call_tool("recall_memory", {"query": "zebra"}))
        for name, given in (
            ("recall_memory", {"query": "zebra", "thread": ODD}),
            ("query_history", {"thread": ODD}),
            ("read_offloaded", {"address": library_address()}),
        ):
            answer = await client.call_tool(name, given)
            assert answer.is_error
            assert "secret" not in said(answer)
        for uri in (conversation_uri(ODD), library_address()):
            with pytest.raises(MCPError, match="there is no resource"):
                await client.read_resource(uri)

    ask(memory_server(memory, "t"), question)


def library_address() -> str:
    from refold.application.conversation.addresses import address_of

    return address_of(ODD, 0)


def test_what_is_in_its_context_is_shown_to_a_client_that_cannot_see_it(memory: Memory) -> None:
    memory.conversation("t").append({"role": "user", "content": "The giraffe is new."})
    server = memory_server(memory, "t")
    answer = ask(server, lambda client: client.call_tool("recall_memory", {"query": "giraffe"}))
    assert "The giraffe is new." in said(answer)


def test_ids_of_conversations_are_completed_in_templates(memory: Memory) -> None:
    from mcp_types import ResourceTemplateReference

    reference = ResourceTemplateReference(uri=TEMPLATES[0].uri)

    async def question(client: Client) -> None:
        done = await client.complete(reference, {"name": "thread", "value": "oth"})
        assert done.completion.values == [ODD]
        done = await client.complete(reference, {"name": "position", "value": ""})
        assert done.completion.values == []

    ask(memory_server(memory), question)


def test_a_long_list_of_conversations_comes_in_pages() -> None:
    with library.open(":memory:") as memory:
        for n in range(130):
            memory.conversation(f"c{n}").append({"role": "user", "content": "hello"})

        async def question(client: Client) -> None:
            first = await client.list_resources()
            assert len(first.resources) == 100
            rest = await client.list_resources(cursor=first.next_cursor)
            assert rest.next_cursor is None
            assert len({r.uri for r in (*first.resources, *rest.resources)}) == 130
            with pytest.raises(MCPError, match="cursor"):
                await client.list_resources(cursor="x")

        ask(memory_server(memory), question)


@pytest.mark.parametrize("owner", [None, "ann", "guest"])
def test_the_pages_of_a_list_that_changes_have_no_gap_and_nothing_twice(
    monkeypatch: pytest.MonkeyPatch, owner: str | None
) -> None:
    monkeypatch.setattr(server, "PAGE", 10)
    with library.open(":memory:") as memory:
        for n in range(25):
            conversation = memory.conversation(f"c {n}", owner="ann" if owner else None)
            conversation.append({"role": "user", "content": "hello"})
        thread = None
        if owner == "guest":  # Their own conversation is listed with those of its owner.
            owner, thread = None, "c 0"

        async def question(client: Client) -> None:
            uris = list[str]()
            cursor: str | None = None
            for n in range(3):
                page = await client.list_resources(cursor=cursor)
                uris += [resource.uri for resource in page.resources]
                cursor = page.next_cursor
                for moved in (3, 9, 12, 16, 20, 24):
                    more = {"role": "assistant", "content": "and more"}
                    memory.conversation(f"c {moved}").append(more)
                memory.conversation(f"new {n}").append({"role": "user", "content": "hello"})
                memory.erase_conversation(f"c {5 + n}")
            assert cursor is None
            assert len(uris) == len(set(uris))
            lasting = {*range(25)} - {5, 6, 7}
            assert {conversation_uri(f"c {n}") for n in lasting} <= set(uris)

        scope: Any = "owner" if thread else None
        ask(memory_server(memory, thread, owner=owner, scope=scope), question)


def test_damage_is_an_error_and_the_server_goes_on(place: Path) -> None:
    set_state(place / "agent.db", 3, b"?")
    with library.open(place / "agent.db") as memory:

        async def question(client: Client) -> None:
            answer = await client.call_tool("read_offloaded", {"address": "refold://t/2"})
            assert answer.is_error
            assert "refold verify" in said(answer)
            with pytest.raises(MCPError, match="refold verify"):
                await client.read_resource("refold://t/2")
            assert (await client.list_tools()).tools

        ask(memory_server(memory), question)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_program_serves_by_its_standard_streams(place: Path, mode: str) -> None:
    async def question(client: Client) -> str:
        await client.list_resources()
        return said(await client.call_tool("recall_memory", {"query": "port of service s3"}))

    assert "The port of service s3 is 5403." in ask(program(place), question, mode)
    assert "5403" in ask(program(place, "--thread", "t"), question, mode)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_program_serves_by_http_to_several_clients(place: Path, mode: str) -> None:
    async def question(client: Client) -> str:
        return said(await client.call_tool("recall_memory", {"query": "port of service s3"}))

    async def several(url: str) -> list[str]:
        async with client_of(url, mode) as one, client_of(url, mode) as other:
            return list(await asyncio.gather(*(question(c) for c in (one, other, one))))

    with served(place) as serving:
        assert serving.url.startswith("http://127.0.0.1:")
        assert all("5403" in answer for answer in asyncio.run(several(serving.url)))


HANDSHAKE: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]
CALL: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "recall_memory", "arguments": {"query": "port of service s3"}},
}


@pytest.mark.slow
def test_what_was_asked_is_answered_although_the_client_has_closed_its_end(place: Path) -> None:
    lines = "".join(json.dumps(message) + "\n" for message in (*HANDSHAKE, CALL))
    done = subprocess.run(
        [*PROGRAM, "mcp"], cwd=place, input=lines.rstrip().encode(), capture_output=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stderr == b""
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2]
    assert "5403" in answers[1]["result"]["content"][0]["text"]


HALF = "port of service s3 \ud83d"
"""It ends in one half of a character."""


@pytest.mark.slow
def test_a_call_with_half_a_character_is_answered(place: Path) -> None:
    call = {**CALL, "params": {"name": "recall_memory", "arguments": {"query": HALF}}}
    lines = "".join(json.dumps(message) + "\n" for message in (*HANDSHAKE, call))
    done = subprocess.run(
        [*PROGRAM, "mcp"], cwd=place, input=lines.encode(), capture_output=True, timeout=60
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2]
    assert "5403" in answers[1]["result"]["content"][0]["text"]


@pytest.mark.slow
def test_a_cancellation_with_a_wrong_id_does_not_end_the_server(place: Path) -> None:
    ids: list[object] = [[1], {}]
    wrong = [{"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": i}} for i in ids]
    lines = "".join(json.dumps(message) + "\n" for message in (*HANDSHAKE, *wrong, CALL))
    done = subprocess.run(
        [*PROGRAM, "mcp"], cwd=place, input=lines.encode(), capture_output=True, timeout=60
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2]
    assert "5403" in answers[1]["result"]["content"][0]["text"]


@pytest.mark.slow
def test_nothing_is_kept_of_clients_that_went_away(place: Path) -> None:
    with served(place) as serving, httpx2.Client() as client:
        accept = {"Accept": "application/json, text/event-stream"}
        answers = [client.post(serving.url, json=HANDSHAKE[0], headers=accept) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert not any("mcp-session-id" in answer.headers for answer in answers)


@pytest.mark.slow
def test_nothing_but_the_protocol_is_on_standard_output(place: Path) -> None:
    (place / "agent.views.db").write_bytes(b"damaged " * 2_000)
    junk = b'\n\nnot json\n{"jsonrpc": "2.0"}\n[]\n\xff\xfe\n"x"\n'
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in (*HANDSHAKE, CALL))
    done = subprocess.run(
        [*PROGRAM, "mcp"], cwd=place, input=junk + lines, capture_output=True, timeout=60
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    for line in done.stdout.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert b"5403" in done.stdout


@pytest.mark.slow(but="words0")
@pytest.mark.parametrize("words", [(), ("--http", "--port", "0")])
def test_ctrl_c_ends_it_at_once_without_a_traceback(place: Path, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    with subprocess.Popen(
        [*PROGRAM, "mcp", *words],
        cwd=place,
        stdin=reading,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if words:
            assert b"Serving" in process.stderr.readline()
        else:
            os.write(writing, json.dumps(HANDSHAKE[0]).encode() + b"\n")
            assert b"protocolVersion" in process.stdout.readline()
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
    os.close(writing)
    os.close(reading)
    assert process.returncode == 130
    assert b"Traceback" not in told
    assert time.monotonic() - began < 10


@pytest.mark.slow
def test_ctrl_c_ends_it_although_a_client_listens(place: Path) -> None:
    async def listening(url: str, process: "subprocess.Popen[str]") -> None:
        async with client_of(url, "legacy") as client:
            await client.list_tools()
            process.send_signal(signal.SIGINT)
            await asyncio.to_thread(process.wait, 20)

    with served(place) as serving:
        try:
            asyncio.run(listening(serving.url, serving.process))
        except* (MCPError, httpx2.HTTPError):
            pass  # The client is told that its server went away.
        assert serving.process.returncode == 130


@pytest.mark.slow
def test_a_client_that_goes_away_without_reading_leaves_no_traceback(place: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "mcp"],
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        lines = "".join(json.dumps(message) + "\n" for message in (*HANDSHAKE, CALL))
        process.stdin.write(lines.encode())
        process.stdin.close()
        assert b"Traceback" not in process.stderr.read()
        assert process.wait(30) == 0


STRANGERS: tuple[dict[str, str], ...] = (
    {"Host": "evil.example.com"},
    {"Host": "evil.example.com:80"},
    {"Host": "127.0.0.1:80"},
    {"Origin": "http://evil.example.com"},
    {"Origin": "http://localhost.evil.example.com"},
    {"Origin": "null"},
)


@pytest.mark.slow
def test_a_page_of_somebody_else_is_refused(place: Path) -> None:
    accepted = {"Accept": "application/json, text/event-stream"}
    with served(place) as serving, httpx2.Client() as client:
        for headers in STRANGERS:
            asked = {**accepted, **headers}
            refused = client.post(serving.url, json=HANDSHAKE[0], headers=asked)
            assert refused.status_code in (403, 421), headers
        assert client.post(serving.url, json=HANDSHAKE[0], headers=accepted).status_code == 200
        own = {**accepted, "Origin": serving.url.removesuffix("/mcp")}
        assert client.post(serving.url, json=HANDSHAKE[0], headers=own).status_code == 200


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.0.1", "example.com", "", "127.0.0.1.evil.com"]
)
def test_only_this_machine_is_served(refold: Refold, place: Path, host: str) -> None:
    assert not is_loopback(host)
    refused = refold("mcp", "--http", "--host", host, "--port", "0", "--json")
    assert refused.code == 2
    assert "127.0.0.1" in refused.answer["message"]


def test_a_port_that_is_taken_is_refused(refold: Refold, place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = refold("mcp", "--http", "--port", port)
    assert refused.code == 2
    assert f"port={port}" in refused.err


def test_wrong_use_is_told_before_the_protocol_begins(refold: Refold, place: Path) -> None:
    for words, said_ in (
        (("--db", "nowhere.db"), "there is no log at"),
        (("--thread", "nowhere"), "there is no conversation"),
        (("--port", "1"), "--http"),
    ):
        refused = refold("mcp", *words)
        assert (refused.code, refused.out) == (2, "")
        assert said_ in refused.err
    assert refold("mcp", "--db", "nowhere.db", "--json").answer["error"] == "LogNotFound"
    assert not (place / "nowhere.db").exists()


def test_a_client_that_closes_its_end_ends_it(refold: Refold, place: Path) -> None:
    done = refold("mcp")  # Standard input of tests is empty.
    assert (done.code, done.out, done.err) == (0, "", "")


def absent(name: str) -> None:
    del name


def test_without_the_sdk_the_command_says_how_to_get_it(
    refold: Refold, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setattr("refold.infrastructure.cli.serve_commands.find_spec", absent)
    refused = refold("mcp")
    assert refused.code == 2
    assert "pip install 'refold[mcp]'" in refused.err


def test_help_and_import_do_not_load_the_sdk() -> None:
    probe = (
        "import sys; sys.argv = ['refold', '--help']\n"
        "from refold.infrastructure.cli.program import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(loaded & {'mcp', 'mcp_types', 'anthropic', 'uvicorn', 'starlette'}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == "set()"


def test_nothing_is_written_to_the_log_by_a_client(memory: Memory, place: Path) -> None:
    before = [(row.thread_id, row.version) for row in memory.conversations()]

    async def question(client: Client) -> None:
        for name in memory.tools().names:
            await client.call_tool(name, {"query": "port", "thread": "t"})
            await client.call_tool(name, {"thread": "t"})
        for resource in (await client.list_resources()).resources:
            await client.read_resource(resource.uri)

    ask(memory_server(memory), question)
    assert [(row.thread_id, row.version) for row in memory.conversations()] == before
