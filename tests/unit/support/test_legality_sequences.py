"""The judge of several requests: a stable prefix between decisions, and thinking that stays valid."""

import copy
from typing import Any

import pytest

from refold.testing.request_judge import prefix_violations, preserved_thinking_violations

Json = dict[str, Any]


def user(words: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": words}]}


def assistant(words: str, *thoughts: str) -> Json:
    blocks = [{"type": "thinking", "thinking": t, "signature": f"sig-{t}"} for t in thoughts]
    return {"role": "assistant", "content": [*blocks, {"type": "text", "text": words}]}


def request(*messages: Json, **more: Any) -> Json:
    whole: Json = {"system": "be kind", "tools": [{"name": "ls"}], "summary_id": None, **more}
    return copy.deepcopy({**whole, "messages": list(messages)})


def without_thinking(message: Json) -> Json:
    kept = [block for block in message["content"] if block["type"] != "thinking"]
    return {**message, "content": kept}


HELLO = request(user("hello"))
LONGER = request(user("hello"), assistant("hi"), user("more"))


def test_a_request_that_only_grows_has_a_stable_prefix() -> None:
    assert prefix_violations([HELLO, LONGER, LONGER]) == []


def test_the_last_message_may_get_further_blocks() -> None:
    extended = request({"role": "user", "content": [*HELLO["messages"][0]["content"], {"x": 1}]})

    assert prefix_violations([HELLO, extended]) == []


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        (request(user("hello!")), "messages[0] changed"),
        (request({"role": "user", "content": "hello"}), "messages[0] changed"),
        (request({"content": HELLO["messages"][0]["content"], "role": "user"}), "messages[0] ch"),
        (request(), "1 messages are gone"),
        (request(user("hello"), system="be brief"), "system changed"),
        (request(user("hello"), tools=[]), "tools changed"),
    ],
)
def test_any_other_change_of_what_was_sent_is_found(changed: Json, fault: str) -> None:
    found = prefix_violations([HELLO, changed])

    assert found
    assert all(f.startswith("prefix: requests[1]: ") for f in found)
    assert fault in found[0]


def test_only_the_last_message_may_grow() -> None:
    grown = copy.deepcopy(LONGER)
    grown["messages"][0]["content"].append({"type": "text", "text": "late"})

    assert prefix_violations([LONGER, grown]) == ["prefix: requests[1]: messages[0] changed"]


@pytest.mark.parametrize("mark", ["summary_id", "decision", "revision"])
def test_a_recorded_decision_may_change_everything(mark: str) -> None:
    assert prefix_violations([LONGER, request(user("a summary"), **{mark: "2"})]) == []


def test_each_pair_of_neighbours_is_compared() -> None:
    decided = request(user("a summary"), summary_id="s1")
    wrong = request(user("another summary"), summary_id="s1")

    assert prefix_violations([HELLO, decided, wrong]) == [
        "prefix: requests[2]: messages[0] changed"
    ]


def test_cache_marks_are_bytes_unless_the_caller_lets_them_move() -> None:
    marked = copy.deepcopy(HELLO)
    marked["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}

    assert prefix_violations([marked, LONGER]) != []
    assert prefix_violations([marked, LONGER], cache_marks_may_move=True) == []


FIRST = [user("one"), assistant("1", "a"), user("two")]
SECOND = [*FIRST, assistant("2", "b"), user("three")]
THIRD = [*SECOND, assistant("3", "c"), user("four")]
GROWING = [request(*FIRST), request(*SECOND), request(*THIRD)]


def test_thinking_stays_valid_while_the_conversation_only_grows() -> None:
    assert preserved_thinking_violations(GROWING) == []


def test_cache_marks_may_move_under_thinking() -> None:
    marked = copy.deepcopy(GROWING[2])
    marked["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}

    assert preserved_thinking_violations([*GROWING, marked]) == []


@pytest.mark.parametrize("oldest", [1, 2, 3])
def test_thinking_may_be_dropped_oldest_first(oldest: int) -> None:
    positions = (1, 3, 5)[:oldest]
    dropped = [without_thinking(m) if i in positions else m for i, m in enumerate(THIRD)]

    assert preserved_thinking_violations([*GROWING, request(*dropped)]) == []


def test_thinking_dropped_from_the_middle_is_refused() -> None:
    holed = [without_thinking(m) if i == 3 else m for i, m in enumerate(THIRD)]

    found = preserved_thinking_violations([*GROWING, request(*holed)])

    assert len(found) == 1
    assert found[0].startswith("preserved-thinking: requests[3].messages[5].content[0]: ")


def test_thinking_put_back_is_refused() -> None:
    dropped = [without_thinking(m) if i == 1 else m for i, m in enumerate(THIRD)]

    found = preserved_thinking_violations([*GROWING, request(*dropped), request(*THIRD)])

    assert [f.split(":")[1] for f in found] == [
        " requests[4].messages[3].content[0]",
        " requests[4].messages[5].content[0]",
    ]


@pytest.mark.parametrize(
    "changed",
    [
        request(user("a summary"), *THIRD[3:]),
        request(user("uno"), *THIRD[1:]),
        request(*THIRD, system="be brief"),
        request(*THIRD, tools=[{"name": "ls"}, {"name": "rm"}]),
    ],
    ids=["summary before kept thinking", "an earlier edit", "new system text", "a tool added"],
)
def test_thinking_behind_a_changed_prefix_is_refused(changed: Json) -> None:
    assert preserved_thinking_violations([*GROWING, changed]) != []


def test_a_changed_prefix_is_fine_once_all_kept_thinking_is_dropped() -> None:
    compacted = [user("a summary"), *(without_thinking(m) for m in THIRD[3:])]

    assert preserved_thinking_violations([*GROWING, request(*compacted)]) == []


def test_older_models_do_not_tie_thinking_to_its_prefix() -> None:
    compacted = request(user("a summary"), *THIRD[3:], model="claude-opus-4-5")

    assert preserved_thinking_violations([*GROWING, compacted]) == []
    assert preserved_thinking_violations([*GROWING, compacted | {"model": "unknown-9"}]) != []


def test_what_an_older_model_saw_changes_nothing_for_the_others() -> None:
    other = request(*THIRD, system="be brief", model="claude-opus-4-5")

    assert preserved_thinking_violations([*GROWING, other, GROWING[2]]) == []
    assert (
        preserved_thinking_violations([*GROWING, other, request(*THIRD, system="be brief")]) != []
    )


def test_an_answer_is_signed_behind_the_request_it_answers() -> None:
    asked = request(*FIRST, answer=assistant("2", "b")["content"])
    compacted = request(user("a summary"), user("two"), assistant("2", "b"), user("three"))

    assert preserved_thinking_violations([asked, request(*SECOND)]) == []
    assert preserved_thinking_violations([asked, compacted]) != []
    assert preserved_thinking_violations([request(*FIRST), compacted]) == []


def test_a_signature_on_another_text_is_refused() -> None:
    changed = copy.deepcopy(GROWING[0])
    changed["messages"][1]["content"][0]["thinking"] = "something else"

    assert preserved_thinking_violations([GROWING[0], changed]) == [
        "changed-thinking: requests[1].messages[1].content[0]: other text under the same signature"
    ]
