"""However a source is parted: pairs stay together, order stays, nothing is lost, all of it fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.conversation.addresses import address_of
from refold.application.errors import SummariserError
from refold.application.ports.summariser import SourceMessage, SummaryRequest
from refold.application.summaries.chunking import (
    Capacity,
    Portions,
    Weighed,
    rounds_of,
    split_into_chunks,
    split_messages,
)
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.messages import Message, gist
from tests.support.bounded_summarisers import Bounded
from tests.support.builders import assistant, calls, tool_result, user
from tests.support.fake_summarisers import source_text

POLICY = CompactionPolicy()
SIZES = st.sampled_from((0, 1, 40, 400, 2_000, 9_000))
Part = list[tuple[str, int]]


@st.composite
def sources(draw: st.DrawFn) -> tuple[SourceMessage, ...]:
    """Words and tool rounds of all sizes, with words between call and result, and lost results."""
    messages: list[Message] = []
    kinds = st.lists(st.sampled_from(("user", "assistant", "round", "lost", "late")), max_size=12)
    for n, kind in enumerate(draw(kinds)):
        words = "w" * (1 + draw(SIZES))
        if kind == "user":
            messages.append(user(words))
        elif kind == "assistant":
            messages.append(assistant(words))
        else:
            names = [f"c{n}-{i}" for i in range(draw(st.integers(1, 3)))]
            answers = names if kind != "lost" else names[:-1]
            messages.append(calls(*names))
            if kind == "late":
                messages.append(user(f"wait {words}"))
            messages += [user(tool_result(name, "r" * draw(SIZES))) for name in answers]
    start = draw(st.integers(0, 50))
    return tuple(SourceMessage(position=start + i, message=m) for i, m in enumerate(messages))


def pairs_are_together(chunks: list[tuple[SourceMessage, ...]]) -> None:
    """A result that follows its call in the whole does so within one chunk."""
    home: dict[str, int] = {}
    for number, chunk in enumerate(chunks):
        for source in chunk:
            asked, answered, _ = gist(source.message)
            home.update(dict.fromkeys(asked, number))
            assert all(home[call] == number for call in answered)


@given(sources(), st.integers(1, 3_000))
def test_chunks_keep_order_and_pairs_and_lose_nothing(
    messages: tuple[SourceMessage, ...], room: int
) -> None:
    size = {m.position: len(source_text(SummaryRequest(messages=(m,)))) // 4 for m in messages}
    rounds = rounds_of(messages)
    assert [m for one in rounds for m in one] == list(messages)
    weighed = [[Weighed(m, size[m.position]) for m in one] for one in rounds]
    chunks = list(split_into_chunks(weighed, room))
    assert [m for chunk in chunks for m in chunk] == list(messages)
    assert all(chunks)
    pairs_are_together(chunks)
    for chunk in chunks:
        assert sum(size[m.position] for m in chunk) <= room or chunk in rounds


def parted(messages: tuple[SourceMessage, ...], window: int) -> tuple[Portions, Bounded]:
    bounded = Bounded(window)
    request = SummaryRequest(messages=messages, previous="p" * 400, limit_tokens=120)
    capacity = Capacity(bounded.window, bounded.measure)
    return split_messages("t", request, capacity, POLICY), bounded


@given(sources(), st.sampled_from((600, 1_000, 2_500, 6_000, 50_000)))
def test_every_call_fits_the_window_and_all_is_sent_or_named(
    messages: tuple[SourceMessage, ...], window: int
) -> None:
    portions, bounded = parted(messages, window)
    sent = {m.position for chunk in portions.chunks for m in chunk}
    named = {one.position for one in portions.omitted}
    assert sent | named == {m.position for m in messages}
    whole = {m.position: m for m in messages}
    pairs_are_together(list(portions.chunks))
    for chunk in portions.chunks:
        request = SummaryRequest(messages=chunk, previous="p" * 480, limit_tokens=120)
        assert bounded.measure(request) * POLICY.chunk_slack <= window + 60
        for source in chunk:
            if source.position in named:
                # Only the pair is left of it: the same calls and results, without their content.
                assert gist(source.message)[:2] == gist(whole[source.position].message)[:2]
                assert address_of("t", source.position) in str(source.message.content)
            else:
                assert source == whole[source.position]
    for one in portions.omitted:
        assert one.tokens > 0


@given(sources(), st.sampled_from((400, 600, 1_000, 2_500)), st.integers(0, 600))
def test_even_without_slack_every_call_fits_with_the_longest_draft_before_it(
    messages: tuple[SourceMessage, ...], window: int, previous: int
) -> None:
    bounded = Bounded(window)
    tight = CompactionPolicy(chunk_share=1, chunk_least=1, chunk_slack=1, oversized_share=1)
    request = SummaryRequest(messages=messages, previous="p" * previous, limit_tokens=120)
    capacity = Capacity(bounded.window, bounded.measure)
    for chunk in split_messages("t", request, capacity, tight).chunks:
        drafted = SummaryRequest(messages=chunk, previous="p" * 480, limit_tokens=120)
        only_pairs = all(len(source_text(SummaryRequest(messages=(m,)))) < 100 for m in chunk)
        assert bounded.measure(drafted) <= window or only_pairs


@given(sources().filter(bool))
def test_a_window_without_room_for_any_message_is_told(messages: tuple[SourceMessage, ...]) -> None:
    with pytest.raises(SummariserError, match="window of 150 tokens") as caught:
        parted(messages, 150)
    assert caught.value.reason == "too_large"
