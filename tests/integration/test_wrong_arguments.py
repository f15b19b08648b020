"""Whatever is given for an argument of the library: it is taken, or refused by an error that names it."""

# pyright: basic

import inspect
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.recall.recall_query import RecallOptions
from refold.testing import CheckFailed, check_store, check_summariser, violations

WRONG: list[Any] = [
    5, -1, 5.5, float("nan"), True, b"x", object(), [1], {"a": 1}, ("x",), "", "\ud800", int, None,
]  # fmt: skip
GIVEN: dict[str, Any] = {
    "message": {"role": "user", "content": "x"}, "query": "hello", "label": "x", "pin_id": "x",
    "summary_id": "x", "thread_id": "t", "messages": [], "to": "missing/folder/x.db",
}  # fmt: skip
ELSEWHERE = {"close", "append_recorded", "knows", "select_known"}


def methods(kind: type) -> Iterator[tuple[str, str]]:
    """Each public method with each of its arguments."""
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        if name.startswith("_") or name in ELSEWHERE or not inspect.isfunction(method):
            continue
        parameters = list(inspect.signature(method).parameters.values())[1:]
        for parameter in parameters:
            options = parameter.kind is parameter.VAR_KEYWORD
            for argument in RecallOptions.__annotations__ if options else [parameter.name]:
                yield name, argument


def required(kind: type, name: str) -> dict[str, Any]:
    parameters = list(inspect.signature(getattr(kind, name)).parameters.values())[1:]
    named = (p for p in parameters if p.kind is not p.VAR_KEYWORD)
    return {p.name: GIVEN.get(p.name, 0) for p in named if p.default is p.empty}


CALLS = [
    (kind, *call) for kind in (refold.ConversationMemory, refold.Memory) for call in methods(kind)
]


@pytest.mark.slow(but=["Chat-read-where", "Chat-append-owner", "Memory-search-tools"])
@pytest.mark.parametrize(
    ("kind", "name", "argument"), CALLS, ids=lambda v: getattr(v, "__name__", v)
)
def test_a_wrong_argument_is_taken_or_refused_by_a_typed_error(
    kind: type, name: str, argument: str
) -> None:
    with refold.open(":memory:", window=8_000) as memory:
        conversation = memory.conversation("t")
        conversation.append(
            [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "ok"}]
        )
        of = conversation if kind is refold.ConversationMemory else memory
        for wrong in WRONG:
            try:
                answer = getattr(of, name)(**{**required(kind, name), argument: wrong})
                if isinstance(answer, Iterator):
                    list(answer)  # pyright: ignore[reportUnknownArgumentType]
            except refold.RefoldError as error:
                assert str(error)  # noqa: PT017


FUNCTIONS = {
    "clock",
    "new_id",
    "on_compaction",
}  # What a function of the program answers is its own.


@pytest.mark.slow(but=["observers", "create", "policy"])
@pytest.mark.parametrize("option", list(refold.Options.__annotations__))
def test_a_wrong_option_is_taken_or_refused_by_a_typed_error(option: str) -> None:
    for wrong in WRONG:
        if option in FUNCTIONS and callable(wrong):
            continue
        try:
            with refold.open(":memory:", **{option: wrong}) as memory:
                conversation = memory.conversation("t")
                conversation.append({"role": "user", "content": "x"})
                conversation.context()
        except refold.RefoldError as error:
            assert option in str(error)  # noqa: PT017


@pytest.mark.parametrize("path", WRONG, ids=lambda v: type(v).__name__)
def test_a_wrong_path_is_refused_by_its_name(path: Any) -> None:
    with pytest.raises(refold.InvalidSetting, match=r"^path: must be the path of the log"):
        refold.open(path)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda conversation: conversation.compact(focus=5), "focus: must be text, not 5"),
        (
            lambda conversation: conversation.context(model=5),
            "model: must be text that is not blank, not 5",
        ),
        (
            lambda conversation: conversation.context(system=5),
            "system: must be text, or a list of text blocks",
        ),
        (lambda conversation: conversation.erase(0, reason=5), "reason: must be text, not 5"),
        (lambda conversation: conversation.erase(None), "where: must be a position"),
        (
            lambda conversation: conversation.request_parts(5),
            "context: must be a context, as context() gives it",
        ),
        (lambda conversation: conversation.recall(5), "query: must be a question as text, not 5"),
        (
            lambda conversation: conversation.label(None),
            "label: must be text, not a value of type NoneType",
        ),
    ],
)
def test_the_argument_is_named(call: Any, says: str) -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "x"})
        with pytest.raises(refold.InvalidSetting) as caught:
            call(conversation)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"policy": {"keep_last": 3}}, "policy: must be a refold.CompactionPolicy"),
        ({"summariser": object()}, "argument summariser: must be one of extractive"),
        ({"counter": object()}, "argument counter: must be an object with count_text"),
        ({"observers": [5]}, r"argument observers\[0\]: must be an object with compaction_ended"),
        ({"policy": refold.CompactionPolicy(target_share=0.99)}, "target_share = 0.99 "),
        (
            # With the defaults of the other two: that is told where all settings are known.
            {"policy": refold.CompactionPolicy(summary_tier=0.3, whole_tier=0.7)},
            "summary_tier = 0.3 .* condensed_tier = 0.35 .*default.* must be at most 1 together",
        ),
    ],
)
def test_the_option_is_named(options: Any, says: str) -> None:
    with pytest.raises(refold.InvalidSetting, match=says):
        refold.open(":memory:", **options)


