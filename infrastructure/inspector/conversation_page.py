"""The page of a conversation with its panels, and the page of one message."""

from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from refold.application.conversation.addresses import address_of
from refold.application.inspection.message_strip import MessageStrip
from refold.application.inspection.size_history import SizeHistory
from refold.infrastructure.files.log_place import typed_command

from .links import ServerLinks
from .message_views import MessageView, message_views
from .panels import PANELS
from .pictures import chart_of, strip_of
from .reader import NotShown, Reader, request_at, timeline_page
from .rendering_pages import render
from .request_view import Gauge, gauge_of
from .scene import Scene, scene_of

EARLY = 0.75
"""Share of the size at which a compaction is due. If all compactions began below it, the agent has other settings."""
MESSAGE_BUDGET = 250_000
"""Bytes of HTML that the page of one message takes at most, about."""


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
        "is_part": False,
    }


def header_values(scene: Scene) -> dict[str, Any]:
    """Return the values of the pictures above the panels."""
    conversation = scene.conversation
    context = request_at(conversation, scene.at)
    # The chart goes on to the newest version, so that a click on it can also travel forwards.
    history = conversation.size_history()
    strip = conversation.message_strip(at=scene.at)
    gauge = gauge_of(conversation, context)
    return {
        "gauge": gauge,
        "began_below": _began_below(history, gauge),
        "chart": chart_of(history, scene.row.version, scene.at or scene.row.version),
        "strip": strip_of(strip),
        "facts": _facts(scene, history, strip),
        "seen": scene.number("seen") or scene.row.messages,
    }


def _began_below(history: SizeHistory, gauge: Gauge) -> int | None:
    """Return the largest size at which a compaction began, if it is far below the size at which one is due here.

    The log does not say which window an agent has.
    """
    began = (mark.tokens_before for mark in history.marks if mark.kind == "compacted")
    largest = max(began, default=gauge.trigger)
    return largest if largest < EARLY * gauge.trigger else None


class Facts(NamedTuple):
    """The size of a conversation at the version that is shown."""

    messages: int
    tokens: int
    compactions: int


def _facts(scene: Scene, history: SizeHistory, strip: MessageStrip) -> Facts:
    if scene.at is None:
        return Facts(scene.row.messages, scene.row.tokens, scene.row.compactions)
    made = (one for one in history.marks if one.kind == "compacted" and scene.has(one.version))
    return Facts(strip.length, sum(cell.tokens for cell in strip.cells), sum(1 for _ in made))


def live_part(reader: Reader, links: ServerLinks, request: Request) -> Response:
    """Answer with the newest pictures if the conversation has grown, or with nothing."""
    scene = scene_of(reader, links, request)
    if scene.row.version == scene.number("version"):
        return Response(status_code=204)
    panel = scene.query.get("panel", "timeline")
    values = base_values(scene) | header_values(scene) | {"panel": panel, "is_part": True}
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
    happened = [one for one in scene.conversation.fate_history(position) if scene.has(one.version)]
    values = base_values(scene) | {
        "message": message,
        "fate": page.fates.get(position),
        "happened": happened,
        "address": address_of(scene.row.thread_id, position),
        "read": typed_command("read", scene.row.thread_id, position, count=2),
        "pin": typed_command("pin", scene.row.thread_id, position, count=2),
    }
    return HTMLResponse(render("message.html", values))
