"""Whatever several people say in one log, nobody sees somebody else's words without a wider scope (invariant 24)."""

import json
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast

from hypothesis import event, example, given
from hypothesis import strategies as st

import refold
from refold.application.notes.note_files import owner_folder
from tests.support.effort import one_in
from tests.support.witness import SHM

OWNERS = ("ann", "bob", None)
THREADS = ("t0", "t1", "t2", "t3", "t4")
FILLER = "Raking leaves and painting the fence white. " * 20


class Step(NamedTuple):
    """Somebody says something in a conversation, and perhaps it is compacted."""

    thread: str
    guest: str | None
    """Whose the message is, where it is somebody else's."""
    compacts: bool
    is_asked: bool


class Said(NamedTuple):
    word: str
    thread: str
    guest: str | None


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(THREADS),
        st.sampled_from((None, None, "ann", "bob")),
        st.booleans(),
        st.booleans(),
    ),
    min_size=4,
    max_size=14,
)
WHOSE = st.fixed_dictionaries({thread: st.sampled_from(OWNERS) for thread in THREADS})


class World:
    """A memory, and what was said in it by whom."""

    def __init__(self, folder: Path, owners: dict[str, str | None]) -> None:
        self.folder = folder
        self.owners = owners
        self.said: list[Said] = []
        self.memory = refold.open(
            folder / "agent.db",
            window=4_000,
            memories=5,
            owner_memories="summaries",
            notes_folder=folder / "notes",
            scrub_megabytes=0,
            background=False,
            policy=refold.CompactionPolicy(keep_last=1),
        )

    def conversation(self, thread: str) -> refold.ConversationMemory:
        return self.memory.conversation(thread, owner=self.owners[thread])

    def take(self, step: Step) -> None:
        conversation, word = self.conversation(step.thread), f"zq{len(self.said)}xj"
        conversation.append(
            _said("user", f"Remember: I prefer {word} to tea. {FILLER}"), owner=step.guest
        )
        self.said.append(Said(word, step.thread, step.guest))
        if step.is_asked:
            self.assert_request_is_own(step.thread)
        conversation.append(_said("assistant", "Noted."))
        if step.compacts:
            conversation.append(_said("user", "Go on."))
            event(f"compaction {conversation.compact(force=True).outcome}")
            conversation.append(_said("assistant", "Fine."))

    def owner_of(self, said: Said) -> str | None:
        return said.guest or self.owners[said.thread]

    def words_of(self, owner: str | None) -> set[str]:
        return {said.word for said in self.said if self.owner_of(said) == owner}

    def words_in(self, thread: str) -> set[str]:
        return {said.word for said in self.said if said.thread == thread}

    def allowed(self, thread: str) -> set[str]:
        owner = self.owners[thread]
        return self.words_in(thread) | (self.words_of(owner) if owner else set())

    def assert_request_is_own(self, thread: str) -> None:
        context = self.conversation(thread).context(system="SYS")
        found = _words(context.for_anthropic())
        assert found <= self.allowed(thread)
        if found - self.words_in(thread):
            event("quoted of another conversation")
        again = self.memory.conversation(thread).context(at=context.version, system="SYS")
        assert again.for_anthropic() == context.for_anthropic()

    def assert_everybody_sees_their_own(self) -> None:
        question = "What do I prefer to tea?"
        wide: refold.RecallOptions = {"limit": 50, "max_tokens": 100_000}
        for row in self.memory.conversations():
            thread = row.thread_id
            conversation, own, allowed = (
                self.conversation(thread),
                self.words_in(thread),
                self.allowed(thread),
            )
            assert row.owner == self.owners[thread]
            self.assert_request_is_own(thread)
            assert (
                _words([conversation.notes(), conversation.topics(), conversation.summaries()])
                <= own
            )
            assert _words(conversation.export()) == own
            assert _words(conversation.recall(question, **wide).hits) <= own
            assert _words(self.recalled(conversation, question)) <= allowed
            assert self.reached(conversation.tools()) <= own
            assert self.reached(conversation.tools(scope="owner")) <= allowed
        for owner in OWNERS:
            mine = self.words_of(owner)
            assert _words(self.memory.search(question, owner=owner, **wide).hits) <= mine
            assert self.reached(self.memory.tools(owner=owner)) <= mine
            assert _words(self.memory.search_notes(question, owner=owner, limit=50).hits) <= mine
            assert _words(self.files_of(owner)) <= mine

    def recalled(self, conversation: refold.ConversationMemory, question: str) -> refold.Recalled:
        return conversation.recall(question, scope="owner", limit=50, max_tokens=100_000)

    def reached(self, tools: refold.Toolbox) -> set[str]:
        """The words that a model gets by asking for everything."""
        asked: list[tuple[str, dict[str, Any]]] = [
            ("recall_memory", {"query": "prefer tea", "limit": 20}),
            ("recall_memory", {"query": "prefer tea", "limit": 20, "all_conversations": True}),
            ("query_history", {}),
            ("expand_summary", {}),
        ]
        for row in self.memory.conversations():
            asked += [(name, {"thread": row.thread_id}) for name in tools.names[1:3]]
            asked += [
                ("read_offloaded", {"address": f"refold://{row.thread_id}/{position}"})
                for position in range(row.messages)
            ]
        if "list_conversations" in tools:
            asked.append(("list_conversations", {}))
        return _words(tools.call(name, given).text for name, given in asked)

    def files_of(self, owner: str | None) -> list[str]:
        place = self.folder / "notes" / (owner_folder(owner) if owner else "")
        return [path.read_text() for path in (*place.glob("*.md"), *place.glob("memory/*.md"))]


