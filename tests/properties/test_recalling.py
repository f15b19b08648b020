"""What always holds of recall, whatever was said, folded away or erased, and whatever is asked."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.recall.hits import Recalled
from refold.application.recall.recall_query import InContext
from refold.application.rendering.request_blocks import copied
from refold.domain.compaction.policy import CompactionPolicy
from tests.support.hostile_texts import ALL, QUERIES
from tests.support.talk import strings

POLICY = CompactionPolicy(
    keep_last=1, whole_last=2, offload_tokens=100, giant_share=0.1, condensed_characters=100
)
NAMES = ("parser", "缓存", "retry_policy", "node.js", "C++", "Zürich", "5433", "port")

texts = st.text(max_size=60) | st.sampled_from(
    ('"', "AND", "OR NOT", "col : x", "NEAR(a b)", "*", "C++", "node.js", "\x00", "\ud800", "你 好")
)
words = st.lists(st.sampled_from(NAMES) | texts, min_size=1, max_size=5).map(" ".join)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("say"), words, st.integers(1, 30)),
        st.tuples(st.just("say"), words, st.integers(1, 30)),
        st.tuples(st.just("call"), words, st.integers(1, 60)),
        st.tuples(st.sampled_from(("compact", "revert", "fork")), st.just(""), st.just(0)),
        st.tuples(st.just("erase"), st.just(""), st.integers(0, 40)),
    ),
    min_size=1,
    max_size=8,
)


def body(place: str, said: str, times: int) -> str:
    """A text that no other message has."""
    return f"[{place}] " + f"{said} in {place}; " * times


def said(
    conversation: ConversationMemory, kind: str, words: str, times: int
) -> list[dict[str, Any]]:
    first, second = (f"{conversation.thread_id}{len(conversation.messages()) + n}" for n in (0, 1))
    if kind == "say":
        return [
            {"role": "user", "content": body(first, words, times)},
            {"role": "assistant", "content": body(second, words, times)},
        ]
    used = {"type": "tool_use", "id": first, "name": "look", "input": {"at": body(first, words, 1)}}
    result = {"type": "tool_result", "tool_use_id": first, "content": body(second, words, times)}
    return [{"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]


def played(
    memory: refold.Memory, deeds: Sequence[tuple[str, str, int]]
) -> tuple[ConversationMemory, set[str]]:
    """The conversation after these deeds, beside another with the same words; what was erased."""
    conversation, other = memory.conversation("a"), memory.conversation("b")
    erased = set[str]()
    conversation.append({"role": "user", "content": body("a0", "port", 1)})
    for kind, text, number in deeds:
        match kind:
            case "compact":
                conversation.compact()
            case "revert":
                conversation.revert_compaction()
            case "fork":
                conversation.fork(thread_id=f"f{len(memory.conversations())}")
            case "erase":
                position = number % len(conversation.messages())
                if not conversation.read(position).erased:
                    erased.add(f"[a{position}]")
                    conversation.erase(position)
            case _:
                conversation.append(said(conversation, kind, text, number), recorded=True)
                other.append(said(other, kind, text, number), recorded=True)
                conversation.context()
    return conversation, erased


def require_truth(memory: refold.Memory, found: Recalled, erased: set[str]) -> None:
    """Every hit stands in the log where it says, with what it says, and nothing of it was erased."""
    assert [hit.score for hit in found] == sorted((h.score for h in found), reverse=True)
    for hit in found:
        conversation = memory.conversation(hit.thread_id)
        stored = conversation.read(hit.address)
        assert (stored.position, stored.message_id) == (hit.position, hit.message_id)
        assert stored.text[hit.start : hit.stop] == hit.text
        assert hit.text or stored.erased
        assert 0 < hit.score <= 1
        for neighbour in hit.neighbours:
            beside = conversation.read(neighbour.position)
            assert neighbour.erased == beside.erased
            assert beside.text.startswith(neighbour.text.removesuffix("…"))
    shown = "".join(strings([hit.model_dump() for hit in found]))
    assert not any(place in shown for place in erased)


@given(
    deeds=moves,
    asked=words,
    way=st.sampled_from(("mark", "leave_out")),
    room=st.none() | st.just(50),
)
def test_hits_are_true_of_their_own_conversation_and_hold_nothing_erased(
    deeds: list[tuple[str, str, int]], asked: str, way: InContext, room: int | None
) -> None:
    with refold.open(":memory:", window=4_000, policy=POLICY) as memory:
        conversation, erased = played(memory, deeds)
        found = conversation.recall(asked, limit=50, in_context=way, max_tokens=room)
        require_truth(memory, found, erased)
        assert {hit.thread_id for hit in found} <= {"a"}
        everywhere = memory.search(asked, limit=50, in_context=way, max_tokens=room)
        require_truth(memory, everywhere, erased)
        for answer in (found, everywhere):
            assert answer.tokens <= (room or 4_000)
            assert way == "mark" or not any(hit.in_context for hit in answer)


@given(deeds=moves, asked=words)
def test_a_hit_is_marked_as_in_context_just_if_the_request_has_it(
    deeds: list[tuple[str, str, int]], asked: str
) -> None:
    with refold.open(":memory:", window=4_000, policy=POLICY) as memory:
        conversation, _ = played(memory, deeds)
        found = conversation.recall(asked, limit=50, neighbours=0)
        request = conversation.context(at=conversation.version).messages
        # What summary and ledger quote is not the message.
        shown = [
            text
            for text in strings([message["content"] for message in request])
            if not text.startswith(("[Conversation Summary]", "[Conversation Ledger]"))
        ]
        for hit in found:
            assert hit.in_context == any(load_sent(hit.text) in text for text in shown)


def load_sent(passage: str) -> str:
    """What a request has of a passage: a call's input, or the words, as a provider takes them."""
    if passage.startswith("→ look "):
        passage = json.loads(passage.removeprefix("→ look "))["at"]
    return copied(passage)


