"""The estimator is measured against a real tokenizer, and must never fall when content is added."""

import importlib
import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refold.application.ports.token_counter import TokenCounter
from refold.domain.messages import Block, Message
from refold.infrastructure.tokens.estimator import (
    CLASSES,
    FITTED,
    HIGH_RESOLUTION_IMAGE,
    MESSAGE_FRAME,
    TOOLS_PREAMBLE,
    EstimatingTokenCounter,
    sum_of_bytes,
)
from refold.infrastructure.tokens.media import STANDARD_IMAGE

FIXTURE: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[2] / "golden" / "token_fixture.json").read_text(encoding="utf-8")
)
COUNTER = EstimatingTokenCounter()
# Runs of spaces, digits before capitals, and quotes are where a weight could be taken back.
TEXTS = st.text() | st.text(alphabet='  aA0"=.\n测🎉\ud800é') | st.sampled_from(FIXTURE["mixed"])


@cache
def o200k() -> Callable[[str], list[int]]:
    """The real tokenizer; its package reads its own data with a deprecated function."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        package: Any = importlib.import_module("bpe_openai")
        encode: Callable[[str], list[int]] = package.get_encoding("o200k_base").encode_ordinary
    return encode


def error_of(texts: list[str]) -> float:
    """Estimated over real tokens, minus one, for all texts together."""
    encode = o200k()
    return sum(map(COUNTER.count_text, texts)) / sum(len(encode(text)) for text in texts) - 1


def total(*blocks: Block, counter: TokenCounter = COUNTER) -> int:
    return counter.count_message(Message(role="user", content=blocks)).total


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


# --- error -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["english", "code", "json", "mixed", "logs"])
def test_each_class_of_text_is_estimated_between_5_percent_below_and_35_above(kind: str) -> None:
    assert -0.05 <= error_of(FIXTURE[kind]) <= 0.35


def test_chinese_is_estimated_between_the_true_count_and_40_percent_above() -> None:
    assert 0 <= error_of(FIXTURE["chinese"]) <= 0.40


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, texts in FIXTURE.items() for t in texts])
def test_no_single_text_is_estimated_below_its_true_count(kind: str, text: str) -> None:
    # Twice is the worst case: rulers and dotted lines, where one token is many signs.
    assert 0 <= error_of([text]) <= 1.0, kind


def test_the_fixture_has_enough_texts_of_every_class() -> None:
    assert set(FIXTURE) == {"english", "code", "json", "chinese", "mixed", "logs"}
    assert all(len(texts) >= 5 for texts in FIXTURE.values())
    assert all(500 <= len(text) <= 3000 for texts in FIXTURE.values() for text in texts)


# --- monotone ----------------------------------------------------------------------------------------


@given(TEXTS, TEXTS)
def test_a_longer_text_never_counts_less_than_its_parts(first: str, second: str) -> None:
    whole = COUNTER.count_text(first + second)
    assert whole >= max(COUNTER.count_text(first), COUNTER.count_text(second))


@given(TEXTS, TEXTS, st.integers(min_value=0))
@example("9B  ", "数Ab C", 1)
@example("2A", ".", 1)
@example("  ", "x", 1)
def test_inserting_text_anywhere_never_lowers_a_count(text: str, more: str, at: int) -> None:
    at %= len(text) + 1
    longer = COUNTER.count_text(text[:at] + more + text[at:])
    assert longer >= max(COUNTER.count_text(text), COUNTER.count_text(more))


@pytest.mark.parametrize("kind", sorted(FIXTURE))
def test_inserting_signs_into_a_real_text_never_lowers_its_count(kind: str) -> None:
    text = FIXTURE[kind][0][:300]
    before = COUNTER.count_text(text)
    for at in range(len(text) + 1):
        for sign in (" ", "0", "A", "a", "\n", "-", "测", "🎉"):
            assert COUNTER.count_text(text[:at] + sign + text[at:]) >= before


def test_no_short_text_counts_less_for_one_more_character_at_either_end() -> None:
    signs = " 0Aa/\n测"
    shorter = [""]
    for _ in range(4):
        longer = [text + sign for text in shorter for sign in signs]
        for text in longer:
            count = COUNTER.count_text(text * 10)
            assert count >= COUNTER.count_text(text * 9 + text[:-1])
            assert count >= COUNTER.count_text(text[1:] + text * 9)
        shorter = longer


def extended(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS, extended, max_leaves=6
)


def thinking_block(text: str) -> Block:
    return {"type": "thinking", "thinking": text, "signature": "c2ln" * 9}


def redacted_block(data: str) -> Block:
    return {"type": "redacted_thinking", "data": data}


def call_block(value: Any) -> Block:
    return {"type": "tool_use", "id": "toolu_1", "name": "read", "input": value}


def result_block(text: str) -> Block:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": text}


def unknown_block(value: Any) -> Block:
    return {"type": "novelty", "payload": value}


IMAGE: Block = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    TEXTS.map(text_block),
    TEXTS.map(thinking_block),
    TEXTS.map(redacted_block),
    JSON_VALUES.map(call_block),
    TEXTS.map(result_block),
    JSON_VALUES.map(unknown_block),
    st.just(IMAGE),
)


@given(st.lists(BLOCKS, max_size=4), BLOCKS, st.integers(min_value=0))
def test_a_message_with_a_block_more_never_counts_less(
    blocks: list[Block], more: Block, at: int
) -> None:
    place = at % (len(blocks) + 1)
    longer = [*blocks[:place], more, *blocks[place:]]
    before = COUNTER.count_message(Message(role="assistant", content=tuple(blocks)))
    after = COUNTER.count_message(Message(role="assistant", content=tuple(longer)))
    assert after.total >= before.total
    assert after.thinking >= before.thinking


@given(st.lists(BLOCKS, max_size=5))
def test_total_minus_thinking_is_never_less_than_the_message_without_thinking(
    blocks: list[Block],
) -> None:
    rest = [b for b in blocks if b["type"] not in ("thinking", "redacted_thinking")]
    count = COUNTER.count_message(Message(role="assistant", content=tuple(blocks)))
    assert 0 <= count.thinking <= count.total
    assert count.total - count.thinking >= total(*rest)


@given(st.lists(st.dictionaries(st.text(), JSON_VALUES, max_size=3), max_size=3))
def test_a_tool_more_never_counts_less(tools: list[dict[str, object]]) -> None:
    counts = [COUNTER.count_tools(tuple(tools[:n])) for n in range(len(tools) + 1)]
    assert counts == sorted(counts)


# --- images, documents, thinking ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 4000},
        {"type": "base64", "media_type": "image/png", "data": "not base64: \u00e9"},
        {"type": "base64", "media_type": "image/jpeg", "data": "/9j/"},
        {"type": "url", "url": "https://example.org/" + "long/" * 300 + "picture.webp"},
        {"type": "file", "file_id": "file_011"},
    ],
)
def test_an_image_of_unknown_size_costs_the_most(source: dict[str, Any]) -> None:
    image: Block = {"type": "image", "source": source}
    assert total(image) == MESSAGE_FRAME + HIGH_RESOLUTION_IMAGE
    inside: Block = {"type": "tool_result", "tool_use_id": "t", "content": [image]}
    empty: Block = {"type": "tool_result", "tool_use_id": "t", "content": []}
    assert total(inside) - total(empty) == HIGH_RESOLUTION_IMAGE
    older = EstimatingTokenCounter(image_tokens=STANDARD_IMAGE)
    assert total(image, counter=older) == MESSAGE_FRAME + STANDARD_IMAGE


def document(**source: Any) -> int:
    return total({"type": "document", "source": source}) - MESSAGE_FRAME


def test_a_pdf_costs_by_its_size_and_at_least_a_page() -> None:
    assert document(type="base64", media_type="application/pdf", data="JVBERi0") == 1_500
    assert document(type="base64", media_type="application/pdf", data="A" * 200_000) == 6_000
    assert document(type="url", url="https://example.org/a.pdf") == 15_000
    assert document(type="file", file_id="file_011") == 15_000


def test_a_text_document_costs_what_its_text_costs() -> None:
    text = FIXTURE["english"][0]
    assert document(type="text", media_type="text/plain", data=text) == COUNTER.count_text(text)
    assert document(type="content", content=[text_block(text)]) == COUNTER.count_text(text)


def test_a_signature_beside_its_thinking_costs_nothing() -> None:
    thinking: Block = {"type": "thinking", "thinking": FIXTURE["english"][0], "signature": "c2ln"}
    signed = {**thinking, "signature": "c2ln" * 100}
    assert total(thinking) == total(signed)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": "", "signature": "Q" * 2_000},
        {"type": "redacted_thinking", "data": "Q" * 2_000},
    ],
)
def test_hidden_thinking_costs_a_share_of_its_ciphertext(block: Block) -> None:
    count = COUNTER.count_message(Message(role="assistant", content=(block,)))
    assert count.thinking == 300
    assert count.total == 300 + MESSAGE_FRAME


# --- messages and tools ------------------------------------------------------------------------------


def test_a_string_counts_as_one_text_block() -> None:
    text = FIXTURE["code"][0]
    plain = COUNTER.count_message(Message(role="user", content=text))
    assert plain.total == total(text_block(text)) == COUNTER.count_text(text) + MESSAGE_FRAME
    assert plain.thinking == 0


def test_an_empty_text_costs_nothing_and_an_empty_message_its_frame() -> None:
    assert COUNTER.count_text("") == 0
    assert total() == MESSAGE_FRAME


def test_a_tool_call_and_its_result_cost_their_texts_and_a_frame() -> None:
    call = total({"type": "tool_use", "id": "t", "name": "read", "input": {"path": "测试.txt"}})
    texts = COUNTER.count_text("read") + COUNTER.count_text('{"path": "测试.txt"}')
    assert call == pytest.approx(MESSAGE_FRAME + 45 + texts, abs=1)
    result = total({"type": "tool_result", "tool_use_id": "t", "content": "four words of text"})
    assert result == MESSAGE_FRAME + 30 + COUNTER.count_text("four words of text")


def test_an_unknown_block_costs_its_json() -> None:
    block: Block = {"type": "novelty", "payload": {"深": ["度", 1, None]}}
    text = json.dumps(block, ensure_ascii=False)
    assert total(block) == MESSAGE_FRAME + COUNTER.count_text(text)


def test_tools_cost_a_preamble_once_and_nothing_when_there_are_none() -> None:
    tool: dict[str, object] = {"name": "read", "description": "Reads.", "input_schema": {}}
    one, two = COUNTER.count_tools((tool,)), COUNTER.count_tools((tool, tool))
    assert COUNTER.count_tools(()) == 0
    assert one > TOOLS_PREAMBLE
    assert two - one < one - TOOLS_PREAMBLE + 1


def test_lone_surrogates_are_counted() -> None:
    assert COUNTER.count_text("\ud83d and \udc00") > COUNTER.count_text(" and ")


# --- the machinery -----------------------------------------------------------------------------------


@given(st.binary(max_size=2_000) | st.just(b"\xff" * 5_000))
def test_the_sum_of_bytes_is_exact(data: bytes) -> None:
    assert sum_of_bytes(data) == sum(data)


def test_every_first_byte_of_a_character_is_in_exactly_one_class() -> None:
    members = b"".join(CLASSES.values())
    assert sorted(members) == [*range(0x80), *range(0xC2, 0xF5)]
    assert set(CLASSES) == set(FITTED._fields) - {"lone_space", "digit_then_upper"}


def test_only_a_digit_before_a_capital_costs_more_than_both_alone() -> None:
    signs = [chr(members[0]) for members in CLASSES.values() if members[0] < 0x80]
    for first in signs:
        for second in signs:
            apart = COUNTER.count_text(first * 500) + COUNTER.count_text(second * 500)
            together = COUNTER.count_text(first * 500 + second * 500 + (first + second) * 500)
            assert (together > 2 * apart + 500) == ({first, second} == {"0", "A"})


def test_base64_is_not_taken_for_prose() -> None:
    text = FIXTURE["json"][4] + "Zm9vYmFyMDEyMzQ1Njc4OUFCQ0RFRkdISUpLTE1OT1BRUlNUVVZXWFla" * 20
    assert error_of([text]) > -0.05
