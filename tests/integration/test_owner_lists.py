"""Lists of one owner have nothing of what somebody else said in the owner's conversations."""

from typing import Any

import refold

FILLER = "Tidying the garden shed, raking leaves and painting the fence white. " * 14


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def shared(
    memory: refold.Memory, thread_id: str, *, guest_first: bool
) -> refold.ConversationMemory:
    """A conversation of user-7 in which user-8 tells a liking as well."""
    conversation = memory.conversation(thread_id, owner="user-7")
    told = [("Remember: I prefer coffee.", None), ("Remember: I prefer absinthe.", "user-8")]
    for text, owner in reversed(told) if guest_first else told:
        conversation.append(said(text), owner=owner)
        conversation.append(said("Noted.", "assistant"))
    conversation.append([m for _ in range(6) for m in (said(FILLER), said("Fine.", "assistant"))])
    conversation.append(said("Go on."))
    assert conversation.compact().outcome == "performed"
    return conversation


def test_first_words_are_those_of_the_owner() -> None:
    with refold.open(":memory:", window=8_000) as memory:
        conversation = shared(memory, "a", guest_first=True)
        (row,) = memory.conversations(owner="user-7")
        assert (row.first_words, row.first_words_at) == ("Remember: I prefer coffee.", 2)
        assert row.title == "Remember: I prefer coffee."
        memory.replay()
        assert memory.conversations(owner="user-7") == [row]
        conversation.erase(2)
        (row,) = memory.conversations(owner="user-7")
        assert (row.first_words, row.title) == (None, "")
        assert memory.verify().ok


def test_where_the_owner_has_said_nothing_there_are_no_first_words() -> None:
    with refold.open(":memory:", window=8_000) as memory:
        conversation = memory.conversation("a", owner="user-7")
        conversation.append(said("I prefer absinthe."), owner="user-8")
        (row,) = memory.conversations(owner="user-7")
        assert (row.first_words, row.first_words_at, row.title) == (None, None, "")


def test_notes_of_an_owner_are_not_made_of_somebody_elses_messages() -> None:
    with refold.open(":memory:", window=8_000) as memory:
        chats = [shared(memory, name, guest_first=name == "b") for name in ("a", "b")]
        assert all("absinthe" in str(conversation.notes()) for conversation in chats)
        mine = memory.notes(owner="user-7")
        assert [(note.thread_id, note.text) for note in mine] == [
            ("a", "Remember: I prefer coffee."),
            ("b", "Remember: I prefer coffee."),
        ]
        assert memory.notes(owner="user-8") == []
        assert str(memory.notes()).count("absinthe") == 2


def test_notes_of_an_owner_are_in_the_order_of_the_log_and_forget_what_was_erased() -> None:
    with refold.open(":memory:", window=8_000) as memory:
        for name in ("z", "a", "m"):
            shared(memory, name, guest_first=False)
        memory.erase_conversation("a")
        shared(memory, "a", guest_first=False)
        assert [note.thread_id for note in memory.notes(owner="user-7")] == ["z", "m", "a"]
