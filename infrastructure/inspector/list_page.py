"""The page of all conversations: sorted, by owner, or as far as a search found something in them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from refold.application.api.memory_lists import ORDERS
from refold.application.ports.read_models import (
    ConversationOrder,
    ConversationRow,
    ConversationsPage,
)
from refold.application.recall.hits import Recalled, RecallHit
from refold.infrastructure.palette import Meaning

from .links import ServerLinks
from .reader import NotShown, Reader, number_in
from .rendering_pages import render

LISTED = 100
"""Conversations of a page."""
MOST_HITS = 50
"""Passages that a search finds."""
OF_ONE = 3
"""Passages of one conversation that the list shows; its recall panel shows more."""

_ORDERED: Mapping[ConversationOrder, str] = {
    "activity": "the latest activity first",
    "messages": "the most messages first",
    "size": "the largest first",
    "age": "the oldest first",
    "compactions": "the most compactions first",
    "failures": "the most failed compactions first",
    "compacted": "the latest compaction first",
}
OUTCOMES: Mapping[str, tuple[str, Meaning]] = {
    "performed": ("performed", "summary"),
    "failed": ("failed", "damage"),
    "reverted": ("reverted", "damage"),
    "requested": ("not ended", "tool"),
}
"""Outcome of an attempt in words, and the meaning of its colour."""


class FoundConversation(NamedTuple):
    """The passages of one conversation that a search found."""

    row: ConversationRow
    hits: Sequence[RecallHit]
    """The best passages, at most ``OF_ONE``."""
    passages: int
    """Number of passages that were found in it."""


class ListQuery(NamedTuple):
    """The part of the list that an address asks for."""

    start: int
    order: ConversationOrder
    owner: str | None
    words: str

    def address(self, links: ServerLinks, **changes: object) -> str:
        """Return the address of the same list with changes. A change of anything but ``start`` begins at 0."""
        wanted = {"order": self.order, "owner": self.owner, "q": self.words} | changes
        if wanted["order"] == ORDERS[0]:
            wanted["order"] = None
        return links.page("", **{name: value or None for name, value in wanted.items()})


def list_query(request: Request) -> ListQuery:
    """Return what a request asks for.

    Raises:
        InvalidSetting: ``start`` is not a number.
        NotShown: there is no such order.
    """
    query = request.query_params
    order = query.get("order") or ORDERS[0]
    if order not in ORDERS:
        raise NotShown(f"there is no order {order!r}; there are {', '.join(ORDERS)}")
    return ListQuery(
        number_in(query, "start") or 0,
        order,
        query.get("owner") or None,
        query.get("q", "").strip(),
    )


def list_page(reader: Reader, links: ServerLinks, request: Request) -> Response:
    """Answer with the list of conversations, or with what a search over all of them found."""
    query = list_query(request)
    values: dict[str, Any] = {
        "links": links,
        "title": "Conversations",
        "asked": query,
        "owner": query.owner if reader.sees_all else None,
        "address": partial(query.address, links),
        "found": None,
    }
    if query.words:
        found = reader.search(query.words, MOST_HITS, owner=query.owner)
        values |= {"found": found, "groups": group_hits(found, reader)}
    else:
        values |= _list_values(reader, query)
    part = "listed.html" if request.headers.get("hx-target") == "listed" else "conversations.html"
    return HTMLResponse(render(part, values))


def _list_values(reader: Reader, query: ListQuery) -> Mapping[str, Any]:
    def page_from(start: int) -> ConversationsPage:
        return reader.conversations_page(start, LISTED, query.owner, query.order)

    start, page = query.start, page_from(query.start)
    if not page.rows and start:  # The list has become shorter since the link was made.
        start = max(0, page.count - 1) // LISTED * LISTED
        page = page_from(start)
    return list_values(page, start, query.order, LISTED, sees_all=reader.sees_all)


def list_values(
    page: ConversationsPage, start: int, order: ConversationOrder, most: int, *, sees_all: bool
) -> Mapping[str, Any]:
    """Return the values of a part of the list that begins at ``start`` and has at most ``most`` rows."""
    return {
        "page": page,
        "start": start,
        "LISTED": most,
        "ordered": _ORDERED[order],
        "outcomes": OUTCOMES,
        "has_owners": sees_all and any(row.owner for row in page.rows),
    }


def group_hits(found: Recalled, reader: Reader) -> Sequence[FoundConversation]:
    """Return the passages by conversation, the best first. Those of conversations that are gone are left out."""
    groups: dict[str, list[RecallHit]] = {}
    for hit in found.hits:
        groups.setdefault(hit.thread_id, []).append(hit)
    shown: list[FoundConversation] = []
    for thread_id, hits in groups.items():
        with suppress(NotShown):
            shown.append(
                FoundConversation(reader.conversation(thread_id)[1], hits[:OF_ONE], len(hits))
            )
    return shown
