"""Invariant 20: derived text speaks as nobody, and nothing else is in a request than what was said."""

import re
from collections.abc import Iterator

from refold.application.api.results import Context
from refold.application.rendering import request_blocks as texts
from refold.testing.request_parts import message_blocks
from tests.support.talk import preamble, strings
from tests.support.witness import Witness

from .opened import opened, summary_block, topics_block, without_surrogates
from .rendered import FRAMES

OURS = frozenset(
    {
        texts.NO_RESULT,
        texts.EMPTY_RESULT,
        texts.EMPTY_ERROR,
        texts.BEGINS_WITH_ASSISTANT,
        texts.CONTINUE,
        texts.SILENCE,
        texts.NO_CONTENT,
    }
)
"""Texts that rendering says by itself."""
_MISPLACED = re.compile(r"\[\w+ block that cannot be shown here\]")
_LEFT_OUT = re.compile(
    r"\n\n\[… [\d,]+ of [\d,]+ characters of this text are left out here; "
    r"the whole message is kept at refold://\w+/\d+ …\]\n\n"
)
_UNKNOWN = re.compile(r"\[\w+ block, which cannot be shown as it is; kept at refold://\w+/\d+\]")

_NOT_SHOWN = re.compile(
    r"\[\w+ not shown here; the message with it is kept at refold://\w+/\d+\]"
    r"|\[[\w, ]+ left out here; kept at refold://\w+/\d+( to refold://\w+/\d+)?\]"
)


def the_summary_speaks_as_nobody(witness: Witness, shown: Context) -> None:
    """Invariants 17 and 20: the summary is one block of the user's first turn, all of it and alone."""
    active = witness.story.active
    assert (shown.summary is None) == (active is None)
    if active is None:
        return
    summary = opened(witness, shown).summary
    topics = opened(witness, shown).topics
    if summary != active.block:
        assert summary == {"type": "text", "text": summary_block(active)}
    elif active.topics_shown:
        assert topics == {"type": "text", "text": topics_block(active)}


def nothing_speaks_but_those_who_spoke(witness: Witness, shown: Context) -> None:
    """Invariant 20: besides summary and ledger every text was said in that role, or is a fixed one."""
    said = {role: set(_said(witness, role)) for role in ("user", "assistant")}
    framed = set(_said(witness, "user")) | set(_said(witness, "assistant"))
    framed |= set(_said(witness, "system"))
    for placed in message_blocks({"messages": opened(witness, shown).rest}):
        if placed.block.get("type") != "text":
            continue
        text = str(placed.block.get("text"))
        if text in said[placed.role] or text in OURS or _MISPLACED.fullmatch(text):
            continue
        if _is_shortened(text, said[placed.role]):
            continue
        if _NOT_SHOWN.fullmatch(text) and witness.story.shortened:
            continue
        if _UNKNOWN.fullmatch(text):  # Each one is where the block was: see ``rendered``.
            continue
        own = placed.role == "assistant" and any(text == f for f in framed)
        inner = next((text[len(f) :] for f in FRAMES if text.startswith(f)), None)
        assert own or (inner is not None and placed.role == "user"), f"who said {text!r}?"


def _is_shortened(text: str, said: set[str]) -> bool:
    """Whether it is the beginning and the end of something that was said, with a marker between them."""
    head, marker, tail = (found := _LEFT_OUT.split(text, maxsplit=1))[0], len(found) > 1, found[-1]
    return marker and any(one.startswith(head) and one.endswith(tail) for one in said)


def _said(witness: Witness, role: str) -> Iterator[str]:
    for spoken in witness.spoken:
        if spoken.role == role:
            yield from map(without_surrogates, strings(spoken.message["content"]))


def the_system_text_is_the_callers_and_ours(witness: Witness, shown: Context) -> None:
    """Invariants 17 and 20: nothing derived is in the system text, unless that is its place, and then
    only as a summary and a ledger under their headings.
    """
    given = [witness.setting.system] if witness.setting.system else []
    first = witness.spoken[: preamble(witness.spoken)]
    own = ["\n".join(s.words) for s in first]
    parts = [*given, *map(without_surrogates, own)]
    if witness.story.active is not None:
        signed = opened(witness, shown).summary == witness.story.active.block
        said = texts.SIGNED_GUIDANCE if signed else texts.SUMMARY_GUIDANCE
        shown_topics = witness.story.active.topics_shown
        parts.append(f"{said} {texts.TOPICS_GUIDANCE}" if shown_topics else said)
    if opened(witness, shown).ledger is not None:
        parts.append(texts.LEDGER_GUIDANCE)
    assert opened(witness, shown).system == "\n\n".join(part for part in parts if part.strip())
