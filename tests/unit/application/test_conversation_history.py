"""``query``, ``expand`` and ``read_part``: the original records, whatever was folded away."""

from typing import Any

import pytest

from refold.application.errors import ForeignAddress, InvalidAddress
from refold.domain.errors import ConversationGone, InvalidSetting, UnknownMessage
from refold.domain.events import ConversationErased, EventLost, LeafSummary
from tests.support.builders import history, performed, requested, talk, user
from tests.support.recall_scenes import Scene

SUMMARISED = (
    requested(4),
    performed(4, leaf=LeafSummary(start=0, stop=4, text="the leaf", tokens=2)),
)


def scene() -> Scene:
    return Scene(*history(*talk(5)), *SUMMARISED)


def test_a_range_gives_the_original_records_with_what_became_of_them() -> None:
    page = scene().conversation.query(start=2, stop=6)
    assert [r.position for r in page.records] == [2, 3, 4, 5]
    assert [r.fate for r in page.records] == ["summarised", "summarised", "full", "full"]
    first = page.records[0]
    assert (first.text, first.start, first.stop, first.length) == ("question 1", 0, 10, 10)
    assert (first.address, first.message_id, first.role) == ("refold://t/2", "m2", "user")
    assert (page.next, page.length, page.missing, page.notice) == (None, 10, (), None)


def test_negative_positions_count_from_the_end() -> None:
    assert [r.position for r in scene().conversation.query(start=-2).records] == [8, 9]
    assert [r.position for r in scene().conversation.query(stop=-8).records] == [0, 1]


def test_pages_follow_each_other_without_gap_or_repetition() -> None:
    conversation, seen, start = scene().conversation, list[int](), 0
    while True:
        page = conversation.query(start=start, limit=3)
        seen += [r.position for r in page.records]
        if page.next is None:
            break
        start = page.next
    assert seen == list(range(10))


def test_records_with_a_text_are_found_in_any_case() -> None:
    page = scene().conversation.query(text="ANSWER 3")
    assert [r.position for r in page.records] == [7]
    assert len(scene().conversation.query(text="  ").records) == 10


def test_a_text_that_no_message_has_is_told_from_positions_that_are_not_there() -> None:
    conversation = scene().conversation
    nowhere = "has exactly this text, whatever its case; recall searches by words"
    for page, said in (
        (conversation.query(text="zebra"), f"no message {nowhere}"),
        (
            conversation.query(text="question 0", start=1),
            f"no message at these positions {nowhere}",
        ),
        (conversation.query(text="zebra", stop=4), f"no message at these positions {nowhere}"),
        (conversation.query(text="zebra", ids=["m1"]), f"no message with these ids {nowhere}"),
        (conversation.query(start=10), "nothing there: the conversation has positions 0 to 9"),
        (
            conversation.query(start=10, text="zebra"),
            "nothing there: the conversation has positions 0 to 9",
        ),
        (
            conversation.query(ids=["m1", 3], start=5),
            "the messages with these ids are at other positions",
        ),
    ):
        assert (page.records, page.notice) == ((), said)
    some = conversation.query(text="zebra", ids=["m1", "m99"])
    assert some.notice == f"no message has the id m99; no message with these ids {nowhere}"


def test_positions_that_were_lost_are_said_to_be() -> None:
    events = history(*talk(2))
    lost = Scene(events[0], EventLost(position=1), *events[2:])
    notice = lost.conversation.query(start=1, stop=2).notice
    assert notice == "what was at these positions was lost when the log was damaged"


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("start", "a"),
        ("stop", 2.5),
        ("start", True),
        ("text", 7),
        ("ids", 7.5),
        ("ids", [None]),
    ],
)
def test_what_no_query_can_ask_for_is_refused_by_its_name(field: str, given: object) -> None:
    asked: dict[str, Any] = {field: given}
    with pytest.raises(InvalidSetting, match=f"^{field}") as refused:
        scene().conversation.query(**asked)
    assert refused.value.setting == field


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    conversation = scene().conversation
    for start, stop in ((5, 2), (5, 5), (None, 0), (-2, -5)):
        with pytest.raises(InvalidSetting, match="stop must be greater than start") as refused:
            conversation.query(start=start, stop=stop)
        assert refused.value.setting == "stop"
    assert len(conversation.query(start=-5, stop=8).records) == 3
    assert conversation.query(start=-2, stop=3).records == ()


