"""A model edits its memory: what it proposes, what is allowed at once, and what an erasure leaves of it."""

import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.agent_tools.tool_scope import EditMode
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.ports.conversation_log import ConversationLog
from refold.domain.editing import MOST_OPEN
from tests.support.erasing_scenes import PATH, SECRET, holding, is_sound, opened, talk

ORDER = "Use pnpm and never npm in the quokka project."


def begun(memory: Memory, thread: str = "t", owner: str | None = None) -> ConversationMemory:
    conversation = memory.conversation(thread, owner=owner)
    conversation.append({"role": "user", "content": ORDER})
    conversation.append({"role": "assistant", "content": "I will."})
    return conversation


def call(
    conversation: ConversationMemory,
    tool: str,
    edits: EditMode = "propose",
    author: str = "model",
    **given: object,
) -> str:
    told = conversation.tools(edits=edits, author=author).call(tool, given)
    assert not told.is_error, told.text
    return told.text


def refused(
    conversation: ConversationMemory, tool: str, edits: EditMode = "propose", **given: object
) -> str:
    version = conversation.version
    told = conversation.tools(edits=edits).call(tool, given)
    assert told.is_error, told.text
    assert conversation.version == version, "a refused call was stored"
    return told.text


def log_of(memory: Memory) -> ConversationLog:
    return memory._opened.log  # pyright: ignore[reportPrivateUsage]


def names(conversation: ConversationMemory, after: int = 0) -> list[str]:
    return [e["name"] for e in conversation.export("events") if e["version"] > after]


def fields(conversation: ConversationMemory, name: str) -> list[dict[str, Any]]:
    return [e["fields"] for e in conversation.export("events") if e["name"] == name]


ABOUT_THE_FIRST: dict[str, Any] = {"pin": {"message": "0"}, "forget": {"target": "0"}}


# --- the tools


def test_nothing_is_edited_where_nobody_asked_for_it(memory: Memory) -> None:
    conversation = begun(memory)
    assert not {"remember", "pin", "forget"} & set(conversation.tools().names)
    assert conversation.tools(edits="propose").names[-3:] == ("remember", "pin", "forget")
    assert "there is no tool" in conversation.tools().call("pin", {"message": "0"}).text


def test_a_proposal_changes_nothing_until_it_is_allowed(memory: Memory) -> None:
    conversation = begun(memory)
    before = conversation.context().for_anthropic()
    said = [
        call(conversation, "pin", message="0", author="planner"),
        call(conversation, "remember", text="The project uses pnpm.", kind="decision"),
        call(conversation, "forget", target="refold://t/1"),
    ]
    assert conversation.context().for_anthropic() == before
    assert (conversation.pins(), list(conversation.notes())) == ((), [])
    pin, note, erasure = conversation.proposals()
    assert (pin.action, pin.position, pin.text, pin.author) == ("pin", 0, "", "planner")
    assert (note.action, note.text, note.kind) == (
        "remember",
        "The project uses pnpm.",
        "decision",
    )
    assert (erasure.action, erasure.position, erasure.author) == ("forget", 1, "model")
    for told, proposal in zip(said, conversation.proposals(), strict=True):
        assert proposal.edit_id in told
        assert "unless the program or a person allows it" in told
        assert proposal.proposed_at.startswith("20")
    assert names(conversation).count("edit_proposed") == 3
    assert memory.verify().ok