PLACES = st.sampled_from(("harbour", "garden", "端口", "缓存", "Werkstatt", "Bahnhof"))
QUESTIONS = st.sampled_from(
    (
        ("Where is {}?", "what is near {}?", ", and "),
        ("{}在哪里", "{}是什么？", "？另外，"),
        ("Wo ist {}", "was ist neben {}?", " und "),
    )
)


@given(
    texts_said=st.lists(st.lists(PLACES, max_size=3), min_size=1, max_size=20),
    places=st.tuples(PLACES, PLACES),
    question=QUESTIONS,
    limit=st.integers(2, 8),
)
def test_the_hits_of_each_clause_alone_are_among_those_of_the_joined_question(
    texts_said: list[list[str]], places: tuple[str, str], question: tuple[str, str, str], limit: int
) -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("a")
        for number, named in enumerate(texts_said):
            role = "assistant" if number % 2 else "user"
            conversation.append({"role": role, "content": f"{' '.join(named)} {number}00"})
        first, second = (part.format(at) for part, at in zip(question, places, strict=False))
        joined = conversation.recall(f"{first}{question[2]}{second}", limit=limit, neighbours=0)
        found = {hit.position for hit in joined}
        for clause in (first, second):
            alone = conversation.recall(clause, limit=limit // 2, neighbours=0)
            assert {hit.position for hit in alone if hit.why[0].startswith("words")} <= found


@given(asked=st.text(max_size=200) | texts | st.just(ALL) | st.just(QUERIES))
def test_no_text_breaks_a_question(asked: str) -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("a")
        conversation.append(
            [{"role": "user", "content": asked or "-"}, {"role": "assistant", "content": ALL}]
        )
        for answer in (conversation.recall(asked), memory.search(asked)):
            require_truth(memory, answer, set())
            assert answer.hits or answer.notice
        # A blank text asks for no text in particular.
        for record in conversation.query(text=asked).records if asked.strip() else ():
            assert asked.casefold() in record.text.casefold()
        # Half of a character is no id of a summary.
        with pytest.raises((refold.InvalidSetting, refold.UnknownSummary)):
            conversation.expand(asked)
        with pytest.raises((refold.InvalidAddress, refold.UnknownMessage)):
            conversation.read_part(f"refold://{asked}/7x")


@given(deeds=moves, step=st.integers(1, 7))
def test_pages_of_records_are_the_messages_in_order(
    deeds: list[tuple[str, str, int]], step: int
) -> None:
    with refold.open(":memory:", window=4_000, policy=POLICY) as memory:
        conversation, _ = played(memory, deeds)
        seen, start = list[tuple[int, str]](), 0
        while True:
            page = conversation.query(start=start, limit=step, max_tokens=1_000_000)
            seen += [(record.position, record.text) for record in page.records]
            if page.next is None:
                break
            start = page.next
        assert seen == [(message.position, message.text) for message in conversation.messages()]
