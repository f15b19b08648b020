"""The text form of a context, for agents that take one string (requirement E4)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from refold.application.projections.messages import readable
from refold.domain.messages import Message, text_of

from . import texts

SUMMARY = "## PREVIOUS CONTEXT SUMMARY"
RECENT = "## RECENT MESSAGES"


_NOBODY_SAID = frozenset(
    {
        texts.NO_RESULT,
        texts.EMPTY_RESULT,
        texts.EMPTY_ERROR,
        texts.BEGINS_WITH_ASSISTANT,
        texts.CONTINUE,
        texts.SILENCE,
        texts.NO_CONTENT,
    }
)
"""What only keeps a request of messages legal: one string needs none of it."""


def text_form(
    messages: Sequence[Mapping[str, Any]],
    opening: int,
    memory: Sequence[str],
    limit: int | None = None,
) -> str:
    """``memory`` under a heading of its own, then every message behind the name of its role.

    ``opening``: with how many blocks of ``memory`` the first message opens. ``limit``: so many of the
    newest messages at most.
    """
    said: list[str] = []
    for index, message in enumerate(messages):
        content = message["content"]
        if index == 0 and opening:
            content = content[opening:]
        said.extend(_parts(message["role"], content))
    kept = said if limit is None else said[max(0, len(said) - limit) :]
    return "\n\n".join([*([SUMMARY, *memory] if memory else []), RECENT, *kept])


def _parts(role: str, content: Any) -> Iterator[str]:
    """A message in words; notes of the system, which requests have in the user's turn, by themselves."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    own = [block for block in blocks if text_of(block) not in _NOBODY_SAID]
    for is_note, some in groupby(own, lambda block: _is_note(role, block)):
        text = readable(_message(role, tuple(some)))
        if is_note:
            yield "\n".join(
                f"System: {note}" for note in text.split(texts.SYSTEM_NOTE) if note.strip()
            )
        elif text.strip():
            yield f"{role.capitalize()}: {text}"


def _is_note(role: str, block: Mapping[str, Any]) -> bool:
    return role == "user" and str(block.get("text", "")).startswith(texts.SYSTEM_NOTE)


def _message(role: str, content: tuple[Any, ...]) -> Message:
    fields = {"role": role, "content": content, "author": None, "extra": None, "unknown": ()}
    return Message.trusted(fields)
