"""Check what objects of the application return before it is stored. An event with 2.5 tokens could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.application.ports.token_counter import RequestCounter, TokenCount, TokenCounter
from refold.domain.errors import InvalidSetting

if TYPE_CHECKING:
    from refold.application.ports.processes import NewId
    from refold.domain.messages import Message


def checked_counter(counter: TokenCounter) -> TokenCounter:
    """Return a counter that refuses what is no count.

    Its methods raise InvalidSetting.
    """
    if isinstance(counter, RequestCounter):
        return _CheckedRequests(counter, counter)
    return _CheckedCounter(counter)


class _CheckedCounter:
    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def count_text(self, text: str) -> int:
        """Return the tokens of a text alone."""
        return _number("count_text", self._counter.count_text(text))

    def count_message(self, message: Message) -> TokenCount:
        """Return the tokens of a message in a request, including its frame."""
        found: object = self._counter.count_message(message)
        if not isinstance(found, TokenCount):
            raise _invalid("counter", "count_message", "a refold.TokenCount", found)
        return found

    def count_tools(self, tools: tuple[dict[str, object], ...]) -> int:
        """Return the tokens of tool definitions, including what the API adds if there are any."""
        return _number("count_tools", self._counter.count_tools(tools))


class _CheckedRequests(_CheckedCounter):
    def __init__(self, counter: TokenCounter, requests: RequestCounter) -> None:
        super().__init__(counter)
        self._requests = requests

    async def count_request(self, **request: Any) -> int:
        """Return the input tokens of a request."""
        return _number("count_request", await self._requests.count_request(**request))


def checked_new_id(new_id: NewId) -> NewId:
    """Return a maker of ids that refuses what is no text, with InvalidSetting."""

    def new() -> str:
        found: object = new_id()
        if not isinstance(found, str) or not found:
            raise _invalid("new_id", "", "a text", found)
        return found

    return new


def _number(method: str, found: object) -> int:
    if type(found) is not int or found < 0:
        raise _invalid("counter", method, "an integer of at least 0", found)
    return found


def _invalid(setting: str, method: str, wanted: str, found: object) -> InvalidSetting:
    given = f"{str(found)[:40]} of type {type(found).__name__}"
    return InvalidSetting(
        f"argument {setting}: {method or 'it'} must return {wanted}, not {given}",
        setting=setting,
        value=found,
    )