def test_what_is_allowed_is_carried_out(memory: Memory) -> None:
    conversation = begun(memory)
    call(conversation, "pin", message="0")
    call(conversation, "remember", text="The project uses pnpm.", kind="decision")
    call(conversation, "forget", target="1")
    pin, note, erasure = conversation.proposals()
    version = conversation.version

    assert conversation.allow(pin.edit_id).changed
    assert names(conversation, version) == ["edit_decided", "message_pinned"]
    assert [item.pin_id for item in conversation.pins()] == [pin.edit_id]

    assert conversation.allow(note.edit_id).changed
    (row,) = conversation.notes()
    assert (row.flush_id, row.kind, row.text) == (
        note.edit_id,
        "decision",
        "The project uses pnpm.",
    )
    assert (row.taken_by, row.source_positions, row.is_on_demand) == ("model", (), True)

    version = conversation.version
    done = conversation.allow(erasure.edit_id)
    assert done.erasure is not None
    assert done.erasure.positions == (1,)
    assert names(conversation, version) == ["edit_decided", "message_erased"]
    assert conversation.read(1).erased
    assert conversation.proposals() == ()
    assert {d["allowed"] for d in fields(conversation, "edit_decided")} == {True}
    memory.replay()
    assert [one.flush_id for one in conversation.notes()] == [note.edit_id]
    is_sound(memory, conversation)


def test_what_is_allowed_beforehand_is_carried_out_in_the_commit_of_the_call(
    memory: Memory,
) -> None:
    conversation = begun(memory)
    said = call(conversation, "pin", "allow", author="planner", text="never on Mondays")
    (pin,) = conversation.pins()
    assert pin.pin_id in said
    assert names(conversation)[-3:] == ["edit_proposed", "edit_decided", "message_pinned"]
    call(conversation, "remember", "allow", text="The project uses pnpm.", kind="fact")
    assert names(conversation)[-3:] == ["edit_proposed", "edit_decided", "notes_flushed"]
    call(conversation, "forget", "allow", target="1")
    assert names(conversation)[-3:] == ["edit_proposed", "edit_decided", "message_erased"]
    events = [e for e in conversation.export("events") if e["version"] > 2]
    assert [len({e["at"] for e in events[n : n + 3]}) for n in (0, 3, 6)] == [1, 1, 1]
    assert {d["by"] for d in fields(conversation, "edit_decided")} == {"program"}
    assert conversation.proposals() == ()
    is_sound(memory, conversation)


@pytest.mark.parametrize("edits", ["propose", "allow"])
def test_a_pin_and_a_note_are_taken_back_by_their_ids(memory: Memory, edits: EditMode) -> None:
    conversation = begun(memory)
    call(conversation, "pin", "allow", text="never on Mondays")
    call(conversation, "remember", "allow", text="The project uses pnpm.", kind="fact")
    (pin,), (note,) = conversation.pins(), conversation.notes()
    for one in (pin.pin_id, note.flush_id):
        call(conversation, "forget", edits, target=one)
    assert bool(conversation.pins()) == bool(conversation.notes()) == (edits == "propose")
    for proposal in conversation.proposals():
        assert conversation.allow(proposal.edit_id).changed
    assert (conversation.pins(), list(conversation.notes())) == ((), [])
    memory.replay()
    assert list(conversation.notes()) == []
    call(conversation, "remember", "allow", text="The project uses pnpm.", kind="fact")
    assert len(conversation.notes()) == 1, "what was forgotten cannot be noted again"
    assert memory.verify().ok


def test_a_call_that_is_repeated_is_the_same_edit(memory: Memory) -> None:
    conversation = begun(memory)
    first = call(conversation, "remember", text="The project uses pnpm.", kind="fact")
    version = conversation.version
    again = call(conversation, "remember", text="The project uses pnpm.", kind="fact")
    (proposal,) = conversation.proposals()
    assert proposal.edit_id in first
    assert proposal.edit_id in again
    assert "proposed already" in again
    conversation.allow(proposal.edit_id)
    version = conversation.version
    for edits in ("propose", "allow"):
        known = call(conversation, "remember", edits, text="The project uses pnpm!", kind="fact")
        assert f"noted already, as {proposal.edit_id}" in known
    assert conversation.version == version
    call(conversation, "pin", "allow", message="0")
    assert "pinned already" in call(conversation, "pin", "allow", message="refold://t/0")
    assert len(conversation.pins()) == 1


