"""The session that faults are put into: everything that writes, told step by step to who asks later."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import refold
from refold.application.erasure.erasing import erase, erase_all
from refold.infrastructure.bootstrap import open_core

WINDOW = 6_000
POLICY = refold.CompactionPolicy(offload_tokens=100, preview_head=120, preview_tail=60)
SECRET = "quokka-sanctuary-4711"
"""Said once and erased again."""

Message = Mapping[str, Any]
Step = Callable[["Session"], Awaitable[None] | None]
"""Runs in an event loop if it is a coroutine, and without one if it is a plain function."""


class Told:
    """Where the session says what it begins, and what was acknowledged to it.

    With ``writev``, which no fault is put into: what was told is told, whatever happens next.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(self, **facts: object) -> None:
        os.writev(self._file, [json.dumps(facts).encode() + b"\n"])


class Here(ThreadPoolExecutor):
    """Works in the thread that asks: faults are counted for each thread apart."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


class Session:
    """A memory, the conversations in it, and the clock and ids that make every run the same."""

    def __init__(self, folder: Path, told: Told) -> None:
        self.path = folder / "agent.db"
        self.told = told
        self.secret: int | None = None
        """Where it was said."""
        self._moments, self._ids = count(), count()
        self.open()

    def open(self) -> None:
        self.core = open_core(
            self.path, window=WINDOW, policy=POLICY, clock=self._now, new_id=self._new_id
        )
        self.memory = refold.AsyncMemory(self.core)

    async def append(
        self, thread_id: str, messages: Sequence[Message], keys: Sequence[str] | None = None
    ) -> None:
        facts = {"thread": thread_id, "messages": list(messages), "keys": keys}
        self.told.tell(act="append", phase="begun", **facts)
        conversation = self.memory.conversation(thread_id)
        try:
            stored = await conversation.append(list(messages), key=keys)
        except refold.LogError as error:
            self.told.tell(
                act="append", phase="refused", error=type(error).__name__, text=str(error)
            )
            if keys is None:
                return  # Not known whether it is stored: nobody can ask twice.
            stored = await conversation.append(list(messages), key=keys)
        self.told.tell(act="append", phase="done", positions=list(stored.positions), **facts)
        if SECRET in str(messages):
            [self.secret] = stored.positions

    def _now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(self._moments))

    def _new_id(self) -> str:
        return f"id{next(self._ids):06d}"


def said(thread_id: str, number: int, role: str = "user", words: int = 30) -> Message:
    text = f"{thread_id}-{number} " + "The build of step seven failed again, so look. " * (
        words // 9
    )
    return {"role": role, "content": text.strip()}


def turn(thread_id: str, number: int) -> list[Message]:
    """A request, a call, its large result, and the answer."""
    call_id = f"call_{thread_id}_{number}"
    call = {
        "type": "tool_use",
        "id": call_id,
        "name": "read",
        "input": {"path": f"src/{number}.py"},
    }
    lines = f"{thread_id}-{number}-result " + "def visit(self, node): return node\n" * 40
    result = {"type": "tool_result", "tool_use_id": call_id, "content": lines}
    return [
        said(thread_id, number),
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        said(thread_id, number + 500, "assistant"),
    ]


def turns(thread_id: str, first: int, last: int, *, keyed: bool) -> list[Step]:
    """Turns as a live agent stores them: the request alone, the call alone, result and answer together."""

    def of(number: int) -> Step:
        async def run(session: Session) -> None:
            request, call, *rest = turn(thread_id, number)
            for name, part in (("r", [request]), ("c", [call]), ("a", rest)):
                keys = [f"{name}{number}.{i}" for i in range(len(part))] if keyed else None
                await session.append(thread_id, part, keys)

        return run

    return [of(number) for number in range(first, last)]


def batch(thread_id: str, first: int, last: int) -> Step:
    """A list of turns in one append, without keys."""

    async def run(session: Session) -> None:
        await session.append(thread_id, [m for n in range(first, last) for m in turn(thread_id, n)])

    return run


async def say_secret(session: Session) -> None:
    """What is erased later on."""
    message = {
        "role": "user",
        "content": f"The place is called {SECRET}; never say so in src/0.py.",
    }
    await session.append("a", [message], ["secret"])


def redelivered(thread_id: str, number: int) -> Step:
    """What a queue brings a second time."""

    async def run(session: Session) -> None:
        rest = turn(thread_id, number)[2:]
        await session.append(thread_id, rest, [f"a{number}.{i}" for i in range(2)])

    return run


async def reopen(session: Session) -> None:
    await session.memory.close()
    session.open()


def act(name: str, thread_id: str, *args: Any, **kwargs: Any) -> Step:
    """Call a method of a conversation; what it answers is acknowledged where it matters later."""

    async def run(session: Session) -> None:
        facts = {"act": name, "thread": thread_id, "args": [str(a) for a in args]}
        session.told.tell(phase="begun", **facts, options=kwargs)
        answer = await getattr(session.memory.conversation(thread_id), name)(*args, **kwargs)
        outcome = answer.outcome if isinstance(answer, refold.CompactionResult) else ""
        session.told.tell(phase="done", **facts, options=kwargs, outcome=outcome)

    return run


async def fork(session: Session) -> None:
    """Go on with a copy of ``a``, once with more to say."""
    facts = {"act": "fork", "thread": "a", "into": "f"}
    session.told.tell(phase="begun", **facts)
    copy = await session.memory.conversation("a").fork(thread_id="f")
    session.told.tell(phase="done", **facts, length=len(await copy.messages()))


def forget(session: Session) -> None:
    """Erase one message, wherever it came to. Runs a loop of its own."""
    if session.secret is None:
        return
    facts = {"act": "erase", "thread": "a", "position": session.secret}
    session.told.tell(phase="begun", **facts)
    report = erase(session.core, "a", session.secret, "asked for")
    session.told.tell(phase="done", **facts, complete=report.complete)


def forget_all(session: Session) -> None:
    """Erase a conversation."""
    facts = {"act": "erase_conversation", "thread": "b"}
    session.told.tell(phase="begun", **facts)
    report = erase_all(session.core, "b", "asked for")
    session.told.tell(phase="done", **facts, complete=report.complete)


async def look(session: Session) -> None:
    """Read models and the recall index are caught up when they are asked."""
    await session.memory.conversations()
    conversation = session.memory.conversation("a")
    await conversation.summaries()
    await conversation.recall("Which build failed again?")


def script() -> list[Step]:
    """The steps. New ones go before the last look."""
    return [
        *turns("a", 0, 1, keyed=True),
        say_secret,
        look,
        batch("b", 0, 2),
        *turns("a", 2, 3, keyed=True),
        redelivered("a", 2),
        act("context", "a"),
        batch("a", 10, 13),
        act("context", "a"),
        act("pin", "a", 1),
        act("pin", "a", "Deploy on Fridays never."),
        act("compact", "a"),
        look,
        *turns("a", 20, 22, keyed=True),
        act("compact", "a"),
        act("revert_compaction", "a", "try"),
        *turns("b", 2, 3, keyed=False),
        fork,
        *turns("f", 40, 41, keyed=True),
        look,
        forget,
        reopen,
        redelivered("a", 21),
        act("context", "a"),
        forget_all,
        *turns("a", 30, 31, keyed=True),
        look,
    ]


def play(folder: Path) -> None:
    """Run the session. Every step ends well, or is refused with an error of refold."""
    told = Told(folder / "told.jsonl")
    try:
        session = Session(folder, told)
    except refold.LogError as error:
        told.tell(act="open", phase="refused", error=type(error).__name__, text=str(error))
        return
    with asyncio.Runner() as loop:
        loop.get_loop().set_default_executor(Here())
        for step in [*script(), _closed]:
            try:
                waiting = step(session)
                if waiting is not None:
                    loop.run(_awaited(waiting))
            except refold.RefoldError as error:
                told.tell(act="step", phase="refused", error=type(error).__name__, text=str(error))
    told.tell(act="session", phase="ended")


async def _closed(session: Session) -> None:
    await session.memory.close()


async def _awaited(waiting: Awaitable[None]) -> None:
    await waiting


def run(folder: Path) -> int:
    """Run the session in ``folder``; 3 where an error came out that is none of refold's."""
    try:
        play(folder)
    except Exception as error:
        Told(folder / "told.jsonl").tell(act="session", phase="untyped", error=repr(error))
        return 3
    return 0
