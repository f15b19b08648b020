"""Conversations of which every message has a word of its own, so that a test finds what was erased."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import refold
from refold.application.ports.summariser import SummaryDraft, SummaryRequest
from refold.domain.errors import ConversationGone
from refold.testing.request_judge import violations
from refold.testing.request_parts import blocks_of

from .fake_summarisers import source_text
from .surroundings import Numbers, Tick

WINDOW = 2_000
POLICY = refold.CompactionPolicy(keep_last=1, offload_tokens=60, condensed_characters=40)
MODEL = "claude-opus-5-5"
LOOKED_AT = 6
"""Versions of a conversation that are rendered again, to look for what was erased."""


class QuotingSummariser:
    """Takes every word of its source into the summary, and some from what was before."""

    name = "quoting"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        found = words_in(f"{request.previous or ''}\n{source_text(request)}")
        text = f"They spoke of {' '.join(sorted(found)[-12:])}."
        return SummaryDraft(text=text, complete=True, model=self.name, prompt_fingerprint="quoting")


def words_in(text: str) -> set[str]:
    """The words of messages that occur in a text."""
    return {part for part in text.replace("/", " ").split() if is_word(part)}


def is_word(text: str) -> bool:
    """Whether this is the word of a message."""
    return text.startswith("zq") and text.endswith("xj")


class Said(NamedTuple):
    """A message, its word, and the key it was delivered under."""

    message: Mapping[str, Any]
    word: str
    key: str


@dataclass(frozen=True)
class Talk:
    """What is known of a conversation."""

    said: tuple[Said, ...] = ()
    erased: frozenset[str] = frozenset()
    """The words of its messages that were erased."""
    source: str = ""
    """What it was forked from."""
    is_gone: bool = False

    @property
    def words(self) -> frozenset[str]:
        """Of all its messages, erased or not."""
        return frozenset(said.word for said in self.said)

    @property
    def living(self) -> frozenset[str]:
        """The words that can still be read."""
        return frozenset() if self.is_gone else self.words - self.erased


Talks = Mapping[str, Talk]


@dataclass
class World:
    """A memory in a folder, and what its conversations must hold."""

    folder: Path
    talks: dict[str, Talk] = field(default_factory=dict[str, Talk])
    clock: Tick = field(default_factory=Tick)
    new_id: Numbers = field(default_factory=Numbers)
    spoken: Numbers = field(default_factory=Numbers)

    def __post_init__(self) -> None:
        self.memory = self.open()

    @property
    def path(self) -> Path:
        return self.folder / "talk.db"

    def open(self) -> refold.Memory:
        """The memory of the folder, as a user opens it."""
        return refold.open(
            self.path,
            window=WINDOW,
            policy=POLICY,
            model=MODEL,
            summariser=QuotingSummariser(),
            clock=self.clock,
            new_id=self.new_id,
            background=False,
            scrub_megabytes=0,  # Files are compared while it is open.
        )

    def exchange(self) -> list[Said]:
        """A question, a call, its result and an answer, with a word each."""
        words = [f"zq{self.spoken()[3:]}xj" for _ in range(4)]
        call = f"call_{words[1]}"[:-2]
        texts = [f"{word} was said here. " + "Look at it once more. " * 6 for word in words]
        used = {"type": "tool_use", "id": call, "name": "bash", "input": {"command": texts[1]}}
        result = {"type": "tool_result", "tool_use_id": call, "content": texts[2] * 3}
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": texts[0]},
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": texts[3]},
        ]
        # What a caller writes himself is not erased: no word is in a key.
        return [Said(m, w, f"key-{w[2:-2]}") for m, w in zip(messages, words, strict=True)]

    def after_death(self, folder: Path) -> "World":
        """The same in another folder, after the lease of whoever died."""
        self.clock.now += timedelta(seconds=POLICY.lease_seconds + 1)
        return replace(self, folder=folder, talks=dict(self.talks))


def lost_words(talks: Talks) -> set[str]:
    """The words that nobody may find any more."""
    living = {word for talk in talks.values() for word in talk.living}
    return {word for talk in talks.values() for word in talk.words} - living


def related(talks: Talks, thread: str) -> Iterator[str]:
    """The conversations that were forked from this one, and from those."""
    for other, talk in talks.items():
        if talk.source == thread:
            yield other
            yield from related(talks, other)


def check(world: World, talks: Talks) -> None:
    """All that must be true of these conversations, and of the files that they are in (15)."""
    lost = lost_words(talks)
    # Before anything is read: read models that are left would follow the log only then.
    _holds_nothing_in_files(world, lost)
    found = world.memory.verify()
    assert found.ok, found.damage
    listed = {row.thread_id for row in world.memory.conversations()}
    assert listed == {thread for thread, talk in talks.items() if not talk.is_gone and talk.said}
    for thread, talk in talks.items():
        if talk.is_gone:
            _is_gone(world, thread)
        else:
            _is_whole(world, thread, talk)
    _holds_nothing_in_files(world, lost)


def _holds_nothing_in_files(world: World, lost: set[str]) -> None:
    for name, content in every_file(world.folder):
        held = {word for word in lost if word.encode() in content}
        assert not held, f"{name} still holds {sorted(held)}"


def every_file(folder: Path) -> Iterator[tuple[str, bytes]]:
    """All that is in a folder, the memory of a WAL included."""
    for path in sorted(folder.iterdir()):
        yield path.name, path.read_bytes()


def _is_gone(world: World, thread: str) -> None:
    conversation = world.memory.conversation(thread)
    with pytest.raises(ConversationGone):
        conversation.context()
    # A message would begin another conversation with this id.
    with pytest.raises(ConversationGone):
        conversation.fork()


def _is_whole(world: World, thread: str, talk: Talk) -> None:
    conversation = world.memory.conversation(thread)
    stored = conversation.messages()
    assert len(stored) == len(talk.said), (
        f"{thread} has {len(stored)} messages, not {len(talk.said)}"
    )
    for found, said in zip(stored, talk.said, strict=True):
        message = found.message
        assert found.erased == (said.word in talk.erased), f"{said.word} in {thread}: erased?"
        assert message.role == said.message["role"]
        assert _paired(message.blocks()) == _paired(said.message["content"]), "its pair is lost"
        if not found.erased:
            given = message.model_dump(mode="json", include={"role", "content"})
            assert given == said.message, f"message {found.position} of {thread} was changed"
    summaries = conversation.summaries()
    assert sum(row.is_active for row in summaries) <= 1, "two summaries are active"
    _holds_none_of(f"{thread}: read models", [*summaries, *conversation.compactions()], talk)
    _holds_none_of(f"{thread}: stored", stored, talk)
    _holds_none_of(
        f"{thread}: pins and fates", [*conversation.pins(), *conversation.explain()], talk
    )
    newest = conversation.version
    for version in range(newest, 0, -max(1, newest // LOOKED_AT)) if talk.erased else ():
        context = conversation.context(at=version)
        _holds_none_of(f"{thread}: version {version}", [context.for_anthropic()], talk)
    if talk.said:
        broken = violations(conversation.context(at=newest).for_anthropic(), model=MODEL)
        assert not broken, broken


def _paired(blocks: object) -> list[tuple[str, str]]:
    """The calls and results of a content, by kind and id."""
    found = [b for b in blocks_of(blocks) if b["type"].startswith("tool_")]
    return [(b["type"], str(b.get("id") or b.get("tool_use_id"))) for b in found]


def _holds_none_of(where: str, things: Sequence[object], talk: Talk) -> None:
    text = "\n".join(map(repr, things))
    held = {word for word in talk.erased if word in text}
    assert not held, f"{where} still shows {sorted(held)}"
