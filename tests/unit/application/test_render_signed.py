"""A provider's own compaction block: where it is rendered, unchanged, and where its text stands for it."""

import copy
import json
from typing import Any

import pytest

from refold.application.api.results import Context
from refold.application.conversation.loaded import Window, project
from refold.application.conversation.models import COMPACTION_BETA, takes_signed_summaries
from refold.application.ports.summariser import SourceMessage
from refold.application.rendering import request_blocks as texts
from refold.application.rendering.render import Rendered, render, summary_overhead
from refold.application.rendering.request_forms import render_covered
from refold.domain.compaction.budget import budget_for
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import Event, MessagePinned
from refold.domain.messages import Block, Message
from refold.testing.request_judge import violations
from tests.support.api_refusals import compaction_block, refusal
from tests.support.builders import (
    assistant,
    calls,
    coverage,
    history,
    performed,
    results,
    text,
    thinking,
    user,
)
from tests.support.fake_ports import PlainCounter

COUNT = PlainCounter().count_text
BLOCK = compaction_block("what was said", tool_changes=[], encrypted_content=None)
SUMMARY = performed(2, text="what was said", block=BLOCK)
TALK = history(user("hello"), assistant("hi"), user("and now?"))


def rendered(*events: Event, signed: bool = True) -> Rendered:
    """The request of these events; both judges find nothing wrong with it."""
    window = project(Window(), events)
    made = render("t", window, None, COUNT, signed=signed)
    request: dict[str, Any] = {"messages": made.messages}
    if made.system:
        request["system"] = made.system
    assert violations(request) == []
    beta = COMPACTION_BETA if signed else ""
    assert refusal({**request, "model": "m"}, beta, counting=True) is None
    return made


def test_the_block_opens_the_first_turn_of_the_user_unchanged() -> None:
    made = rendered(*TALK, SUMMARY)
    assert made.messages == [{"role": "user", "content": [BLOCK, text("and now?")]}]
    assert json.dumps(made.messages[0]["content"][0]) == json.dumps(BLOCK)
    assert made.system == texts.SIGNED_GUIDANCE


def test_a_model_that_does_not_take_it_gets_its_text() -> None:
    made = rendered(*TALK, SUMMARY, signed=False)
    assert made == rendered(*TALK, performed(2, text="what was said"))
    assert "compaction" not in json.dumps(made.messages)


def test_both_forms_are_of_the_size_that_was_recorded() -> None:
    assert rendered(*TALK, SUMMARY).tokens == rendered(*TALK, SUMMARY, signed=False).tokens
    assert COUNT(texts.SIGNED_GUIDANCE) <= summary_overhead(COUNT)


def test_the_ledger_follows_the_block() -> None:
    pin = MessagePinned(pin_id="p", position=None, text="Never push.", tokens=10)
    content = rendered(*TALK, SUMMARY, pin).messages[0]["content"]
    assert content[0] == BLOCK
    assert "Never push." in content[1]["text"]
    assert content[2] == text("and now?")


@pytest.mark.parametrize(
    "kept",
    [
        [assistant("still here"), user("and now?")],
        [calls("a"), results("a")],
        [assistant(thinking(), text("so")), user("and now?")],
        [results("gone"), assistant("ok"), user("and now?")],
    ],
)
def test_whatever_is_kept_the_block_is_the_first(kept: list[Message]) -> None:
    made = rendered(*history(user("hello"), assistant("hi"), *kept), SUMMARY)
    assert made.messages[0]["role"] == "user"
    assert made.messages[0]["content"][0] == BLOCK


def test_a_kept_request_stands_behind_the_block() -> None:
    kept = performed(3, text="what was said", block=BLOCK, coverage=coverage(3, exclusions=(0,)))
    talk = history(user("hello"), calls("a"), results("a"), calls("b"), results("b"))
    content = rendered(*talk, kept).messages[0]["content"]
    assert content == [BLOCK, text("hello")]


