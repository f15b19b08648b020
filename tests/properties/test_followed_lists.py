"""Whatever an application does to its list, a conversation has exactly these messages, and nothing stored changes."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from refold.application.api.memory import Memory
from refold.application.conversation.followed_lists import FollowedLists
from refold.application.runtime.core import Core
from refold.domain.messages import said
from refold.infrastructure.bootstrap import open_core

WORDS = st.sampled_from(("go on", "yes", "stop", "why?"))
Deed = tuple[str, int, str]
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(
            ("say", "reply", "edit", "cut", "insert", "drop", "again", "restart", "other")
        ),
        st.integers(0, 11),
        WORDS,
    ),
    max_size=14,
)


def changed(messages: list[dict[str, Any]], deed: Deed) -> list[dict[str, Any]]:
    """Return the list after the application did this to it."""
    kind, number, words = deed
    at = number % (len(messages) + 1)
    role = ("user", "assistant")[len(messages) % 2]
    match kind:
        case "say" | "reply":
            return [*messages, {"role": role, "content": words}]
        case "edit" if at < len(messages):
            return [*messages[:at], {**messages[at], "content": f"{words}!"}, *messages[at + 1 :]]
        case "insert":
            return [*messages[:at], {"role": "user", "content": words}, *messages[at:]]
        case "drop" if at < len(messages):
            return [*messages[:at], *messages[at + 1 :]]
        case "cut":
            return messages[:at]
        case _:
            return messages


def stored(core: Core, name: str) -> list[tuple[str, str]]:
    return [(m.message.role, said(m.message)) for m in Memory(core).conversation(name).messages()]


@given(DEEDS)
def test_a_conversation_has_exactly_the_messages_of_the_list(deeds: list[Deed]) -> None:
    core = open_core(":memory:", telemetry=False)
    try:
        lists, messages = FollowedLists(core), list[dict[str, Any]]()
        seen: dict[str, list[tuple[str, str]]] = {}
        for deed in deeds:
            if deed[0] == "restart":
                lists = FollowedLists(core)
            if deed[0] == "other" and messages:
                # Another process goes on with the same list.
                other = [*messages, {"role": "user", "content": "from elsewhere"}]
                FollowedLists(core).follow("t", other)
            messages = changed(messages, deed)
            if not messages:
                continue
            if deed[0] == "reply" and len(messages) > 1:
                lists.follow("t", messages[:-1])
                lists.add_reply("t", messages[-1], messages[:-1])
            name = lists.follow("t", messages)
            told = [(m["role"], m["content"]) for m in messages]
            assert stored(core, name) == told
            known = len(core.views.conversations())
            # Where a reply was made again word for word, another process may find the first one.
            assert stored(core, FollowedLists(core).follow("t", messages)) == told
            assert len(core.views.conversations()) == known, "another process forks nothing"
            for known_id, before in seen.items():
                assert stored(core, known_id)[: len(before)] == before, "what was stored changed"
            seen = {
                row.thread_id: stored(core, row.thread_id) for row in core.views.conversations()
            }
            assert len(seen) <= 2 * len(deeds) + 1
    finally:
        core.log.close()
