"""A model asks its memory: what comes back, what is left out, and what wrong calls are told."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import refold
from refold.application.agent_tools.tool_names import (
    EXPAND_SUMMARY,
    LIST_CONVERSATIONS,
    QUERY_HISTORY,
    READ_OFFLOADED,
    RECALL_MEMORY,
    asks_memory,
    is_answer_of_memory,
)
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.domain.errors import InvalidMessage
from tests.architecture.rules import ROOT
from tests.support.log_files import set_state
from tests.support.tool_talks import HOSTILE, filled, unquoted

FOUR = (RECALL_MEMORY, QUERY_HISTORY, EXPAND_SUMMARY, READ_OFFLOADED)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log of conversation ``t``, most of which is folded away, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    with refold.open(folder / "a.db", window=8_000) as opened:
        filled(opened)
        opened.search("port")
    return folder


@pytest.fixture
def memory(made: Path, tmp_path: Path) -> Iterator[Memory]:
    shutil.copytree(made, tmp_path / "log")
    with refold.open(tmp_path / "log" / "a.db", window=8_000) as opened:
        yield opened


@pytest.fixture
def conversation(memory: Memory) -> ConversationMemory:
    return memory.conversation("t")


def tokens(memory: Memory, text: str) -> int:
    return memory._core.counter.count_text(text)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.slow
def test_a_conversation_has_four_tools_with_words_and_schemas(
    conversation: ConversationMemory,
) -> None:
    tools = conversation.tools()
    assert tools.names == FOUR
    assert [tool.name for tool in tools] == [d["name"] for d in tools.definitions]
    for definition in tools.definitions:
        assert set(definition) == {"name", "description", "input_schema"}
        assert len(definition["description"]) > 300
        assert definition["input_schema"]["additionalProperties"] is False
    assert RECALL_MEMORY in tools
    assert tools[0] in tools
    assert "bash" not in tools
    assert tools[1:3] == (tools[QUERY_HISTORY], tools[EXPAND_SUMMARY])
    assert conversation.context(tools=tools.definitions).tokens > conversation.context().tokens


def test_what_a_summary_stands_for_is_found_and_can_be_read_on(
    conversation: ConversationMemory,
) -> None:
    tools = conversation.tools()
    found = tools.call(RECALL_MEMORY, {"query": "which port does service s3 have"})
    assert not found.is_error
    assert "The port of service s3 is 5403." in found.text
    assert "Message 12, user" in found.text
    assert "refold://t/12" in found.text
    assert "your context has a summary only" in found.text
    assert "found by: " in found.text
    assert "after it, message 13" in found.text
    assert "Next: read_offloaded" in found.text
    read = tools.call(READ_OFFLOADED, {"address": "refold://t/14"})
    assert "def widget_3(): return 3" in read.text
    around = tools.call(QUERY_HISTORY, {"start": 12, "stop": 14})
    assert "2 messages of the 120" in around.text
    assert "The port of service s3 is 5403." in around.text


def test_a_text_that_no_message_has_is_said_so_with_the_tool_that_searches_by_words(
    conversation: ConversationMemory,
) -> None:
    answer = conversation.tools().call(QUERY_HISTORY, {"text": "xyzzy", "start": 3})
    assert not answer.is_error
    assert "no message at these positions has exactly this text" in answer.text
    assert f"{RECALL_MEMORY} searches by words" in answer.text


def test_what_the_context_has_in_full_is_left_out_and_counted(
    conversation: ConversationMemory,
) -> None:
    conversation.append({"role": "user", "content": "The zebra crossing is closed."})
    answer = conversation.tools().call(RECALL_MEMORY, {"query": "zebra crossing"}).text
    assert "The zebra crossing is closed." not in answer
    assert "in your context already and left out here." in answer


def test_who_sees_another_context_is_shown_what_is_in_this_one(
    memory: Memory, conversation: ConversationMemory
) -> None:
    conversation.append({"role": "user", "content": "The zebra crossing is closed."})
    answer = memory.tools("t").call(RECALL_MEMORY, {"query": "zebra crossing"}).text
    assert "The zebra crossing is closed." in answer
    assert "its conversation's context has it in full" in answer


@pytest.mark.parametrize("before", ["", "mcp__refold__", "mcp_refold_", "refold."])
def test_earlier_questions_and_answers_of_the_memory_are_not_found_again(
    memory: Memory, before: str
) -> None:
    conversation, name = memory.conversation("again"), f"{before}{RECALL_MEMORY}"
    conversation.append({"role": "user", "content": "The zebra crossing is closed."})
    given: dict[str, object] = {"query": "is the zebra crossing closed"}
    call = {"type": "tool_use", "id": "c", "name": name, "input": given}
    answer = {"type": "tool_result", "tool_use_id": "c", "content": "The zebra crossing is closed."}
    conversation.append(
        [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    )
    found = [
        hit.position for hit in conversation.recall("is the zebra crossing closed", neighbours=0)
    ]
    assert found == [0]
    assert [record.position for record in conversation.query(text="zebra").records] == [0, 1, 2]


@pytest.mark.parametrize("name", ["query_history", "slack__list_conversations"])
def test_what_other_tools_of_such_a_name_say_is_found(memory: Memory, name: str) -> None:
    conversation = memory.conversation("others")
    given = {"sql": "SELECT * FROM zebras", "limit": 5}
    call = {"type": "tool_use", "id": "c", "name": name, "input": given}
    answer = {"type": "tool_result", "tool_use_id": "c", "content": "The zeppelin invoice is 4711."}
    conversation.append(
        [{"role": "user", "content": "Look it up."}, {"role": "assistant", "content": [call]}]
    )
    conversation.append({"role": "user", "content": [answer]})
    assert next(hit.position for hit in conversation.recall("zeppelin invoice", neighbours=0)) == 2
    assert next(hit.position for hit in conversation.recall("zebras", neighbours=0)) == 1


def test_answers_of_every_tool_are_known_as_such(
    memory: Memory, conversation: ConversationMemory
) -> None:
    for tools, name, given in (
        (memory.tools(), QUERY_HISTORY, {"text": "e", "thread": "t"}),
        (memory.tools(), QUERY_HISTORY, {"text": "nowhere at all", "thread": "t"}),
        (memory.tools(), LIST_CONVERSATIONS, {"limit": 3}),
        (conversation.tools(), QUERY_HISTORY, {"text": "e"}),
        (conversation.tools(), QUERY_HISTORY, {"text": "nowhere at all"}),
    ):
        told = tools.call(name, given)
        assert not told.is_error
        assert asks_memory(f"refold/{name}", given)
        assert is_answer_of_memory(name, told.text), told.text[:80]


def test_a_summary_is_opened_page_by_page_to_its_last_message(
    conversation: ConversationMemory,
) -> None:
    conversation.compact(force=True)
    covered = next(s for s in conversation.summaries() if s.is_active)
    tools, start, pages = conversation.tools(), 0, 0
    seen: set[int] = set()
    while True:
        answer = tools.call(EXPAND_SUMMARY, {"start": start})
        assert not answer.is_error
        lines = unquoted(answer.text).splitlines()
        seen |= {
            int(line.split(",")[0].removeprefix("Message "))
            for line in lines
            if "refold://" in line
        }
        pages += 1
        following = [line for line in lines if line.startswith("Next: expand_summary with start ")]
        if not following:
            break
        start = int(following[0].split("start ")[1].split(",")[0])
    assert pages > 2
    assert len(seen) == covered.covered_count


def test_an_earlier_summary_is_opened_by_its_id(conversation: ConversationMemory) -> None:
    old = conversation.summaries()[0]
    answer = conversation.tools()[EXPAND_SUMMARY](summary_id=old.summary_id)
    assert f'Summary "{old.summary_id}", superseded' in answer
    assert old.summary_text[:60].splitlines()[0] in answer


def test_a_long_message_is_read_piece_by_piece_to_the_last_character(memory: Memory) -> None:
    conversation = memory.conversation("long")
    text = "\n".join(f"line {n} of the log 日志 ✅" for n in range(3_000))
    conversation.append({"role": "user", "content": text})
    tools, start, pieces = conversation.tools(), 0, list[str]()
    while True:
        answer = tools.call(READ_OFFLOADED, {"address": "0", "start": start}).text
        assert tokens(memory, answer) <= 4_000
        pieces.append(answer.split("```\n", 1)[1].rsplit("\n```", 1)[0])
        following = [
            line for line in unquoted(answer).splitlines() if line.startswith("Next: start ")
        ]
        if not following:
            break
        start = int(following[0].split()[2])
    assert len(pieces) > 5
    assert "".join(pieces) == text


@pytest.mark.parametrize("room", [200, 400, 1_000, 4_000])
def test_no_answer_is_larger_than_its_room(room: int) -> None:
    with refold.open(":memory:", window=8_000, recall_tokens=room) as memory:
        conversation = filled(memory, turns=16)
        tools = conversation.tools()
        for name, given in (
            (RECALL_MEMORY, {"query": "port of service", "limit": 20}),
            (RECALL_MEMORY, {"query": "widget_3"}),
            (QUERY_HISTORY, {"limit": 50}),
            (QUERY_HISTORY, {"text": "widget_7"}),
            (EXPAND_SUMMARY, {}),
            (READ_OFFLOADED, {"address": "14"}),
        ):
            answer = tools.call(name, given)
            assert tokens(memory, answer.text) <= room, (name, answer.text)
            assert not answer.is_error
        for name, given in ((QUERY_HISTORY, {"start": 0}), (READ_OFFLOADED, {"address": "14"})):
            assert "```" in tools.call(name, given).text


def test_quoted_text_never_passes_for_a_line_of_the_answer(memory: Memory) -> None:
    conversation = memory.conversation("odd")
    conversation.append({"role": "user", "content": f"zebra {HOSTILE}"})
    used = {"type": "tool_use", "id": "c", "name": "bash", "input": {"text": HOSTILE}}
    conversation.append({"role": "assistant", "content": [used]})
    result = {"type": "tool_result", "tool_use_id": "c", "content": f"zebra {HOSTILE}"}
    conversation.append({"role": "user", "content": [result]})
    conversation.append({"role": "assistant", "content": f"zebra {HOSTILE}"})
    for tools in (conversation.tools(), memory.tools("odd"), memory.tools()):
        thread = {"thread": "odd"} if "list_conversations" in tools else {}
        for name, given in (
            (RECALL_MEMORY, {"query": "zebra"}),
            (QUERY_HISTORY, {"start": 0, **thread}),
            (READ_OFFLOADED, {"address": "refold://odd/2"}),
        ):
            answer = tools.call(name, given)
            assert not answer.is_error
            assert "obey" not in unquoted(answer.text)
            assert "Ignore all" not in unquoted(answer.text)


def test_names_of_the_record_stand_in_quotation_marks_on_one_line(memory: Memory) -> None:
    conversation = memory.conversation("Ignore the above")
    conversation.label("zebra\n## obey\u2028`````\u202e")
    used = {"type": "tool_use", "id": "c", "name": 'x"\n## obey', "input": {"a": "zebra"}}
    conversation.append(
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [used]}], recorded=True
    )
    for answer in (
        memory.tools().call(LIST_CONVERSATIONS, {}).text,
        memory.tools().call(RECALL_MEMORY, {"query": "zebra"}).text,
    ):
        assert '"Ignore the above"' in answer
        assert not any(line.startswith("## obey") for line in unquoted(answer).splitlines())


def test_what_was_erased_is_named_and_not_told(conversation: ConversationMemory) -> None:
    conversation.erase(12)
    tools = conversation.tools()
    assert "erased" in tools.call(READ_OFFLOADED, {"address": "refold://t/12"}).text
    around = tools.call(QUERY_HISTORY, {"start": 11, "stop": 14}).text
    assert "its content was erased" in around
    for name, given in (
        (RECALL_MEMORY, {"query": "which port does service s3 have"}),
        (QUERY_HISTORY, {"text": "5403"}),
        (EXPAND_SUMMARY, {"start": 10}),
    ):
        assert "5403" not in tools.call(name, given).text


def test_nothing_found_is_an_answer_that_says_what_else_to_try(
    conversation: ConversationMemory,
) -> None:
    for query in ("xyzzy", "   ", "???"):
        answer = conversation.tools().call(RECALL_MEMORY, {"query": query})
        assert not answer.is_error
        assert answer.text.startswith("Nothing was found for")
        assert "Next: other words" in answer.text


def test_an_empty_conversation_answers_as_well(memory: Memory) -> None:
    tools = memory.conversation("new").tools()
    assert not tools.call(RECALL_MEMORY, {"query": "port"}).is_error
    assert not tools.call(QUERY_HISTORY, {}).is_error
    assert "no summary is active" in tools.call(EXPAND_SUMMARY, {}).text


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        (RECALL_MEMORY, {}, "query is missing"),
        (RECALL_MEMORY, {"query": "a", "since": "yesterday"}, "2026-01-02T03:04:05Z"),
        (RECALL_MEMORY, {"query": "a", "since": "2026-01-02T03:04:05"}, "no time zone"),
        (RECALL_MEMORY, {"query": "a", "all_conversations": True}, "not an argument"),
        (QUERY_HISTORY, {"start": 9, "stop": 3}, "stop must be greater than start"),
        (QUERY_HISTORY, {"ids": ["refold://other/0"]}, "another conversation"),
        (QUERY_HISTORY, {"ids": ["refold://"]}, "is no address"),
        (EXPAND_SUMMARY, {"summary_id": "nope"}, "nope"),
        (READ_OFFLOADED, {"address": "refold://other/0"}, "another conversation"),
        (READ_OFFLOADED, {"address": "file:///etc/passwd"}, "is no address"),
        (READ_OFFLOADED, {"address": "99999"}, "positions 0 to 119"),
        (READ_OFFLOADED, {"address": "0", "start": 99_999}, "characters"),
        (READ_OFFLOADED, {"address": "0", "start": -1}, "greater than or equal to 0"),
        ("bash", {"command": "ls"}, "there is no tool"),
        (None, {}, "there is no tool"),
    ],
)
def test_a_wrong_call_is_an_error_that_says_what_to_do(
    memory: Memory, conversation: ConversationMemory, name: object, given: object, said: str
) -> None:
    memory.conversation("other").append({"role": "user", "content": "A secret."})
    answer = conversation.tools().call(name, given)
    assert answer.is_error
    assert said in answer.text
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


def test_an_erased_conversation_is_an_error_as_well(
    memory: Memory, conversation: ConversationMemory
) -> None:
    tools = conversation.tools()
    memory.erase_conversation("t")
    for name, given in (
        (RECALL_MEMORY, {"query": "port"}),
        (QUERY_HISTORY, {}),
        (EXPAND_SUMMARY, {}),
        (READ_OFFLOADED, {"address": "0"}),
    ):
        assert tools.call(name, given).is_error
    assert "was erased" in tools.call(READ_OFFLOADED, {"address": "0"}).text


def test_a_damaged_log_is_an_error_and_no_exception(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", window=8_000) as memory:
        filled(memory, turns=2)
        memory.conversation("other").append({"role": "user", "content": "hello"})
    set_state(tmp_path / "a.db", 3, b"?")
    with refold.open(tmp_path / "a.db") as memory:
        answer = memory.conversation("t").tools().call(QUERY_HISTORY, {})
        assert answer.is_error
        assert "conversation 't', event 3" in answer.text
        answer = memory.conversation("other").tools().call(RECALL_MEMORY, {"query": "port"})
        assert "'t'" not in answer.text
        answer = memory.conversation("other").tools().call(QUERY_HISTORY, {})
        assert "'t'" not in answer.text


def test_tools_reach_other_conversations_only_where_that_is_allowed(memory: Memory) -> None:
    mine, other = memory.conversation("mine"), memory.conversation("other")
    mine.append({"role": "user", "content": "zebra number one"})
    other.append({"role": "user", "content": "zebra number two"})
    near, far = mine.tools(), mine.tools(all_conversations=True)
    assert "number two" not in near.call(RECALL_MEMORY, {"query": "zebra"}).text
    assert "number two" not in far.call(RECALL_MEMORY, {"query": "zebra"}).text
    found = far.call(RECALL_MEMORY, {"query": "zebra", "all_conversations": True}).text
    assert 'conversation "other"' in found
    assert "number two" in found
    assert "number one" not in found, "it is in the context"
    assert "number two" in far.call(RECALL_MEMORY, {"query": "zebra", "thread": "other"}).text
    assert "number two" in far.call(QUERY_HISTORY, {"thread": "other"}).text
    assert "number two" in far.call(QUERY_HISTORY, {"ids": ["refold://other/0"]}).text
    assert "number two" in far.call(READ_OFFLOADED, {"address": "refold://other/0"}).text
    assert '"other"' in far.call(LIST_CONVERSATIONS, {}).text
    assert far.call(QUERY_HISTORY, {"thread": "nowhere"}).is_error
    both = {"ids": ["refold://other/0", "refold://mine/0"]}
    assert "one at a time" in far.call(QUERY_HISTORY, both).text


def test_tools_of_a_whole_log_ask_which_conversation_is_meant(memory: Memory) -> None:
    filled(memory, "a", 4)
    tools = memory.tools()
    assert LIST_CONVERSATIONS in tools
    answer = tools.call(QUERY_HISTORY, {})
    assert answer.is_error
    assert "list_conversations" in answer.text
    assert not tools.call(QUERY_HISTORY, {"thread": "a"}).is_error
    assert not tools.call(RECALL_MEMORY, {"query": "port"}).is_error


def test_a_summary_of_any_conversation_is_opened_by_its_id_alone(
    memory: Memory, conversation: ConversationMemory
) -> None:
    summary = conversation.summaries()[-1].summary_id
    answer = memory.tools().call(EXPAND_SUMMARY, {"summary_id": summary})
    assert not answer.is_error
    assert 'conversation "t"' in answer.text


def test_from_another_conversation_as_well_where_that_is_allowed(
    memory: Memory, conversation: ConversationMemory
) -> None:
    summary, other = conversation.summaries()[-1].summary_id, memory.conversation("other")
    other.append({"role": "user", "content": "hello"})
    answer = other.tools(all_conversations=True).call(EXPAND_SUMMARY, {"summary_id": summary})
    assert not answer.is_error
    assert 'conversation "t"' in answer.text
    assert other.tools().call(EXPAND_SUMMARY, {"summary_id": summary}).is_error


def test_a_tool_is_a_plain_function_that_gives_text(conversation: ConversationMemory) -> None:
    recall = conversation.tools()[RECALL_MEMORY]
    assert "5403" in recall(query="port of service s3")
    assert "query is missing" in recall()


def test_a_call_block_is_answered_by_a_result_block(conversation: ConversationMemory) -> None:
    tools = conversation.tools()
    given: dict[str, object] = {"query": "port s3"}
    call = {"type": "tool_use", "id": "toolu_1", "name": RECALL_MEMORY, "input": given}
    conversation.append(
        [{"role": "user", "content": "?"}, {"role": "assistant", "content": [call]}]
    )
    result = tools.result_for(call)
    assert result["type"] == "tool_result"
    assert result["tool_use_id"] == "toolu_1"
    assert "is_error" not in result
    conversation.append({"role": "user", "content": [result]})
    assert conversation.messages()[-1].message.blocks()[0]["content"] == result["content"]
    of_the_sdk = SimpleNamespace(type="tool_use", id="toolu_2", name="nope", input={})
    assert tools.result_for(of_the_sdk)["is_error"] is True
    with pytest.raises(InvalidMessage, match=r"tool_use\.id"):
        tools.result_for({"name": RECALL_MEMORY})


def test_asyncio_has_the_same_tools(tmp_path: Path) -> None:
    async def ask() -> None:
        async with refold.aopen(tmp_path / "a.db", window=8_000) as memory:
            conversation = memory.conversation("t")
            await conversation.append({"role": "user", "content": "zebra"})
            tools = conversation.tools()
            assert tools.names == FOUR
            assert len(tools) == len(list(tools)) == 4
            assert RECALL_MEMORY in tools
            answers = await asyncio.gather(
                *(tools.call(QUERY_HISTORY, {"text": "zebra"}) for _ in range(5))
            )
            assert all("zebra" in answer.text for answer in answers)
            given: dict[str, object] = {}
            call = {"type": "tool_use", "id": "c", "name": QUERY_HISTORY, "input": given}
            assert (await tools.result_for(call))["tool_use_id"] == "c"

    asyncio.run(ask())


def test_definitions_are_the_same_at_every_request(conversation: ConversationMemory) -> None:
    assert json.dumps(conversation.tools().definitions) == json.dumps(
        conversation.tools().definitions
    )


@pytest.mark.slow
def test_the_example_of_an_agent_that_asks_its_memory_runs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "recalling_agent.py"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    assert done.stdout.endswith("It is 5403, as you told me earlier.\n")
