"""A summariser that asks a model through the Anthropic Messages API."""

import asyncio
import logging
from typing import TYPE_CHECKING

from refold.application.errors import SummariserError
from refold.application.models import rules_for
from refold.application.notes.taker import NotesDraft, NotesRequest
from refold.application.ports import SummaryDraft, SummaryRequest, TokenCounter
from refold.infrastructure.summarisers.api_calls import (
    TIMEOUT,
    Answer,
    MessagesApi,
    output_room,
    stopped,
    window_of,
)
from refold.infrastructure.summarisers.api_failures import failed
from refold.infrastructure.summarisers.notes import ModelNotes
from refold.infrastructure.summarisers.prompt import Prompt, build_prompt, prompt_fingerprint
from refold.infrastructure.summarisers.quoting import RESULT_LIMIT
from refold.infrastructure.summarisers.sections import (
    required_headings,
    sections_of,
    without_topics,
)
from refold.infrastructure.tokens.estimator import MESSAGE_FRAME, EstimatingTokenCounter

if TYPE_CHECKING:
    import anthropic

DEFAULT_MODEL = "claude-haiku-5-5"
"""The newest small model: window 1,000,000 tokens, output up to 128,000 (public model table)."""

_MOST_TOPICS = 30
"""Names that are read of an answer: half of these were asked for."""

logger = logging.getLogger(__name__)


class AnthropicSummariser:
    """Writes summaries with a model of the Anthropic Messages API.

    ``model``: may differ from the conversation's; where it cannot be used (unknown, not allowed, too
    small), ``fallback_model`` is asked once instead (requirement D9). ``client``: yours to configure
    and close; without one, a client is made for each call from the environment. ``timeout``: seconds
    for one call. ``result_limit``: characters kept of one tool result in the prompt. ``window``: of
    the model, where it is not the known one. ``counter``: measures requests before they are sent.

    Every call is made once: ``retrying`` asks again where trouble passes. A truncated answer is not
    such trouble: the room is already half again the limit, so a longer text would be refused for its
    length.
    """

    def __init__(
        self,
        *,
        model: str = DEFAULT_MODEL,
        fallback_model: str | None = None,
        client: "anthropic.AsyncAnthropic | None" = None,
        timeout: float = TIMEOUT,
        result_limit: int = RESULT_LIMIT,
        window: int | None = None,
        counter: TokenCounter | None = None,
    ) -> None:
        self._model = model
        self._fallback_model = fallback_model
        self._api = MessagesApi(client, timeout)
        self._result_limit = result_limit
        self._window = window_of(model, window)
        self._counter = counter or EstimatingTokenCounter()
        self._notes = ModelNotes(self._api, model, self._window, self._counter)

    @property
    def name(self) -> str:
        """``anthropic``."""
        return "anthropic"

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self._model

    @property
    def window(self) -> int:
        """What one request and its answer may have together, in tokens."""
        return self._window

    @property
    def prompt_fingerprint(self) -> str:
        """Names the prompt's wording; see ``prompt.prompt_fingerprint``."""
        return prompt_fingerprint(self._result_limit)

    def measure(self, request: SummaryRequest) -> int:
        """The tokens of the prompt as it would be sent, and of the answer it leaves room for."""
        prompt = build_prompt(request, self._result_limit)
        texts = self._counter.count_text(prompt.system) + self._counter.count_text(prompt.user)
        return texts + 2 * MESSAGE_FRAME + output_room(request.limit_tokens)

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Ask for a summary; only a text that ended by itself is returned.

        Raises ``SummariserError`` with one of these reasons: authentication, permission, not_found,
        bad_request, too_large, truncated, refused, empty, bad_answer, rate_limited, overloaded,
        server_error, timeout, connection. Cancellation passes through.
        """
        try:
            return await self._draft(request, self._model)
        except SummariserError as error:
            other = self._instead(error)
            if other is None:
                raise
            logger.warning("model %r cannot be used (%s): asking %r", self._model, error, other)
        try:
            draft = await self._draft(request, other)
        except SummariserError as error:
            error.attempts += 1
            raise
        return draft.replaced(attempts=draft.attempts + 1)

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        """Ask the model what of these messages is worth remembering; see ``ModelNotes``."""
        return await self._notes.take(request)

    def _instead(self, error: SummariserError) -> str | None:
        other = self._fallback_model
        if other is None or other == self._model:
            return None
        larger = rules_for(other).window > self._window
        if error.reason in ("not_found", "permission") or (error.reason == "too_large" and larger):
            return other
        return None

    async def _draft(self, request: SummaryRequest, model: str) -> SummaryDraft:
        prompt = await asyncio.to_thread(build_prompt, request, self._result_limit)
        answer = await self._ask(prompt, model, output_room(request.limit_tokens))
        text, topics = without_topics(_complete_text(answer))
        return SummaryDraft(
            text=text,
            complete=True,
            model=answer.model or model,
            prompt_fingerprint=self.prompt_fingerprint,
            stop_reason=answer.stop_reason,
            required=required_headings(text, sections_of(request)),
            topics=topics[:_MOST_TOPICS],
        )

    async def _ask(self, prompt: Prompt, model: str, room: int) -> Answer:
        return await self._api.answer(
            lambda client: client.messages.with_raw_response.create(
                model=model,
                max_tokens=room,
                system=prompt.system,
                messages=[{"role": "user", "content": prompt.user}],
                timeout=self._api.timeout,
            )
        )


def _complete_text(answer: Answer) -> str:
    """The text of an answer that ended by itself; whether it is a good one is not judged here."""
    if answer.stop_reason not in ("end_turn", "stop_sequence"):
        raise stopped(answer.stop_reason)
    text = answer.text()
    if not text:
        raise failed("empty", "the model answered without a text")
    return text
