"""Topics that a model names: taken off its text, whatever their form, and never a reason to refuse it."""

import asyncio

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.ports.summariser import SourceMessage, SummaryDraft, SummaryRequest
from refold.infrastructure.summarisers.anthropic import AnthropicSummariser
from refold.infrastructure.summarisers.prompt import TOPICS, build_prompt, without_topics
from refold.infrastructure.summarisers.server_compaction import instructions_for
from tests.support.anthropic_server import GOOD_SUMMARY, AnthropicServer, ok
from tests.support.builders import user

REQUEST = SummaryRequest(
    messages=(SourceMessage(position=0, message=user("Fix the retry policy.")),)
)


def answered(text: str) -> SummaryDraft:
    with AnthropicServer([ok(text)]) as server:
        client = anthropic.AsyncAnthropic(api_key="test", base_url=server.base_url, max_retries=0)
        return asyncio.run(AnthropicSummariser(client=client).summarise(REQUEST))


@pytest.mark.parametrize(
    "section",
    [
        "## Recallable Topics\n- retry policy\n- payments.py",
        "## Recallable Topics\nretry policy, payments.py",
        "**Recallable Topics**: retry policy; payments.py",
        "9. Recallable Topics\n1. retry policy\n2. payments.py\n",
        "[Recallable Topics]: retry policy、payments.py",
    ],
)
def test_the_section_is_taken_off_whatever_its_form(section: str) -> None:
    draft = answered(f"{GOOD_SUMMARY}\n\n{section}")
    assert draft.text == GOOD_SUMMARY
    assert draft.topics == ("retry policy", "payments.py")
    assert all(heading in draft.text for heading in draft.required)


def test_a_text_without_it_is_as_good() -> None:
    draft = answered(GOOD_SUMMARY)
    assert (draft.text, draft.topics) == (GOOD_SUMMARY, ())


def test_where_it_stands_in_the_middle_the_rest_stays() -> None:
    text, topics = without_topics("## A\nx\n\n## Recallable Topics\none\ntwo\n\n## B\ny")
    assert text == "## A\nx\n\n## B\ny"
    assert topics == ("one", "two")


@pytest.mark.parametrize("nothing", ["None.", "", "-", "n/a"])
def test_nothing_is_no_topic(nothing: str) -> None:
    assert without_topics(f"## A\nx\n\n## {TOPICS}\n{nothing}") == ("## A\nx", ())


@given(st.text(max_size=300))
def test_no_text_breaks_it_and_no_heading_of_it_is_left(text: str) -> None:
    left, topics = without_topics(f"{text}\n## {TOPICS}\n{text}")
    assert f"## {TOPICS}" not in left
    assert all(topic.strip() for topic in topics)


def test_it_is_asked_for_where_a_text_comes_back_and_not_where_a_signed_block_does() -> None:
    assert f"## {TOPICS}" in build_prompt(REQUEST).system
    assert TOPICS not in instructions_for(REQUEST)
