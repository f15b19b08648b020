"""A memory for agents of Google's ADK: its memory service, which recalls what a user's sessions said."""

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

try:
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session
    from google.genai import types
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "refold.adapters.google_adk needs google-adk 2.13 or newer: pip install 'refold[google-adk]'"
    ) from error

from refold.application.api.async_memory import AsyncMemory
from refold.application.api.blocking import in_thread, run_to_end
from refold.application.api.following import FollowingMemory
from refold.application.api.memory import Memory
from refold.application.conversation.transcripts import RecordedMessage
from refold.application.recall.hits import RecallHit
from refold.domain.errors import InvalidSetting
from refold.domain.messages import Block, Message
from refold.domain.originals import Original

from .media_lines import line_of

__all__ = ["RefoldMemoryService"]
FORMAT = "google-adk"
"""Form of a message: the event of a session."""
MEMORIES = "memories"
"""Conversation of what is added without a session."""
_SAME_NAME = {MEMORIES: "%6Demories"}
"""Name of the conversation of a session with that id: no other id is quoted like this."""


class RefoldMemoryService(BaseMemoryService):
    """Keeps sessions in conversations whose owner is the user of an app, and finds the passages that answer a question.

    An event is stored once, however often its session is added. What is deleted is erased, and is not stored again.
    """

    def __init__(self, memory: Memory | AsyncMemory, *, limit: int = 10) -> None:
        """Create the service. ``limit``: most passages of an answer.

        Raises:
            InvalidSetting: ``memory`` is no memory, or ``limit`` is no number of passages.
        """
        if type(limit) is not int or limit < 1:
            raise InvalidSetting(
                f"limit={limit!r}: must be an integer of 1 or more", setting="limit", value=limit
            )
        self._memory = FollowingMemory(memory)
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session that are new."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events that are new. Without a session they are in a conversation of their own."""
        del custom_metadata
        recorded = [made for event in events if (made := _message(event)) is not None]
        if recorded:
            await run_to_end(self._store, _owner(app_name, user_id), session_id, recorded)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories that the application has written. One with the id of an earlier one is not stored again."""
        del custom_metadata
        recorded = [
            RecordedMessage(
                message=Message(role="user", content=content, author="program"),
                key=entry.id or f"{entry.timestamp}:{entry.content.model_dump_json()}",
                at=None if entry.timestamp is None else _moment(entry.timestamp),
            )
            for entry in memories
            if (content := _content(entry.content))
        ]
        if recorded:
            await run_to_end(self._store, _owner(app_name, user_id), None, recorded)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return the passages of a user's sessions that answer a question, best first."""
        owner = _owner(app_name, user_id)
        return SearchMemoryResponse(memories=await in_thread(self._search, owner, query))

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Erase the message with the id of a memory.

        Raises:
            InvalidSetting: this user has no memory with this id, or there is no id. ``memory.erase_owner`` erases all.
        """
        owner = _owner(app_name, user_id)
        name, _, position = (memory_id or "").rpartition("#")
        if not position.isdecimal() or not name.startswith(f"{owner}/"):
            raise InvalidSetting(
                f"memory_id={memory_id!r}: must be the id of a memory of this user; "
                f"memory.erase_owner({owner!r}, reason) erases all that is known of the user",
                setting="memory_id",
                value=memory_id,
            )
        conversation = self._memory.conversation(name, owner)
        await run_to_end(conversation.erase, int(position), "deleted by ADK")

    def _store(
        self, owner: str, session_id: str | None, recorded: Sequence[RecordedMessage]
    ) -> None:
        name = (
            MEMORIES if not session_id else _SAME_NAME.get(session_id) or quote(session_id, safe="")
        )
        self._memory.conversation(f"{owner}/{name}", owner).append_recorded(recorded)

    def _search(self, owner: str, query: str) -> list[MemoryEntry]:
        found = self._memory.search(query, owner=owner, limit=self._limit)
        return [_entry(hit, self._author(hit)) for hit in found]

    def _author(self, hit: RecallHit) -> str:
        """Return the author of an event: the name of its agent, or "user"."""
        conversation = self._memory.conversation(hit.thread_id)
        for stored in conversation.messages(hit.position, hit.position + 1):
            if stored.original is not None and stored.original.format == FORMAT:
                return str(stored.original.data.get("author") or _role(hit))
        return _role(hit)


def _owner(app_name: str, user_id: str) -> str:
    return f"{quote(app_name, safe='')}/{quote(user_id, safe='')}"


def _message(event: Event) -> RecordedMessage | None:
    """Return an event as a message, or None if it says nothing."""
    if event.content is None or not event.content.parts or event.partial:
        return None
    content = _content(event.content)
    if not content:
        return None
    is_result = any(block["type"] == "tool_result" for block in content)
    is_said = event.author == "user" or event.content.role == "user" or is_result
    return RecordedMessage(
        message=Message(
            role="user" if is_said else "assistant",
            content=content,
            author="person" if event.author == "user" and not is_result else None,
        ),
        key=event.id,
        message_id=event.id,
        at=datetime.fromtimestamp(event.timestamp, UTC),
        original=Original(format=FORMAT, data=event.model_dump(mode="json", exclude_none=True)),
    )


def _content(content: types.Content) -> tuple[Block, ...]:
    return tuple(block for part in content.parts or () if (block := _block(part)) is not None)


def _block(part: types.Part) -> Block | None:
    if part.text:
        kind = "thinking" if part.thought else "text"
        return {"type": kind, kind: part.text}
    if (call := part.function_call) is not None:
        name = call.name or "unknown"
        return {"type": "tool_use", "id": call.id or name, "name": name, "input": call.args or {}}
    if (answer := part.function_response) is not None:
        said = answer.model_dump_json(include={"response"}, exclude_none=True)
        call_id = answer.id or answer.name or "unknown"
        return {"type": "tool_result", "tool_use_id": call_id, "content": said}
    data = part.inline_data
    if data is not None and data.data is not None and (data.mime_type or "").startswith("image/"):
        encoded = base64.b64encode(data.data).decode()
        source = {"type": "base64", "media_type": data.mime_type, "data": encoded}
        return {"type": "image", "source": source}
    words = _words(part)
    return {"type": "text", "text": words} if words.strip() else None


def _words(part: types.Part) -> str:
    """Return code, its output, a transcript, a file of text, or a line that names another file."""
    if (code := part.executable_code) is not None:
        return code.code or ""
    if (result := part.code_execution_result) is not None:
        return result.output or ""
    if (heard := part.audio_transcription) is not None:
        return heard.text or ""
    if (used := part.tool_call or part.tool_response) is not None:
        return used.model_dump_json(exclude_none=True, exclude={"id"})
    blob = part.inline_data
    if blob is not None and blob.data is not None and (blob.mime_type or "").startswith("text/"):
        return blob.data.decode(errors="replace")
    if (file := blob or part.file_data) is None:
        return ""
    return line_of({"type": "file", **file.model_dump(mode="json", exclude_none=True)})


def _moment(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _role(hit: RecallHit) -> str:
    return "model" if hit.role == "assistant" else "user"


def _entry(hit: RecallHit, author: str) -> MemoryEntry:
    metadata: dict[str, Any] = {"session": hit.thread_id, "address": hit.address}
    return MemoryEntry(
        content=types.Content(role=_role(hit), parts=[types.Part(text=hit.text)]),
        custom_metadata=metadata,
        id=f"{hit.thread_id}#{hit.position}",
        author=author,
        timestamp=hit.at,
    )
