"""Topics beside a summary: one line of labels behind its text, said to be data, counted with it."""

from typing import Any

from refold.application.conversation.loaded import Window
from refold.application.rendering import request_blocks as texts
from refold.application.rendering.render import Rendered, render, topics_line, topics_tokens
from refold.domain.conversation import Topic
from refold.domain.frames import SummaryPlace
from tests.support.builders import performed
from tests.support.fake_ports import PlainCounter

COUNT = PlainCounter().count_text
TOPICS = tuple(Topic(name=n, count=1, last_position=0) for n in ("retry policy", "app.py", "third"))
LINE = "[Recallable Topics]: retry policy, app.py (ask recall_memory)"
BLOCK = {"type": "compaction", "content": "what was said", "signature": "sig"}


def rendered(place: SummaryPlace = "user", *, signed: bool = False, **more: Any) -> Rendered:
    window = Window(summary=performed(2, **more))
    return render("t", window, "You help.", COUNT, signed=signed, place=place)


def test_without_topics_nothing_is_rendered_otherwise() -> None:
    plain = rendered()
    assert rendered(topics=TOPICS, topics_shown=0) == plain
    assert "Topics" not in str(plain)


def test_those_that_are_shown_stand_behind_the_text_in_the_same_block() -> None:
    made = rendered(topics=TOPICS, topics_shown=2)
    said = f"{texts.SUMMARY_HEADING}\nwhat was said\n\n{LINE}"
    assert made.memory == (said,)
    assert made.messages[0]["content"] == [{"type": "text", "text": said}]
    assert made.system == f"You help.\n\n{texts.SUMMARY_GUIDANCE} {texts.TOPICS_GUIDANCE}"
    assert made.opening == 1


def test_in_the_system_text_they_stand_there_with_it() -> None:
    made = rendered("system", topics=TOPICS, topics_shown=2)
    assert str(made.system).endswith(f"what was said\n\n{LINE}")


def test_beside_a_signed_block_they_stand_in_a_block_of_their_own() -> None:
    made = rendered(signed=True, topics=TOPICS, topics_shown=2, block=BLOCK)
    assert made.messages[0]["content"] == [BLOCK, {"type": "text", "text": LINE}]
    assert made.opening == 2
    assert texts.SIGNED_GUIDANCE in str(made.system)
    alone = rendered(signed=True, block=BLOCK)
    assert alone.messages[0]["content"] == [BLOCK]


def test_what_they_cost_is_what_they_add() -> None:
    assert topics_tokens((), COUNT, apart=False, ask=True) == 0
    line, guidance = COUNT(f"\n\n{LINE}"), COUNT(f" {texts.TOPICS_GUIDANCE}")
    assert topics_tokens(TOPICS[:2], COUNT, apart=False, ask=True) == line + guidance
    assert topics_tokens(TOPICS[:2], COUNT, apart=True, ask=True) > line + guidance
    assert topics_line((), ask=True) == ""


def test_the_tool_is_named_only_where_requests_carry_it() -> None:
    made = rendered(topics=TOPICS, topics_shown=2, topics_ask=False)
    assert made.memory[0].endswith("\n\n[Recallable Topics]: retry policy, app.py")
    less = topics_tokens(TOPICS[:2], COUNT, apart=False, ask=False)
    assert less < topics_tokens(TOPICS[:2], COUNT, apart=False, ask=True)
