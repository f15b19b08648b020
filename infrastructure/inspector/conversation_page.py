"""The page of a conversation with its panels, the list of conversations, and the page of one message."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.ports.read_models import ConversationRow

from .links import ServerLinks
from .message_views import MessageView, message_views
from .panels import compare_panel, health_panel, recall_panel, request_panel, summaries_panel
from .reader import PAGE, NotShown, Reader, number_in, request_at, timeline_page
from .rendering_pages import render
from .request_view import gauge_of

TEXT_BUDGET = 100_000
"""Bytes of HTML that the texts of a page take at most, about."""
MESSAGE_BUDGET = 250_000
"""Bytes of HTML that the page of one message takes at most, about."""
LISTED = 100
"""Conversations of a page."""


class Scene(NamedTuple):
    """A conversation as one request asks to see it."""

    reader: Reader
    links: ServerLinks
    conversation: ConversationMemory
    row: ConversationRow
    at: int | None
    """Version to show, or None for the newest."""
    query: Mapping[str, str]

    def number(self, name: str) -> int | None:
        """Return a number of the query, or None if it is not given.

        Raises:
            InvalidSetting: it is not a number.
        """
        return number_in(self.query, name)

    @property
    def length(self) -> int:
        """Number of messages at the version."""
        if self.at is None:
            return self.row.messages
        last = self.conversation.explain(-1, at=self.at)
        return last[0].position + 1 if last else 0


Panel = Callable[[Scene], Mapping[str, Any]]


def timeline_panel(scene: Scene) -> Mapping[str, Any]:
    """Return a page of the messages."""
    length, wanted = scene.length, scene.number("position")
    start = scene.number("start")
    if start is None:
        at = length - 1 if wanted is None else wanted
        start = max(0, at // PAGE * PAGE)
    page = timeline_page(scene.conversation, length, start, PAGE, scene.at)
    views = message_views(page.messages, page.fates, budget=TEXT_BUDGET, around=page.around)
    return {"timeline": page, "messages": views, "PAGE": PAGE}


PANELS: Mapping[str, tuple[str, Panel]] = {
    "timeline": ("Timeline", timeline_panel),
    "summaries": ("Summaries", summaries_panel),
    "recall": ("Recall", recall_panel),
    "compare": ("Compare", compare_panel),
    "health": ("Health", health_panel),
    "request": ("Request", request_panel),
}


def scene_of(reader: Reader, links: ServerLinks, request: Request) -> Scene:
    """Return the conversation that a request asks for.

    Raises:
        NotShown: there is no such conversation for this reader.
    """
    query = request.query_params
    conversation, row = reader.conversation(query.get("id", ""))
    return Scene(reader, links, conversation, row, number_in(query, "at"), query)


def conversation_page(reader: Reader, links: ServerLinks, request: Request) -> Response:
    """Answer with a conversation, or with one of its panels if htmx asks for that alone."""
    scene = scene_of(reader, links, request)
    name = scene.query.get("panel", "timeline")
    if name not in PANELS:
        raise NotShown(f"there is no panel {name!r}")
    values = base_values(scene) | {"panel": name} | dict(PANELS[name][1](scene))
    if request.headers.get("hx-target") == "panel":
        return HTMLResponse(render("panel.html", values))
    return HTMLResponse(render("conversation.html", values | header_values(scene)))


def base_values(scene: Scene) -> dict[str, Any]:
    """Return what every template of a conversation needs."""
    return {
        "links": scene.links,
        "row": scene.row,
        "id": scene.row.thread_id,
        "at": scene.at,
        "version": scene.row.version if scene.at is None else scene.at,
        "title": scene.row.title or scene.row.thread_id,
        "panels": {name: title for name, (title, _) in PANELS.items()},
    }


def header_values(scene: Scene) -> dict[str, Any]:
    """Return the values of the pictures above the panels."""
    context = request_at(scene.conversation, scene.at)
    return {"gauge": gauge_of(scene.conversation, context)}


def live_part(reader: Reader, links: ServerLinks, request: Request) -> Response:
    """Answer with the newest pictures if the conversation has grown, or with nothing."""
    scene = scene_of(reader, links, request)
    if scene.row.version == scene.number("version"):
        return Response(status_code=204)
    values = base_values(scene) | header_values(scene)
    return HTMLResponse(render("header.html", values))


def message_page(reader: Reader, links: ServerLinks, request: Request) -> Response:
    """Answer with all of one message."""
    scene = scene_of(reader, links, request)
    position = scene.number("position") or 0
    page = timeline_page(scene.conversation, scene.length, position, 1, scene.at)
    if not page.messages or page.start != position:
        raise NotShown(f"there is no message {position}")
    views = message_views(page.messages, page.fates, budget=MESSAGE_BUDGET, around=page.around)
    message: MessageView = views[0]
    values = base_values(scene) | {"message": message, "fate": page.fates.get(position)}
    return HTMLResponse(render("message.html", values))


def conversations_page(reader: Reader, links: ServerLinks, request: Request) -> Response:
    """Answer with the list of conversations, or with what a search over all of them found."""
    query = request.query_params.get("q", "").strip()
    start = number_in(request.query_params, "start") or 0
    rows = reader.conversations()
    values = {
        "links": links,
        "title": "Conversations",
        "rows": rows[start : start + LISTED],
        "count": len(rows),
        "start": start,
        "LISTED": LISTED,
        "query": query,
        "found": reader.search(query) if query else None,
    }
    part = "listed.html" if request.headers.get("hx-target") == "listed" else "conversations.html"
    return HTMLResponse(render(part, values))
