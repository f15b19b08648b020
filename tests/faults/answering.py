"""All answers that a store gives, and the same answers from a log that has nothing but the events."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import refold

from .looking_raw import rows_of
from .sample_store import LOG, Said, open_store

QUESTIONS = (
    "faults of file_20.py",
    "build of the harbour",
    "which line of file_8.py has 32 faults?",
    "never push to main",
)
EVENT_TABLES = ("stored_events", "message_keys", "dictionaries", "encryption_keys", "plain_heads")
"""Tables of a log that nothing is derived in; a version of refold may lack some."""

Answers = dict[str, Any]
"""By question what was answered, as JSON; ``{"refused": …}`` where refold refused."""


def answers_of(folder: Path, marks: Sequence[str], every: int = 1) -> Answers:
    """Ask a store everything. To be run in a process of its own.

    ``every``: contexts of the past at every so many versions.
    """
    found: Answers = {}
    with open_store(folder) as memory:
        rows: list[Answers] = _told(found, "list", memory.conversations) or []
        memory.embed()
        for thread_id in sorted(str(row["thread_id"]) for row in rows):
            for name, ask in _asked(memory, memory.conversation(thread_id), every):
                _told(found, f"{thread_id}: {name}", ask)
        for question in (*QUESTIONS, *marks):
            asked = partial(memory.search, question, limit=20)
            _told(found, f"search: {question}", partial(_complete, memory, asked))
        _told(found, "notes", memory.notes)
    return found


def _asked(
    memory: refold.Memory, conversation: refold.ConversationMemory, every: int
) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "messages", conversation.messages
    yield "context", partial(_shown_at, conversation, None)
    for name in ("summaries", "compactions", "pins", "topics", "notes", "explain"):
        yield name, getattr(conversation, name)
    for question in QUESTIONS:
        yield (
            f"recall: {question}",
            partial(_complete, memory, partial(conversation.recall, question)),
        )
    yield "query", lambda: conversation.query(text="harbour", limit=200)
    for version in range(1, conversation.version + 1, every):
        yield f"context at {version}", partial(_shown_at, conversation, version)
    for summary in conversation.summaries():
        yield f"expand {summary.summary_id}", partial(memory.expand, summary.summary_id)


def _complete(memory: refold.Memory, ask: Callable[[], refold.Recalled]) -> refold.Recalled:
    """The answer; where it says itself that vectors are missing, the one when they are there."""
    found = ask()
    if found.notice is not None:
        memory.embed()
        found = ask()
    return found


def _shown_at(conversation: refold.ConversationMemory, version: int | None) -> list[Any]:
    context = conversation.context(at=version)
    return [context.messages, context.tokens, context.summary]


def _told(found: Answers, name: str, ask: Callable[[], Any]) -> Any:
    try:
        found[name] = _plain(ask())
    except refold.RefoldError as error:
        found[name] = {"refused": type(error).__name__, "text": str(error)[:200]}
        return None
    return found[name]


def _plain(value: Any) -> Any:
    """The value as JSON has it, with the names of its fields."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in cast(Mapping[object, object], value).items()}
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Iterable):
        return [_plain(each) for each in cast(Iterable[object], value)]
    return str(value)


def rebuild(source: Path, to: Path) -> None:
    """Make a log of the events of another, row by row: no snapshot, no anchor, nothing that was folded.

    To be run in a process of its own.
    """
    to.mkdir()
    if (source / "encrypted").exists():
        (to / "encrypted").touch()
    with open_store(to):
        pass
    with closing(sqlite3.connect(to / LOG)) as connection, connection:
        for table in EVENT_TABLES:
            _copy_rows(connection, table, source)
    for path in to.iterdir():
        if path.name not in (LOG, "encrypted"):
            path.unlink()


def _copy_rows(connection: sqlite3.Connection, table: str, source: Path) -> None:
    try:
        rows = rows_of(source, table)
    except sqlite3.OperationalError:
        return
    if rows:
        names = ", ".join(rows[0])
        values = ", ".join("?" * len(rows[0]))
        insert = f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({values})"
        connection.executemany(insert, [tuple(row.values()) for row in rows])


def differences(found: Answers, expected: Answers, *, may_refuse: bool) -> Iterator[str]:
    """Where the answers of a store are not those of its events."""
    for name, answer in expected.items():
        got = found.get(name)
        if got == answer or (may_refuse and isinstance(got, dict) and "refused" in got):
            continue
        if got is None and may_refuse and "refused" in str(found.get("list")):
            continue
        yield f"WRONG ANSWER: {name}: {_difference(got, answer)}"
    yield from (
        f"WRONG ANSWER: {name} is not to be asked" for name in found.keys() - expected.keys()
    )


def _difference(got: Any, expected: Any) -> str:
    a, b = json.dumps(got, sort_keys=True), json.dumps(expected, sort_keys=True)
    at = next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    start = max(0, at - 40)
    return f"…{a[start : at + 80]}… instead of …{b[start : at + 80]}…"


def unlike_what_was_said(found: Answers, said: Iterable[Said]) -> Iterator[str]:
    """What is not as it was acknowledged, found without refold: each message at its place, each word a hit."""
    by_thread: dict[str, list[Said]] = {}
    for one in said:
        by_thread.setdefault(one.thread_id, []).append(one)
    for thread_id, own in by_thread.items():
        messages: list[Answers] | Answers = found.get(f"{thread_id}: messages", {})
        if not isinstance(messages, dict):
            there = {m["position"]: json.dumps(m["message"]) for m in messages}
            yield from (
                f"WRONG MESSAGE: {thread_id} {one.position} does not say {one.mark}"
                for one in own
                if one.mark not in there.get(one.position, "")
            )
    for name, answer in found.items():
        mark = name.removeprefix("search: ")
        if mark != name and mark.startswith("mk") and "refused" not in answer:
            wanted = {(s.thread_id, s.position) for s in said if s.mark == mark}
            hits = {
                (h["thread_id"], h["position"]) for h in answer["hits"] if mark in json.dumps(h)
            }
            if not wanted <= hits:
                yield f"MISSED: searching {mark} finds {sorted(hits)}, and it stands in {sorted(wanted)}"
