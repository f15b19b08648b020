"""Tokens that replies used, as providers stated them with each reply, or as estimated."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from refold.domain.events import MessageAppended
from refold.domain.value import Value, is_object


class TokenUse(Value, frozen=True):
    """Tokens of the replies of one model."""

    model: str | None
    is_estimate: bool
    """True if the replies did not state them: sizes are estimated, and the cache is assumed to keep every
    repeated beginning.
    """
    replies: int
    input: int
    """Tokens that neither came from the cache nor went to it."""
    read: int
    """Tokens read from the cache."""
    written: int
    """Tokens written to the cache."""
    output: int

    @property
    def sent(self) -> int:
        """Tokens of all requests."""
        return self.input + self.read + self.written


class Stated(NamedTuple):
    """Tokens of one request and its reply."""

    input: int
    read: int
    written: int
    output: int


class UseSums:
    """Adds up the tokens of replies by model."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str | None, bool], list[int]] = {}

    def add(self, reply: MessageAppended, model: str | None, *, read: int, written: int) -> None:
        """Add a reply. ``read`` and ``written`` are estimates for one that states no usage."""
        stated = stated_use(reply)
        used = stated or Stated(0, read, written, reply.tokens)
        sums = self._sums.setdefault((model, stated is None), [0] * (1 + len(used)))
        for index, amount in enumerate((1, *used)):
            sums[index] += amount

    def sums(self) -> tuple[TokenUse, ...]:
        """Return the sums, those with the most replies first."""
        ordered = sorted(self._sums.items(), key=lambda one: -one[1][0])
        return tuple(
            TokenUse(
                model=model,
                is_estimate=is_estimate,
                replies=replies,
                input=plain,
                read=read,
                written=written,
                output=output,
            )
            for (model, is_estimate), (replies, plain, read, written, output) in ordered
        )


def stated_use(reply: MessageAppended) -> Stated | None:
    """Return the tokens that came with a reply, or None if it has none in a known form.

    The forms are those of the Messages API, of OpenAI's chat completions and responses, and of LangChain.
    """
    usage = (reply.message.extra or {}).get("usage")
    if is_object(usage):
        return _of_provider(usage)
    if reply.original is None:
        return None
    data = _object(_object(reply.original.data), "data")
    usage = _object(data, "usage_metadata")
    return _of_langchain(usage) if usage else None


def _of_provider(usage: Mapping[str, Any]) -> Stated | None:
    if "prompt_tokens" in usage:
        cached = _number(_object(usage, "prompt_tokens_details"), "cached_tokens")
        total, output = _number(usage, "prompt_tokens"), _number(usage, "completion_tokens")
        return Stated(max(0, total - cached), cached, 0, output)
    if "input_tokens" not in usage:
        return None
    total, output = _number(usage, "input_tokens"), _number(usage, "output_tokens")
    if "input_tokens_details" in usage:  # The Responses API counts cached tokens as input as well.
        cached = _number(_object(usage, "input_tokens_details"), "cached_tokens")
        return Stated(max(0, total - cached), cached, 0, output)
    read = _number(usage, "cache_read_input_tokens")
    return Stated(total, read, _number(usage, "cache_creation_input_tokens"), output)


def _of_langchain(usage: Mapping[str, Any]) -> Stated:
    details = _object(usage, "input_token_details")
    read, written = _number(details, "cache_read"), _number(details, "cache_creation")
    plain = max(0, _number(usage, "input_tokens") - read - written)
    return Stated(plain, read, written, _number(usage, "output_tokens"))


def _object(within: object, name: str = "") -> Mapping[str, Any]:
    found = within.get(name) if name and is_object(within) else within
    return found if is_object(found) else {}


def _number(within: Mapping[str, Any], name: str) -> int:
    found = within.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0
