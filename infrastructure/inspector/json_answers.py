"""The JSON answers: conversations, the history of one as a timeline, and the raw request."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from .links import ServerLinks
from .list_page import list_query
from .reader import PAGE, Reader, number_in, request_at, timeline_page
from .scene import scene_of

MOST = 200
"""Entries of a page, at most."""


class JsonAnswer(Response):
    """A JSON object. What has no UTF-8 form, such as half a character, is escaped."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return the object as bytes."""
        try:
            return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            return json.dumps(content, separators=(",", ":")).encode()


def conversations_json(reader: Reader, links: ServerLinks, request: Request) -> Response:
    """Answer with a page of the conversations in the order of the list page."""
    del links
    start, limit = _page(request)
    query = list_query(request)
    page = reader.conversations_page(start, limit, query.owner, query.order)
    stop = start + len(page.rows)
    return JsonAnswer(
        {
            "conversations": [
                {
                    "id": row.thread_id,
                    "label": row.label,
                    "first_words": row.first_words,
                    "last_activity": row.last_activity,
                    "began": row.created_at,
                    "messages": row.messages,
                    "tokens": row.tokens,
                    "version": row.version,
                    "compactions": row.compactions,
                    "failed_compactions": row.failures,
                    "last_compaction": row.attempted_at,
                    "last_outcome": row.outcome,
                    "owner": row.owner,
                    "forked_from": row.forked_from,
                }
                for row in page.rows
            ],
            "start": start,
            "count": page.count,
            "next": stop if page.rows and stop < page.count else None,
        }
    )


def history_json(reader: Reader, links: ServerLinks, request: Request) -> Response:
    """Answer with a page of the timeline of a conversation.

    Its id is in the path, or in the query: a path cannot have every id, such as ``..``.
    """
    del links
    named = request.path_params.get("thread_id") or request.query_params.get("id", "")
    conversation, row = reader.conversation(named)
    start, limit = _page(request)
    page = timeline_page(conversation, row.messages, start, limit, None)
    messages: list[Mapping[str, Any]] = []
    for stored in page.messages:
        fate = page.fates[stored.position]
        messages.append(
            {
                "position": stored.position,
                "id": stored.message_id,
                "version": stored.version,
                "at": stored.at,
                "tokens": stored.tokens,
                "shown_tokens": fate.shown_tokens,
                "fate": fate.fate,
                "why": fate.why,
                "mark": stored.mark.model_dump() if stored.mark else None,
                "message": stored.message.model_dump(exclude_none=True),
            }
        )
    return JsonAnswer(
        {
            "id": row.thread_id,
            "version": row.version,
            "messages": messages,
            "start": page.start,
            "count": row.messages,
            "next": page.stop if page.stop < row.messages else None,
        }
    )


def request_json(reader: Reader, links: ServerLinks, request: Request) -> Response:
    """Answer with the raw request at a version as a file."""
    scene = scene_of(reader, links, request)
    context = request_at(scene.conversation, scene.at)
    name = {"content-disposition": 'attachment; filename="request.json"'}
    return JsonAnswer(context.for_anthropic(), headers=name)


def _page(request: Request) -> tuple[int, int]:
    """Return the first entry and the number of entries that are asked for."""
    query = request.query_params
    limit = number_in(query, "limit")
    return number_in(query, "start") or 0, max(1, min(MOST, PAGE if limit is None else limit))
