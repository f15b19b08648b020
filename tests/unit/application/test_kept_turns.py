"""Turns that are kept between requests: when they are, and when a request is rendered from the beginning."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refold.application.conversation.entries import (
    Entry,
    LongEntries,
    Preview,
    PreviewKey,
    ScanResult,
    Words,
)
from refold.application.conversation.loaded import Window, project
from refold.application.conversation.recalled_texts import RecalledText
from refold.application.rendering import kept_turns
from refold.application.rendering import render as rendering
from refold.application.rendering.kept_turns import KeptTurns, Size
from refold.application.rendering.render import render
from refold.application.rendering.turn_builder import TurnBuilder
from refold.domain.events import Event, LinesRecalled, RecalledLine, SaidPart, UserContentShortened
from refold.domain.messages import Block
from refold.domain.value import is_list, is_object
from tests.support.builders import (
    appended,
    assistant,
    history,
    text,
    thinking,
    tool_result,
    tool_use,
    user,
)
from tests.support.fake_ports import PlainCounter

COUNT = PlainCounter().count_text
SEARCH: Block = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "refold"},
}
FOUND: Block = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


class StoredEntries(NamedTuple):
    """Messages that a log has."""

    entries: tuple[Entry, ...]

    def read(self, start: int, stop: int) -> Iterator[Entry]:
        return (entry for entry in self.entries if start <= entry.position < stop)

    def scan(self, start: int, stop: int, words: Words, most: int) -> ScanResult:
        raise NotImplementedError


def messages(kept: KeptTurns, window: Window, thread_id: str = "t") -> list[dict[str, Any]]:
    """The turns of a request, which are those without anything kept."""
    shown = render(thread_id, window, None, COUNT, kept=kept)
    again = render(thread_id, window, None, COUNT)
    assert (shown.messages, shown.tokens, shown.bytes) == (
        again.messages,
        again.tokens,
        again.bytes,
    )
    return shown.messages


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of messages that were added to turns, call by call."""
    found: list[int] = []
    add = TurnBuilder.add

    def counting(builder: TurnBuilder, entries: Any) -> None:
        found.append(len(entries))
        add(builder, entries)

    monkeypatch.setattr(TurnBuilder, "add", counting)
    return found


def window_of(*events: Event) -> Window:
    return project(Window(), events)


LINE = RecalledLine(position=0, version=1, start=0, stop=3, digest="0" * 64, speaker="user")
TALK = history(user("one"), assistant("two"), user("three"), assistant("four"), user("five"))


def test_a_request_adds_only_the_messages_that_are_new(added: list[int]) -> None:
    kept, window = KeptTurns(), window_of(*TALK[:3])
    render("t", window, None, COUNT, kept=kept)
    render("t", window, None, COUNT, kept=kept)
    render("t", project(window, TALK[3:]), None, COUNT, kept=kept)
    assert added == [3, 0, 2]


def test_each_conversation_has_turns_of_its_own(added: list[int]) -> None:
    kept, window = KeptTurns(), window_of(*TALK[:3])
    for thread_id in ("one", "other", "one"):
        render(thread_id, window, None, COUNT, kept=kept)
    assert added == [3, 3, 0]


def test_what_was_forgotten_is_rendered_from_the_beginning(added: list[int]) -> None:
    kept, window = KeptTurns(), window_of(*TALK[:3])
    render("t", window, None, COUNT, kept=kept)
    kept.forget("t")
    kept.forget("unknown")
    render("t", window, None, COUNT, kept=kept)
    assert added == [3, 3]


def test_the_text_of_recalled_lines_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    make = rendering.recalled_text

    def counting(found: Sequence[RecalledText]) -> str:
        made.append(found)
        return make(found)

    monkeypatch.setattr(rendering, "recalled_text", counting)
    window = window_of(
        *TALK, LinesRecalled(position=4, message_id="m4", lines=(LINE,), tokens=9, asked_at=5)
    )
    kept, lines, others = KeptTurns(), [RecalledText(LINE, "one")], [RecalledText(LINE, "two")]
    for found in (lines, lines, others):
        shown = render("t", window, None, COUNT, recalled={4: found}, kept=kept)
        assert found[0].text in str(shown.messages[-1])
    assert made == [lines, others]
    kept.forget("t")
    render("t", window, None, COUNT, recalled={4: others}, kept=kept)
    assert len(made) == 3