def _said(role: str, text: str) -> dict[str, object]:
    return {"role": role, "content": text}


def _words(things: object) -> set[str]:
    if isinstance(things, Iterable) and not isinstance(things, str | dict):
        return {word for thing in cast("Iterable[object]", things) for word in _words(thing)}
    text = things if isinstance(things, str) else json.dumps(things, default=repr)
    return set(re.findall(r"zq\d+xj", text))


MERGED = [
    Step(thread, None, one, two)
    for thread, one, two in (
        ("t2", False, False),
        ("t2", False, False),
        ("t0", True, False),
        ("t2", True, True),
        ("t4", True, False),
        ("t1", False, True),
        ("t1", False, False),
        ("t4", False, False),
        ("t4", True, False),
        ("t0", False, True),
        ("t2", True, False),
        ("t1", True, False),
        ("t0", True, False),
        ("t0", False, True),
    )
]
"""Rows that become shorter make SQLite merge pages, with rows in them that are to be erased as well."""


@one_in(20)
@example(MERGED, {"t0": "bob", "t2": None, "t1": "ann", "t4": "ann", "t3": "ann"}, "ann")
@given(steps=STEPS, owners=WHOSE, gone=st.sampled_from(("ann", "bob")))
def test_owners_are_apart_and_what_is_erased_is_nowhere(
    steps: list[Step], owners: dict[str, str | None], gone: str
) -> None:
    with tempfile.TemporaryDirectory(dir=SHM) as name:
        world = World(Path(name), owners)
        with world.memory as memory:
            for step in steps:
                world.take(step)
            world.assert_everybody_sees_their_own()
            lost = world.words_of(gone)
            report = memory.erase_owner(gone)
            assert report.complete
            assert report.changed == bool(lost or gone in {owners[s.thread] for s in world.said})
            left = _words(
                list(memory.conversation(row.thread_id).export("events"))
                for row in memory.conversations()
            )
            assert left == {said.word for said in world.said} - lost
            assert memory.verify().ok
        content = b"".join(p.read_bytes() for p in Path(name).rglob("*") if p.is_file())
        assert not [word for word in lost if f" {word} ".encode() in content]
