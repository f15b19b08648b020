"""The form in which another API or framework gave a message, without what its content has anyway."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .value import Value, is_list, is_object

Content = str | Sequence[Mapping[str, Any]]

_REFERENCE, _JSON, _PLAIN = "$ref", "$json", "$plain"
_MARKS = frozenset({_REFERENCE, _JSON, _PLAIN})
_SHORTEST = 20
"""Characters of a text that is referred to. A reference is not shorter."""
_STYLES: tuple[Mapping[str, Any], ...] = (
    {"ensure_ascii": False},
    {"ensure_ascii": False, "separators": (",", ":")},
    {},
    {"separators": (",", ":")},
)
"""Ways to write JSON that an API uses for the input of a tool."""


RESPONSES = "openai-responses"
"""Name of the form of a message of OpenAI's Responses API: the list of its items."""


class Original(Value, frozen=True):
    """The foreign form of a message, such as the items of OpenAI's Responses API.

    It comes back exactly, from ``conversation.messages()``, and is erased with its message. It is not searched.
    Only requests to the API or framework that gave it have it again.
    """

    format: str
    """Name of the form, such as ``openai-responses``."""
    data: Any
    """The form as JSON data."""

    @property
    def reasoning(self) -> list[Any]:
        """The items of reasoning in an answer of the Responses API."""
        items = self.data if self.format == RESPONSES and is_list(self.data) else ()
        return [one for one in items if is_object(one) and one.get("type") == "reasoning"]

    def shrink(self, content: Content) -> "Original":
        """Return the form without texts and values that ``content`` has: they are referred to."""
        return Original(format=self.format, data=_Shrinking(content).shrink(self.data))

    def restore(self, content: Content) -> "Original":
        """Return the whole form of one that was shrunk with this content."""
        return Original(format=self.format, data=_restore(self.data, content))


def items_after(
    kept: Sequence[Original | None],
    original: Original | None,
    content: Content,
    rest: Content,
    *,
    are_all: bool,
) -> Original | None:
    """Return the items of a form after those of stored parts, for the rest of the content, or None.

    ``original`` was shrunk with the content. ``are_all``: whether ``kept`` has the forms of all stored parts. Then
    all items are new if no part has some.
    """
    whole = None if original is None else original.restore(content)
    if whole is None or not is_list(whole.data):
        return None
    known = [item for one in kept if one and is_list(one.data) for item in one.data]
    places = [at for at, item in enumerate(whole.data) if item in known]
    if not places and not are_all:
        return None  # The part that has them may be erased.
    new = whole.data[places[-1] + 1 if places else 0 :]
    return Original(format=whole.format, data=new).shrink(rest) if new else None


class _Value(NamedTuple):
    pointer: list[str | int]
    value: Any


class _Shrinking:
    def __init__(self, content: Content) -> None:
        self._known: dict[str, _Value] = {}
        """Texts and values of the content, by their JSON."""
        self._written: dict[str, tuple[list[str | int], int]] = {}
        """Values of the content as JSON in each style, with their place and style."""
        for found in _values(content, []):
            self._known.setdefault(json.dumps(found.value), found)
            if is_object(found.value):
                for number, style in enumerate(_STYLES):
                    written = json.dumps(found.value, **style)
                    self._written.setdefault(written, (found.pointer, number))

    def shrink(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if is_list(value):
            return self._reference(value) or [self.shrink(one) for one in value]
        if not is_object(value):
            return value
        made = {name: self.shrink(one) for name, one in value.items()}
        return self._reference(value) or ({_PLAIN: made} if _MARKS & value.keys() else made)

    def _text(self, text: str) -> Any:
        if len(text) < _SHORTEST:
            return text
        if text in self._written:
            pointer, style = self._written[text]
            return {_JSON: pointer, "style": style}
        return self._reference(text) or text

    def _reference(self, value: Any) -> Any:
        written = json.dumps(value)
        found = self._known.get(written) if len(written) >= _SHORTEST else None
        return {_REFERENCE: found.pointer} if found is not None else None


def _values(value: Any, pointer: list[str | int]) -> Iterator[_Value]:
    """Yield the texts, objects and lists in a value that are worth a reference, the largest first."""
    if isinstance(value, str):
        if len(value) >= _SHORTEST:
            yield _Value(pointer, value)
        return
    if not is_object(value) and not is_list(value):
        return
    yield _Value(pointer, value)
    inside = value.items() if is_object(value) else enumerate(value)
    for name, one in inside:
        yield from _values(one, [*pointer, name])


def _restore(value: Any, content: Content) -> Any:
    if is_list(value):
        return [_restore(one, content) for one in value]
    if not is_object(value):
        return value
    match value:
        case {"$ref": [*pointer], **others} if not others:
            return _copied(_at(content, pointer))
        case {"$json": [*pointer], "style": int(style), **others} if not others:
            return json.dumps(_at(content, pointer), **_STYLES[style])
        case {"$plain": inner, **others} if not others and is_object(inner):
            return {name: _restore(one, content) for name, one in inner.items()}
        case _:
            return {name: _restore(one, content) for name, one in value.items()}


def _at(content: Content, pointer: Sequence[str | int]) -> Any:
    found: Any = content
    for step in pointer:
        found = found[step]
    return found


def _copied(value: Any) -> Any:
    """Return a copy as plain JSON data; a tuple of blocks becomes a list."""
    if is_object(value):
        return {name: _copied(one) for name, one in value.items()}
    return [_copied(one) for one in value] if is_list(value) else value
