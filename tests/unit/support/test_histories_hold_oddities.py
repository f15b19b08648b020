"""The generators of histories: each odd thing that real conversations hold really comes."""

from collections.abc import Callable
from contextlib import suppress
from itertools import chain, pairwise
from typing import Any

from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis.strategies import SearchStrategy

from refold.testing.history_layout import Message, Step
from refold.testing.history_strategies import live_histories, recorded_histories, turns

Block = dict[str, Any]


def blocks(message: Message) -> list[Block]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def of_type(message: Message, *kinds: str) -> list[Block]:
    return [b for b in blocks(message) if b["type"] in kinds]


def all_of(history: list[Message], *kinds: str) -> list[Block]:
    return [b for message in history for b in of_type(message, *kinds)]


Feature = Callable[[list[Message]], bool]


def pairs(history: list[Message]) -> list[tuple[Message, Message]]:
    return list(pairwise(history))


def results_after_calls(history: list[Message]) -> list[list[list[str]]]:
    """For each assistant message with calls: the call ids, then the result ids by message."""
    rounds: list[list[list[str]]] = []
    for message in history:
        if message["role"] == "assistant":
            rounds.append([[b["id"] for b in of_type(message, "tool_use")]])
        elif rounds and (results := of_type(message, "tool_result")):
            rounds[-1].append([b["tool_use_id"] for b in results])
    return [r for r in rounds if r[0]]


def arrived(tool_round: list[list[str]]) -> list[str]:
    return list(chain.from_iterable(tool_round[1:]))


def follows(first: str, second: str) -> Feature:
    return lambda h: any(a["role"] == first and b["role"] == second for a, b in pairs(h))


def aborted_by(role: str) -> Feature:
    def found(history: list[Message]) -> bool:
        return any(
            of_type(a, "tool_use") and b["role"] == role and not of_type(b, "tool_result")
            for a, b in pairs(history)
        )

    return found


def result_content(wanted: Callable[[Any], bool]) -> Feature:
    return lambda h: any(wanted(b.get("content", "absent")) for b in all_of(h, "tool_result"))


def result_kinds(content: Any) -> set[str]:
    return set() if isinstance(content, str) else {str(b["type"]) for b in content}


def text_with(wanted: Callable[[str], bool]) -> Feature:
    return lambda h: any(wanted(b["text"]) for b in all_of(h, "text"))


def has(*kinds: str) -> Feature:
    return lambda h: bool(all_of(h, *kinds))


def unknown_results(history: list[Message]) -> bool:
    calls = {b["id"] for b in all_of(history, "tool_use")}
    return any(b["tool_use_id"] not in calls for b in all_of(history, "tool_result"))


def late_results(history: list[Message]) -> bool:
    issued: set[str] = set()
    last: set[str] = set()
    for message in history:
        answered = {b["tool_use_id"] for b in of_type(message, "tool_result")}
        if message["role"] == "assistant":
            last = {b["id"] for b in of_type(message, "tool_use")}
            issued |= last
        elif issued and answered & issued - last:
            return True
    return False


def repeats(history: list[Message], kind: str, key: str) -> bool:
    ids = [b[key] for b in all_of(history, kind)]
    return len(ids) > len(set(ids))


LIVE: dict[str, Feature] = {
    "five parallel calls": lambda h: any(len(of_type(m, "tool_use")) == 5 for m in h),
    "results in another order": lambda h: any(
        len(arrived(r)) == len(r[0]) > 1 and arrived(r) != r[0] for r in results_after_calls(h)
    ),
    "results over several messages": lambda h: any(len(r) > 2 for r in results_after_calls(h)),
    "parallel results in one message": lambda h: any(len(of_type(m, "tool_result")) > 1 for m in h),
    "text before a result in its message": lambda h: any(
        of_type(m, "tool_result") and blocks(m)[0]["type"] == "text" for m in h
    ),
    "text after a result in its message": lambda h: any(
        of_type(m, "tool_result") and blocks(m)[-1]["type"] == "text" for m in h
    ),
    "user speaks while tools run": lambda h: any(
        of_type(a, "tool_use")
        and b["role"] == "user"
        and not of_type(b, "tool_result")
        and of_type(c, "tool_result")
        for a, b, c in zip(h, h[1:], h[2:], strict=False)
    ),
    "round aborted by the user": aborted_by("user"),
    "round aborted by the assistant": aborted_by("assistant"),
    "round half answered, then left": lambda h: any(
        0 < len(arrived(r)) < len(r[0]) for r in results_after_calls(h)[:-1]
    ),
    "calls pending at the end": lambda h: bool(of_type(h[-1], "tool_use")),
    "two user messages in a row": follows("user", "user"),
    "two assistant messages in a row": follows("assistant", "assistant"),
    "assistant without content": lambda h: any(m["content"] == [] for m in h),
    "error result": lambda h: any(b.get("is_error") for b in all_of(h, "tool_result")),
    "empty error result": lambda h: any(
        b.get("is_error") and not b.get("content") for b in all_of(h, "tool_result")
    ),
    "empty result": result_content(lambda c: c == ""),
    "result without content": result_content(lambda c: c == "absent"),
    "result of no blocks": result_content(lambda c: c == []),
    "blank text in a result": result_content(lambda c: c == [{"type": "text", "text": " \n"}]),
    "image in a result": result_content(lambda c: result_kinds(c) == {"image"}),
    "text and image in a result": result_content(lambda c: result_kinds(c) == {"text", "image"}),
    "huge result": result_content(lambda c: len(c) == 2_000),
    "signed thinking": has("thinking"),
    "redacted thinking": has("redacted_thinking"),
    "thinking before calls": lambda h: any(
        of_type(m, "thinking") and of_type(m, "tool_use") for m in h
    ),
    "server tool": has("web_search_tool_result"),
    "image": has("image"),
    "unknown block": has("future_block"),
    "content as a string": lambda h: any(isinstance(m["content"], str) for m in h),
    "blank text": text_with(lambda t: t != "" and not t.strip()),
    "empty text": text_with(lambda t: t == ""),
    "Chinese": text_with(lambda t: "简体" in t),
    "emoji of several code points": text_with(lambda t: "👩‍💻" in t),
    "very long text": text_with(lambda t: len(t) > 250),
}

