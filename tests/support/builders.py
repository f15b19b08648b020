"""Builders of messages, events and states: every field that a test does not speak of has a value."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from refold.domain.appending import IncomingMessage
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.compaction.summary_rules import Summary
from refold.domain.conversation import Conversation, Coverage
from refold.domain.events import CompactionPerformed, CompactionRequested, Event, MessageAppended
from refold.domain.evolve import fold
from refold.domain.messages import Block, Message

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def thinking(words: str = "hm", signature: str = "sig") -> Block:
    return {"type": "thinking", "thinking": words, "signature": signature}


def tool_use(call_id: str, **given: Any) -> Block:
    return {"type": "tool_use", "id": call_id, "name": "bash", "input": given}


def tool_result(call_id: str, content: Any = "ok", **more: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def user(*content: str | Block) -> Message:
    """One string stays a string; anything else becomes blocks."""
    return Message(role="user", content=_content(content))


def assistant(*content: str | Block) -> Message:
    return Message(role="assistant", content=_content(content))


def system(*content: str | Block) -> Message:
    return Message(role="system", content=_content(content))


def calls(*call_ids: str) -> Message:
    """An assistant message that calls tools."""
    return assistant(*(tool_use(call_id) for call_id in call_ids))


def results(*call_ids: str) -> Message:
    """A user message that answers calls."""
    return user(*(tool_result(call_id) for call_id in call_ids))


def _content(content: Sequence[str | Block]) -> str | tuple[Block, ...]:
    if len(content) == 1 and isinstance(content[0], str):
        return content[0]
    return tuple(text(part) if isinstance(part, str) else part for part in content)


def incoming(message: Message, message_id: str = "m", tokens: int = 100) -> IncomingMessage:
    return IncomingMessage(message=message, message_id=message_id, tokens=tokens)


def appended(position: int, message: Message, tokens: int = 100, **more: Any) -> MessageAppended:
    """The event of a message; its id is ``m`` and its position."""
    return MessageAppended(
        position=position, message_id=f"m{position}", message=message, tokens=tokens, **more
    )


def history(*messages: Message, tokens: int = 100, start: int = 0) -> list[Event]:
    """The events of messages from position ``start``, each of the same size."""
    return [appended(start + i, message, tokens) for i, message in enumerate(messages)]


def conversation(*messages: Message, tokens: int = 100) -> Conversation:
    """A conversation to which these messages were appended."""
    return fold(history(*messages, tokens=tokens))


def talk(turns: int) -> list[Message]:
    """Questions and answers in turn: ``turns`` times two messages."""
    return [m for i in range(turns) for m in (user(f"question {i}"), assistant(f"answer {i}"))]


def coverage(stop: int, *, start: int = 0, exclusions: tuple[int, ...] = ()) -> Coverage:
    """Positions ``start`` up to ``stop`` without exclusions, counted and named as builders do."""
    covered = [p for p in range(start, stop) if p not in exclusions]
    return Coverage(
        start=start,
        stop=stop,
        exclusions=exclusions,
        count=len(covered),
        first_message_id=f"m{covered[0]}",
        last_message_id=f"m{covered[-1]}",
    )


def requested(stop: int, attempt_id: str = "a1", **more: Any) -> CompactionRequested:
    fields: dict[str, Any] = {
        "attempt_id": attempt_id,
        "requested_at": NOON,
        "trigger": "size",
        "coverage": coverage(stop),
        "supersedes": None,
        "source_digest": "d" * 64,
        "summariser": "good",
        "policy": CompactionPolicy(),
        "tokens_before": 1_000,
    }
    return CompactionRequested(**{**fields, **more})


def performed(stop: int, attempt_id: str = "a1", **more: Any) -> CompactionPerformed:
    fields: dict[str, Any] = {
        "attempt_id": attempt_id,
        "summary_id": "s1",
        "text": "what was said",
        "tokens": 50,
        "coverage": coverage(stop),
        "source_digest": "d" * 64,
        "trigger": "size",
        "policy": CompactionPolicy(),
        "summariser": "good",
        "model": "good",
        "prompt_fingerprint": "p1",
        "tokens_before": 1_000,
        "tokens_after": 500,
    }
    return CompactionPerformed(**{**fields, **more})


def summary(summary_id: str = "s1", **more: Any) -> Summary:
    fields: dict[str, Any] = {
        "summary_id": summary_id,
        "text": "what was said",
        "text_tokens": more.get("tokens", 50),
        "tokens": 50,
        "complete": True,
        "summariser": "good",
        "model": "good",
        "prompt_fingerprint": "p1",
    }
    return Summary(**{**fields, **more})
