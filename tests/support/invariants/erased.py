"""Invariants of erasure: what is erased is nowhere, a stub stands for it, and the rest stays as it was."""

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

from refold.application.api.results import Context
from refold.application.conversation.addresses import address_of
from refold.application.rendering import request_blocks as texts
from refold.application.rendering.request_blocks import (
    LEDGER_HEADING,
    MEMORIES_GUIDANCE,
    SUMMARY_HEADING,
    TOPICS_HEADING,
)
from refold.domain.events import MessagePinned
from refold.domain.messages import LONGEST, legal_name
from refold.testing.history_layout import marked
from refold.testing.request_judge import violations
from refold.testing.request_parts import THINKING, message_blocks
from tests.support.talk import Json, Spoken, strings
from tests.support.witness import THREAD, Asked, Witness

from .opened import opened
from .trusted import OURS

MODEL = "claude-opus-5-5"
LOOKED_AT = 4
"""Versions from before an erasure that are rendered again right after it; at the end all are."""
_IN_FILES = re.compile(rb"(?:\xe2\x9f\xa6|\\u27e6)m(\d+)(?:\xe2\x9f\xa7|\\u27e7)")
_RUN = re.compile(
    rf" left out here; kept at refold://{THREAD}/(\d+)(?: to refold://{THREAD}/(\d+))?\]$"
)
_ORPHAN = re.compile(r"\[Result of tool call (\S*), which is not shown here\]")


def stub_text(position: int) -> str:
    """What stands for the words of an erased message."""
    return f"[Content unavailable: {address_of(THREAD, position)}]"


def assert_it_is_a_stub(stub: Spoken, said: Spoken) -> None:
    """Invariant 2: an erased message keeps its role, its calls and its results, and has one text more."""
    marker = stub_text(said.position)
    assert stub.role == said.role
    assert _calls(stub) == [(i, name, {}) for i, name, _ in _calls(said)]
    assert stub.results == said.results
    words = 0
    for block in stub.blocks:
        match block["type"]:
            case "tool_use":
                assert set(block) == {"type", "id", "name", "input"}
            case "tool_result":
                assert block["content"] == marker
                assert set(block) <= {"type", "tool_use_id", "content", "is_error"}
            case _:
                assert block == {"type": "text", "text": marker}
                words += 1
    assert words <= 1
    assert stub.blocks, "nothing stands for it"


def _is_named(block: Json, name: str) -> bool:
    """Whether a call is shown with this name, or what stands for one that no provider takes."""
    return str(block.get("name")).startswith(legal_name(name)[: LONGEST - 9])


def _calls(spoken: Spoken) -> list[tuple[str, str, object]]:
    found = (b for b in spoken.blocks if b["type"] == "tool_use" and spoken.role == "assistant")
    return [(str(b["id"]), str(b["name"]), b["input"]) for b in found]


def stubs_are_shown_once(witness: Witness, shown: Context) -> None:
    """Invariant 2: what is erased is rendered as its stub where it is live, and else not at all."""
    parted, active = opened(witness, shown), witness.story.active
    said = list(strings([parted.system, [m["content"] for m in parted.rest]]))
    used = [p.block for p in message_blocks({"messages": parted.rest})]
    for position in witness.erased:
        stub, covered = witness.spoken[position], active and active.coverage.covers(position)
        left_out = {int(block) for at, block, _ in witness.story.left_out if at == position}
        wanted = sum(
            block["type"] != "tool_use" and index not in left_out
            for index, block in enumerate(stub.blocks)
        )
        found = sum(text.count(stub_text(position)) for text in said)
        assert found == (0 if covered else wanted), f"the stub of {position} is shown {found} times"
        for call_id, name, given in () if covered else _calls(stub):
            same = (b for b in used if _is_named(b, name) and b.get("input") == given)
            assert any(True for _ in same), f"the call {call_id} of message {position} is gone"


def what_is_erased_is_in_no_file(witness: Witness, shown: Context) -> None:
    """Invariant 15: neither in what is shown, nor in any file of the log."""
    _shows_nothing(witness, f"version {shown.version}", shown.for_anthropic())
    no_file_holds(witness, witness.erased)


def no_file_holds(witness: Witness, positions: Collection[int]) -> None:
    """Whether there is anything left of messages in the folder."""
    for path in witness.folder.iterdir() if positions else ():
        found = {int(number) for number in _IN_FILES.findall(path.read_bytes())}
        held = found.intersection(positions)
        assert not held, f"{path.name} still holds messages {sorted(held)}"


def nothing_shows_what_is_erased(witness: Witness) -> None:
    """Invariant 15: no message, fate, pin, summary or attempt, no context of any version, no copy."""
    for thread in (THREAD, *witness.forks):
        conversation = witness.memory.conversation(thread)
        stored = conversation.messages()
        lists = (
            *(
                stored,
                conversation.explain(),
                conversation.pins(),
                conversation.summaries(),
                conversation.compactions(),
            ),
            *(conversation.topics(), conversation.notes()),
        )
        for part in lists:
            _shows_nothing(witness, f"{thread}: {part[:1]}", [one.model_dump() for one in part])
        newest = conversation.context(at=conversation.version, **witness.extras).for_anthropic()
        _shows_nothing(witness, f"{thread}, newest", newest)
        if newest["messages"]:
            found = violations(newest, model=MODEL, allow_pending_at_end=True)
            assert not found, found
    contexts_before_lost_only_what_was_erased(witness, LOOKED_AT)