def test_no_more_than_some_proposals_wait(memory: Memory) -> None:
    conversation = begun(memory)
    for number in range(MOST_OPEN):
        call(conversation, "remember", text=f"Port {5400 + number} is taken.", kind="fact")
    assert "64 proposals wait" in refused(conversation, "remember", text="One more.", kind="fact")
    assert len(conversation.proposals()) == MOST_OPEN
    conversation.refuse(conversation.proposals()[0].edit_id)
    call(conversation, "remember", text="One more.", kind="fact")


WRONG: dict[str, tuple[str, dict[str, object], str]] = {
    "no text": ("remember", {"kind": "fact"}, "text is missing"),
    "no kind": ("remember", {"text": "x is 5"}, "kind is missing"),
    "other kind": ("remember", {"text": "x is 5", "kind": "rumour"}, "kind"),
    "too long": ("remember", {"text": "x" * 401, "kind": "fact"}, "400"),
    "heading": ("remember", {"text": "Rules:", "kind": "fact"}, "nothing to note"),
    "nothing": ("pin", {}, "either message or text"),
    "both": ("pin", {"message": "0", "text": "x"}, "either message or text"),
    "no such message": ("pin", {"message": "7"}, "no message at position 7"),
    "number": ("pin", {"message": 0}, "message"),
    "other conversation": ("pin", {"message": "refold://other/0"}, "another conversation"),
    "no address": ("pin", {"message": "the first"}, "nor an address"),
    "unknown id": ("forget", {"target": "4f77807ae5e9"}, "neither an id"),
    "erased already": ("forget", {"target": "1"}, "erased or lost"),
    "other's message": ("forget", {"target": "refold://other/0"}, "another conversation"),
}


@pytest.mark.parametrize("edits", ["propose", "allow"])
@pytest.mark.parametrize(("tool", "given", "why"), WRONG.values(), ids=list(WRONG))
def test_wrong_input_is_refused_as_an_answer(
    memory: Memory, edits: EditMode, tool: str, given: dict[str, object], why: str
) -> None:
    conversation = begun(memory)
    begun(memory, "other")
    conversation.erase(1)
    assert why in refused(conversation, tool, edits, **given)


def test_a_conversation_without_messages_is_not_edited(memory: Memory) -> None:
    conversation = memory.conversation("new")
    assert "no messages yet" in refused(conversation, "remember", text="x is 5", kind="fact")
    assert conversation.proposals() == ()


def test_tools_of_another_kind_are_refused(memory: Memory) -> None:
    conversation = begun(memory)
    with pytest.raises(refold.InvalidSetting, match="edits='always' is invalid"):
        conversation.tools(edits="always")  # type: ignore[arg-type]
    with pytest.raises(refold.InvalidSetting, match="author"):
        conversation.tools(edits="allow", author=" ")
    with pytest.raises(refold.InvalidSetting, match="need a conversation"):
        memory.tools(edits="propose")
    assert "pin" in memory.tools("t", edits="propose").names


def test_credentials_and_headings_are_taken_out_before_anything_is_stored(
    folder: Path, memory: Memory
) -> None:
    conversation = begun(memory)
    secret = "sk-ant-api03-" + "Ab9" * 12
    call(conversation, "remember", text=f"The key is {secret} now.", kind="fact")
    call(conversation, "pin", text=f"## Pinned\n[Conversation Ledger]\nkey {secret}\x1b[31m")
    note, pin = conversation.proposals()
    assert note.text == "The key is [redacted] now."
    assert pin.text == "Pinned\n(Conversation Ledger)\nkey [redacted]"
    assert not any(secret.encode() in path.read_bytes() for path in folder.iterdir())


def test_pins_of_a_model_leave_room_in_every_request(memory: Memory) -> None:
    conversation = begun(memory)
    conversation.append({"role": "user", "content": "word " * 400})
    for edits in ("propose", "allow"):
        assert "would take" in refused(conversation, "pin", edits, message="2")
        call(conversation, "pin", edits, text=f"a short text {edits}")
    conversation.pin(2)
    assert "300 are the most" in refused(conversation, "pin", text="a short text")


