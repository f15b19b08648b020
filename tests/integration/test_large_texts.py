"""A user's text that leaves no room is shown by head, tail and address; bytes are counted as tokens are."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.testing.request_judge import violations

ASKED, ENDED = "QUESTION: what is wrong in this log?", "Answer in French, please. END"


def pasted(lines: int) -> str:
    log = "\n".join(f"line {n}: value {n * 7919 % 1000} of the sensor" for n in range(lines))
    return f"{ASKED}\n{log}\n{ENDED}"


def talked(conversation: refold.ConversationMemory, turns: int = 4) -> None:
    for n in range(turns):
        conversation.append({"role": "user", "content": f"q{n} " + "word " * 50})
        conversation.append({"role": "assistant", "content": f"a{n} " + "word " * 50})


def said(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else str(content[-1]["text"])


@pytest.mark.slow(but=["False-8000", "False-32000"])
@pytest.mark.parametrize("window", [8_000, 32_000, 200_000])
@pytest.mark.parametrize("as_blocks", [False, True])
def test_a_text_larger_than_the_window_is_shown_by_its_ends_and_read_back_whole(
    window: int, as_blocks: bool, tmp_path: Path
) -> None:
    text = pasted(window // 5)
    with refold.open(tmp_path / "a.db", window=window) as memory:
        conversation = memory.conversation("t")
        talked(conversation)
        conversation.append(
            {"role": "user", "content": [{"type": "text", "text": text}] if as_blocks else text}
        )
        context = conversation.context()
        assert context.tokens <= context.budget.target
        assert violations(context.for_anthropic()) == []
        shown = said(context.messages[-1])
        assert shown.startswith(ASKED)
        assert shown.endswith(ENDED)
        left = f"{len(text):,} characters of this text are left out here"
        assert left in shown
        assert "refold://t/8" in shown
        assert context.compactions[0].outcome == "shortened"
        # Nothing else had to go, and nothing changes later.
        assert conversation.explain(8, 9)[0].why.startswith("what the user said shown by")
        conversation.append({"role": "assistant", "content": "Voilà."})
        conversation.append({"role": "user", "content": "thanks"})
        assert said(conversation.context().messages[8]) == shown
        [reader] = [tool for tool in conversation.tools() if tool.name == "read_offloaded"]
        assert "line 17: " in str(reader(address="refold://t/8"))
        assert conversation.read("refold://t/8").text == text
        version = conversation.version
    with refold.open(tmp_path / "a.db", window=window) as memory:
        assert said(memory.conversation("t").context(at=version).messages[8]) == shown
        assert memory.verify().ok


def test_several_texts_that_do_not_fit_together_are_shown_shorter_one_by_one() -> None:
    with refold.open(":memory:", window=8_000) as memory:
        conversation = memory.conversation("t")
        conversation.append([{"role": "user", "content": pasted(200 + n)} for n in range(4)])
        context = conversation.context()
        assert context.tokens <= context.budget.limit
        texts = str(context.messages)
        assert texts.count(ASKED) == texts.count(ENDED) == 4


@pytest.mark.parametrize("share", [0.6, 0.95, 1.5])
@pytest.mark.parametrize("on_demand", [False, True])
def test_a_summary_has_the_room_that_a_shortened_text_no_longer_needs(
    share: float, on_demand: bool
) -> None:
    def summarised(last: str) -> tuple[int, int]:
        with refold.open(":memory:", window=16_000) as memory:
            conversation = memory.conversation("t")
            for n in range(300):
                asked = f"Set /etc/app/{n}.conf to {n * 7919}; the ticket is OPS-{n * 31}. "
                conversation.append({"role": "user", "content": asked + "word " * 20})
                conversation.append({"role": "assistant", "content": f"Done: {n * 7919}."})
            conversation.append({"role": "user", "content": last})
            if on_demand:
                conversation.compact()
            shown = said(conversation.context().messages[-1])
            assert shown.endswith(last[-20:])
            return conversation.summaries()[-1].tokens, len(shown)

    usual, _ = summarised("And now?")
    text = pasted(int(share * 1_000))
    tokens, shown = summarised(text)
    if shown < len(text):
        assert tokens > 0.75 * usual
    else:
        assert on_demand
        assert share < 0.9


def test_who_does_not_want_that_says_so_and_is_told_the_way_out() -> None:
    with refold.open(":memory:", window=8_000, shorten_texts=False) as memory:
        conversation = memory.conversation("t")
        talked(conversation)
        conversation.append({"role": "user", "content": pasted(3_000)})
        with pytest.raises(refold.ContextWindowExceeded, match=r"conversation\.erase\(8\)"):
            conversation.context()
        conversation.erase(8)
        assert conversation.context().tokens < 2_000


def test_a_pinned_text_is_never_cut_and_the_error_says_unpin() -> None:
    with refold.open(":memory:", window=8_000) as memory:
        conversation = memory.conversation("t")
        talked(conversation)
        conversation.append({"role": "user", "content": pasted(290)})
        pin_id = conversation.pin(8)
        with pytest.raises(refold.ContextWindowExceeded) as caught:
            conversation.context(system="rule " * 3_000)
        assert f"conversation.unpin('{pin_id}')" in str(caught.value)
        conversation.unpin(pin_id)
        context = conversation.context(system="rule " * 3_000)
        assert context.tokens <= context.budget.limit


def image(megabytes: float) -> dict[str, Any]:
    data = base64.b64encode(os.urandom(int(megabytes * 750_000))).decode()
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": data},
    }


@pytest.mark.slow(but="True")
@pytest.mark.parametrize("by_tool", [False, True])
def test_no_request_has_more_bytes_than_may_be_sent(by_tool: bool) -> None:
    limit, decisions = 2_000_000, 0
    with refold.open(":memory:", request_bytes=limit) as memory:
        conversation = memory.conversation("t")
        for n in range(16):
            if by_tool:
                call: dict[str, Any] = {
                    "type": "tool_use",
                    "id": f"c{n}",
                    "name": "shot",
                    "input": {},
                }
                result: dict[str, Any] = {
                    "type": "tool_result",
                    "tool_use_id": f"c{n}",
                    "content": [image(0.4)],
                }
                if n == 0:
                    conversation.append({"role": "user", "content": "look"})
                conversation.append({"role": "assistant", "content": [call]})
                conversation.append({"role": "user", "content": [result]})
            else:
                conversation.append({"role": "user", "content": [image(0.4)]})
            context = conversation.context()
            body = len(json.dumps(context.for_anthropic()))
            assert body <= context.bytes <= body + 3_000
            assert context.bytes <= context.budget.byte_limit == limit
            assert violations(context.for_anthropic()) == []
            assert "base64" in str(context.messages[-1])[:2_000]
            decisions += bool(context.compactions)
            if not by_tool:
                conversation.append({"role": "assistant", "content": "ok"})
    assert 3 <= decisions <= 8


def screenshots(conversation: refold.ConversationMemory, number: int, *, by_tool: bool) -> None:
    """Append a small image, as a result or as what the user shows."""
    shot: dict[str, Any] = {
        "type": "image",
        "source": {"type": "url", "url": f"https://example.org/{number}.png"},
    }
    if not by_tool:
        conversation.append({"role": "user", "content": [shot]})
        return
    call: dict[str, Any] = {"type": "tool_use", "id": f"c{number}", "name": "shot", "input": {}}
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": f"c{number}",
        "content": [shot],
    }
    conversation.append({"role": "assistant", "content": [call]})
    conversation.append({"role": "user", "content": [result]})


@pytest.mark.parametrize("by_tool", [False, True])
def test_no_request_has_more_images_than_the_api_takes(by_tool: bool) -> None:
    decisions, shown = 0, ""
    with refold.open(":memory:", window=5_000_000) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "look"})
        for number in range(160):
            screenshots(conversation, number, by_tool=by_tool)
            if number < 97:
                continue
            context = conversation.context(model="claude-sonnet-4-5")
            shown = str(context.messages)
            assert shown.count("example.org") == context.images <= context.budget.image_limit == 100
            assert f"/{number}.png" in str(context.messages[-1])
            assert violations(context.for_anthropic(), model="claude-sonnet-4-5") == []
            decisions += bool(context.compactions)
            if not by_tool:
                conversation.append({"role": "assistant", "content": "ok"})
        assert "refold://t/" in shown
    # Half of them make room, so the next images change nothing.
    assert 1 <= decisions <= 2


def test_a_model_that_takes_more_images_gets_them() -> None:
    with refold.open(":memory:", model="claude-opus-5-5") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "look"})
        for number in range(120):
            screenshots(conversation, number, by_tool=True)
        context = conversation.context()
        assert (context.images, context.budget.image_limit) == (120, 600)
        assert not context.compactions


def test_an_image_that_cannot_be_sent_at_all_is_shown_by_a_marker_or_refused_where_pinned() -> None:
    with refold.open(":memory:", request_bytes=500_000) as memory:
        conversation = memory.conversation("t")
        conversation.append(
            {"role": "user", "content": [{"type": "text", "text": "see"}, image(0.7)]}
        )
        context = conversation.context()
        assert context.bytes < 5_000
        assert "image not shown here; the message with it is kept at refold://t/0" in str(
            context.messages
        )
        other = memory.conversation("u")
        other.append({"role": "user", "content": [{"type": "text", "text": "see"}, image(0.7)]})
        other.pin(0)
        with pytest.raises(refold.ContextWindowExceeded, match=r"bytes.*`request_bytes`") as caught:
            other.context()
        assert caught.value.budget == 500_000


def test_the_newest_screenshot_is_always_shown() -> None:
    with refold.open(":memory:", window=16_000) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "look"})
        source = {"type": "url", "url": "https://example.org/a.png"}
        for n in range(6):
            call: dict[str, Any] = {"type": "tool_use", "id": f"c{n}", "name": "shot", "input": {}}
            shot = {"type": "image", "source": source}
            result: dict[str, Any] = {
                "type": "tool_result",
                "tool_use_id": f"c{n}",
                "content": [shot],
            }
            conversation.append({"role": "assistant", "content": [call]})
            conversation.append({"role": "user", "content": [result]})
            context = conversation.context()
            assert "a.png" in str(context.messages[-1])
            assert context.tokens <= context.budget.limit


def test_a_conversation_without_messages_gives_no_request_and_says_why() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        context = conversation.context(system="Be brief.")
        assert (context.messages, context.budget.limit > 0) == ([], True)
        with pytest.raises(refold.EmptyConversation, match="append a user message first"):
            context.for_anthropic()
        conversation.append({"role": "user", "content": "hello"})
        assert violations(conversation.context().for_anthropic()) == []
