"""Both faces have the same methods: names, parameters, defaults, annotations and first sentences."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import refold

PAIRS: list[tuple[type, type]] = [
    (refold.Memory, refold.AsyncMemory),
    (refold.ConversationMemory, refold.AsyncConversationMemory),
    (refold.Toolbox, refold.AsyncToolbox),
    (refold.ConversationTurn, refold.AsyncConversationTurn),
    (refold.Follower, refold.AsyncFollower),
]
INTERNAL = {
    "check_owner": "what the asyncio face asks before it awaits a compaction",
    "toolbox": "tools for the asyncio face, which cannot read the log in the loop",
}
"""Methods of the face that blocks which are no part of the interface, by reason."""
NOT_AWAITED = {
    "conversation": "reads nothing",
    "definitions": "reads nothing",
    "follow": "reads nothing; the methods of the follower are awaited",
    "for_anthropic": "reads nothing",
    "iter_conversations": "is iterated with async for",
    "iter_messages": "is iterated with async for",
    "name": "reads nothing",
    "names": "reads nothing",
    "place": "reads nothing",
    "has_remains": "reads nothing",
    "start": "starts a thread",
    "tools": "reads nothing; the owner is checked with each call",
    "turn": "is entered with async with",
}
"""What asyncio has without await, by reason."""
AWAITED_PROPERTIES = {
    "owner": "reads the log, and a property cannot be awaited by call",
    "version": "reads the log, and a property cannot be awaited by call",
}
"""Properties that are methods for asyncio, by reason."""
CONSTANTS = {(refold.AsyncFollower, "version")}
"""Properties that other classes have as methods, because they read the log there."""
OTHER_ANSWERS = {
    "export": ("Iterator", "list", "each step of an iterator would have to ask a thread"),
}
"""Methods that answer with another type for asyncio: the type here, the type there, the reason."""
SPECIAL = {
    "__enter__": "__aenter__",
    "__exit__": "__aexit__",
    "__await__": "__await__",  # ``memory = await refold.aopen(...)``, without a block.
}
PLUMBING = {"__init__", "__orig_bases__", "__parameters__", "__class_getitem__"}


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")} - set(INTERNAL)


def special(kind: type) -> set[str]:
    """The special methods that a class or one of its bases defines itself."""
    return {
        name
        for owner in kind.__mro__
        if owner.__module__.startswith("refold.")
        for name, value in vars(owner).items()
        if name.startswith("__") and inspect.isfunction(value)
    } - PLUMBING


def methods() -> list[tuple[type, type, str]]:
    return [
        (blocking, awaited, name)
        for blocking, awaited in PAIRS
        for name in sorted(public(blocking) & public(awaited))
    ]


def function_of(kind: type, name: str) -> Callable[..., Any]:
    found: Any = inspect.getattr_static(kind, name)
    function: Callable[..., Any] = getattr(found, "fget", found)
    return function


def first_sentence(function: Callable[..., Any]) -> str:
    words = " ".join((inspect.getdoc(function) or "").split())
    return re.split(r"(?<=[.:;]) ", words)[0]


def shown(annotation: object) -> str:
    return re.sub(r"[\w.]*\.|'", "", inspect.formatannotation(annotation)).replace("Async", "")


def each(pairs: list[Any]) -> pytest.MarkDecorator:
    ids = [f"{one[1].__name__}.{one[2]}" if len(one) > 2 else one[1].__name__ for one in pairs]
    return pytest.mark.parametrize(("blocking", "awaited", "name")[: len(pairs[0])], pairs, ids=ids)


@each(PAIRS)
def test_both_have_the_same_names(blocking: type, awaited: type) -> None:
    assert public(blocking) == public(awaited)


@each(PAIRS)
def test_both_have_the_same_special_methods(blocking: type, awaited: type) -> None:
    here = {SPECIAL.get(name, name) for name in special(blocking)}
    assert here | {"__await__"} == special(awaited) | {"__await__"}


@each(methods())
def test_both_have_the_same_parameters_defaults_and_annotations(
    blocking: type, awaited: type, name: str
) -> None:
    one, other = (inspect.signature(function_of(kind, name)) for kind in (blocking, awaited))
    assert list(one.parameters.values()) == list(other.parameters.values())
    here, there, _ = OTHER_ANSWERS.get(name, ("", "", ""))
    answer = shown(one.return_annotation).replace(here, there, 1)
    assert answer == shown(other.return_annotation)
    assert answer != ""


@each(methods())
def test_all_that_may_read_the_log_is_awaited(blocking: type, awaited: type, name: str) -> None:
    del blocking
    is_awaited = name not in NOT_AWAITED and (awaited, name) not in CONSTANTS
    assert inspect.iscoroutinefunction(function_of(awaited, name)) is is_awaited


@each(methods())
def test_a_property_is_one_in_both_unless_it_is_awaited(
    blocking: type, awaited: type, name: str
) -> None:
    is_property = isinstance(inspect.getattr_static(blocking, name), property)
    is_there = isinstance(inspect.getattr_static(awaited, name), property)
    is_kept = name not in AWAITED_PROPERTIES or (awaited, name) in CONSTANTS
    assert is_there is (is_property and is_kept)


@each(methods())
def test_both_say_the_same_and_name_themselves(blocking: type, awaited: type, name: str) -> None:
    one, other = function_of(blocking, name), function_of(awaited, name)
    assert first_sentence(other).replace("async with", "with") == first_sentence(one) != ""
    assert other.__qualname__ == f"{awaited.__name__}.{name}"
    assert other.__module__ == awaited.__module__
    if name not in NOT_AWAITED and inspect.unwrap(other) is inspect.unwrap(one):
        assert inspect.getdoc(other) == inspect.getdoc(one)


def test_every_exception_is_needed() -> None:
    names = {name for *_, name in methods()}
    assert {*NOT_AWAITED, *AWAITED_PROPERTIES, *OTHER_ANSWERS} <= names
    assert set(INTERNAL) <= set(dir(refold.ConversationMemory))
    assert not set(INTERNAL) & set(dir(refold.AsyncConversationMemory))