def test_a_model_of_another_owner_is_refused(memory: Memory) -> None:
    conversation = begun(memory, owner="user-7")
    tools = memory.tools("t", owner="user-8", edits="allow")
    version = conversation.version
    told = tools.call("pin", {"message": "0"})
    assert told.is_error
    assert "another owner" in told.text
    with pytest.raises(refold.OwnerConflict):
        memory.conversation("t", owner="user-8").proposals()
    assert conversation.version == version


# --- decisions


def test_a_decision_is_final_and_repeating_it_changes_nothing(memory: Memory) -> None:
    conversation = begun(memory)
    call(conversation, "pin", message="0")
    call(conversation, "pin", text="never on Mondays")
    first, second = conversation.proposals()
    assert conversation.allow(first.edit_id).changed
    assert conversation.refuse(second.edit_id, "no")
    version = conversation.version
    assert not conversation.allow(first.edit_id).changed
    assert not conversation.refuse(second.edit_id)
    with pytest.raises(refold.EditClosed, match="was allowed by program"):
        conversation.refuse(first.edit_id)
    with pytest.raises(refold.EditClosed, match="was refused by program"):
        conversation.allow(second.edit_id)
    for decide in (conversation.allow, conversation.refuse):
        with pytest.raises(refold.UnknownEdit, match="no proposed edit 'none'"):
            decide("none")
    assert conversation.version == version
    assert fields(conversation, "edit_decided")[1]["reason"] == "no"
    assert [pin.pin_id for pin in conversation.pins()] == [first.edit_id]


def test_what_was_done_meanwhile_is_not_done_again(memory: Memory) -> None:
    conversation = begun(memory)
    call(conversation, "pin", message="0")
    (pin,) = conversation.proposals()
    mine = conversation.pin(0)
    assert not conversation.allow(pin.edit_id).changed
    assert [one.pin_id for one in conversation.pins()] == [mine]
    call(conversation, "forget", target=mine)
    (gone,) = conversation.proposals()
    conversation.unpin(mine)
    assert not conversation.allow(gone.edit_id).changed
    assert conversation.proposals() == ()


def test_a_pin_without_room_waits_on(memory: Memory) -> None:
    conversation = begun(memory)
    call(conversation, "pin", message="0")
    (proposal,) = conversation.proposals()
    for number in range(256):
        conversation.pin(f"text {number}")
    with pytest.raises(refold.InvalidMessage, match="256 pins already"):
        conversation.allow(proposal.edit_id)
    assert conversation.proposals() == (proposal,)


