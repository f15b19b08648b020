"""The composition root: puts adapters and settings together into the service that agents embed."""

import uuid
from datetime import UTC, datetime
from pathlib import Path

from refold.application.core import Core, Settings
from refold.application.memory import AsyncMemory, Memory
from refold.application.ports import Clock, NewId, Summariser, TokenCounter
from refold.domain.errors import InvalidSetting
from refold.domain.policy import CompactionPolicy

SUMMARISERS = ("extractive", "anthropic")
SMALLEST_WINDOW = 1_000


def open_memory(
    path: str | Path,
    *,
    window: int | None = None,
    model: str | None = None,
    policy: CompactionPolicy | None = None,
    summariser: str | Summariser = "extractive",
    counter: TokenCounter | None = None,
    create: bool = True,
    clock: Clock | None = None,
    new_id: NewId | None = None,
) -> Memory:
    """Open the memory in the file at ``path``; see ``refold.open``."""
    return Memory(_core(path, window, model, policy, summariser, counter, create, clock, new_id))


def open_async_memory(
    path: str | Path,
    *,
    window: int | None = None,
    model: str | None = None,
    policy: CompactionPolicy | None = None,
    summariser: str | Summariser = "extractive",
    counter: TokenCounter | None = None,
    create: bool = True,
    clock: Clock | None = None,
    new_id: NewId | None = None,
) -> AsyncMemory:
    """Open the memory in the file at ``path`` for asyncio; see ``refold.aopen``."""
    return AsyncMemory(
        _core(path, window, model, policy, summariser, counter, create, clock, new_id)
    )


def _core(
    path: str | Path,
    window: int | None,
    model: str | None,
    policy: CompactionPolicy | None,
    summariser: str | Summariser,
    counter: TokenCounter | None,
    create: bool,
    clock: Clock | None,
    new_id: NewId | None,
) -> Core:
    from .log.store import SQLiteLog
    from .summarisers.extractive import ExtractiveSummariser
    from .tokens.estimator import EstimatingTokenCounter
    from .views.views import SQLiteViews

    if window is not None and window < SMALLEST_WINDOW:
        raise InvalidSetting(f"window={window}: must be at least {SMALLEST_WINDOW} tokens")
    counter = counter or EstimatingTokenCounter()
    embedded = ExtractiveSummariser(counter=counter)
    chosen = embedded if summariser == "extractive" else _summariser(summariser)
    log = SQLiteLog(path, create=create)
    return Core(
        log=log,
        views=SQLiteViews(views_path(path), log),
        counter=counter,
        summariser=chosen,
        fallback=embedded,
        clock=clock or _now,
        new_id=new_id or _new_id,
        settings=Settings(window=window, model=model, policy=policy or CompactionPolicy()),
    )


def views_path(path: str | Path) -> str | Path:
    """Where the read models of a log lie: ``agent.views.db`` beside ``agent.db``."""
    if str(path) == ":memory:":
        return ":memory:"
    log = Path(path)
    return log.with_name(f"{log.stem}.views{log.suffix or '.db'}")


def _summariser(chosen: str | Summariser) -> Summariser:
    if not isinstance(chosen, str):
        return chosen
    if chosen == "anthropic":
        from .summarisers.anthropic import AnthropicSummariser

        return AnthropicSummariser()
    raise InvalidSetting(
        f"summariser={chosen!r}: must be one of {', '.join(SUMMARISERS)}, or an object with "
        "name and summarise()"
    )


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return uuid.uuid4().hex