def _shows_nothing(witness: Witness, where: str, value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    held = witness.erased.keys() & marked(text)
    assert not held, f"{where} still shows messages {sorted(held)}"


def contexts_before_lost_only_what_was_erased(witness: Witness, newest: int | None = None) -> None:
    """Invariants 11 and 15: a context of a version before an erasure is shown again as it was, but for
    what was erased and what was made from it.
    """
    since = max(witness.story.erased.values(), default=0)
    before = [
        a
        for a in (*witness.asked, *witness.looked)
        if a.version < since and witness.is_clear(a.version)
    ]
    for asked in sorted(before, key=lambda one: one.version)[-newest if newest else 0 :]:
        again = witness.shown(asked.version).for_anthropic()
        _shows_nothing(witness, f"version {asked.version}", again)
        old, new = (_kept(witness, asked, request) for request in (asked.request, again))
        assert old == new, f"version {asked.version} is rendered otherwise: {_first(old, new)}"


def _kept(witness: Witness, asked: Asked, request: dict[str, Any]) -> list[tuple[str, str]]:
    """The parts of a request that have nothing to do with what was erased, each with who says it."""
    is_derived = _is_withdrawn(witness, asked.version)
    gone = _Gone(witness)
    kept = [
        (placed.role, json.dumps(placed.block))
        for placed in message_blocks(request)
        if not gone.has(placed.block) and not (is_derived and _stands_for_others(placed.block))
    ]
    erased_first = any(witness.spoken[p].role == "system" for p in witness.erased)
    if not erased_first and not (is_derived and witness.setting.place == "system"):
        system = str(request.get("system"))
        if _quotes_what_is_erased(witness, asked):
            system = system.partition(MEMORIES_GUIDANCE)[0]
        kept.append(("system", _without_guidance(system).rstrip()))
    return kept


def _quotes_what_is_erased(witness: Witness, asked: Asked) -> bool:
    """Whether the memories in a request quote something that was erased: then none of them is left."""
    quoted = str(asked.request.get("system")).partition(MEMORIES_GUIDANCE)[2]
    return any(f"[{address_of(THREAD, position)}] " in quoted for position in witness.erased)


def _without_guidance(system: str) -> str:
    # Says what a summary and a ledger are, where there are some.
    for text in (
        texts.TOPICS_GUIDANCE,
        texts.SUMMARY_GUIDANCE,
        texts.SIGNED_GUIDANCE,
        texts.LEDGER_GUIDANCE,
    ):
        system = system.replace(text, "").strip()
    return re.sub(r"\s*\n\s*\n\s*", "\n\n", system)


def _first(old: Sequence[object], new: Sequence[object]) -> object:
    pairs = zip([*old, None], [*new, None], strict=False)
    return next(((a, b) for a, b in pairs if a != b), None)


def _is_withdrawn(witness: Witness, version: int) -> bool:
    """Whether the summary of a version, or a pin, was made from something that is erased now."""
    state = witness.story.states[version]
    covers = state.summary.coverage.covers if state.summary else None
    pinned = {pin.position for pin in state.pins}
    # A pin of one's own text goes with the message that says the same.
    own = [e.event.text for e in witness.events()[:version] if isinstance(e.event, MessagePinned)]
    is_quoted = any(stub_text(position) in text for position in witness.erased for text in own)
    return (
        is_quoted
        or bool(pinned & witness.erased.keys())
        or (covers is not None and any(map(covers, witness.erased)))
    )


def _stands_for_others(block: Json) -> bool:
    text = str(block.get("text"))
    return block["type"] == "compaction" or text.startswith(
        (SUMMARY_HEADING, TOPICS_HEADING, LEDGER_HEADING)
    )


class _Gone:
    """Tells blocks of erased messages, whole or as a stub, from others; in case of doubt it is one."""

    def __init__(self, witness: Witness) -> None:
        self._erased = witness.erased
        self._stubs = tuple(map(stub_text, witness.erased))
        self._kept_at = tuple(f"kept at {address_of(THREAD, p)}]" for p in witness.erased)
        self._blocks = {json.dumps(b) for said in witness.erased.values() for b in said.blocks}
        ids = {i for s in witness.erased.values() for i in (*s.calls, *s.results)}
        self._ids = ids | {re.sub(r"[^a-zA-Z0-9_-]", "_", i) for i in ids}
        """As they were given, and as they are shown."""

    def has(self, block: Json) -> bool:
        if block["type"] in THINKING or json.dumps(block) in self._blocks:
            return True  # What was thought stands where nothing before it has changed.
        if block["type"] == "tool_use" and not block["input"]:
            return True  # Its id may be shown otherwise than it was given.
        if {str(block.get("id")), str(block.get("tool_use_id"))} & self._ids:
            return True
        return any(self._is_gone(text) for text in strings(block))

    def _is_gone(self, text: str) -> bool:
        if text in OURS or marked(text) & self._erased.keys():
            return True
        if (run := _RUN.search(text)) is not None:
            # A run that ends next to an erased message was longer before.
            first, last = int(run[1]) - 1, int(run[2] or run[1]) + 1
            return any(first <= position <= last for position in self._erased)
        if (orphan := _ORPHAN.match(text)) is not None:
            return orphan[1] in self._ids
        return text.endswith(self._kept_at) or any(stub in text for stub in self._stubs)