def test_one_id_needs_no_list() -> None:
    for one in ("m2", "refold://t/2", "2"):
        assert [r.position for r in scene().conversation.query(ids=one).records] == [2]


def test_a_search_for_text_goes_on_where_the_page_before_ended() -> None:
    first = scene().conversation.query(text="question", limit=2)
    assert [r.position for r in first.records] == [0, 2]
    assert first.next == 4
    rest = scene().conversation.query(text="question", start=first.next)
    assert [r.position for r in rest.records] == [4, 6, 8]
    assert rest.next is None


def test_ids_addresses_and_positions_name_records() -> None:
    page = scene().conversation.query(ids=["m7", "refold://t/1", "4", 2, "m1"])
    assert [r.position for r in page.records] == [1, 2, 4, 7]
    assert [r.position for r in scene().conversation.query(ids=["m1", "m7"], start=2).records] == [
        7
    ]


def test_ids_that_no_message_has_are_named() -> None:
    page = scene().conversation.query(ids=["m1", "m99", "s1", 77])
    assert [r.position for r in page.records] == [1]
    assert page.missing == ("m99", "s1", "77")
    assert "m99" in str(page.notice)


def test_an_address_of_another_conversation_is_refused() -> None:
    with pytest.raises(ForeignAddress):
        scene().conversation.query(ids=["refold://other/1"])
    with pytest.raises(InvalidAddress):
        scene().conversation.query(ids=["refold://t"])


def test_what_was_erased_is_named_without_its_words() -> None:
    played = scene()
    played.conversation.erase(1)
    record = played.conversation.query(start=1, stop=2).records[0]
    assert (record.fate, record.erased) == ("erased", True)
    assert "answer 0" not in record.text
    assert played.conversation.query(text="answer 0").records == ()


def test_what_was_lost_is_left_out() -> None:
    events = history(*talk(2))
    lost = Scene(events[0], EventLost(position=1), *events[2:])
    assert [r.position for r in lost.conversation.query().records] == [0, 2, 3]


def test_a_page_keeps_to_its_room_and_a_long_record_is_cut_near_what_was_looked_for() -> None:
    long = "filler " * 500 + "the needle " + "filler " * 500
    played = Scene(*history(user("short"), user(long), user("end")))
    page = played.conversation.query(start=1, text="needle", max_tokens=100)
    (record,) = page.records
    assert "needle" in record.text
    assert page.tokens <= 100
    assert long[record.start : record.stop] == record.text
    assert (record.length, page.next) == (len(long), None)
    assert "message 1 is cut" in str(page.notice)
    page = played.conversation.query(max_tokens=100)
    assert ([r.position for r in page.records], page.next) == ([0], 1)


def test_wrong_numbers_are_refused_and_gone_conversations_too() -> None:
    for limit, room in ((0, None), (201, None), (20, 1), (20, 49)):
        with pytest.raises(InvalidSetting):
            scene().conversation.query(limit=limit, max_tokens=room)
    with pytest.raises(ConversationGone):
        Scene(*history(*talk(1)), ConversationErased()).conversation.query()
    nothing = scene().memory.conversation("new").query()
    assert (nothing.records, nothing.length) == ((), 0)
    assert "'new'" in str(nothing.notice)


def test_a_part_of_a_long_message_ends_at_a_line_and_names_the_next() -> None:
    text = "\n".join(f"line {n}" for n in range(100))
    conversation = Scene(*history(user(text))).conversation
    parts, start = list[str](), 0
    while True:
        part = conversation.read_part("refold://t/0", start, 120)
        parts.append(part.text)
        assert (part.start, part.length) == (start, len(text))
        if part.next is None:
            break
        start = part.next
    assert "".join(parts) == text
    assert all(part.endswith("\n") for part in parts[:-1])


def test_what_is_no_part_is_refused() -> None:
    conversation = scene().conversation
    for start, most in ((-1, 100), (11, 100), (0, 99)):
        with pytest.raises(InvalidSetting):
            conversation.read_part(0, start, most)
    with pytest.raises(UnknownMessage):
        conversation.read_part(10)
    with pytest.raises(ForeignAddress):
        conversation.read_part("refold://u/0")