def test_the_conversation_that_was_used_longest_ago_is_dropped_first(
    added: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_turns, "MOST", 2)
    kept, window = KeptTurns(), window_of(*TALK[:3])
    for thread_id in ("a", "b", "a", "c", "a", "b"):
        render(thread_id, window, None, COUNT, kept=kept)
    assert added == [3, 3, 0, 3, 0, 3]


def test_messages_that_are_read_from_the_log_are_not_kept(added: list[int]) -> None:
    kept, window = KeptTurns(), window_of(*TALK[:3])
    entries = window.entries
    assert isinstance(entries, tuple)
    long = window.shelve(1, StoredEntries(entries))
    assert isinstance(long.entries, LongEntries)
    for _ in range(2):
        render("t", long, None, COUNT, kept=kept)
    assert added == [3, 3]


def test_a_call_of_a_server_tool_appears_when_its_result_follows_later() -> None:
    kept, window = KeptTurns(), window_of(*history(user("look"), assistant(text("I do"), SEARCH)))
    assert SEARCH not in messages(kept, window)[1]["content"]
    window = project(window, [appended(2, user("and?")), appended(3, assistant(FOUND))])
    assert SEARCH in messages(kept, window)[1]["content"]


def test_a_call_of_a_paused_response_goes_when_another_message_follows() -> None:
    kept = KeptTurns()
    paused = appended(1, assistant(text("I do"), SEARCH), stop_reason="pause_turn")
    window = window_of(appended(0, user("look")), paused)
    assert SEARCH in messages(kept, window)[1]["content"]
    window = project(window, [appended(2, user("stop"))])
    assert SEARCH not in messages(kept, window)[1]["content"]


def test_a_run_that_is_left_out_goes_on_in_later_messages() -> None:
    kept, long = KeptTurns(), user(text("long " * 50))
    said = [appended(0, user("go")), appended(1, long), appended(2, long)]
    parts = tuple(SaidPart(position=at, block=0, tokens_freed=9) for at in (1, 2))
    decision = UserContentShortened(parts=parts, head=0, tail=0, left_out=True)
    whole = window_of(*said, decision)
    entries = whole.entries
    assert isinstance(entries, tuple)
    messages(kept, dataclasses.replace(whole, entries=entries[:2]))
    messages(kept, whole)


def test_a_request_that_is_only_measured_leaves_the_kept_turns_as_they_are(
    added: list[int],
) -> None:
    kept, window = KeptTurns(), window_of(*TALK[:2])
    for _ in range(2):
        measured = render("t", window, None, COUNT, kept=kept.measuring())
        assert (measured.tokens, measured.bytes) == render("t", window, None, COUNT)[2:6:3]
    assert messages(kept, window) == messages(kept, window)
    assert added.count(0) == 3


def test_the_size_of_a_window_is_measured_once() -> None:
    kept, window, asked = KeptTurns(), window_of(*TALK[:3]), list[int]()

    def measure() -> Size:
        asked.append(1)
        return len(asked), 0, 0

    def size_of(window: Window, thread_id: str = "t") -> int:
        return kept.size(thread_id, window, measure)[0]

    assert [size_of(window), size_of(window), size_of(window, "other")] == [1, 1, 2]
    assert size_of(window_of(*TALK)) == 3
    kept.forget("t")
    assert size_of(window) == 4


