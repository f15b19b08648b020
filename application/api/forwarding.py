"""Forwarding from asyncio to a blocking object, method by method, with the same parameters and results."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from refold.application.agent_tools.toolbox import Toolbox
from refold.application.ports.conversation_log import PAGE
from refold.application.runtime.core import Core
from refold.application.runtime.foreign_code import CURRENT

from .argument_checks import checked
from .blocking import Runner, in_thread, run_to_end

if TYPE_CHECKING:
    import asyncio

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
Blocking_co = TypeVar("Blocking_co", covariant=True)
_Class = TypeVar("_Class", bound=type)


class Forwarding(Generic[Blocking_co]):
    """An asyncio wrapper that calls a blocking object in a thread."""

    def __init__(self, core: Core, blocking: Blocking_co) -> None:
        self._opened = core
        self._opened_blocking = blocking

    @property
    def _core(self) -> Core:
        self._opened.process.check()
        return self._opened

    @property
    def _blocking(self) -> Blocking_co:
        # Check before using a thread: the loop of the parent does not run in a forked process.
        self._opened.process.check()
        return self._opened_blocking


def reads(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[Forwarding[S], P], Coroutine[Any, Any, R]]:
    """Forward to a method that reads; a cancellation does not wait for it."""
    return _forward(method, in_thread)


def writes(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[Forwarding[S], P], Coroutine[Any, Any, R]]:
    """Forward to a method that writes; a cancellation takes effect after its outcome is known."""
    return _forward(method, run_to_end)


def calls(
    method: Callable[Concatenate[Toolbox, P], R],
) -> Callable[Concatenate[Forwarding[Toolbox], P], Coroutine[Any, Any, R]]:
    """Forward to a method that calls tools: it writes if the tools may edit."""
    reading, writing = reads(method), writes(method)

    @functools.wraps(method)
    async def forward(self: Forwarding[Toolbox], /, *args: P.args, **kwargs: P.kwargs) -> R:
        edits = self._blocking.reach.edits  # pyright: ignore[reportPrivateUsage]
        return await (reading if edits is None else writing)(self, *args, **kwargs)

    return forward


def _forward(
    method: Callable[Concatenate[S, P], R],
    run: Callable[[Callable[[], R]], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Forwarding[S], P], Coroutine[Any, Any, R]]:
    @functools.wraps(method)
    async def forward(self: Forwarding[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        blocking = self._blocking  # pyright: ignore[reportPrivateUsage]
        return await run(functools.partial(method, blocking, *args, **kwargs))

    return forward


async def in_pages(items: Iterator[R]) -> AsyncIterator[R]:
    """Iterate in a thread, a page at a time."""
    while page := await in_thread(lambda: list(islice(items, PAGE))):
        for item in page:
            yield item


def forwarding(kind: _Class) -> _Class:
    """Set the qualified names of the forwarding methods of a class, and check their arguments."""
    for name, method in vars(kind).items():
        if inspect.isfunction(method) and hasattr(method, "__wrapped__"):
            method.__module__ = kind.__module__
            method.__qualname__ = f"{kind.__qualname__}.{name}"
    return checked(kind)


class CallersLoop(Runner):
    """A runner for asyncio: uses the loop of the coroutine that waits for this thread. Starts no thread."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the caller."""
        work = CURRENT.get()
        assert work is not None, "only work for a coroutine has a caller's loop"
        assert work.loop is not None
        return work.loop

    def finish(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that writes in this thread; the caller's coroutine already waits for its end."""
        return function(*args, **kwargs)