def test_an_argument_that_there_is_not_is_told_with_what_was_meant() -> None:
    unknown: dict[str, Any] = {"keep_last": 3}
    with pytest.raises(TypeError, match=r"use policy=CompactionPolicy\(keep_last=3\)"):
        refold.open(":memory:", **unknown)
    wrong: dict[str, Any] = {"limt": 3}
    with refold.open(":memory:") as memory:
        with pytest.raises(TypeError, match=r"^recall\(\) has no argument 'limt' .*limit"):
            memory.conversation("t").recall("x", **wrong)
        with pytest.raises(TypeError, match=r"^search\(\) has no argument 'limt'"):
            memory.search("x", **wrong)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"keep_last": "x"}, "keep_last = 'x': must be a valid integer"),
        ({"keep_last": True}, "keep_last = 'True': must be a number"),
        ({"keep_last": 0}, "greater than or equal to 1"),
        ({"kep_last": 3}, "did you mean keep_last"),
        (
            {"summary_tier": 0.9, "whole_tier": 0.9},
            r"summary_tier = 0\.9 \+ whole_tier = 0\.9: must be at most 1 together",
        ),
    ],
)
def test_a_policy_that_cannot_be_is_a_typed_error(fields: Any, says: str) -> None:
    with pytest.raises(refold.InvalidSetting, match=says):
        refold.CompactionPolicy(**fields)


def test_tiers_may_be_the_whole_together() -> None:
    policy = refold.CompactionPolicy(summary_tier=0.1, condensed_tier=0.2, whole_tier=0.7)
    assert sum((policy.summary_tier, policy.condensed_tier, policy.whole_tier)) == pytest.approx(1)
    refold.open(":memory:", policy=policy).close()


def test_a_time_is_taken_as_results_give_it() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "x"})
        [message] = conversation.messages()
        assert conversation.context(at=message.at).version == 1
        for wrong in ("yesterday", "2026-01-02T03:04:05"):
            with pytest.raises(refold.InvalidSetting, match="time zone"):
                conversation.context(at=wrong)


def _request(betas: Any) -> object:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "x"})
        return conversation.context().for_anthropic(betas=betas)


def _import(saver: Any, memory: Any) -> object:
    checkpoints = pytest.importorskip("langgraph.checkpoint.memory")
    from refold.adapters.langchain import import_checkpoints

    with refold.open(":memory:") as opened:
        return import_checkpoints(saver or checkpoints.InMemorySaver(), memory or opened)


def _check_summariser(token_counter: Any) -> object:
    return check_summariser(object(), token_counter=token_counter)  # type: ignore[arg-type]


FUNCTIONS_OF_REFOLD: dict[str, tuple[Any, dict[str, Any]]] = {
    "copy_log": (refold.copy_log, {"source": "a.db", "target": "b.db", "progress": print}),
    "restore": (refold.restore, {"source": "b.db", "path": "c.db", "force": False}),
    "instruction_text": (
        refold.instruction_text,
        {"files": {"A.md": "x"}, "characters": 100, "total": 100},
    ),
    "from_openai": (refold.from_openai, {"messages": []}),
    "tools_from_openai": (refold.tools_from_openai, {"tools": []}),
    "read_transcript": (refold.read_transcript, {"path": "t.jsonl"}),
    "for_anthropic": (_request, {"betas": "x"}),
    "import_checkpoints": (_import, {"saver": None, "memory": None}),
    "check_store": (check_store, {"place": "folder"}),
    "check_summariser": (_check_summariser, {"token_counter": None}),
    "violations": (violations, {"request": {"messages": []}}),
}


@pytest.mark.parametrize(
    ("name", "argument"),
    [(name, argument) for name, (_, given) in FUNCTIONS_OF_REFOLD.items() for argument in given],
)
def test_a_wrong_argument_of_a_function_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, argument: str
) -> None:
    monkeypatch.chdir(tmp_path)
    function, given = FUNCTIONS_OF_REFOLD[name]
    for wrong in (*WRONG, [None]):
        with suppress(refold.RefoldError, CheckFailed):
            function(**{**given, argument: wrong})
    with pytest.raises(refold.RefoldError, match=argument):
        function(**{**given, argument: object()})
