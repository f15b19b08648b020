"""Ids and names that are members of an enumeration, which are text with another form when formatted."""

from enum import Enum
from pathlib import Path

import refold


class Name(str, Enum):  # noqa: UP042 (a StrEnum is formatted as its value)
    THREAD = "support"
    COPY = "copy"
    OWNER = "user-7"
    KEY = "k1"
    AUTHOR = "person"


def test_what_is_stored_under_a_member_is_read_back_under_its_value(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path) as memory:
        conversation = memory.conversation(Name.THREAD, owner=Name.OWNER)
        conversation.append(
            {"role": "user", "content": "hello"},
            key=Name.KEY,
            author=Name.AUTHOR,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        )
        conversation.fork(thread_id=Name.COPY)
        assert type(conversation.thread_id) is str
    with refold.open(path) as memory:
        assert memory.verify().ok
        assert {row.thread_id for row in memory.conversations()} == {"support", "copy"}
        for thread_id in ("support", Name.THREAD, "copy"):
            conversation = memory.conversation(thread_id, owner="user-7")
            assert [message.message.content for message in conversation.messages()] == ["hello"]
        again = memory.conversation("support", owner="user-7").append(
            {"role": "user", "content": "hello"}, key="k1", author="person"
        )
        assert not again.messages[0].new
        assert memory.erase_owner(Name.OWNER).known
        memory.erase_conversation(Name.COPY)
        assert memory.verify().ok
