"""The pages and the JSON answers as an application of Starlette."""

import base64
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from refold.application.api.memory import Memory
from refold.domain.errors import RefoldError

from .access import ACCESS, Access, Authorise, HeadersForAll, ServiceAccess
from .conversation_page import conversation_page, live_part, message_page
from .json_answers import conversations_json, history_json, request_json
from .links import ServerLinks
from .list_page import list_page
from .message_views import PICTURES
from .reader import NotShown, Reader
from .rendering_pages import render, static_file

Page = Callable[[Reader, ServerLinks, Request], Response]


def app(memory: Memory, authorise: Authorise) -> ASGIApp:
    """Return the inspector as an ASGI application for a service of your own.

    ``authorise``: called with each request, a ``starlette.requests.Request``. It returns True if the
    request may read everything, ``Access(owner=…)`` if it may read what one owner has, and False
    otherwise; it may be a coroutine function.
    """
    return HeadersForAll(ServiceAccess(pages_of(memory), authorise))


def pages_of(memory: Memory) -> Starlette:
    """Return the pages of a memory, for requests whose access was checked."""

    def route(path: str, page: Page) -> Route:
        async def answer(request: Request) -> Response:
            reader = Reader(memory, request.scope.get(ACCESS, Access(owner="")))
            links = ServerLinks(request.scope.get("root_path", "").rstrip("/"))
            return await run_in_threadpool(_answered, page, reader, links, request)

        return Route(path, answer)

    return Starlette(
        routes=[
            route("/", list_page),
            route("/conversation", conversation_page),
            route("/message", message_page),
            route("/live", live_part),
            route("/media", _media),
            route("/request.json", request_json),
            route("/api/conversations", conversations_json),
            route("/api/conversations/{thread_id:path}/history", history_json),
            Route("/static/{name}", _static),
        ]
    )


def _answered(page: Page, reader: Reader, links: ServerLinks, request: Request) -> Response:
    try:
        return page(reader, links, request)
    except (RefoldError, ValueError) as error:
        status = 404 if isinstance(error, NotShown) else 400
        if request.url.path.startswith(f"{links.home()}api/"):
            named: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
            return JSONResponse(named, status)
        values = {"links": links, "title": "Not shown", "message": str(error)}
        return HTMLResponse(render("error.html", values), status)


async def _static(request: Request) -> Response:
    found = static_file(request.path_params["name"])
    if found is None:
        return PlainTextResponse("There is no such file.\n", 404)
    return Response(found[0], media_type=found[1])


def _media(reader: Reader, links: ServerLinks, request: Request) -> Response:
    """Answer with one picture of a message."""
    del links
    query = request.query_params
    conversation, _ = reader.conversation(query.get("id", ""))
    content = conversation.read(int(query.get("position", "-1"))).message.content
    index = int(query.get("block", "-1"))
    block = content[index] if 0 <= index < len(content) else None
    source = block.get("source") if isinstance(block, dict) else None
    if not isinstance(source, dict) or source.get("media_type") not in PICTURES:
        return PlainTextResponse("There is no such picture.\n", 404)
    return Response(base64.b64decode(source["data"]), media_type=source["media_type"])
