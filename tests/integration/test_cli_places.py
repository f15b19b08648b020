"""Conversations, messages, pins and summaries are named in one way by every command."""

import json
import re
import shlex
from pathlib import Path

import pytest

import refold as library
from tests.support.command_line import Refold, talk

NAME, ALIKE = "9a9eadc8-c1f1-493e", "9a9eadc8-ffff-0000"


@pytest.fixture
def two(refold: Refold, tmp_path: Path) -> Path:
    """A log with two conversations whose ids begin alike, the first compacted."""
    for name in (NAME, ALIKE):
        (tmp_path / f"{name}.json").write_text(json.dumps(talk(20)))
        assert refold("import", f"{name}.json").code == 0
    assert refold("compact", NAME).code == 0
    return tmp_path / "agent.db"


@pytest.mark.slow(but=["export", "show"])
@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    "command",
    ["show", "context", "explain", "summaries", "pins", "topics", "notes", "export", "query"],
)
def test_the_beginning_of_an_id_is_enough(refold: Refold, command: str) -> None:
    begun = refold(command, NAME[:12], "--json")
    assert begun.code == 0
    assert begun.out == refold(command, NAME, "--json").out


@pytest.mark.usefixtures("two")
def test_a_beginning_of_several_ids_names_them(refold: Refold) -> None:
    done = refold("show", "9a9eadc8", "--json")
    assert done.code == 2
    assert done.answer["error"] == "AmbiguousId"
    assert NAME in done.answer["message"]
    assert ALIKE in done.answer["message"]
    assert refold("show", "9a9", "--json").answer["error"] == "AmbiguousId"
    assert refold("show", "", "--json").answer["error"] == "InvalidThreadId"


@pytest.mark.usefixtures("two")
def test_a_message_is_named_in_the_same_ways_everywhere(refold: Refold) -> None:
    whole = refold("read", f"refold://{NAME}/4", "--json").answer
    assert whole["position"] == 4
    for words in ([f"{NAME}/4"], [NAME, "4"], [f"{NAME[:10]}/4"], [NAME[:10], "4"]):
        assert refold("read", *words, "--json").answer == whole
        shown = refold("show", *words, "--json").answer["messages"]
        assert [m["position"] for m in shown] == [4]
        fates = refold("explain", *words, "--json").answer["messages"]
        assert [m["position"] for m in fates] == [4]
        found = refold("query", *words, "--json").answer["records"]
        assert [(m["position"], m["version"]) for m in found] == [(4, whole["version"])]
        assert refold("expand", *words, "--json").answer["page"]["records"][0]["position"] == 4
    pinned = refold("pin", f"{ALIKE}/4", "--json").answer["pin_id"]
    assert refold("pin", ALIKE, "4", "--json").answer["pin_id"] == pinned
    assert refold("unpin", ALIKE, pinned[:6], "--json").answer["unpinned"]
    assert refold("erase", f"{ALIKE}/4", "--yes").code == 0
    assert refold("erase", ALIKE, "6..8", "--yes").code == 0
    erased = refold("explain", ALIKE, "--json").answer["messages"]
    assert [m["position"] for m in erased if m["fate"] == "erased"] == [4, 6, 7]


@pytest.fixture
def alike(refold: Refold, tmp_path: Path) -> tuple[str, ...]:
    """The ids of conversations that read like places of messages of others."""
    ids = ("t", "t/12", "refold://t/12", "refold://t")
    with library.open(tmp_path / "agent.db") as memory:
        for name in ids:
            memory.conversation(name).append(talk(20, f"Words of {name}. "), recorded=True)
            assert memory.conversation(name).compact().outcome == "performed"
    return ids


def test_commands_lead_to_a_message_also_if_its_place_is_the_id_of_another_conversation(
    refold: Refold, alike: tuple[str, ...]
) -> None:
    for name in alike:
        said = f"Question 3: Words of {name}."
        ways = refold("why", name, "Question 3:", "--json").answer["ways"]
        commands = {one["kind"]: one["command"] for one in ways}
        assert refold(*commands["read"]).out.strip() == said
        pinned = refold(*commands["pin"], "--json").answer["pin_id"]
        pins = refold("pins", name, "--json").answer["pins"]
        assert [one["pin_id"] for one in pins] == [pinned]
        assert said in refold("read", name, "12").out
        shown = refold("show", name, "12").out
        [following] = re.findall(r"Next: refold (.*)", shown)
        assert said in shown
        assert said in refold(*shlex.split(following)).out
    # As a place alone, it is the message.
    assert refold("show", "refold://t/12", "--json").answer["thread_id"] == "t"
    assert refold("show", "refold://t", "--json").answer["thread_id"] == "refold://t"
    assert refold("show", "refold://u", "--json").answer["error"] == "InvalidAddress"


