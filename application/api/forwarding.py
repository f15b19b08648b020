"""Forwarding from asyncio to an object that blocks: each method has the parameters and the answer of the other."""

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from refold.application.runtime.core import Core

from .argument_checks import checked
from .blocking import to_the_end

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
Blocking_co = TypeVar("Blocking_co", covariant=True)
_Class = TypeVar("_Class", bound=type)


class Forwarding(Generic[Blocking_co]):
    """Stands in front of an object that blocks, and asks it in a thread."""

    def __init__(self, core: Core, blocking: Blocking_co) -> None:
        self._opened = core
        self._opened_blocking = blocking

    @property
    def _core(self) -> Core:
        return self._opened.here()

    @property
    def _blocking(self) -> Blocking_co:
        # Before a thread is asked for: the loop of a forked process's parent does not run there.
        self._opened.process.check()
        return self._opened_blocking


def reads(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[Forwarding[S], P], Coroutine[Any, Any, R]]:
    """Forward to a method that reads: a cancellation does not wait for it."""
    return _forwarded(method, asyncio.to_thread)


def writes(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[Forwarding[S], P], Coroutine[Any, Any, R]]:
    """Forward to a method that writes: a cancellation takes effect when it is known what became of it."""
    return _forwarded(method, to_the_end)


def _forwarded(
    method: Callable[Concatenate[S, P], R],
    run: Callable[[Callable[[], R]], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Forwarding[S], P], Coroutine[Any, Any, R]]:
    @functools.wraps(method)
    async def forward(self: Forwarding[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        blocking = self._blocking  # pyright: ignore[reportPrivateUsage]
        return await run(functools.partial(method, blocking, *args, **kwargs))

    return forward


def forwarding(kind: _Class) -> _Class:
    """Name the forwarding methods of a class after it, and check what all of them are given."""
    for name, method in vars(kind).items():
        if inspect.isfunction(method) and hasattr(method, "__wrapped__"):
            method.__module__ = kind.__module__
            method.__qualname__ = f"{kind.__qualname__}.{name}"
    return checked(kind)
