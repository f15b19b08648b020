"""Google's ADK: its memory service finds what the sessions of a user said, and of that user alone."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

import refold
from tests.support.adapter_pages import assert_page_prints

pytest.importorskip("google.adk")

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from refold.adapters.google_adk import RefoldMemoryService

APP = "shop / app"


def said(author: str, *parts: types.Part, number: int = 0) -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=list(parts))
    return Event(author=author, content=content, timestamp=1_700_000_000.0 + number)


def words(text: str) -> types.Part:
    return types.Part(text=text)


EVENTS = [
    said("user", words("My cat is called Zorro."), number=1),
    said("helper", types.Part(text="Hm", thought=True), words("I note it."),
         types.Part(function_call=types.FunctionCall(id="c1", name="note", args={"cat": "Zorro"})),
         number=2),
    said("helper", types.Part(function_response=types.FunctionResponse(
        id="c1", name="note", response={"result": "noted in the ledger of pets"})), number=3),
    Event(author="helper", timestamp=1_700_000_004.0),
]  # fmt: skip


async def session_of(service: InMemorySessionService, user: str, events: list[Event]) -> Any:
    session = await service.create_session(app_name=APP, user_id=user)
    for event in events:
        await service.append_event(session, event)
    return await service.get_session(app_name=APP, user_id=user, session_id=session.id)


def texts(found: Any) -> list[str]:
    return [entry.content.parts[0].text for entry in found.memories]


def test_a_session_is_found_by_its_user_and_no_other(memory: refold.Memory) -> None:
    async def play() -> None:
        service, sessions = RefoldMemoryService(memory), InMemorySessionService()
        session = await session_of(sessions, "ann", EVENTS)
        for _ in range(2):
            await service.add_session_to_memory(session)
        found = await service.search_memory(
            app_name=APP, user_id="ann", query="What is my cat called?"
        )
        best = found.memories[0]
        assert texts(found)[0] == "My cat is called Zorro."
        assert best.timestamp is not None
        assert best.timestamp.startswith("2023-11-14T22:13:21")
        assert best.content.role == "user"
        for app, user in ((APP, "bob"), ("other", "ann")):
            other = await service.search_memory(
                app_name=app, user_id=user, query="cat called Zorro"
            )
            assert other.memories == []

    asyncio.run(play())
    (row,) = memory.conversations()
    assert (row.messages, row.owner) == (3, "shop%20%2F%20app/ann")
    stored = memory.conversation(row.thread_id, owner=row.owner).messages()
    assert [m.message.role for m in stored] == ["user", "assistant", "user"]
    assert [b["type"] for b in stored[1].message.blocks()] == ["thinking", "text", "tool_use"]
    assert stored[2].original is not None
    assert stored[2].original.data["content"]["parts"][0]["function_response"]["id"] == "c1"


def test_a_session_that_grew_and_events_without_a_session(memory: refold.Memory) -> None:
    async def play() -> None:
        service, sessions = RefoldMemoryService(memory), InMemorySessionService()
        session = await session_of(sessions, "ann", EVENTS[:1])
        await service.add_session_to_memory(session)
        session.events += EVENTS[1:]
        await service.add_session_to_memory(session)
        alone = [said("user", words("The vet is in Utrecht."), number=9)]
        await service.add_events_to_memory(app_name=APP, user_id="ann", events=alone)
        found = await service.search_memory(app_name=APP, user_id="ann", query="Where is the vet?")
        assert texts(found)[0] == "The vet is in Utrecht."

    asyncio.run(play())
    assert sorted(row.messages for row in memory.conversations()) == [1, 3]


def test_memories_are_added_and_deleted_for_good(memory: refold.Memory) -> None:
    async def play() -> None:
        service = RefoldMemoryService(memory)
        entry = MemoryEntry(content=types.Content(parts=[words("Ann likes figs.")]), id="m1")
        for _ in range(2):
            await service.add_memory(app_name=APP, user_id="ann", memories=[entry])
        found = await service.search_memory(app_name=APP, user_id="ann", query="figs")
        assert texts(found) == ["Ann likes figs."]
        with pytest.raises(refold.InvalidSetting):
            await service.delete_memory(app_name=APP, user_id="bob", memory_id=found.memories[0].id)
        await service.delete_memory(app_name=APP, user_id="ann", memory_id=found.memories[0].id)
        await service.add_memory(app_name=APP, user_id="ann", memories=[entry])
        found = await service.search_memory(app_name=APP, user_id="ann", query="figs")
        assert found.memories == []

    asyncio.run(play())
    assert [row.tokens for row in memory.conversations()] == [0]


def test_without_the_id_of_a_memory_nothing_is_deleted(memory: refold.Memory) -> None:
    async def play() -> None:
        service, sessions = RefoldMemoryService(memory), InMemorySessionService()
        await service.add_session_to_memory(await session_of(sessions, "ann", EVENTS))
        for missing in (None, "", "unknown"):
            with pytest.raises(refold.InvalidSetting, match="memory_id"):
                await service.delete_memory(app_name=APP, user_id="ann", memory_id=missing)
        found = await service.search_memory(app_name=APP, user_id="ann", query="cat Zorro")
        assert "My cat is called Zorro." in texts(found)

    asyncio.run(play())


def test_a_memory_names_the_author_of_its_event(memory: refold.Memory) -> None:
    async def play() -> None:
        service, sessions = RefoldMemoryService(memory), InMemorySessionService()
        events = [*EVENTS[:1], said("vet_finder", words("The vet is in Utrecht."), number=2)]
        await service.add_session_to_memory(await session_of(sessions, "ann", events))
        entry = MemoryEntry(content=types.Content(parts=[words("Ann likes figs.")]), id="m1")
        await service.add_memory(app_name=APP, user_id="ann", memories=[entry])
        authors: dict[str | None, str | None] = {}
        for query in ("cat called Zorro", "vet in Utrecht", "figs"):
            found = await service.search_memory(app_name=APP, user_id="ann", query=query)
            authors |= {
                text: one.author for text, one in zip(texts(found), found.memories, strict=True)
            }
        assert authors["My cat is called Zorro."] == "user"
        assert authors["The vet is in Utrecht."] == "vet_finder"
        assert authors["Ann likes figs."] == "user"

    asyncio.run(play())


def test_a_wrong_limit_is_refused(memory: refold.Memory) -> None:
    with pytest.raises(refold.InvalidSetting, match="limit"):
        RefoldMemoryService(memory, limit=0)


def test_the_code_of_the_page_runs_and_prints_what_it_shows(
    httpserver: HTTPServer, tmp_path: Path
) -> None:
    asked: list[str] = []

    def answer(request: Request) -> Response:
        asked.append(request.get_data(as_text=True))
        content = {"role": "model", "parts": [{"text": "Well."}]}
        body = {"candidates": [{"content": content, "finishReason": "STOP"}]}
        return Response(json.dumps(body), content_type="application/json")

    httpserver.expect_request(re.compile(".*:generateContent")).respond_with_handler(answer)
    base_url = httpserver.url_for("").rstrip("/")
    variables = {"GOOGLE_GEMINI_BASE_URL": base_url, "GOOGLE_API_KEY": "key"}
    assert_page_prints("google-adk.md", tmp_path, variables)
    assert ["Zorro" in one for one in asked] == [True, True]


def stored(memory: refold.Memory, name: str) -> list[Any]:
    return [m.message.model_dump()["content"] for m in memory.conversation(name).messages()]


def test_code_its_output_and_files_are_found(memory: refold.Memory) -> None:
    ran = types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="a giraffe of 5 m")
    code = types.ExecutableCode(code="measure('okapi')", language=types.Language.PYTHON)
    report = types.FileData(file_uri="gs://zoo/lions.pdf", mime_type="application/pdf")
    parts = [
        types.Part(executable_code=code),
        types.Part(code_execution_result=ran),
        types.Part(file_data=report),
        types.Part(inline_data=types.Blob(data=b"name\nleopard\xff", mime_type="text/csv")),
        types.Part(inline_data=types.Blob(data=b"\xff" * 400, mime_type="audio/wav")),
        types.Part(text=""),
        types.Part(thought_signature=b"\xff\x00"),
    ]

    async def play() -> None:
        service, sessions = RefoldMemoryService(memory), InMemorySessionService()
        events = [said("helper", part, number=n) for n, part in enumerate(parts)]
        await service.add_session_to_memory(await session_of(sessions, "ann", events))
        for asked, answer in (
            ("okapi", "measure('okapi')"),
            ("How tall is the giraffe?", "a giraffe of 5 m"),
            ("lions", "[file] gs://zoo/lions.pdf, application/pdf, "),
            ("leopard", "name\nleopard\ufffd"),
        ):
            found = await service.search_memory(app_name=APP, user_id="ann", query=asked)
            assert texts(found)[0].startswith(answer)

    asyncio.run(play())
    (row,) = memory.conversations()
    assert row.messages == 5  # Two events say nothing.
    assert "[file] 536 characters, audio/wav" in stored(memory, row.thread_id)[-1][0]["text"]


def test_a_session_with_the_name_of_the_memories_is_apart_from_them(memory: refold.Memory) -> None:
    async def play() -> None:
        service, sessions = RefoldMemoryService(memory), InMemorySessionService()
        session = await sessions.create_session(app_name=APP, user_id="ann", session_id="memories")
        event = await sessions.append_event(session, EVENTS[0])
        await service.add_session_to_memory(session)
        entry = MemoryEntry(content=types.Content(parts=[words("Ann likes figs.")]), id=event.id)
        blank = MemoryEntry(content=types.Content(parts=[words("")]))
        await service.add_memory(app_name=APP, user_id="ann", memories=[entry, blank])

    asyncio.run(play())
    contents = sorted(stored(memory, row.thread_id)[0][0]["text"] for row in memory.conversations())
    assert contents == ["Ann likes figs.", "My cat is called Zorro."]
    assert [row.messages for row in memory.conversations()] == [1, 1]
