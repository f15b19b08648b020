from typing import Any

import pytest

from refold.domain.messages import Message, block_words, readable

PAGE = {"type": "document", "title": "Lease", "source": {"type": "text", "data": "Number ZK-7741."}}


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"type": "text", "text": "hello", "citations": [{"cited_text": "other"}]}, "hello"),
        ({"type": "text", "text": ""}, ""),
        (PAGE, "Lease\nNumber ZK-7741."),
        (
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a"}]}},
            "a",
        ),
        ({"type": "document", "source": {"type": "base64", "data": "QUJD"}, "title": "P"}, "P"),
        ({"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}, ""),
        ({"type": "tool_result", "tool_use_id": "t", "content": "done"}, "done"),
        (
            {"type": "tool_result", "content": [{"type": "text", "text": "one"}, PAGE, {"type": "image"}]},
            "one\nLease\nNumber ZK-7741.",
        ),
        (
            {
                "type": "bash_code_execution_tool_result",
                "content": {
                    "type": "bash_code_execution_result",
                    "stdout": "quokka 42",
                    "stderr": "warned",
                    "return_code": 0,
                    "content": [],
                },
            },
            "quokka 42\nwarned",
        ),
        (
            {
                "type": "web_search_tool_result",
                "content": [
                    {
                        "type": "web_search_result",
                        "title": "Ports",
                        "url": "https://x.example/ports",
                        "encrypted_content": "AAAA",
                    }
                ],
            },
            "Ports\nhttps://x.example/ports",
        ),
        ({"type": "web_fetch_tool_result", "content": {"url": "https://x.example", "content": PAGE}},
         "https://x.example\nLease\nNumber ZK-7741."),
        (
            {"type": "web_search_tool_result", "content": {"error_code": "max_uses_exceeded"}},
            "max_uses_exceeded",
        ),
        (
            {
                "type": "search_result",
                "source": "https://x.example",
                "title": "T",
                "content": [{"type": "text", "text": "body"}],
            },
            "T\nhttps://x.example\nbody",
        ),
        ({"type": "unheard_of", "content": 7, "title": None}, ""),
    ],
)  # fmt: skip
def test_the_words_of_a_block_are_all_that_a_reader_sees(
    block: dict[str, object], words: str
) -> None:
    assert block_words(block) == words


def blocks(*content: dict[str, Any]) -> Message:
    return Message(role="assistant", content=content)


def test_words_calls_and_results_are_text_and_thinking_is_not() -> None:
    message = blocks(
        {"type": "thinking", "thinking": "secret", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "I look."},
        {"type": "text", "text": " \n"},
        {"type": "tool_use", "id": "c", "name": "read", "input": {"path": "数据.txt", "n": 2}},
        {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "line"}]},
    )
    assert readable(message) == 'I look.\n→ read {"path": "数据.txt", "n": 2}\nline'


def test_a_block_without_text_is_named() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [image]}
    assert readable(blocks(image, result, {"type": "future_block"})) == (
        "[image]\n[tool_result]\n[future_block]"
    )


def test_a_long_result_is_kept_in_full() -> None:
    text = "x" * 100_000
    assert readable(blocks({"type": "tool_result", "content": text})) == text