@pytest.mark.parametrize(
    "block",
    [
        compaction_block(None),
        compaction_block(""),
        compaction_block(" \n"),
        compaction_block("a lone \ud800 surrogate"),
        {"type": "compaction"},
    ],
)
def test_a_block_that_says_nothing_or_cannot_be_sent_gives_way_to_the_text(block: Block) -> None:
    made = rendered(*TALK, performed(2, text="what was said", block=block))
    assert made.messages[0]["content"][0] == text("[Conversation Summary]\nwhat was said")
    assert made.system == texts.SUMMARY_GUIDANCE


def test_the_same_events_give_the_same_bytes_and_nothing_is_shared_with_the_log() -> None:
    first = rendered(*TALK, SUMMARY)
    before = copy.deepcopy(SUMMARY)
    first.messages[0]["content"][0]["content"] = "changed"
    first.messages[0]["content"][0]["tool_changes"].append("changed")
    assert before == SUMMARY
    assert rendered(*TALK, SUMMARY).messages[0]["content"][0] == BLOCK


def test_a_block_that_somebody_logged_is_shown_as_text_or_not_at_all() -> None:
    """A request takes none but its own, and that one first."""
    logged = assistant(compaction_block("by another memory"), compaction_block(None), text("hi"))
    made = rendered(*history(user("hello"), logged, user("and now?")))
    assert made.messages[1]["content"] == [text("by another memory"), text("hi")]


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("claude-opus-5-5", True),
        ("claude-sonnet-4-6-20260201", True),
        ("anthropic/claude-fable-5-1", True),
        ("claude-haiku-5-5", False),
        ("claude-opus-4-5", False),
        ("openrouter/anthropic/claude-opus-5-5", False),
        ("us.anthropic.claude-opus-5-5", False),
        ("gpt-5", False),
        ("", False),
        (None, False),
    ],
)
def test_the_model_decides_which_form_is_sent(model: str | None, takes: bool) -> None:
    assert takes_signed_summaries(model) == takes


def context(messages: list[dict[str, Any]]) -> Context:
    return Context(
        thread_id="t",
        version=1,
        model=None,
        system="",
        messages=messages,
        tools=[],
        tokens=1,
        budget=budget_for(8_000, 0, CompactionPolicy(), summary_overhead=0),
        summary=None,
    )


def test_a_request_with_a_block_names_its_beta() -> None:
    made = context(rendered(*TALK, SUMMARY).messages)
    assert made.betas == (COMPACTION_BETA,)
    assert made.for_anthropic() == {
        "messages": made.messages,
        "extra_headers": {"anthropic-beta": COMPACTION_BETA},
    }


def test_betas_of_the_caller_go_into_the_same_header() -> None:
    made = context(rendered(*TALK, SUMMARY).messages)
    headers = made.for_anthropic(betas=["files-api-2025-04-14", COMPACTION_BETA])["extra_headers"]
    assert headers == {"anthropic-beta": f"files-api-2025-04-14,{COMPACTION_BETA}"}


@pytest.mark.parametrize("events", [TALK, [*TALK, performed(2)]])
def test_a_request_without_one_names_none(events: list[Event]) -> None:
    made = context(rendered(*events).messages)
    assert made.betas == ()
    assert "extra_headers" not in made.for_anthropic()


def covered(*messages: Message) -> list[SourceMessage]:
    return [SourceMessage(position=n, message=message) for n, message in enumerate(messages)]


def test_covered_messages_alone_are_rendered_as_they_came() -> None:
    turns = render_covered(covered(user("hello"), calls("a"), results("a"), assistant("hi")))
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant"]
    assert turns[-1] == {"role": "assistant", "content": "hi"}
    assert violations({"messages": [*turns, {"role": "user", "content": "x"}]}) == []


def test_nothing_covered_is_rendered_as_nothing() -> None:
    assert render_covered([]) == []
    assert render_covered([], "before") == [
        {"role": "user", "content": [text("[Conversation Summary]\nbefore")]}
    ]
