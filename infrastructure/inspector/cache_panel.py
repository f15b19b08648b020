"""The panel of cache and cost: the repeated part of requests, tokens and their price, and other policies."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from refold.application.inspection.cache_report import BreakKind, CachedRequest, CacheReport
from refold.application.inspection.token_use import TokenUse
from refold.application.lab.pricing import Prices
from refold.application.lab.simulating import Simulation
from refold.infrastructure.settings.price_table import read_prices

from .links import ServerLinks
from .policy_trials import MOST_MESSAGES, Trial, TrialKey, trial_of
from .reader import NotShown, Reader, request_at
from .rendering_pages import render
from .scene import Scene, scene_of

SLOT, BAR, HEIGHT = 10, 7, 100
"""Width of the place of a bar, width of the bar, and height of the picture, in units of its own."""
LEAST_SLOTS = 60
"""Places of the picture at least, so that few requests have no broad bars."""

REASONS: Mapping[BreakKind, str] = {
    "compaction": "A summary replaced older messages. Everything after system text and tools is new.",
    "compaction reverted": "The messages of a summary came back. Everything after system text and tools is new.",
    "offloading": "Large tool content became a preview. The request is new from that message on.",
    "condensing": "Older tool results were cut. The request is new from the first of them on.",
    "shortening": "Large content of a user was shortened. The request is new from that message on.",
    "erasure": "Content was erased. The request is new from that place on.",
    "pin": "A pinned text was added to the ledger or left it. Everything after the tools or the system text is new.",
    "memories": "Other quotations are in the system text. Everything after the tools is new.",
    "recalled lines": "Lines were added at the end of a message that had been sent. The request is new from there on.",
    "thinking left out": "Thinking is left out because the text before it changed.",
    "model": "Another model was asked. It has a cache of its own.",
    "tools": "Other tools were given. They come first, so the whole request is new.",
    "system text": "The system text or its layout changed. Everything after the tools is new.",
}


class Bar(NamedTuple):
    """One request in the picture. Lengths are in units of the picture, from the top."""

    request: CachedRequest
    x: int
    kept_y: float
    kept: float
    again_y: float
    again: float
    new_y: float
    new: float


class Priced(NamedTuple):
    """Tokens of replies with their price."""

    use: TokenUse
    entry: str
    """Entry of the price table."""
    cost: float


def cache_panel(scene: Scene) -> Mapping[str, Any]:
    """Return the cache report, its picture, prices, and the trial of other policies."""
    report, prices = scene.conversation.cache_report(scene.at), read_prices()
    priced = [Priced(one, prices.entry_of(one.model), prices.cost_of(one)) for one in report.use]
    return {
        "report": report,
        "bars": list(_bars(report.newest_requests)),
        "picture_width": SLOT * max(LEAST_SLOTS, len(report.newest_requests)),
        "picture_height": HEIGHT,
        "BAR": BAR,
        "REASONS": REASONS,
        "priced": priced,
        "stated": sum(one.use.replies for one in priced if not one.use.is_estimate),
        "cost": sum(one.cost for one in priced),
        "prices": prices,
        "without_cache": _without_cache(report, prices),
        **_trial_values(scene),
    }


def _without_cache(report: CacheReport, prices: Prices) -> float:
    """Return the price of the same tokens if no request had used a cache."""
    return sum(
        prices.cost_of(
            TokenUse(
                model=one.model,
                is_estimate=one.is_estimate,
                replies=one.replies,
                input=one.sent,
                read=0,
                written=0,
                output=one.output,
            )
        )
        for one in report.use
    )


def _bars(requests: Sequence[CachedRequest]) -> Iterator[Bar]:
    scale = HEIGHT / max((one.tokens for one in requests), default=1)
    for index, one in enumerate(requests):
        kept, new, again = (size * scale for size in (one.kept, one.new, one.written_again))
        again_y, new_y = HEIGHT - kept - again, HEIGHT - kept - again - new
        yield Bar(one, index * SLOT, HEIGHT - kept, kept, again_y, again, new_y, new)


def policies_part(reader: Reader, links: ServerLinks, request: Request) -> Response:
    """Answer with the state of a trial. With ``start``, and if a page asks with htmx, start it before."""
    scene = scene_of(reader, links, request)
    assert reader.trials is not None, "without trials, the server has no such page"
    version = scene.row.version if scene.at is None else scene.at
    if not 0 < version <= scene.row.version:
        raise NotShown(f"there is no version {version}")
    may_start = scene.query.get("start") and "hx-request" in request.headers
    if may_start and scene.row.messages <= MOST_MESSAGES:
        reader.trials.start(
            TrialKey(scene.row.thread_id, version), partial(_prepare, scene, version)
        )
    values = {"links": links, "id": scene.row.thread_id, **_trial_values(scene)}
    return HTMLResponse(render("policies.html", values))


def _prepare(scene: Scene, version: int) -> Callable[[Trial], Simulation]:
    trials, conversation = scene.reader.trials, scene.conversation
    assert trials is not None
    request = request_at(conversation, version)
    return trial_of(scene.reader.memory, conversation, request, version, trials.open_trial)


def _trial_values(scene: Scene) -> dict[str, Any]:
    trials = scene.reader.trials
    if trials is None:
        return {"has_trials": False}
    version = scene.row.version if scene.at is None else scene.at
    trial = trials.find(TrialKey(scene.row.thread_id, version))
    return {
        "has_trials": True,
        "trial": trial,
        "trial_version": version,
        "is_busy": trials.is_busy,
        "is_too_long": scene.row.messages > MOST_MESSAGES,
        "MOST_MESSAGES": MOST_MESSAGES,
    }
