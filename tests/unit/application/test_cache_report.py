"""``cache_report``: the part of each request that stays, and the decision after which it did not."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from refold.application.inspection.cache_report import MOST_EVENTS, CacheReport, cache_report
from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.errors import ConversationGone, InvalidSetting
from refold.domain.events import (
    CompactionReverted,
    ConversationErased,
    Event,
    LinesRecalled,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    RecalledLine,
    ShortenedPart,
    ToolContentOffloaded,
)
from refold.domain.frames import FramePart, RequestFrameChanged
from refold.domain.messages import Message
from tests.support.builders import (
    appended,
    assistant,
    calls,
    coverage,
    history,
    performed,
    results,
    user,
)
from tests.support.fake_ports import MemoryLog, core_of

THIRTY: list[Message] = [user("question"), assistant("answer")] * 15


class CountingLog(MemoryLog):
    """A log that counts the events that are read one by one."""

    read_events = 0

    def pages(self, thread_id: str, first: int, last: int) -> Iterator[Sequence[LoggedEvent]]:
        for page in super().pages(thread_id, first, last):
            self.read_events += len(page)
            yield page


def report_of(*events: Event, at: int | None = None) -> CacheReport:
    log = MemoryLog()
    log.streams["t"] = list(events)
    return cache_report(core_of(log), "t", at)


def go_on(start: int, count: int = 4) -> list[Event]:
    """Questions and answers of 100 tokens each, from an even position on."""
    return history(*THIRTY[:count], start=start)


def frame(name: str, **more: Any) -> RequestFrameChanged:
    values: dict[str, Any] = {
        "digest": name,
        "model": "m",
        "place": "user",
        "signed": False,
        "binds_thinking": False,
        "asked_at": 0,
        "system": ("s",),
        "system_is_text": True,
        "instructions": (),
        "tools": (),
        "parts": (FramePart(digest="s", value="x" * 400),),
    }
    return RequestFrameChanged(**values | more)


def test_a_conversation_that_only_grows_keeps_every_request() -> None:
    report = report_of(*go_on(0, 6))
    sizes = [(one.tokens, one.kept, one.new) for one in report.newest_requests]
    assert sizes == [(100, 0, 100), (300, 100, 200), (500, 300, 200)]
    assert (report.requests, report.tokens, report.kept, report.new) == (3, 900, 400, 500)
    assert report.kept_share == pytest.approx(4 / 9)
    assert report.breaks == report.written_again == 0


def test_nothing_was_sent_before_the_first_reply() -> None:
    assert report_of(*history(user("hi"))).requests == 0
    assert report_of(*history(assistant("I begin"))).kept_share == 0


def test_after_a_compaction_everything_after_the_fixed_parts_is_written_again() -> None:
    report = report_of(
        frame("f"), *go_on(0, 10), performed(6, coverage=coverage(6), tokens=50), *go_on(10)
    )
    (found,) = report.newest_breaks
    # The first summary also adds guidance to the system text, so that only tools would stay.
    assert (found.kind, found.version, found.kept, found.tokens) == ("compaction", 12, 0, 650)
    # A request ends before its reply: the last reply and the next question are new.
    assert found.written_again == 650 - 200
    second = report_of(
        frame("f"),
        *go_on(0, 10),
        performed(4, coverage=coverage(4), tokens=50),
        *go_on(10),
        performed(8, "a2", coverage=coverage(8), tokens=60, summary_id="s2"),
        *go_on(14),
    ).newest_breaks[0]
    assert second.kept == 100  # The system text of 400 characters.


def test_shortened_content_breaks_from_its_message_on() -> None:
    talk = history(user("go"), calls("c1"), results("c1"), *THIRTY[:6])
    part = ShortenedPart(position=2, call_id="c1", side="result", tokens_freed=60)
    for event, kind in (
        (ToolContentOffloaded(parts=(part,), head=10, tail=0), "offloading"),
        (MessagesCondensed(parts=(part,), characters=10), "condensing"),
    ):
        (found,) = report_of(*talk, event, *history(*THIRTY[:2], start=9)).newest_breaks
        assert (found.kind, found.kept, found.version) == (kind, 200, 10)
        assert found.written_again == found.tokens - 200 - 200


@pytest.mark.parametrize(
    ("changed", "kind", "kept"),
    [
        ({"model": "other"}, "model", 0),
        ({"tools": ("t",), "parts": (FramePart(digest="t", value={"name": "x"}),)}, "tools", 0),
        ({"system": ("z",), "parts": (FramePart(digest="z", value="new"),)}, "system text", 0),
    ],
)
def test_another_frame_changes_the_beginning(changed: dict[str, Any], kind: str, kept: int) -> None:
    report = report_of(frame("f"), *go_on(0), frame("g", **changed), *go_on(4))
    (found,) = report.newest_breaks
    assert (found.kind, found.kept) == (kind, kept)


def test_a_new_system_text_leaves_the_tools_in_the_cache() -> None:
    tool = FramePart(digest="t", value={"name": "x" * 400})
    first = frame("f", tools=("t",), parts=(tool,))
    later = frame("g", tools=("t",), system=("z",), parts=(FramePart(digest="z", value="new"),))
    (found,) = report_of(first, *go_on(0), later, *go_on(4)).newest_breaks
    assert found.kept > 100


def test_a_pin_in_the_ledger_breaks_and_a_pinned_message_does_not() -> None:
    shown = MessagePinned(pin_id="p", position=None, text="rule", tokens=9)
    kept = MessagePinned(pin_id="q", position=1, text="", tokens=0)
    report = report_of(*go_on(0), shown, *go_on(4), kept, *go_on(8), MessageUnpinned(pin_id="p"))
    assert [one.kind for one in report.newest_breaks] == ["pin"]


def test_lines_at_the_end_of_a_message_that_was_sent_break_from_there_on() -> None:
    line = RecalledLine(position=0, version=1, start=0, stop=3, digest="d", speaker="user")

    def recalled(position: int) -> LinesRecalled:
        return LinesRecalled(
            position=position, message_id=f"m{position}", lines=(line,), tokens=20, asked_at=0
        )

    unsent = report_of(*go_on(0), *history(user("and?"), start=4), recalled(4), *go_on(5)[1:2])
    assert unsent.breaks == 0
    late = report_of(*go_on(0), recalled(2), *go_on(4))
    assert [(one.kind, one.kept) for one in late.newest_breaks] == [("recalled lines", 200)]


def test_an_erased_message_breaks_from_its_place_on() -> None:
    erased = MessageErased(
        position=1, message_id="m1", tokens=5, tokens_freed=95, rewritten=(), reason=""
    )
    (found,) = report_of(*go_on(0), erased, *go_on(4)).newest_breaks
    assert (found.kind, found.kept) == ("erasure", 100)


def test_the_decision_that_changed_the_earliest_part_is_named_and_the_others_with_it() -> None:
    talk = history(user("go"), calls("c1"), results("c1"), *THIRTY[:8])
    part = ShortenedPart(position=2, call_id="c1", side="result", tokens_freed=60)
    offloaded = ToolContentOffloaded(parts=(part,), head=10, tail=0)
    summary = performed(5, coverage=coverage(5), tokens=50)
    (found,) = report_of(*talk, offloaded, summary, *history(*THIRTY[:2], start=11)).newest_breaks
    assert (found.kind, found.also, found.version) == ("compaction", ("offloading",), 13)


def test_a_compaction_that_was_reverted_before_the_next_request_broke_nothing() -> None:
    talk = go_on(0, 10)
    log = MemoryLog()
    log.streams["t"] = list(talk)
    live = log.load("t").state.live
    back = CompactionReverted(
        summary_id="s1",
        restored=None,
        messages=live[:6],
        older_live=0,
        older_tokens=0,
        live_from=1,
    )
    made = performed(6, coverage=coverage(6), tokens=50, summary_id="s1")
    assert report_of(*talk, made, back, *go_on(10)).breaks == 0


def test_totals_count_all_decisions_and_the_newest_ones_are_listed() -> None:
    events: list[Event] = list(go_on(0))
    for number in range(40):
        events.append(MessagePinned(pin_id=f"p{number}", position=None, text="x", tokens=9))
        events += go_on(4 + 2 * number, 2)
    report = report_of(*events)
    assert report.breaks == 40
    assert len(report.newest_breaks) == 25
    assert report.newest_breaks[0].version > report.newest_breaks[-1].version
    (total,) = report.totals
    assert (total.count, total.written_again) == (40, report.written_again)


def test_a_report_of_an_earlier_version_does_not_read_later_events() -> None:
    events = [*go_on(0), frame("f"), *go_on(4)]
    assert report_of(*events, at=4) == report_of(*events[:4])
    with pytest.raises(InvalidSetting, match="at=99"):
        report_of(*events, at=99)


def test_an_erased_conversation_has_no_report() -> None:
    with pytest.raises(ConversationGone):
        report_of(*go_on(0), ConversationErased())


def test_of_a_long_conversation_only_the_newest_events_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = "refold.application.inspection.cache_report.MOST_EVENTS"
    log = CountingLog()
    summary = performed(6, coverage=coverage(6), tokens=50)
    log.streams["t"] = [frame("f"), *go_on(0, 10), summary, *go_on(10, 30)]
    whole = cache_report(core_of(log), "t")
    assert log.read_events == len(log.streams["t"]) < MOST_EVENTS
    log.read_events = 0
    monkeypatch.setattr(module, 20)
    newest = cache_report(core_of(log), "t")
    assert log.read_events == 20
    assert newest.first_version == len(log.streams["t"]) - 19
    assert whole.first_version == 1
    # The sizes are those of the whole conversation, with its frame and its summary.
    assert newest.newest_requests[-1] == whole.newest_requests[-1]


def test_a_reply_is_priced_by_its_own_model_or_that_of_the_request() -> None:
    own = appended(1, assistant("a"), model="own")
    report = report_of(
        frame("f"), *history(user("q")), own, *history(user("q"), assistant("a"), start=2)
    )
    assert {one.model for one in report.use} == {"own", "m"}


def test_of_two_decisions_about_the_same_part_the_first_is_named() -> None:
    pins = [MessagePinned(pin_id=name, position=None, text="rule", tokens=9) for name in ("p", "q")]
    (found,) = report_of(*go_on(0), *pins, *go_on(4)).newest_breaks
    assert (found.version, found.also) == (5, ())
