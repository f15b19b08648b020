"""A source larger than the summariser's window is parted, what is too large is named, and all is told."""

import pytest

from refold.application.errors import SummariserError
from refold.application.ports.summariser import SummaryDraft, SummaryRequest
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.compaction.summary_rules import Summary
from refold.domain.events import OmittedMessage
from refold.domain.messages import Message
from tests.support.bounded_summarisers import Bounded, Scripted, Stubborn, draft_of
from tests.support.builders import assistant, performed, talk, tool_result, tool_use, user
from tests.support.fake_ports import core_of
from tests.support.fake_summarisers import RecordingSummariser
from tests.support.summary_scenes import Scene, recorded


class AsLongAsAllowed:
    """Writes exactly as much as it may."""

    name = "exact"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        return draft_of("so it was" + "word" * (request.limit_tokens - 3))


def words(tokens: int) -> Message:
    return user("word" * tokens)


def sent(bounded: Bounded | Stubborn | RecordingSummariser) -> list[list[int]]:
    return [[m.position for m in request.messages] for request in bounded.requests]


def test_what_fits_a_chunk_is_sent_at_once() -> None:
    bounded = Bounded(20_000)
    Scene(*(words(100) for _ in range(10)), summariser=bounded).written()
    assert sent(bounded) == [list(range(10))]


def test_a_large_source_is_sent_in_a_row_each_chunk_carrying_on_the_draft_before() -> None:
    bounded = Bounded(5_000)
    core = core_of(summariser=bounded, policy=CompactionPolicy(chunk_large=1))
    messages = [words(380) for _ in range(9)]
    summary = Scene(*messages, summariser=bounded, focus="x", core=core).written()
    # 0.4 of 5,000 tokens, divided by 1.2, takes four of them.
    assert sent(bounded) == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
    carried = [request.previous for request in bounded.requests]
    assert carried == [None, "Covers messages 0-3.", "Covers messages 0-7."]
    assert summary.text == "Covers messages 0-8."
    assert {request.focus for request in bounded.requests} == {"x"}
    assert summary.model_calls == 3
    assert all(bounded.measure(r) * 1.2 <= bounded.window for r in bounded.requests)


def test_of_large_messages_a_chunk_takes_less() -> None:
    bounded = Bounded(5_000)
    Scene(*(words(500) for _ in range(6)), summariser=bounded).written()
    # On average over a tenth of the window: chunks of 0.15 of it, which one of them fills.
    assert sent(bounded) == [[0], [1], [2], [3], [4], [5]]


def test_the_share_of_a_chunk_is_a_setting() -> None:
    bounded = Bounded(5_000)
    core = core_of(summariser=bounded, policy=CompactionPolicy(chunk_share=0.2, chunk_large=1))
    Scene(*(words(380) for _ in range(4)), summariser=bounded, core=core).written()
    assert sent(bounded) == [[0, 1], [2, 3]]


def oversized() -> tuple[Summary, Bounded]:
    bounded = Bounded(5_000)
    messages = [words(100), words(3_000), words(100), assistant("ok")]
    return Scene(*messages, summariser=bounded).written(), bounded


def test_an_oversized_message_is_left_out_named_and_counted() -> None:
    summary, bounded = oversized()
    assert sent(bounded) == [[0, 2, 3]]
    [left_out] = summary.omitted
    assert left_out.position == 1
    assert 3_000 <= left_out.tokens <= 3_010
    assert bounded.requests[0].omitted == summary.omitted
    assert "message 1, about 3,0" in summary.text
    assert "refold://t/1" in summary.text
    assert summary.text.startswith("Covers messages 0, 2-3.\n\n[Left out of this summary")
    assert summary.text_tokens <= 1_200


def test_what_would_fit_and_takes_over_half_of_the_window_is_left_out() -> None:
    for tokens, left_out in ((2_050, []), (2_100, [0])):
        bounded = Bounded(5_000)
        two = (words(tokens), words(50))
        summary = Scene(*two, summariser=bounded, target_tokens=200, limit_tokens=240).written()
        assert [one.position for one in summary.omitted] == left_out


def test_the_naming_is_part_of_the_length() -> None:
    bounded = Bounded(9_000, AsLongAsAllowed())
    summary = Scene(words(7_000), words(50), summariser=bounded).written()
    assert len(summary.omitted) == 1
    assert 1_190 <= summary.text_tokens <= 1_200


def test_the_digest_is_of_what_was_really_sent() -> None:
    summary, _ = oversized()
    bounded = Bounded(20_000)
    messages = [words(100), words(3_000), words(100), assistant("ok")]
    scene = Scene(*messages, summariser=bounded)
    whole = scene.written()
    assert whole.omitted == ()
    assert whole.source_digest == scene.source.digest()
    assert summary.source_digest != whole.source_digest


