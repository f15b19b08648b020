"""A rendered context taken apart: the summary, the ledger, and all that people, models and tools said."""

from typing import Any, NamedTuple

from refold.application.api.results import Context
from refold.application.rendering.request_blocks import (
    LEDGER_HEADING,
    MEMORIES_GUIDANCE,
    MEMORIES_HEADING,
    SUMMARY_HEADING,
)
from refold.domain.events import CompactionPerformed
from refold.testing.request_parts import blocks_of
from tests.support.witness import THREAD, Witness


class Opened(NamedTuple):
    """A request, parted."""

    summary: dict[str, Any] | None
    """The block that stands for what is covered."""
    topics: dict[str, Any] | None
    """The block that names them, where the provider's own block is the summary."""
    ledger: str | None
    rest: list[dict[str, Any]]
    """The messages without these."""
    system: str
    """The system text without these, and without what is quoted in it."""
    memories: str = ""
    """What the system text ends with: earlier messages that are quoted."""


def opened(witness: Witness, shown: Context) -> Opened:
    """Part a request that shows the newest version."""
    system, memories = str(shown.system), quotations(witness)
    if memories:
        assert system.endswith(memories), f"{system[-len(memories) :]!r} is not {memories!r}"
        system = system.removesuffix(memories).removesuffix("\n\n")
    return _opened(witness, shown, system)._replace(memories=memories)


def _opened(witness: Witness, shown: Context, system: str) -> Opened:
    active = witness.story.active
    has_ledger = bool(witness.story.texts_in_the_ledger())
    has_ledger = has_ledger or (active is not None and active.ledger_shown + active.index_shown > 0)
    if active is None and not has_ledger:
        return Opened(None, None, None, shown.messages, system)
    if witness.setting.place == "system" and not _leads_with_a_block(shown, active):
        return _from_system(system, active, has_ledger, shown.messages)
    return _from_first_turn(shown, active, has_ledger)._replace(system=system)


def _leads_with_a_block(shown: Context, active: CompactionPerformed | None) -> bool:
    first = blocks_of(shown.messages[0]["content"])
    return active is not None and active.block is not None and first[0] == active.block


def _from_first_turn(
    shown: Context, active: CompactionPerformed | None, has_ledger: bool
) -> Opened:
    first, *rest = shown.messages
    assert first["role"] == "user", "invariant 17: summary and ledger stand in the user's turn"
    said = list(blocks_of(first["content"]))
    summary: dict[str, Any] | None = None
    topics: dict[str, Any] | None = None
    if active is not None:
        summary = dict(said.pop(0))
        is_signed = summary == active.block
        assert is_signed or str(summary.get("text")).startswith(SUMMARY_HEADING + "\n")
        if is_signed and active.topics_shown:
            topics = dict(said.pop(0))
    ledger: str | None = None
    if has_ledger:
        ledger = str(said.pop(0).get("text"))
        assert ledger.startswith(LEDGER_HEADING + "\n")
    content = [{**first, "content": said}, *rest]
    return Opened(summary, topics, ledger, content, str(shown.system))


def _from_system(
    system: str,
    active: CompactionPerformed | None,
    has_ledger: bool,
    messages: list[dict[str, Any]],
) -> Opened:
    summary, ledger, after = None, None, ""
    if active is not None:
        text = summary_block(active)
        system, found, after = system.partition(f"\n\n{text}")
        assert found, "the summary is not in the system text"
        summary = {"type": "text", "text": text}
    elif has_ledger:
        system, _, after = system.partition(f"\n\n{LEDGER_HEADING}\n")
        after = f"\n\n{LEDGER_HEADING}\n{after}"
    if has_ledger:
        ledger = after.removeprefix("\n\n")
        assert ledger.startswith(LEDGER_HEADING + "\n")
    else:
        assert not after
    return Opened(summary, None, ledger, messages, system)


def quotations(witness: Witness) -> str:
    """What must be rendered of the memories that were chosen last: guidance, heading, and each text
    below its address, between fences that are longer than any in it.
    """
    if witness.story.quoted is None:
        return ""
    parts = [f"{MEMORIES_GUIDANCE}\n\n{MEMORIES_HEADING}"]
    for memory in witness.story.quoted.memories:
        text, fence = without_surrogates(memory.text), "```"
        while fence in text:
            fence += "`"
        source = f"[refold://{THREAD}/{memory.position}] {memory.role}, {memory.at[:16]}Z"
        parts.append(f"{source}\n{fence}\n{text}\n{fence}")
    return "\n".join(parts)


def summary_block(active: CompactionPerformed) -> str:
    """What must be rendered of a summary: its text, and the topics that are named."""
    text = f"{SUMMARY_HEADING}\n{without_surrogates(active.text)}"
    line = topics_block(active)
    return f"{text}\n\n{line}" if line else text


def topics_block(active: CompactionPerformed) -> str:
    """The line that must name its topics; empty where none are named."""
    names = [topic.name for topic in active.topics[: active.topics_shown]]
    ask = " (ask recall_memory)" if active.topics_ask else ""
    return f"[Recallable Topics]: {', '.join(names)}{ask}" if names else ""


def without_surrogates(text: str) -> str:
    """The text as a request can carry it."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