RECORDED: dict[str, Feature] = {
    "result of an unknown call": unknown_results,
    "result given twice": lambda h: repeats(h, "tool_result", "tool_use_id"),
    "result much too late": late_results,
    "call id used twice": lambda h: repeats(h, "tool_use", "id"),
    "call id of odd characters": lambda h: any(":" in b["id"] for b in all_of(h, "tool_use")),
    "call id empty": lambda h: any(b["id"] == "" for b in all_of(h, "tool_use")),
    "system first": lambda h: h[0]["role"] == "system",
    "system between call and result": lambda h: any(
        of_type(a, "tool_use") and b["role"] == "system" for a, b in pairs(h)
    ),
    "assistant first": lambda h: h[0]["role"] == "assistant",
    "user without content": lambda h: any(m == {"role": "user", "content": []} for m in h),
    "lone surrogate": text_with(lambda t: any("\ud800" <= c <= "\udfff" for c in t)),
    "thinking last": lambda h: any(m["content"] and blocks(m)[-1]["type"] == "thinking" for m in h),
    "thinking without signature": lambda h: any(
        "signature" not in b for b in all_of(h, "thinking")
    ),
    "thinking with an empty signature": lambda h: any(
        b.get("signature") == "" for b in all_of(h, "thinking")
    ),
    "server call without result": lambda h: any(
        of_type(m, "server_tool_use") and not of_type(m, "web_search_tool_result") for m in h
    ),
    "answer over several messages": lambda h: any(
        of_type(a, "tool_use") and of_type(b, "tool_use") for a, b in pairs(h)
    ),
}

BOUNDED = settings(
    max_examples=2_000,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
)


class AllSeen(Exception):
    """Every feature was seen: the search ends."""


def never_seen(flavour: SearchStrategy[list[Message]], features: dict[str, Feature]) -> set[str]:
    missing = set(features)

    @BOUNDED
    @given(flavour)
    def look(history: list[Message]) -> None:
        missing.difference_update([name for name in missing if features[name](history)])
        if not missing:
            raise AllSeen

    with suppress(AllSeen):
        look()
    return missing


def test_live_histories_hold_every_oddity_of_live_agents() -> None:
    assert never_seen(live_histories(min_messages=10), LIVE) == set()


def test_recorded_histories_hold_these_and_what_only_recordings_hold() -> None:
    assert never_seen(recorded_histories(min_messages=10), LIVE | RECORDED) == set()


def test_a_step_may_hold_a_whole_round_or_leave_it_open() -> None:
    def whole(steps: list[Step]) -> bool:
        return any(of_type(s[0], "tool_use") and of_type(s[-1], "tool_result") for s in steps)

    def open_between(steps: list[Step]) -> bool:
        return any(
            of_type(a[-1], "tool_use") and of_type(b[0], "tool_result") for a, b in pairwise(steps)
        )

    find(turns(), whole, settings=BOUNDED)
    find(turns(), open_between, settings=BOUNDED)


def test_a_find_shrinks_to_the_plainest_history() -> None:
    quick = settings(
        max_examples=250, database=None, derandomize=True, phases=[Phase.generate, Phase.shrink]
    )
    short = live_histories(max_messages=5)

    smallest = find(short, lambda h: bool(all_of(h, "tool_result")), settings=quick)

    assert [[b["type"] for b in blocks(m)] for m in smallest] == [
        ["text"],
        ["tool_use"],
        ["tool_result"],
    ]
