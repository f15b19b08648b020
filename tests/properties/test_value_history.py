"""``why`` agrees with the rendered requests: now, at every version, and about when a value left."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.history.value_history import ValueHistory
from refold.application.history.value_timeline import Standing
from refold.domain.errors import ContextWindowExceeded, InvalidMessage
from tests.properties.test_fates import POLICY, WINDOW, texts
from tests.support.fake_ports import MemoryLog, core_of

FILLING = "the wire of the lamp was followed along the wall and found to be whole; "

sizes = st.sampled_from((0, 8, 40, -40))
"""Number of sentences on both sides of a value, or only after it if negative. With many before it, a preview does
not show it.
"""
values = st.integers(1, 3)
moves = st.one_of(
    st.tuples(st.just("talk"), sizes, values),
    *(st.tuples(st.just("tools"), sizes, values) for _ in range(4)),
    st.tuples(st.sampled_from(("compact", "revert", "unpin")), st.just(0), st.just(0)),
    st.tuples(st.sampled_from(("pin", "erase")), st.integers(0, 30), st.just(0)),
    st.tuples(st.just("pin text"), st.just(0), values),
)


def value_of(number: int) -> str:
    """A value that needs an escape in JSON."""
    return f'port="639{number}"'


def body(size: int, number: int) -> str:
    return f"{FILLING * size}{value_of(number)} {FILLING * abs(size)}"


def make(conversation: ConversationMemory, kind: str, size: int, number: int) -> None:
    at = len(conversation.messages())
    match kind:
        case "compact":
            conversation.compact()
        case "revert":
            conversation.revert_compaction()
        case "pin":
            conversation.pin(size % at)
        case "pin text":
            conversation.pin(value_of(number))
        case "unpin":
            for pin in conversation.pins()[:1]:
                conversation.unpin(pin.pin_id)
        case "erase":
            conversation.erase(size % at)
        case "talk":
            conversation.append(
                [
                    {"role": "user", "content": body(size, number)},
                    {"role": "assistant", "content": "It is done. " * (abs(size) + 1)},
                ],
                recorded=True,
            )
            conversation.context()
        case _:
            used: dict[str, Any] = {
                "type": "tool_use",
                "id": f"c{at}",
                "name": "look",
                "input": {"at": size},
            }
            if size == 8:
                used["input"] = {"code": body(size, number)}
            found = {"type": "tool_result", "tool_use_id": f"c{at}", "content": body(size, number)}
            conversation.append(
                [{"role": "assistant", "content": [used]}, {"role": "user", "content": [found]}],
                recorded=True,
            )
            conversation.context()


def shows(context: Context, value: str) -> bool:
    forms = value, json.dumps(value)[1:-1]
    request: Any = json.loads(json.dumps([context.system, context.messages]))
    return any(form in text for text in texts(request) for form in forms)


def standing_at(found: ValueHistory, version: int) -> Standing:
    """The standing at a version, by the list of changes."""
    standing: Standing = "nowhere"
    for change in found.changes:
        if change.version <= version:
            standing = change.after
    return standing


@given(st.lists(moves, min_size=8, max_size=20))
def test_a_value_is_where_the_request_shows_it_at_every_version(
    steps: list[tuple[str, int, int]],
) -> None:
    log = MemoryLog()
    with Memory(core_of(log, window=WINDOW, policy=POLICY)) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "Look at the lamps, please."})
        for step in steps:
            try:
                make(conversation, *step)
            except (ContextWindowExceeded, InvalidMessage):
                continue
        for number in (1, 2):
            agrees(conversation, value_of(number))


def agrees(conversation: ConversationMemory, value: str) -> None:
    found = conversation.why(value)
    moments = {found.version, *(c.version - n for c in found.changes for n in (0, 1))}
    for version in sorted({*moments, *range(1, found.version, 4)} - {0}):
        shown = shows(conversation.context(at=version), value)
        then = conversation.why(value, at=version)
        assert (then.standing != "nowhere") == shown, f"version {version}: {then.places}"
        if found.is_certain and found.change_count == len(found.changes):
            assert standing_at(found, version) == then.standing, (
                f"version {version}: {found.changes}"
            )
