"""Resources for clients, and their URIs: conversations, summaries and messages."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from refold.application.agent_tools.tool_scope import Reach
from refold.application.api.memory import Memory
from refold.application.conversation.addresses import SCHEME as MESSAGE
from refold.application.conversation.addresses import parse_address
from refold.application.errors import InvalidAddress
from refold.application.history.expand import active_summary
from refold.application.ports.read_models import Beginning, ConversationRow, SummaryRow
from refold.application.runtime.core import Core
from refold.domain.errors import ConversationGone, InvalidThreadId, RefoldError, UnknownMessage
from refold.domain.lazy_pattern import lazy_pattern

CONVERSATION = "refold-conversation://"
JSON, TEXT = "application/json", "text/plain"
_FORM = lazy_pattern(rf"{CONVERSATION}([^/?#]+)(?:/(summary|summaries)(?:/([^/?#]+))?)?/?")


class Described(NamedTuple):
    """An entry in a list of resources or resource templates."""

    uri: str
    """URI of the resource, or URI template with names in braces (RFC 6570)."""
    name: str
    description: str
    kind: str
    """Media type."""


class Content(NamedTuple):
    """Content of a resource."""

    text: str
    kind: str


class UnknownResource(RefoldError, LookupError):
    """The resource does not exist or is out of scope."""

    def __init__(self, uri: str) -> None:
        super().__init__(
            f"there is no resource {uri[:200]!r}: list the resources to see what exists"
        )
        self.uri = uri


TEMPLATES = (
    Described(
        f"{CONVERSATION}{{thread}}",
        "conversation",
        "What is known of a conversation: label, messages, times, its active summary.",
        JSON,
    ),
    Described(
        f"{CONVERSATION}{{thread}}/summary",
        "active-summary",
        "The text that stands for the earlier messages of a conversation now.",
        TEXT,
    ),
    Described(
        f"{CONVERSATION}{{thread}}/summaries",
        "summaries",
        "All summaries that were ever made of a conversation, without their texts.",
        JSON,
    ),
    Described(
        f"{CONVERSATION}{{thread}}/summaries/{{summary_id}}",
        "summary",
        "The text of one summary.",
        TEXT,
    ),
    Described(
        f"{MESSAGE}{{thread}}/{{position}}",
        "message",
        "An original message word for word, under the address that previews and answers show.",
        TEXT,
    ),
)


def conversation_uri(thread_id: str, *beneath: str) -> str:
    """Return the URI of a conversation, or of something below it."""
    return CONVERSATION + "/".join(quote(part, safe="") for part in (thread_id, *beneath))


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a log or of one conversation, limited by a scope."""

    memory: Memory
    reach: Reach

    def rows(self) -> Sequence[ConversationRow]:
        """Return the visible conversations, latest activity first."""
        return self.reach.conversations()

    def page(
        self, before: Beginning | None, count: int
    ) -> tuple[list[Described], Beginning | None]:
        """Return the resources of the next conversations, the latest beginning first.

        The place is that of the last one, or None if no conversation follows.
        """
        rows = self.reach.conversations_before(before, count + 1)
        listed = self.listed(rows[:count])
        if len(rows) <= count:
            return listed, None
        last = rows[count - 1]
        return listed, Beginning(last.created_at, last.thread_id)

    def ids(self, prefix: str, count: int) -> tuple[list[str], int]:
        """Return the first ids of these conversations that begin with a text, and how many begin with it."""
        if not prefix:
            rows, length = self.reach.conversations_page(0, count)
            return [row.thread_id for row in rows], length
        found = [row.thread_id for row in self.reach.conversations(prefix)]
        return found[:count], len(found)

    def listed(self, rows: Sequence[ConversationRow]) -> list[Described]:
        """Return the resources of these conversations in order."""
        return [resource for row in rows for resource in self._describe(row)]

    def read(self, uri: str) -> Content:
        """Read a resource.

        Raises:
            UnknownResource: the resource does not exist, or its conversation is out of scope.
            LogError: the log cannot be read.
        """
        try:
            return self._message(uri) if uri.startswith(MESSAGE) else self._beneath(uri)
        except (UnknownMessage, InvalidAddress, InvalidThreadId, ConversationGone) as error:
            raise UnknownResource(uri) from error

    def _describe(self, row: ConversationRow) -> Iterator[Described]:
        name = row.label or row.thread_id
        about = f"{row.messages:,} messages, the last at {row.last_activity}"
        yield Described(conversation_uri(row.thread_id), name, about, JSON)
        active = active_summary(self._core, row.thread_id) if row.compactions else None
        if active is not None and not self._hides(active):
            uri = conversation_uri(row.thread_id, "summary")
            yield Described(
                uri, f"{name}: summary", "What stands for its earlier messages now.", TEXT
            )

    def _beneath(self, uri: str) -> Content:
        found = _FORM.fullmatch(uri)
        row = self._row(unquote(found[1])) if found else None
        if found is None or row is None:
            raise UnknownResource(uri)
        thread_id, what, summary_id = row.thread_id, found[2], found[3]
        views = self._core.views
        match what, summary_id:
            case None, None:
                return _json(_facts(row, active_summary(self._core, thread_id)))
            case "summaries", None:
                return _json({"summaries": [*map(_outline, views.summaries(thread_id))]})
            case "summary", None:
                wanted = active_summary(self._core, thread_id)
            case "summaries", str():
                wanted = views.summary(thread_id, unquote(summary_id))
            case _:
                wanted = None
        if wanted is None or self._hides(wanted):
            raise UnknownResource(uri)
        return Content(wanted.summary_text, TEXT)

    def _hides(self, summary: SummaryRow) -> bool:
        """Return whether a summary covers messages that are out of scope."""
        stop = summary.compact_up_to_index + 1
        return self.reach.scope.hides(summary.thread_id, summary.covered_from, stop)

    def _message(self, uri: str) -> Content:
        address = parse_address(uri)
        for thread_id in (address.thread_id, address.as_written):
            if self._row(thread_id) is not None:
                message = self.memory.conversation(thread_id).read(uri)
                if message.position not in self.reach.hidden(thread_id):
                    return Content(message.text, TEXT)
        raise UnknownResource(uri)

    def _row(self, thread_id: str) -> ConversationRow | None:
        return self.reach.conversation(thread_id)

    @property
    def _core(self) -> Core:
        return self.reach.core


def _facts(row: ConversationRow, active: SummaryRow | None) -> dict[str, Any]:
    return {
        "thread_id": row.thread_id,
        "label": row.label,
        "messages": row.messages,
        "tokens": row.tokens,
        "compactions": row.compactions,
        "created_at": row.created_at,
        "last_activity": row.last_activity,
        "forked_from": row.forked_from,
        "active_summary": _outline(active) if active else None,
        "summaries": conversation_uri(row.thread_id, "summaries"),
    }


def _outline(summary: SummaryRow) -> dict[str, Any]:
    return {
        "summary_id": summary.summary_id,
        "uri": conversation_uri(summary.thread_id, "summaries", summary.summary_id),
        "is_active": summary.is_active,
        "is_reverted": summary.is_reverted,
        "covers_from": summary.covered_from,
        "covers_to": summary.compact_up_to_index,
        "messages": summary.covered_count,
        "tokens": summary.tokens,
        "compacted_at": summary.compacted_at,
        "model": summary.model,
    }


def _json(value: dict[str, Any]) -> Content:
    return Content(json.dumps(value, ensure_ascii=False, indent=2), JSON)