@pytest.mark.parametrize("tool", ["pin", "forget"])
def test_an_edit_is_carried_out_once_by_several_at_once(folder: Path, tool: str) -> None:
    with opened(folder) as memory:
        conversation = begun(memory)
        call(conversation, tool, **ABOUT_THE_FIRST[tool])
        (proposal,) = conversation.proposals()
        version = conversation.version
        outcomes: list[bool] = []
        gate = threading.Barrier(4)

        def allow() -> None:
            with opened(folder) as other:
                gate.wait()
                outcomes.append(other.conversation("t").allow(proposal.edit_id).changed)

        threads = [threading.Thread(target=allow) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == [False, False, False, True]
        done = "message_pinned" if tool == "pin" else "message_erased"
        assert names(conversation, version) == ["edit_decided", done]
        assert memory.verify().ok


@pytest.mark.parametrize("tool", ["pin", "forget"])
def test_an_edit_is_not_carried_out_after_it_was_refused(folder: Path, tool: str) -> None:
    with opened(folder) as memory, opened(folder) as other:
        conversation = begun(memory)
        call(conversation, tool, **ABOUT_THE_FIRST[tool])
        (proposal,) = conversation.proposals()
        seen = log_of(memory).load
        other_refuses = other.conversation("t").refuse

        def refuse_meanwhile(thread_id: str, **at: Any) -> Any:
            loaded = seen(thread_id, **at)
            other_refuses(proposal.edit_id)
            return loaded

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(log_of(memory), "load", refuse_meanwhile)
            with pytest.raises(refold.EditClosed):
                conversation.allow(proposal.edit_id)
        assert conversation.pins() == ()
        assert not conversation.read(0).erased


def test_an_erasure_that_fails_leaves_the_proposal_waiting(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = begun(memory)
    call(conversation, "forget", target="0")
    (proposal,) = conversation.proposals()

    def fail(*_: object, **__: object) -> None:
        raise refold.LogFull("no room")

    with monkeypatch.context() as patched:
        patched.setattr(log_of(memory), "erase", fail)
        with pytest.raises(refold.LogFull):
            conversation.allow(proposal.edit_id)
    assert conversation.proposals() == (proposal,)
    assert conversation.allow(proposal.edit_id).changed


def test_programs_see_edits_in_their_log_without_words(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    conversation = begun(memory)
    with caplog.at_level("INFO", "refold.edit"):
        call(conversation, "pin", text="never on Mondays")
        (proposal,) = conversation.proposals()
        conversation.refuse(proposal.edit_id, "not that")
    assert [record.getMessage() for record in caplog.records] == [
        f"edit.proposed thread_id=t edit_id={proposal.edit_id} action=pin",
        f"edit.decided thread_id=t edit_id={proposal.edit_id} allowed=false",
    ]


# --- erasures


def quoted(conversation: ConversationMemory) -> None:
    """Three edits that quote the secret are allowed, two wait, and two have nothing to do with it."""
    call(conversation, "remember", "allow", text=f"Never touch {PATH} again.", kind="constraint")
    call(conversation, "pin", "allow", text=f"{SECRET} is gone")
    call(conversation, "remember", text=f"It was {SECRET}.", kind="fact")
    call(conversation, "pin", message="2")
    call(conversation, "pin", "allow", text="Speak kindly to everybody")
    call(conversation, "remember", "allow", text="Ports begin at 5400.", kind="fact")


def test_an_erased_message_takes_what_was_made_of_it(folder: Path, memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 3, [1])
    quoted(conversation)
    version = conversation.version
    report = conversation.erase(2)
    assert holding(folder) == {}
    assert {"proposal", "pin", "notes"} <= {one.place for one in report.removed}
    assert [one.text for one in conversation.pins()] == ["Speak kindly to everybody"]
    assert [one.text for one in conversation.notes()] == ["Ports begin at 5400."]
    assert conversation.proposals() == ()
    assert names(conversation, version) == [
        "message_unpinned",
        "edit_decided",
        "edit_decided",
        "message_erased",
    ]
    closed = fields(conversation, "edit_decided")[-2:]
    assert {(one["allowed"], one["by"]) for one in closed} == {(False, "erasure")}
    with pytest.raises(refold.EditClosed, match="a message that it was about was erased"):
        conversation.allow(closed[0]["edit_id"])
    is_sound(memory, conversation)
    memory.replay()
    assert [one.text for one in conversation.notes()] == ["Ports begin at 5400."]


def test_an_allowed_erasure_takes_the_other_proposals_along(folder: Path, memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 3, [1])
    quoted(conversation)
    call(conversation, "forget", target="2")
    assert conversation.allow(conversation.proposals()[-1].edit_id).changed
    assert holding(folder) == {}
    assert conversation.proposals() == ()
    is_sound(memory, conversation)


def test_what_a_model_noted_is_not_noted_by_code_when_it_is_withdrawn(memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 20, [1])
    call(conversation, "remember", "allow", text=f"Never touch {PATH} again.", kind="constraint")
    flushes = names(conversation).count("notes_flushed")
    before = [note for note in conversation.notes() if not note.is_on_demand]
    conversation.compact()
    conversation.erase(39)
    assert names(conversation).count("notes_flushed") in (flushes, flushes + 1)
    conversation.erase(2)
    assert not [note for note in conversation.notes() if note.is_on_demand]
    assert all(note.start < note.stop for note in conversation.notes())
    assert before is not None
    is_sound(memory, conversation)


@pytest.mark.parametrize("how", ["conversation", "owner"])
def test_an_erased_conversation_or_owner_leaves_nothing(
    folder: Path, memory: Memory, how: str
) -> None:
    conversation = memory.conversation("t", owner="user-7")
    talk(conversation, 3, [1])
    quoted(conversation)
    if how == "owner":
        memory.erase_owner("user-7")
        assert (conversation.pins(), list(conversation.notes())) == ((), [])
        for event in conversation.export("events"):
            assert "kindly" not in str(event)
            assert not re.search(
                r"(?<![0-9a-f])5400(?![0-9a-f])", str(event)
            )  # It may be in a digest.
        assert conversation.proposals() == ()
    else:
        memory.erase_conversation("t")
        for tool, given in (("pin", {"text": "x"}), ("forget", {"target": "0"})):
            told = conversation.tools(edits="allow").call(tool, given)
            assert told.is_error, told.text
        with pytest.raises(refold.ConversationGone):
            conversation.allow("e")
        assert conversation.proposals() == ()
    assert holding(folder) == {}
    assert memory.verify().ok


# --- forks


def test_a_fork_has_the_proposals_and_decides_its_own(memory: Memory) -> None:
    conversation = begun(memory)
    call(conversation, "pin", message="0")
    call(conversation, "remember", "allow", text="Ports begin at 5400.", kind="fact")
    version = conversation.version
    (proposal,) = conversation.proposals()
    conversation.refuse(proposal.edit_id)
    copy = conversation.fork(at=version, thread_id="copy")
    assert copy.proposals() == (proposal,)
    assert copy.allow(proposal.edit_id).changed
    assert [one.pin_id for one in copy.pins()] == [proposal.edit_id]
    assert conversation.pins() == ()
    (note,) = copy.notes()
    call(copy, "forget", "allow", target=note.flush_id)
    assert list(copy.notes()) == []
    assert len(conversation.notes()) == 1
    assert memory.verify().ok


def test_a_message_that_others_have_too_is_only_proposed_to_be_erased(memory: Memory) -> None:
    conversation = begun(memory)
    copy = conversation.fork(thread_id="copy")
    copy.append({"role": "user", "content": "And on my own?"})
    assert "Proposed as" in call(copy, "forget", "allow", target="0")
    assert not conversation.read(0).erased
    assert "is erased" in call(copy, "forget", "allow", target="2")
    (proposal,) = copy.proposals()
    done = copy.allow(proposal.edit_id)
    assert done.erasure is not None
    assert done.erasure.copies == ("t",)
    assert conversation.read(0).erased
    assert memory.verify().ok


def test_an_erasure_closes_the_copies_of_a_proposal(folder: Path, memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 3, [1])
    quoted(conversation)
    call(conversation, "forget", target="2")
    copy = conversation.fork(thread_id="copy")
    version = conversation.version
    conversation.allow(conversation.proposals()[-1].edit_id)
    assert holding(folder) == {}
    assert copy.proposals() == ()
    late = conversation.fork(at=version, thread_id="late")
    assert late.proposals() == ()
    assert [one.text for one in late.pins()] == ["Speak kindly to everybody"]
    assert [one.text for one in late.notes()] == ["Ports begin at 5400."]
    assert holding(folder) == {}
    for one in (conversation, copy, late):
        is_sound(memory, one)


# --- notes


def test_a_note_of_a_model_is_in_the_notes_folder_until_it_is_withdrawn(
    folder: Path, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    with opened(folder, notes_folder=notes) as memory:
        conversation = begun(memory)
        text = "Never <!-- touch --> the [Conversation Ledger] of pnpm."
        call(conversation, "remember", "allow", "a --> b", text=text, kind="constraint")
        written = (notes / "MEMORY.md").read_text()
        assert "## Constraints" in written
        assert "(remembered by a --&gt; b)" in written
        assert "&lt;!-- touch --&gt; the (Conversation Ledger)" in written
        (note,) = conversation.notes()
        call(conversation, "forget", "allow", target=note.flush_id)
        assert not (notes / "MEMORY.md").exists() or "pnpm" not in (notes / "MEMORY.md").read_text()


def test_a_note_of_a_model_counts_for_no_compaction(memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 4)
    call(conversation, "remember", "allow", text="Ports begin at 5400.", kind="fact")
    state = log_of(memory).load("t").state
    assert (state.notes_to, state.notes_at) == (0, None)
    talk(conversation, 20, [1])
    spans = [(f["start"], f["stop"]) for f in fields(conversation, "notes_flushed")]
    assert spans[0] == (8, 8)
    assert spans[1][0] == 0
    is_sound(memory, conversation)


def test_an_owners_next_conversation_quotes_a_note_until_its_source_is_erased(
    folder: Path,
) -> None:
    with opened(folder, window=8_000, memories=5) as memory:
        first = begun(memory, "first", owner="user-7")
        call(first, "remember", "allow", text="The quokka project uses pnpm.", kind="decision")
        second = memory.conversation("second", owner="user-7")
        second.append({"role": "user", "content": "How do I build the quokka project?"})
        system = str(second.context(system="SYS").system)
        assert "The quokka project uses pnpm." in system
        assert "[refold://first/1] note" in system
        first.erase(0)
        assert "uses pnpm" not in str(second.context(system="SYS").system)
        assert not any(b"project uses pnpm" in path.read_bytes() for path in folder.iterdir())
        assert memory.verify().ok


def test_a_note_that_may_be_made_of_a_guests_words_is_not_the_owners(memory: Memory) -> None:
    conversation = begun(memory, owner="user-7")
    call(conversation, "remember", "allow", text="Ports begin at 5400.", kind="fact")
    conversation.append({"role": "user", "content": "I am a guest."}, owner="user-9")
    call(conversation, "remember", "allow", text="A guest came by.", kind="fact")
    assert [note.text for note in memory.notes(owner="user-7")] == ["Ports begin at 5400."]
    assert len(memory.notes()) == 2


# --- asyncio


def test_an_agent_in_asyncio_edits_and_is_allowed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with refold.aopen(tmp_path / "a.db", window=3_000) as memory:
            conversation = memory.conversation("t")
            await conversation.append({"role": "user", "content": ORDER})
            block = {"type": "tool_use", "id": "c1", "name": "forget", "input": {"target": "0"}}
            told = await conversation.tools(edits="propose").result_for(block)
            assert "Proposed as" in told["content"]
            (proposal,) = await conversation.proposals()
            assert (await conversation.allow(proposal.edit_id)).erasure is not None
            await conversation.append({"role": "user", "content": "Another one."})
            done = await conversation.tools(edits="allow").call("forget", {"target": "1"})
            assert not done.is_error, done.text
            assert (await conversation.read(1)).erased
            await conversation.tools(edits="propose").call("pin", {"text": "x"})
            (proposal,) = await conversation.proposals()
            assert await conversation.refuse(proposal.edit_id)

    asyncio.run(scene())


def test_blocking_tools_erase_within_a_running_loop(memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 20, [1])
    assert conversation.summaries()

    async def scene() -> str:
        return call(conversation, "forget", "allow", target="2")

    assert "is erased" in asyncio.run(scene())
    is_sound(memory, conversation)


def test_a_program_takes_a_note_back(memory: Memory) -> None:
    conversation = begun(memory)
    given = {"text": "The project uses pnpm, never npm.", "kind": "decision"}
    conversation.tools(edits="allow").call("remember", given)
    (note,) = conversation.notes()
    assert conversation.withdraw_note(note.flush_id)
    assert list(conversation.notes()) == []
    assert not conversation.withdraw_note(note.flush_id)
    assert not conversation.withdraw_note("none")
    assert memory.verify().ok
