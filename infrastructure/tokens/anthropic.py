"""Count whole requests with the endpoint of the Messages API, and correct local estimates accordingly."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from refold.application.conversation.models import COMPACTION_BETA
from refold.application.errors import TokenCountError
from refold.application.ports.token_counter import TokenCount, TokenCounter
from refold.application.rendering.request_blocks import opens_with_signed_summary
from refold.domain.messages import Message
from refold.infrastructure.api_failures import ADVICE, reason_of

from .estimator import EstimatingTokenCounter

if TYPE_CHECKING:
    import anthropic

HIGHEST_FACTOR = 2.0
"""Maximum correction factor. A larger one shows that the estimate did not cover the whole request."""

LEAST_ESTIMATE = 500
"""Minimum estimate of a request that changes the factor. In smaller ones, frames and preambles outweigh
texts.
"""

_CHECK_REQUEST = "Check ANTHROPIC_API_KEY and the messages"
_NEXT = {
    **{reason: advice.removesuffix(".") for reason, advice in ADVICE.items()},
    "authentication": "Set ANTHROPIC_API_KEY to a valid key, or pass client=",
    "permission": "Use a model that the key may use",
    "not_found": "Check the model's name and the base URL",
}


class AnthropicTokenCounter:
    """A ``TokenCounter`` whose estimates are scaled by the endpoint's last count.

    The factor is exact / estimate of the last whole request, between 1.0 and 2.0. It is never below
    1.0, because requests fit only if estimates are high enough. For a fixed factor, counts are as
    monotone as the estimator's. A new answer may change them, so store counts instead of recomputing
    them.
    """

    def __init__(
        self,
        client: "anthropic.AsyncAnthropic | None" = None,
        *,
        estimator: TokenCounter | None = None,
    ) -> None:
        """Create a counter. Without ``client``, one is created from the environment at the first request."""
        self._client = client
        self._estimator = estimator if estimator is not None else EstimatingTokenCounter()
        self._factor = 1.0

    @property
    def factor(self) -> float:
        """Factor that estimates are multiplied by."""
        return self._factor

    def count_text(self, text: str) -> int:
        """Return the corrected estimate for a text."""
        return math.ceil(self._estimator.count_text(text) * self._factor)

    def count_message(self, message: Message) -> TokenCount:
        """Return the corrected estimate for a message."""
        count = self._estimator.count_message(message)
        return TokenCount(
            total=math.ceil(count.total * self._factor),
            thinking=math.floor(count.thinking * self._factor),
        )

    def count_tools(self, tools: tuple[dict[str, object], ...]) -> int:
        """Return the corrected estimate for tool definitions."""
        return math.ceil(self._estimator.count_tools(tools) * self._factor)

    async def count_request(
        self,
        *,
        model: str,
        system: str | Sequence[Mapping[str, Any]],
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
    ) -> int:
        """Return the input tokens of a request, as the endpoint counts them. The call is free.

        Raises ``TokenCountError``. The endpoint rejects content that it cannot see: server tools, and
        images or documents given by URL or file id.
        """
        request: dict[str, Any] = {"model": model, "messages": list(messages)}
        if system:
            request["system"] = system if isinstance(system, str) else list(system)
        if tools:
            request["tools"] = list(tools)
        if opens_with_signed_summary(messages):
            request["extra_headers"] = {"anthropic-beta": COMPACTION_BETA}
        exact = await self._ask(request)
        self._learn(exact, self._estimate(system, messages, tools))
        return exact

    async def _ask(self, request: dict[str, Any]) -> int:
        import anthropic

        try:
            if self._client is None:
                self._client = anthropic.AsyncAnthropic()
            answer = await self._client.messages.count_tokens(**request)
        except anthropic.APIStatusError as error:
            advice = _NEXT.get(reason_of(error.status_code), _CHECK_REQUEST)
            raise TokenCountError(
                f"counting tokens for {request['model']!r} was refused ({error.status_code}): "
                f"{error.message} {advice}",
                status=error.status_code,
            ) from error
        except anthropic.APIConnectionError as error:
            raise TokenCountError(
                f"no answer from the token counting endpoint: {error.message} {_NEXT['connection']}"
            ) from error
        except (anthropic.AnthropicError, TypeError, ValueError) as error:
            # The client raises TypeError without credentials, and ValueError for an invalid answer.
            raise TokenCountError(
                f"the token counting request failed: {error} {_CHECK_REQUEST}"
            ) from error
        return answer.input_tokens

    def _estimate(
        self,
        system: str | Sequence[Mapping[str, Any]],
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
    ) -> int:
        """Return the uncorrected estimate of a request, or 0 if a message is not valid."""
        local = self._estimator
        try:
            parts = [
                Message.model_validate({"role": m.get("role"), "content": m.get("content")})
                for m in messages
            ]
        except ValidationError:
            return 0
        blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
        heading = sum(local.count_text(str(block.get("text", ""))) for block in blocks)
        body = sum(local.count_message(part).total for part in parts)
        return heading + body + local.count_tools(tuple(dict(tool) for tool in tools))

    def _learn(self, exact: int, estimate: int) -> None:
        if estimate >= LEAST_ESTIMATE:
            self._factor = min(max(exact / estimate, 1.0), HIGHEST_FACTOR)
