"""What is asked about one old place of a long conversation reads that place, and not all that came after it."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import refold as library
from refold.application.api.following import FollowingMemory
from refold.application.api.memory import Memory
from refold.application.conversation.addresses import thread_of
from refold.application.conversation.thread_log import ThreadLog
from refold.application.history import fork
from refold.domain.conversation import Coverage
from refold.infrastructure.event_store.stored_log import StoredLog
from refold.infrastructure.mcp.resources import Resources, UnknownResource, conversation_uri
from tests.support.command_line import Refold
from tests.support.counted_reads import counted_reads, decoded_events
from tests.support.on_postgres import is_on_postgres

EARLY = 10
LATER = 600
FEW = 10 * EARLY
"""Events that may be read for an early place."""


def said(number: int) -> dict[str, Any]:
    words = f"Part {number} is checked, and nothing of it has to be done again. " * 20
    return {"role": "assistant" if number % 2 else "user", "content": words}


def compact_often(conversation: library.ConversationMemory, times: int) -> None:
    for _ in range(times):
        conversation.append([said(n) for n in range(EARLY)], recorded=True)
        assert conversation.compact(all=True, keep_last=2).outcome == "performed"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with library.open(
        tmp_path / "a.db", window=200_000, scrub_megabytes=0, standing_recall=0
    ) as memory:
        yield memory


def test_a_copy_of_an_early_version_reads_that_version_alone(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t")
    conversation.append([said(n) for n in range(EARLY)], recorded=True)
    early = conversation.version
    conversation.append([said(n) for n in range(EARLY, EARLY + LATER)], recorded=True)
    conversation.erase([2, EARLY + LATER // 2])
    counts = counted_reads(monkeypatch)
    copy = conversation.fork(at=early)
    assert counts["events"] + counts["messages"] <= FEW
    assert [one.position for one in copy.messages() if one.erased] == [2]
    assert memory.verify().ok


def test_one_message_is_read_alike_after_few_and_after_many_compactions(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t")
    counts, found = counted_reads(monkeypatch), list[Counter[str]]()
    for number in range(1, 13):
        conversation.append([said(n) for n in range(EARLY)], recorded=True)
        assert conversation.compact(all=True, keep_last=2).outcome == "performed"
        conversation.read(0)
        if number in (3, 12):
            counts.clear()
            summary_id = conversation.read(0).summary_id
            conversation.messages(1, 4)
            conversation.read_part(2)
            conversation.pin(number)
            found.append(counts.copy())
            assert summary_id == conversation.summaries()[-1].summary_id
    assert found[0] == found[1]


def test_the_decisions_between_messages_are_checked_and_not_decoded(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t")
    compact_often(conversation, 12)
    conversation.erase(EARLY)
    assert len(conversation.messages()) == 12 * EARLY
    names = decoded_events(monkeypatch)
    read = conversation.messages()
    assert "compaction_performed" not in names
    assert read == list(conversation.iter_messages())
    assert [one.position for one in read] == list(range(12 * EARLY))
    assert [one.position for one in read if one.erased] == [EARLY]


def test_what_shares_a_message_is_told_without_reading_the_decisions(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t")
    compact_often(conversation, 24)
    conversation.fork(position=5, thread_id="copy")
    names = decoded_events(monkeypatch)
    assert conversation.shared_with([3, 5]) == ("copy",)
    assert conversation.shared_with(6) == ()
    assert (
        names.count("compaction_performed") <= 12
    )  # The search for a position may come upon some.


def test_an_erasure_reads_decisions_and_not_the_messages_between_them(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t")
    counts, found = counted_reads(monkeypatch), list[int]()
    for number in range(1, 25):
        conversation.append([said(n) for n in range(2 * EARLY)], recorded=True)
        assert conversation.compact(all=True, keep_last=2).outcome == "performed"
        if number in (8, 24):
            position = len(conversation.messages()) - 1
            counts.clear()
            assert conversation.erase(position).changed
            found.append(counts["messages"])
    assert found[1] <= found[0] + 2 * EARLY


def test_an_erasure_does_not_look_at_each_fork_of_others(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, load = set[str](), StoredLog.load

    def counted(log: StoredLog, thread_id: str, **options: Any) -> Any:
        loads.add(thread_of(thread_id))
        return load(log, thread_id, **options)

    conversation = memory.conversation("t")
    conversation.append([said(n) for n in range(EARLY)])
    conversation.fork(position=5, thread_id="copy")
    other = memory.conversation("other")
    other.append(said(0))
    for number in range(4):
        other.fork(thread_id=f"fork{number}")
    monkeypatch.setattr(StoredLog, "load", counted)
    assert conversation.erase(3).copies == ("copy",)
    assert conversation.shared_with(4) == ("copy",)
    assert loads == {"t", "copy"}


def test_an_erasure_decodes_no_compactions_of_the_owners_other_conversations(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t", owner="ann")
    conversation.append([said(n) for n in range(EARLY)])
    other = memory.conversation("other", owner="ann")
    for _ in range(16):
        other.append([said(n) for n in range(EARLY)], recorded=True)
        assert other.compact(all=True, keep_last=2).outcome == "performed"
    for number in range(2 * FEW):
        memory.conversation(f"t{number}", owner=f"o{number}").append(said(0))
    memory.search("part", owner="ann")
    counts, names = counted_reads(monkeypatch), decoded_events(monkeypatch)
    assert conversation.erase(3).changed
    assert counts["rows"] <= FEW
    assert names.count("compaction_performed") <= 2


def test_records_are_found_by_their_ids_without_reading_the_others(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t")
    conversation.append([said(n) for n in range(LATER)], recorded=True)
    message_id = conversation.read(EARLY).message_id
    conversation.fork(thread_id="copy")
    memory.conversations()
    counts = counted_reads(monkeypatch)
    page = conversation.query(ids=[message_id, "7", 8, "refold://t/9"])
    assert counts["rows"] <= FEW
    assert [one.position for one in page.records] == [7, 8, 9, EARLY]
    assert page.missing == ()
    unknown = conversation.query(ids=["nobody", message_id])
    assert ([one.position for one in unknown.records], unknown.missing) == ([EARLY], ("nobody",))


def test_a_tool_that_was_used_late_is_not_said_to_be_unused(memory: Memory) -> None:
    conversation = memory.conversation("t")
    conversation.append(
        [one for n in range(LATER) for one in used(n, "read_file")] + used(LATER, "deploy"),
        recorded=True,
    )
    assert conversation.recall("bananas", tools=["deploy"]).notice is None
    unknown = conversation.recall("bananas", tools=["nonesuch"]).notice
    assert unknown is not None
    assert "no tool nonesuch was used" in unknown


def test_a_resource_is_read_without_listing_all_conversations(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2 * FEW):
        memory.conversation(f"t{number}").append(said(0))
    resources = Resources(memory, memory.tools(scope="all").reach)
    memory.conversations()
    counts = counted_reads(monkeypatch)
    assert resources.read("refold://t7/0").text.startswith("Part 0")
    assert "t8" in resources.read(conversation_uri("t8")).text
    assert counts["rows"] <= 10
    with pytest.raises(UnknownResource):
        resources.read("refold://nobody/0")


def test_a_summary_is_read_alike_after_few_and_after_many_compactions(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation, tools = memory.conversation("t"), memory.tools(scope="all")
    resources = Resources(memory, tools.reach)
    counts, found = counted_reads(monkeypatch), list[Counter[str]]()
    for number in range(1, 13):
        conversation.append([said(n) for n in range(EARLY)], recorded=True)
        assert conversation.compact(all=True, keep_last=2).outcome == "performed"
        if number in (3, 12):
            newest = conversation.summaries()[-1]
            conversation.expand(newest.summary_id)
            counts.clear()
            expanded = conversation.expand(newest.summary_id, limit=2)
            assert memory.expand(newest.summary_id, limit=2) == expanded
            asked = {"summary_id": newest.summary_id, "start": 1}
            assert not tools.call("expand_summary", asked).is_error
            assert not tools.call("expand_summary", {"thread": "t"}).is_error
            for part in (["summary"], ["summaries", newest.summary_id]):
                text = resources.read(conversation_uri("t", *part)).text
                assert text == newest.summary_text
            assert newest.summary_id in resources.read(conversation_uri("t")).text
            assert len(resources.page(None, 5)[0]) == 2
            found.append(counts.copy())
    assert found[0]["rows"] == found[1]["rows"]


@pytest.mark.parametrize(
    ("owner", "scope"), [(None, "all"), (None, None), ("ann", None), ("ann", "all")]
)
def test_a_part_of_the_list_is_read_without_listing_all_conversations(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, owner: str | None, scope: Any
) -> None:
    for number in range(2 * FEW):
        memory.conversation(f"t{number}", owner=owner).append(said(0))
    tools = memory.tools(owner=owner, scope=scope)
    resources = Resources(memory, tools.reach)
    listed = [row.thread_id for row in memory.conversations()]
    resources.ids("", 1)
    counts = counted_reads(monkeypatch)
    answer = tools.call("list_conversations", {"limit": 3}).text
    assert answer.startswith(f"{2 * FEW} conversations")
    assert f"{2 * FEW - 3} older conversations not shown" in answer
    first, last = resources.page(None, 5)
    page, _ = resources.page(last, 4)
    uris = [conversation_uri(thread) for thread in listed[:9]]
    assert [one.uri for one in (*first, *page)] == uris
    assert resources.ids("", 5) == (listed[:5], 2 * FEW)
    # The reach of an owner is a list of conversations, and so are those with an owner, which files keep.
    reads_all = scope is None and (owner or is_on_postgres())
    assert counts["rows"] <= FEW or reads_all
    found = [thread for thread in listed if thread.startswith("t19")]
    counts.clear()
    assert resources.ids("t19", 5) == (found[:5], len(found))
    assert counts["rows"] <= FEW or reads_all


@pytest.mark.parametrize("owner", [None, "ann"])
def test_a_search_after_an_append_does_not_list_all_conversations(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, owner: str | None
) -> None:
    for number in range(2 * FEW):
        memory.conversation(f"t{number}", owner="ann" if number % 2 else None).append(said(number))
    memory.search("part", owner=owner)
    counts = counted_reads(monkeypatch)
    memory.conversation("t7", owner="ann").append({"role": "user", "content": "A banana."})
    memory.conversation("new", owner=owner).append({"role": "user", "content": "Bananas."})
    found = {hit.thread_id for hit in memory.search("banana", owner=owner)}
    assert found == ({"new", "t7"} if owner else {"new"})
    assert counts["rows"] <= FEW
    counts.clear()
    memory.conversation("t8").append({"role": "user", "content": "Bananas, many of them."})
    assert "t8" in {hit.thread_id for hit in memory.search("banana")}
    assert counts["rows"] <= FEW


def test_conversations_are_found_by_the_beginning_of_their_ids(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["a", "a/", "a/1", "a/é", "a/\U0001f600", "a0", "a.", "b/1"]
    for name in [*names, *(f"t{number}" for number in range(2 * FEW))]:
        memory.conversation(name).append(said(0))
    memory.erase_conversation("a/1")
    memory.conversation("a/1").append(said(1))
    following = FollowingMemory(memory)
    memory.conversations()
    counts = counted_reads(monkeypatch)
    found = {row.thread_id for row in following.rows("a/")}
    assert found == {"a/", "a/1", "a/é", "a/\U0001f600"}
    assert {row.thread_id for row in following.rows("a/\U0001f600")} == {"a/\U0001f600"}
    assert following.rows("c") == []
    assert counts["rows"] <= len(names) + 1
    assert len(following.rows("")) == len(names) + 2 * FEW


def test_each_message_is_explained_without_asking_all_compactions(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t")
    compact_often(conversation, 24)
    asked, covers = Counter[int](), Coverage.covers

    def counted(coverage: Coverage, position: int) -> bool:
        asked[position] += 1
        return covers(coverage, position)

    monkeypatch.setattr(Coverage, "covers", counted)
    fates = conversation.explain()
    assert Counter(fate.fate for fate in fates)["summarised"] == 24 * EARLY - 2
    assert max(asked.values()) <= 3


def test_topics_are_read_alike_after_few_and_after_many_compactions(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t")
    counts, found = counted_reads(monkeypatch), list[float]()
    for number in range(1, 13):
        words = "The parser reads a token, and the cache of the socket keeps its buffer. " * 20
        talk = [{**said(n), "content": f"{n} {words}"} for n in range(EARLY)]
        conversation.append(talk, recorded=True)
        assert conversation.compact(all=True, keep_last=2).outcome == "performed"
        if number in (3, 12):
            memory.conversations()
            counts.clear()
            topics = conversation.topics()
            assert topics
            found.append(counts["rows"] / len(topics))
    assert found[0] == found[1]


def test_the_command_for_the_next_request_reads_no_messages_under_the_summary(
    memory: Memory, refold: Refold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t")
    conversation.append([said(n) for n in range(LATER)], recorded=True)
    assert conversation.compact(all=True, keep_last=4).outcome == "performed"
    expected = max(conversation.explain(), key=lambda fate: fate.shown_tokens)
    counts = counted_reads(monkeypatch)
    ran = refold("context", "t", "--sizes", "--db", tmp_path / "a.db")
    assert counts["messages"] <= FEW
    assert f"The largest messages in it: {expected.position} (" in ran.out


def used(number: int, tool: str) -> list[dict[str, Any]]:
    """A call of a tool and its result."""
    call, result = f"call_{number}", f"Result {number} has apples."
    made = {"type": "tool_use", "id": call, "name": tool, "input": {"number": number}}
    answer = {"type": "tool_result", "tool_use_id": call, "content": result}
    return [{"role": "assistant", "content": [made]}, {"role": "user", "content": [answer]}]


def test_many_later_erasures_are_read_in_parts(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement takes a limited number of values, and a conversation can have any number of erasures."""
    conversation = memory.conversation("t")
    conversation.append([said(n) for n in range(12)])
    before = conversation.version
    for position in range(7):
        conversation.erase(position)
    monkeypatch.setattr(fork, "AT_ONCE", 3)
    asked, read_at = list[int](), ThreadLog.read_at

    def counted(log: ThreadLog, thread_id: str, versions: Any, **options: Any) -> Any:
        asked.append(len(versions))
        return read_at(log, thread_id, versions, **options)

    monkeypatch.setattr(ThreadLog, "read_at", counted)
    copy = conversation.fork(at=before)
    assert max(asked) == 3
    assert [message.erased for message in copy.messages()] == [True] * 7 + [False] * 5
