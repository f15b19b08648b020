"""Every topic that a conversation lists leads to at least one message, in Chinese and in English."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import refold
from tests.support.effort import one_in
from tests.support.hostile_texts import ALL

SUBJECTS = (
    "retry policy",
    "Zürich office",
    "parse_config",
    "src/app/RetryPolicy.py",
    "node.js",
    "decorator pattern",
    "缓存策略",
    "数据库迁移",
    "《红楼梦》",
    "支付接口",
    "Postgres 端口",
    "C++",
    "2026 roadmap",
)
OWN_WORDS = (
    "payment retries",
    "the cache 缓存",
    "office move",
    "数据 迁移计划",
    "nothing of this",
    "port",
)
ABOUT = (
    "Please look at {} once more.",
    "{} is broken, and {} as well!",
    "我们来讨论{}的问题。",
    "关于{}，你觉得怎么样？",
    "I changed {}.",
    "{}",
)

subjects = st.sampled_from(SUBJECTS) | st.sampled_from(sorted(map(str, ALL))[:40])


def repeated(form: str, first: str, second: str, times: int) -> str:
    return (form.format(first, second) + " ") * times


texts = st.builds(
    repeated,
    st.sampled_from(ABOUT),
    subjects,
    st.sampled_from(SUBJECTS),
    st.integers(1, 4),
)
kinds = st.sampled_from(("say", "say", "say", "call", "memory"))
turns = st.lists(st.tuples(kinds, texts, texts), min_size=4, max_size=14)


class Naming:
    """A summariser that names topics in words of its own."""

    name = "naming"

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)

    async def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
        return refold.SummaryDraft(
            text=f"What was said until {request.messages[-1].position}.",
            complete=True,
            model="m",
            prompt_fingerprint="1",
            topics=self._names,
        )


def said(number: int, kind: str, text: str, answer: str) -> list[dict[str, Any]]:
    if kind == "say":
        return [
            {"role": "user", "content": text},
            {"role": "assistant", "content": f"{answer}\n\n" + "All right. " * 20},
        ]
    name = "recall_memory" if kind == "memory" else "read_file"
    call = {"type": "tool_use", "id": f"c{number}", "name": name, "input": {"query": text}}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": answer * 30}
    return [
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "Done."},
    ]


@one_in(2)
@given(
    turns, st.lists(st.sampled_from(OWN_WORDS), max_size=4), st.sets(st.integers(0, 30), max_size=2)
)
def test_every_listed_topic_has_a_hit_that_is_always_the_same(
    told: list[tuple[str, str, str]], names: list[str], erased: set[int]
) -> None:
    with refold.open(":memory:", window=8_000, summariser=Naming(names), notes="off") as memory:
        conversation = memory.conversation("t")
        for number, (kind, text, answer) in enumerate(told):
            conversation.append(said(number, kind, text, answer))
            if number % 5 == 4:
                conversation.compact()
        conversation.compact()
        for position in erased:
            if position < len(conversation.messages()):
                conversation.erase(position)
        for seen in conversation.topics():
            found = conversation.recall(topic=seen.topic)
            assert found.hits, seen
            assert found.notice is None
            assert all(hit.text and hit.fate != "erased" for hit in found)
            assert conversation.recall(topic=seen.topic) == found
            anywhere = memory.search(topic=seen.topic, in_context="leave_out")
            assert anywhere.hits or anywhere.left_out, seen
            tool = conversation.tools().call("recall_memory", {"topic": seen.topic})
            assert "found for topic" in tool.text, tool
