"""Objects of the program itself in place of a name of a setting: what cannot do the work is refused."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from refold.application.api.argument_checks import is_path, refused
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.errors import InvalidSetting

from .configuration import nearest
from .options import Options


def refuse_unfit(
    setting: str, given: object, *, names: Sequence[str], parts: Sequence[str]
) -> None:
    """Refuse what is no object with all of ``parts``; ``names`` are what the setting may be as well.

    Raises:
        InvalidSetting: a class was given, or something is missing.
    """
    if isinstance(given, type):
        problem = f"the class {given.__name__} was given: make an object of it"
    elif missing := [part for part in parts if not _has(given, part)]:
        problem = f"a value of type {type(given).__name__} has no {', '.join(missing)}"
    else:
        return
    raise InvalidSetting(
        f"argument {setting}: must be one of {', '.join(names)}, or an object with {', '.join(parts)}; "
        f"{problem}",
        setting=setting,
        value=given,
    )


def _has(given: object, part: str) -> bool:
    # Looked up in the classes first: a property may load a model.
    return any(part in vars(one) for one in type(given).__mro__) or hasattr(given, part)


_SUMMARISERS = ("extractive", "anthropic", "anthropic-server")
_COUNTER = ("count_text", "count_message", "count_tools")


def check_options(path: object, options: Mapping[str, Any]) -> None:
    """Refuse what cannot be a path or an option.

    Raises:
        InvalidSetting: names the argument and says what it must be.
        TypeError: there is no such argument; says where a setting of the policy belongs.
    """
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f"refold.open has no argument {name!r}{_hint(name, options[name])}")
    if not is_path(path):
        raise refused("path", path, 'the path of the log, or ":memory:"')
    given = {name: value for name, value in options.items() if value is not None}
    policy = given.get("policy")
    if policy is not None and not isinstance(policy, CompactionPolicy):
        raise refused("policy", policy, "a refold.CompactionPolicy(keep_last=3, …)")
    for name in ("policy_file", "notes_folder"):
        if name in given and not is_path(given[name]):
            raise refused(name, given[name], "a path")
    summariser = given.get("summariser")
    if summariser is not None and not isinstance(summariser, str):
        refuse_unfit("summariser", summariser, names=_SUMMARISERS, parts=("name", "summarise"))
    _check_objects(given)


def _check_objects(given: Mapping[str, Any]) -> None:
    counter = given.get("counter")
    if counter is not None:
        _require("counter", counter, _COUNTER)
    for name in ("clock", "new_id", "on_compaction"):
        if name in given and not callable(given[name]):
            raise refused(name, given[name], "a function")
    observers: object = given.get("observers", ())
    if not isinstance(observers, list | tuple):
        raise refused("observers", observers, "a tuple of observers")
    for index, observer in enumerate(cast("Sequence[object]", observers)):
        _require(f"observers[{index}]", observer, ("compaction_ended",))
    if not isinstance(given.get("create", True), bool):
        raise refused("create", given["create"], "True or False")


def _require(name: str, given: object, parts: tuple[str, ...]) -> None:
    missing = [part for part in parts if not hasattr(given, part)]
    if isinstance(given, type) or missing:
        raise InvalidSetting(
            f"argument {name}: must be an object with {', '.join(parts)}, "
            f"not a value of type {type(given).__name__}",
            setting=name,
            value=given,
        )


def _hint(name: str, value: object) -> str:
    if name in CompactionPolicy.model_fields:
        return f": use policy=CompactionPolicy({name}={str(value)[:40]})"
    known = {*Options.__annotations__, *CompactionPolicy.model_fields}
    return nearest(name, known)
