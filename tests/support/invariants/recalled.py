"""Invariants of recalled lines: word for word, measured, and nothing of what is erased."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from refold.application.api.results import Context
from refold.application.rendering.render import LINE_BREAK
from refold.application.rendering.request_blocks import RECALLED_HEADING, copied
from refold.application.rendering.turn_builder import FRAME_TOKENS
from refold.domain.events import LinesRecalled
from refold.domain.messages import readable
from tests.support.witness import Witness, as_message

MOST = 400
_ROW = re.compile(r"\[(\d+)\] (user|assistant|system|tool|program): (.*)")


def lines_are_verbatim_and_measured(witness: Witness, shown: Context) -> None:
    """Each row quotes one line of the message it names, and the block counts with its size."""
    sizes = [event.tokens for event in _recorded(witness).values()]
    for block in _blocks(shown):
        size = witness.counter.count_text(block) + FRAME_TOKENS
        assert size <= MOST
        assert witness.erased or not witness.is_recorded or size in sizes
        rows = block.removeprefix(RECALLED_HEADING + "\n").split("\n")
        for row in rows:
            found = _ROW.fullmatch(row)
            assert found is not None, f"{row!r} is no row of recalled lines"
            position = int(found[1])
            assert position not in witness.erased
            said = readable(as_message(witness.spoken[position].message))
            assert found[3] in copied(LINE_BREAK.sub(" ", said)), f"{row!r} was not said"


def without_lines(witness: Witness, shown: Context) -> Context:
    """Return a request as it would be without recalled lines."""
    count = witness.counter.count_text
    size = sum(count(block) + FRAME_TOKENS for block in _blocks(shown))
    messages = [{**m, "content": _others(m["content"])} for m in shown.messages]
    return replace(shown, messages=messages, tokens=shown.tokens - size)


def _others(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [block for block in content if not _is_recalled(block)]


def _blocks(shown: Context) -> Iterator[str]:
    for message in shown.messages:
        if not isinstance(message["content"], str):
            yield from (b["text"] for b in message["content"] if _is_recalled(b))


def _is_recalled(block: Mapping[str, Any]) -> bool:
    return str(block.get("text", "")).startswith(RECALLED_HEADING)


def _recorded(witness: Witness) -> Mapping[int, LinesRecalled]:
    events = (logged.event for logged in witness.events())
    return {e.position: e for e in events if isinstance(e, LinesRecalled)}