WORK = history(
    user("read both"),
    assistant("I read.", tool_use("a", path="a" * 900), tool_use("b", path="b")),
    user(
        tool_result("a", "line\n" * 400),
        tool_result("b", [text("x" * 700), text("é" * 300)], is_error=True),
        text("go on"),
    ),
    assistant(tool_use("c", path="c")),
    user(tool_result("c", [text("caption " * 50), SEARCH])),
    assistant(tool_use("d", path="d")),
    user(tool_result("d", "", is_error=True)),
)
LOOKS: list[Preview] = [
    Preview(100, 50, 60),
    Preview(40, 20, 90, "soft-trim"),
    Preview(0, 0, 95, "hard-clear"),
]
PLAIN_PARTS: list[PreviewKey] = [
    (1, "a", "call"),
    (2, "a", "result"),
    (2, "b", "result"),
    (3, "c", "call"),
]


def sizes_of(kept: KeptTurns, window: Window) -> tuple[Size, int]:
    """Return the size of a request, and how often all of it was rendered for that."""
    rendered = list[int]()

    def measure() -> Size:
        rendered.append(1)
        shown = render("t", window, None, COUNT)
        return shown.tokens, shown.bytes, shown.images

    size, whole = kept.size("t", window, measure), render("t", window, None, COUNT)
    assert size == (whole.tokens, whole.bytes, whole.images)
    return size, len(rendered)


@given(st.lists(st.dictionaries(st.sampled_from(PLAIN_PARTS), st.sampled_from(LOOKS)), max_size=5))
def test_a_request_that_shows_other_parts_is_not_rendered_for_its_size(
    shown: list[dict[PreviewKey, Preview]],
) -> None:
    kept, window = KeptTurns(), window_of(*WORK)
    assert sizes_of(kept, window)[1] == 1
    for previews in shown:
        shortened = dataclasses.replace(window, previews=previews, thinking_from=7)
        assert sizes_of(kept, shortened)[1] == 0


@pytest.mark.parametrize("key", [(4, "c", "result"), (6, "d", "result"), (2, "2", "said")])
def test_a_part_that_may_add_more_than_its_text_is_rendered_for_its_size(key: PreviewKey) -> None:
    kept, window = KeptTurns(), window_of(*WORK)
    sizes_of(kept, window)
    assert sizes_of(kept, dataclasses.replace(window, previews={key: LOOKS[0]}))[1] == 1


def test_a_request_that_differs_in_more_is_rendered_for_its_size() -> None:
    kept, window = KeptTurns(), window_of(*WORK)
    sizes_of(kept, window)
    assert sizes_of(kept, window_of(*WORK))[1] == 1
    assert sizes_of(kept, dataclasses.replace(window, entries=window.entries[:5]))[1] == 1
    thought = window_of(*history(user("one"), assistant(thinking(), text("two")), user("three")))
    sizes_of(kept, thought)
    assert sizes_of(kept, dataclasses.replace(thought, thinking_from=3))[1] == 1


def wreck(value: object) -> None:
    """Empty all lists and objects in a value."""
    if is_object(value):
        wreck([*value.values()])
        value.clear()
    elif is_list(value):
        for one in value:
            wreck(one)
        del cast("list[Any]", value)[:]


PAUSED = assistant(text("three"), text("and more"))
CALLING = assistant(text("four"), tool_use("c", path="a", deep={"list": [{"x": 1}]}))
SAID = st.sampled_from(
    [
        user("one"),
        user(text("one"), text("two")),
        PAUSED,
        CALLING,
        user(tool_result("c", "done")),
        user(tool_result("c", [text("done"), text("and more")])),
        user(tool_result("c", "failed", is_error=True), text("go on")),
    ]
)


@example([(user("one"), None), (PAUSED, "pause_turn"), (CALLING, None), (user("two"), None)])
@given(st.lists(st.tuples(SAID, st.sampled_from([None, "pause_turn"])), min_size=1, max_size=8))
def test_turns_that_the_caller_changes_are_not_those_that_are_kept(
    said: list[tuple[Any, str | None]],
) -> None:
    kept, window = KeptTurns(), Window()
    for position, (message, reason) in enumerate(said):
        reason = reason if message.role == "assistant" else None
        window = project(window, [appended(position, message, stop_reason=reason)])
        wreck(messages(kept, window))
        wreck(messages(kept, window))