def test_what_was_left_out_stays_named_by_the_summaries_after() -> None:
    summary, _ = oversized()
    recording = RecordingSummariser()
    before = recorded(summary, 4)
    later = Scene(*talk(1), summariser=recording, start=4, before=before).written()
    assert recording.requests[0].previous == "Covers messages 0, 2-3."
    assert later.omitted == summary.omitted
    assert later.text.count("refold://t/1") == 1
    assert later.text.startswith("Covers messages 0, 2-5.\n\n[Left out")


def test_of_many_that_were_left_out_the_newest_are_named_and_the_others_counted() -> None:
    omitted = tuple(OmittedMessage(position=n, tokens=9_000) for n in range(30))
    before = performed(40, omitted=omitted, text="so far")
    later = Scene(*talk(1), start=40, before=before).written()
    assert "message 29" in later.text
    assert "message 20," in later.text
    assert "message 19," not in later.text
    assert "and 20 earlier ones" in later.text
    assert later.text_tokens <= 1_200


def test_an_oversized_result_leaves_its_pair_behind() -> None:
    bounded = Bounded(5_000)
    messages = [
        user("go"),
        assistant(tool_use("a", path="x"), tool_use("b")),
        user(tool_result("a", "line" * 3_000), tool_result("b", "fine")),
        assistant("done"),
    ]
    summary = Scene(*messages, summariser=bounded).written()
    [request] = bounded.requests
    assert [one.position for one in summary.omitted] == [2]
    stand_in = request.messages[2].message
    assert [block["tool_use_id"] for block in stand_in.blocks()] == ["a", "b"]
    assert "refold://t/2" in str(stand_in.blocks()[0]["content"])
    assert request.messages[1].message == messages[1]


def test_a_round_too_large_for_one_call_loses_its_largest_parts_only() -> None:
    bounded = Bounded(5_000)
    results = [
        user(tool_result(f"c{n}", "line" * size)) for n, size in enumerate((800, 1_900, 800))
    ]
    messages = [assistant(*(tool_use(f"c{n}") for n in range(3))), *results]
    summary = Scene(*messages, summariser=bounded).written()
    assert [one.position for one in summary.omitted] == [2]
    assert sent(bounded) == [[0, 1, 2, 3]]


def test_a_source_of_nothing_but_an_oversized_message_asks_no_model() -> None:
    bounded = Bounded(5_000)
    before = performed(2, text="What was said before.")
    summary = Scene(words(3_000), summariser=bounded, start=2, before=before).written()
    assert bounded.requests == []
    assert summary.text.startswith("What was said before.\n\n[Left out")
    alone = Scene(words(3_000), summariser=Bounded(5_000)).written()
    assert alone.text.startswith("[Left out of this summary")
    assert recorded(alone, 1).omitted == alone.omitted


def test_a_prompt_that_is_too_long_after_all_leads_to_smaller_chunks_once() -> None:
    stubborn = Stubborn(most=4)
    summary = Scene(*(words(100) for _ in range(9)), summariser=stubborn).written()
    assert sent(stubborn)[0] == list(range(9))
    assert [m for chunk in sent(stubborn)[1:] for m in chunk] == list(range(9))
    assert summary.text == "Covers messages 0-8."
    assert summary.omitted == ()


def test_a_prompt_that_stays_too_long_is_a_failure_after_the_second_time() -> None:
    stubborn = Stubborn(most=0)
    with pytest.raises(SummariserError) as caught:
        Scene(*(words(100) for _ in range(9)), summariser=stubborn).written()
    assert caught.value.reason == "too_large"
    assert len(stubborn.requests) == 2


def test_a_measure_that_was_too_low_is_halved() -> None:
    class Optimist(Bounded):
        def measure(self, request: object) -> int:
            return super().measure(request) * 2 // 3  # type: ignore[arg-type]

    optimist = Optimist(4_000)
    scene = Scene(*(words(300) for _ in range(6)), summariser=optimist)
    assert scene.written().text == "Covers messages 0-5."


def test_a_source_that_needs_too_many_calls_asks_no_model() -> None:
    bounded = Bounded(5_000)
    scene = Scene(*(words(500) for _ in range(40)), summariser=bounded)
    with pytest.raises(SummariserError, match="40 calls") as caught:
        scene.written()
    assert caught.value.reason == "too_many_calls"
    assert bounded.requests == []


def test_a_window_that_holds_no_message_is_told_before_any_call() -> None:
    bounded = Bounded(300)
    with pytest.raises(SummariserError, match="larger window"):
        Scene(*talk(3), summariser=bounded).written()
    assert bounded.requests == []


def test_a_summariser_without_a_window_gets_everything() -> None:
    scripted = Scripted("all went fine")
    Scene(*(words(5_000) for _ in range(3)), summariser=scripted).written()
    assert len(scripted.requests) == 1