@pytest.mark.usefixtures("two")
def test_ranges_are_written_in_one_way_and_the_old_options_still_work(refold: Refold) -> None:
    def shown(*words: object) -> list[int]:
        messages = refold("show", NAME, *words, "--json").answer["messages"]
        return [m["position"] for m in messages]

    assert (
        shown("4..7") == shown("--range", "4..7") == shown("--start", 4, "--stop", 7) == [4, 5, 6]
    )
    assert shown("--range", "-2..") == [78, 79]
    last = refold("read", f"{NAME}/-1", "--json").answer
    assert last["position"] == 79
    told = refold("explain", NAME).out
    assert "0–71" in told
    fates = refold("explain", NAME, "0–71", "--json").answer["messages"]
    assert refold("explain", NAME, "0..72", "--json").answer["messages"] == fates
    assert {m["fate"] for m in fates} == {"summarised"}
    page = refold("expand", NAME, "--range", "10..13", "--json").answer["page"]
    assert [r["position"] for r in page["records"]] == [10, 11, 12]
    assert refold("show", NAME, "4..7", "--range", "1..2").code == 2
    assert "invalid range" in refold("show", NAME, "four").err


@pytest.mark.usefixtures("two")
def test_a_whole_conversation_is_not_erased_unasked_by_the_beginning_of_its_id(
    refold: Refold,
) -> None:
    refused = refold("erase", NAME[:12], "--all", "--yes")
    assert refused.code == 2
    assert "full id" in refused.err
    assert refold("erase", NAME, "--all", "--yes").code == 0


def test_a_thread_id_with_a_slash_and_a_number_is_a_thread(refold: Refold, two: Path) -> None:
    with library.open(two) as memory:
        memory.conversation("team/7").append({"role": "user", "content": "hello"})
    assert refold("show", "team/7", "--json").answer["thread_id"] == "team/7"
    assert refold("read", "team/7/0", "--json").answer["content"] == "hello"


@pytest.mark.usefixtures("two")
def test_expand_names_the_active_summary_by_its_conversation(refold: Refold) -> None:
    active = refold("summaries", NAME, "--json").answer["summaries"][0]["summary_id"]
    assert refold("expand", NAME, "--json").answer["summary_id"] == active
    assert refold("expand", active[:8], "--json").answer["summary_id"] == active
    assert refold("expand", ALIKE, "--json").answer["error"] == "UnknownSummary"
    assert "is in the context" in refold("expand", f"{NAME}/75").err
    assert "there is no message at position 999" in refold("expand", f"{NAME}/999").err


@pytest.mark.usefixtures("stored")
def test_one_character_is_enough_where_one_id_begins_so(refold: Refold) -> None:
    assert refold("show", "t/3", "--json").answer["thread_id"] == "talk"
    active = refold("summaries", "talk", "--json").answer["summaries"][0]["summary_id"]
    assert refold("expand", active[:3], "--json").answer["summary_id"] == active
    pin = refold("pin", "talk/3", "--json").answer["pin_id"]
    assert refold("unpin", "talk", pin[:1], "--json").answer["unpinned"]


@pytest.mark.slow(but=["-3..-5-query", "5..5-explain", "-3..-5-explain"])
@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("command", ["show", "explain", "query", "read", "export"])
@pytest.mark.parametrize("backwards", ["5..3", "5..5", "-3..-5"])
def test_a_range_that_ends_before_it_begins_is_refused(
    refold: Refold, command: str, backwards: str
) -> None:
    if command == "export":
        done = refold("show", NAME, "--start", 5, "--stop", 3)
    elif command == "read":
        done = refold("read", f"{NAME}/{backwards}")
    else:
        done = refold(command, NAME, "--range", backwards)
    assert done.code == 2
    assert "is empty" in done.err


@pytest.mark.usefixtures("two")
def test_a_new_id_that_is_the_beginning_of_others_is_warned_of(refold: Refold) -> None:
    done = refold("fork", NAME, "9a9eadc8", "--json")
    assert done.code == 0
    assert done.answer["thread_id"] == "9a9eadc8"
    said = " ".join(done.err.split())
    assert "is the beginning of" in said
    assert NAME in said
    assert ALIKE in said
    assert refold("show", "9a9eadc8", "--json").answer["thread_id"] == "9a9eadc8"
    assert refold("fork", NAME, "another").err == ""


def test_a_whole_id_that_looks_like_an_address_is_not_the_beginning_of_another(
    tmp_path: Path, refold: Refold
) -> None:
    named = "refold://x/1"
    with library.open(tmp_path / "agent.db") as memory:
        for thread in ("xyz", named):
            memory.conversation(thread).append(talk(1))
    erased = refold("erase", named, "0", "--yes", "--json").answer
    assert (erased["thread_id"], erased["positions"]) == (named, [0])
    assert refold("show", "refold://xyz/1", "--json").answer["thread_id"] == "xyz"
