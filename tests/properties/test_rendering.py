"""Rendering is pure: any recorded history gives a legal request, the same bytes every time."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from refold.application.conversation.loaded import Window, project
from refold.application.conversation.recalled_texts import RecalledText
from refold.application.ports.summariser import SourceMessage
from refold.application.rendering.kept_turns import KeptTurns
from refold.application.rendering.render import Rendered, render
from refold.application.rendering.request_forms import render_covered
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import Coverage
from refold.domain.events import (
    CompactionPerformed,
    Event,
    LinesRecalled,
    MessageAppended,
    MessagePinned,
    RecalledLine,
    ShortenedPart,
    ToolContentOffloaded,
)
from refold.domain.value import is_object, replace
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.testing.history_layout import Message
from refold.testing.history_strategies import live_histories, recorded_histories
from refold.testing.request_judge import violations
from tests.support.api_refusals import compaction_block
from tests.support.talk import Spoken
from tests.support.witness import as_message

COUNTER = EstimatingTokenCounter()
# Deferred: their descriptions are longer than Hypothesis likes to print.
HISTORIES = st.deferred(
    lambda: (
        recorded_histories(max_messages=24, max_text=120, huge=800)
        | live_histories(max_messages=24, max_text=120, huge=800)
    )
)


def appended(history: Sequence[Message]) -> list[Event]:
    """The events of a history without decisions."""
    events: list[Event] = []
    for position, given_message in enumerate(history):
        message = as_message(given_message)
        size = COUNTER.count_message(message)
        events.append(
            MessageAppended(
                position=position,
                message_id=f"id-{position}",
                message=message,
                tokens=size.total,
                thinking_tokens=size.thinking,
            )
        )
    return events


def compacted(start: int, stop: int, exclusions: Sequence[int]) -> CompactionPerformed:
    """A compaction that covers whatever a test says, whether a planner would choose it or not."""
    kept = tuple(sorted(p for p in set(exclusions) if start <= p < stop))
    coverage = Coverage(
        start=start,
        stop=stop,
        exclusions=kept,
        count=max(1, stop - start - len(kept)),
        first_message_id=f"id-{start}",
        last_message_id=f"id-{stop - 1}",
    )
    return CompactionPerformed(
        attempt_id="attempt",
        summary_id="summary",
        text="What was said before, in short.",
        tokens=20,
        coverage=coverage,
        source_digest="digest",
        trigger="size",
        policy=CompactionPolicy(),
        summariser="fake",
        model="fake",
        prompt_fingerprint="fake",
        tokens_before=1_000,
        tokens_after=100,
    )


def offloaded(history: Sequence[Message], head: int, tail: int) -> ToolContentOffloaded | None:
    """A decision that shows every call and every result of a history as a preview."""
    spoken = [Spoken(position, message) for position, message in enumerate(history)]
    calls = [(s.position, call, "call") for s in spoken for call in s.calls]
    results = [(s.position, call, "result") for s in spoken for call in s.results]
    parts = tuple(
        ShortenedPart.model_validate(
            {"position": position, "call_id": call, "side": side, "tokens_freed": 1}
        )
        for position, call, side in (*calls, *results)
    )
    return ToolContentOffloaded(parts=parts, head=head, tail=tail) if parts else None


def rendered(events: Sequence[Event]) -> Rendered:
    return render("thread", project(Window(), events), None, COUNTER.count_text)


def request_of(shown: Rendered) -> dict[str, Any]:
    request: dict[str, Any] = {"messages": shown.messages}
    return {**request, "system": shown.system} if shown.system else request


def as_bytes(shown: Rendered) -> bytes:
    return json.dumps([shown.system, shown.messages, shown.tokens]).encode()


def somebody_speaks(history: Sequence[Message]) -> bool:
    """Whether there is anything to answer: a conversation of system messages alone is none."""
    return any(message["role"] != "system" for message in history)


@given(HISTORIES)
def test_any_history_is_rendered_as_a_legal_request(history: list[Message]) -> None:
    assume(somebody_speaks(history))
    assert violations(request_of(rendered(appended(history)))) == []


@given(HISTORIES, st.data())
def test_a_window_after_any_compaction_is_rendered_as_a_legal_request(
    history: list[Message], data: st.DataObject
) -> None:
    stop = data.draw(st.integers(1, max(len(history), 1)), "stop")
    kept = data.draw(st.sets(st.integers(0, max(stop - 1, 0)), max_size=3), "kept")
    assume(history)
    events = [*appended(history), compacted(0, stop, sorted(kept))]
    assert violations(request_of(rendered(events))) == []


@given(HISTORIES, st.data())
def test_a_providers_own_block_opens_a_legal_request_whatever_is_kept(
    history: list[Message], data: st.DataObject
) -> None:
    stop = data.draw(st.integers(1, max(len(history), 1)), "stop")
    kept = data.draw(st.sets(st.integers(0, max(stop - 1, 0)), max_size=3), "kept")
    assume(history)
    block = compaction_block("What was said before, in short.")
    events = [*appended(history), replace(compacted(0, stop, sorted(kept)), block=block)]
    shown = render("thread", project(Window(), events), None, COUNTER.count_text, signed=True)
    assert violations(request_of(shown)) == []
    assert shown.messages[0]["content"][0] == block
    assert shown.tokens == rendered(events).tokens


@given(HISTORIES, st.booleans())
def test_covered_messages_alone_are_a_legal_conversation(
    history: list[Message], again: bool
) -> None:
    entries = project(Window(), appended(history)).entries
    sources = [SourceMessage(position=e.position, message=e.message) for e in entries]
    block = compaction_block("before") if again else None
    turns = render_covered(sources, "before" if again else None, block)
    assume(turns)
    ends = turns[-1]["role"] == "assistant"
    request = {"messages": [*turns, {"role": "user", "content": "?"}] if ends else turns}
    assert violations(request) == []


@given(HISTORIES, st.sampled_from(((50, 0), (100, 40))))
def test_previews_leave_a_request_legal(history: list[Message], sizes: tuple[int, int]) -> None:
    decision = offloaded(history, *sizes)
    assume(decision is not None and somebody_speaks(history))
    assert decision is not None
    assert violations(request_of(rendered([*appended(history), decision]))) == []


@given(HISTORIES)
def test_the_same_window_is_rendered_as_the_same_bytes(history: list[Message]) -> None:
    events = appended(history)
    window = project(Window(), events)
    first = as_bytes(render("thread", window, None, COUNTER.count_text))
    assert as_bytes(render("thread", window, None, COUNTER.count_text)) == first
    assert as_bytes(rendered(events)) == first


@given(HISTORIES)
def test_folding_one_by_one_is_folding_all_at_once(history: list[Message]) -> None:
    events: list[Event] = [*appended(history), compacted(0, max(1, len(history) // 2), ())]
    window = Window()
    for event in events:
        window = project(window, [event])
    assert window == project(Window(), events)


@given(HISTORIES)
def test_a_caller_who_changes_what_was_rendered_changes_nothing_else(
    history: list[Message],
) -> None:
    window = project(Window(), appended(history))
    shown = render("thread", window, None, COUNTER.count_text)
    before = as_bytes(shown)
    for message in shown.messages:
        spoil(message)
    shown.messages.clear()
    assert as_bytes(render("thread", window, None, COUNTER.count_text)) == before


@given(HISTORIES, st.data())
def test_a_request_that_goes_on_is_the_one_that_is_rendered_from_the_beginning(
    history: list[Message], data: st.DataObject
) -> None:
    """Turns are kept between requests, whatever happens between them, and whatever callers do to them."""
    kept, window, events = KeptTurns(), Window(), appended(history)
    lines: dict[int, list[RecalledText]] = {}
    while events:
        count = data.draw(st.integers(1, 4), "messages")
        window, events = project(window, events[:count]), events[count:]
        match data.draw(
            st.sampled_from(("nothing", "nothing", "lines", "previews", "compaction", "pin")),
            "then",
        ):
            case "lines":
                at = data.draw(
                    st.sampled_from([entry.position for entry in window.entries] or [0]), "at"
                )
                lines[at] = [RecalledText(lines_recalled(at).lines[0], "said before")]
                window = project(window, [lines_recalled(at)])
            case "previews" if decision := offloaded(history, 50, 20):
                window = project(window, [decision])
            case "compaction" if len(window.entries) > 1:
                first, last = window.entries[0].position, window.entries[-1].position
                window = project(window, [compacted(first, last, ())])
                lines = {at: text for at, text in lines.items() if at in window.recalled}
            case "pin":
                window = project(
                    window, [MessagePinned(pin_id="p", position=None, text="keep", tokens=9)]
                )
            case _:
                pass
        if data.draw(st.booleans(), "drops thinking"):
            window = dataclasses.replace(window, thinking_from=len(history) - len(events))
        for _ in range(2):
            count_text = COUNTER.count_text
            shown = render("thread", window, None, count_text, recalled=lines, kept=kept)
            again = render("thread", window, None, count_text, recalled=lines)
            assert as_bytes(shown) == as_bytes(again)
            assert (shown.bytes, shown.opening, shown.memory) == (
                again.bytes,
                again.opening,
                again.memory,
            )
            spoil(shown.messages)


def lines_recalled(at: int) -> LinesRecalled:
    """The decision to show a line after a message."""
    line = RecalledLine(position=0, version=1, start=0, stop=5, digest="digest", speaker="user")
    return LinesRecalled(position=at, message_id=f"id-{at}", lines=(line,), tokens=9, asked_at=1)


def spoil(value: Any) -> None:
    """Change JSON data everywhere that it can be changed in place."""
    if is_object(value):
        for inner in list(value.values()):
            spoil(inner)
        value["spoilt"] = True
    elif hasattr(value, "append"):
        for inner in value:
            spoil(inner)
        value.append("spoilt")
