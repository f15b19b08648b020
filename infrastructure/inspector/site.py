"""The pages and the JSON answers as an application of Starlette."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from refold.application.api.memory import Memory
from refold.application.errors import LogError
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.errors import ConversationGone, RefoldError, UnknownMessage, UnknownSummary

from .access import ACCESS, Access, Authorise, HeadersForAll, ServiceAccess
from .cache_panel import policies_part
from .conversation_page import conversation_page, live_part, message_page
from .json_answers import JsonAnswer, conversations_json, history_json, request_json
from .links import ServerLinks
from .list_page import list_page
from .message_views import picture_of
from .policy_trials import PolicyTrials
from .reader import NotShown, Reader, number_in
from .rendering_pages import render, static_file

LOGGER = plain_logger(__name__)

Page = Callable[[Reader, ServerLinks, Request], Response]


def app(memory: Memory, authorise: Authorise) -> ASGIApp:
    """Return the inspector as an ASGI application for a service of your own.

    ``authorise``: called with each request, a ``starlette.requests.Request``. It returns True if the
    request may read everything, ``Access(owner=…)`` if it may read what one owner has, and False
    otherwise; it may be a coroutine function.
    """
    return HeadersForAll(ServiceAccess(pages_of(memory), authorise))


def pages_of(memory: Memory, trials: PolicyTrials | None = None) -> Router:
    """Return the pages of a memory, for requests whose access was checked.

    ``trials``: trials of policies, or None to offer none. The caller closes them.
    """

    def route(path: str, page: Page) -> Route:
        async def answer(request: Request) -> Response:
            reader = Reader(memory, request.scope.get(ACCESS, Access(owner="")), trials)
            links = ServerLinks(quote(request.scope.get("root_path", "").rstrip("/")))
            as_json = path.startswith("/api/")
            return await run_in_threadpool(_answered, page, reader, links, request, as_json=as_json)

        return Route(path, answer)

    return Router(
        routes=[
            route("/", list_page),
            route("/conversation", conversation_page),
            route("/message", message_page),
            route("/live", live_part),
            *([route("/policies", policies_part)] if trials else []),
            route("/media", _media),
            route("/request.json", request_json),
            route("/api/conversations", conversations_json),
            route("/api/history", history_json),
            route("/api/conversations/{thread_id:path}/history", history_json),
            Route("/static/{name}", _static),
        ],
        redirect_slashes=False,
        default=_no_such_page,
    )


def _answered(
    page: Page, reader: Reader, links: ServerLinks, request: Request, *, as_json: bool
) -> Response:
    try:
        return page(reader, links, request)
    except RefoldError as error:
        message = str(error)
        if isinstance(error, LogError):
            LOGGER.error("a page of the inspector failed: %s", error)
            if not reader.sees_all:  # The message may name a conversation of another owner.
                message = "The log cannot be read. The log of the program says why."
        if as_json:
            named: dict[str, Any] = {"error": type(error).__name__, "message": message}
            return JsonAnswer(named, _status(error))
        values = {"links": links, "title": "Not shown", "message": message}
        return HTMLResponse(render("error.html", values), _status(error))


def _status(error: RefoldError) -> int:
    if isinstance(error, NotShown | ConversationGone | UnknownMessage | UnknownSummary):
        return 404
    return 500 if isinstance(error, LogError) else 400


async def _no_such_page(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("There is no such page.\n", 404)(scope, receive, send)


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
    content = conversation.read(number_in(query, "position") or 0).message.blocks()
    index = number_in(query, "block") or 0
    picture = picture_of(content[index]) if index < len(content) else None
    if picture is None:
        return PlainTextResponse("There is no such picture.\n", 404)
    return Response(picture[0], media_type=picture[1])
