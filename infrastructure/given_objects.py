"""Objects of the program itself in place of a name of a setting: what cannot do the work is refused."""

from collections.abc import Sequence

from refold.domain.errors import InvalidSetting


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
