"""How far recall, search, tools and MCP look, and that nobody sees somebody else's words without a wider scope."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.infrastructure.mcp.resources import Resources
from tests.support.fake_embedders import DigestEmbedder

FILLER = "Tidying the garden shed, raking leaves and painting the fence white. " * 14
QUESTION = "What is the password of the kangaroo?"


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def secret(whose: str) -> str:
    return f"The password of the kangaroo is secret-of-{whose}."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[refold.Memory]:
    """Two conversations of each of two people, in one of which the other one speaks as well, and one of
    nobody; each begins with a compacted part.
    """
    with refold.open(tmp_path / "agent.db", window=8_000) as memory:
        for thread, owner in (("a1", "ann"), ("a2", "ann"), ("b1", "bob"), ("n1", None)):
            conversation = memory.conversation(thread, owner=owner)
            conversation.append(
                [said(secret(f"{owner or 'nobody'}-{thread}")), said("Noted.", "assistant")]
            )
            if thread == "a2":
                conversation.append(said(secret("guest-bob")), owner="bob")
            conversation.append(
                [m for _ in range(6) for m in (said(FILLER), said("Fine.", "assistant"))]
            )
            conversation.append(said("Go on."))
            assert conversation.compact().outcome == "performed"
        yield memory


def seen(text: str) -> set[str]:
    """Whose secrets are in a text."""
    parts = text.split("secret-of-")[1:]
    return {part.split(".")[0].split('"')[0].split("\\")[0] for part in parts}


ALL = {"ann-a1", "ann-a2", "bob-b1", "guest-bob", "nobody-n1"}
ANN = {"ann-a1", "ann-a2"}


def told(found: refold.Recalled) -> set[str]:
    return seen(json.dumps([hit.model_dump() for hit in found]))


@pytest.mark.slow(but=["n1-owner-expected6", "a1-all-expected7"])
@pytest.mark.parametrize(
    ("thread", "scope", "expected"),
    [
        ("a1", "conversation", {"ann-a1"}),
        ("a1", "owner", ANN),
        ("a2", "conversation", {"ann-a2", "guest-bob"}),
        ("a2", "owner", {*ANN, "guest-bob"}),
        ("b1", "owner", {"bob-b1", "guest-bob"}),
        ("n1", "conversation", {"nobody-n1"}),
        ("n1", "owner", {"nobody-n1"}),
        ("a1", "all", ALL),
    ],
)
def test_recall_looks_as_far_as_it_is_asked_to(
    memory: refold.Memory, thread: str, scope: Any, expected: set[str]
) -> None:
    conversation = memory.conversation(thread)
    for neighbours in (0, 2):
        assert (
            told(conversation.recall(QUESTION, scope=scope, limit=20, neighbours=neighbours))
            == expected
        )
    assert told(conversation.recall(QUESTION, limit=20)) <= expected
    tools = conversation.tools(scope=scope)
    arguments: dict[str, Any] = {"query": QUESTION, "limit": 20}
    if scope != "conversation":
        arguments["all_conversations"] = True
    assert seen(tools["recall_memory"](**arguments)) == expected


@pytest.mark.slow(but=["how0-expected0", "how4-expected4"])
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, {"nobody-n1"}),
        ({"owner": "ann"}, ANN),
        ({"owner": "bob"}, {"bob-b1", "guest-bob"}),
        ({"owner": "eve"}, set[str]()),
        ({"scope": "all"}, ALL),
    ],
)
def test_search_and_the_tools_of_a_log_look_as_far_as_they_are_asked_to(
    memory: refold.Memory, how: dict[str, Any], expected: set[str]
) -> None:
    assert told(memory.search(QUESTION, limit=20, **how)) == expected
    tools = memory.tools(**how)
    assert seen(tools["recall_memory"](query=QUESTION, limit=20)) == expected
    assert reached(memory, tools) == expected
    resources = Resources(memory, tools.reach)
    shown = "".join(_read(resources, one.uri) for one in resources.listed(resources.rows()))
    assert seen(shown) <= expected


def _read(resources: Resources, uri: str) -> str:
    return resources.read(uri).text


def reached(memory: refold.Memory, tools: refold.Toolbox) -> set[str]:
    """Whose secrets every tool shows, asked for everything that there is."""
    found = set[str]()
    for row in memory.conversations():
        thread = row.thread_id
        found |= seen(tools["query_history"](thread=thread, limit=50))
        found |= seen(tools["expand_summary"](thread=thread))
        for summary in memory.conversation(thread).summaries():
            found |= seen(tools["expand_summary"](summary_id=summary.summary_id))
        for position in range(row.messages):
            address = f"refold://{thread}/{position}"
            found |= seen(tools["read_offloaded"](address=address))
            found |= seen(tools["query_history"](ids=[address]))
    return found


@pytest.mark.slow
def test_the_tools_of_a_conversation_reach_no_other_one(memory: refold.Memory) -> None:
    assert reached_from(memory, "a1", "conversation") == {"ann-a1"}
    assert reached_from(memory, "a1", "owner") == ANN
    assert reached_from(memory, "n1", "owner") == {"nobody-n1"}
    assert reached_from(memory, "a1", "all") == ALL


def reached_from(memory: refold.Memory, thread: str, scope: Any) -> set[str]:
    return reached(memory, memory.conversation(thread).tools(scope=scope))


def test_conversations_of_others_are_not_even_named(memory: refold.Memory) -> None:
    listed = memory.conversation("a1").tools(scope="owner")["list_conversations"]()
    assert '"a2"' in listed
    assert '"b1"' not in listed
    told = memory.conversation("a1").tools(scope="owner")["query_history"](thread="b1")
    unknown = memory.conversation("a1").tools(scope="owner")["query_history"](thread="zz")
    assert told.replace("b1", "zz") == unknown


@pytest.mark.slow(but=["owner", ""])
@pytest.mark.parametrize("scope", ["conversation", "owner", "everything", "", None, 7])
def test_a_scope_that_cannot_be_is_refused(memory: refold.Memory, scope: Any) -> None:
    conversation: Any = memory.conversation("a1")
    if scope is not None:
        with pytest.raises(refold.InvalidSetting, match="scope"):
            memory.search(QUESTION, scope=scope)
        with pytest.raises(refold.InvalidSetting, match="scope"):
            memory.tools(scope=scope)
    if scope not in ("conversation", "owner"):
        with pytest.raises(refold.InvalidSetting, match="scope"):
            conversation.tools(scope=scope)


def test_search_by_meaning_keeps_them_apart_as_well(tmp_path: Path) -> None:
    with refold.open(tmp_path / "agent.db", embedder=DigestEmbedder()) as memory:
        for thread, owner in (("a1", "ann"), ("a2", "ann"), ("b1", "bob")):
            memory.conversation(thread, owner=owner).append(said(secret(f"{owner}-{thread}")))
        memory.embed()
        conversation = memory.conversation("a1")
        assert told(conversation.recall(QUESTION, scope="owner")) == ANN
        assert told(memory.search(QUESTION, owner="bob")) == {"bob-b1"}
        for mode in ("vector", "hybrid"):
            assert told(conversation.recall(QUESTION, mode=mode, scope="owner")) <= ANN
            assert told(memory.search(QUESTION, mode=mode, owner="bob")) <= {"bob-b1"}
            assert told(memory.search(QUESTION, mode=mode)) == set()


def test_an_erased_conversation_of_others_is_answered_like_one_that_is_not_there(
    tmp_path: Path,
) -> None:
    with refold.open(tmp_path / "agent.db", background=False) as memory:
        memory.conversation("theirs", owner="bob").append({"role": "user", "content": "Hello."})
        memory.erase_conversation("theirs")
        for tools in (memory.tools(), memory.tools(owner="ann"), memory.tools(scope="all")):
            for name, given in (
                ("read_offloaded", {"address": "refold://theirs/0"}),
                ("recall_memory", {"query": "hello", "thread": "theirs"}),
                ("query_history", {"thread": "theirs"}),
                ("expand_summary", {"thread": "theirs"}),
            ):
                answer = tools.call(name, given)
                assert answer.is_error
                assert 'there is no conversation "theirs"' in answer.text
