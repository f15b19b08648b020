"""A summariser that uses a model of the Anthropic Messages API."""

import asyncio
from typing import TYPE_CHECKING

from refold.application.conversation.models import rules_for
from refold.application.errors import SummariserError
from refold.application.ports.summariser import (
    NotesDraft,
    NotesRequest,
    SummaryDraft,
    SummaryRequest,
)
from refold.application.ports.token_counter import TokenCounter
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.value import replace
from refold.infrastructure.tokens.estimator import MESSAGE_FRAME, EstimatingTokenCounter

from .api_calls import (
    TIMEOUT,
    Answer,
    MessagesApi,
    error_for,
    error_for_stop,
    output_room,
    own_name,
    window_of,
)
from .note_prompts import ModelNotes
from .prompt import (
    Prompt,
    build_prompt,
    prompt_fingerprint,
    required_headings,
    sections_of,
    without_topics,
)
from .quoted_messages import RESULT_LIMIT, given_in_part

if TYPE_CHECKING:
    import anthropic

DEFAULT_MODEL = "claude-haiku-5-5"
"""Newest small model: a window of 1,000,000 tokens and up to 128,000 tokens of output."""

_MOST_TOPICS = 30
"""Maximum number of topics read from an answer. The prompt asks for half as many."""

logger = plain_logger(__name__)


class AnthropicSummariser:
    """A summariser that uses a model of the Anthropic Messages API.

    ``model`` may differ from the conversation's model. Without it, the model of the conversation
    (``context(model=…)``, ``open(model=…)``) or else ``DEFAULT_MODEL`` is used. If a model cannot be used
    (unknown, not allowed, too small), the conversation's model or ``fallback_model`` is tried once instead.
    ``client`` is configured and closed by the caller; without one, a client is created for each call from
    the environment. ``timeout`` is the number of seconds for one call. ``result_limit`` is the maximum
    number of characters of a tool result in the prompt. ``window`` overrides the known window of the model.
    ``counter`` measures requests before they are sent.

    Every call is made once; ``retrying`` repeats it after temporary errors. A truncated answer is not one:
    the output may be 1.5 times as long as the limit, so a longer text would be rejected.
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        fallback_model: str | None = None,
        client: "anthropic.AsyncAnthropic | None" = None,
        timeout: float = TIMEOUT,
        result_limit: int = RESULT_LIMIT,
        window: int | None = None,
        counter: TokenCounter | None = None,
    ) -> None:
        self._configured = model
        self._model = DEFAULT_MODEL if model is None else model
        self._fallback_model = fallback_model
        self._api = MessagesApi(client, timeout)
        self._result_limit = result_limit
        self._given_window = window
        self._window = window_of(self._model, window)
        self._counter = counter or EstimatingTokenCounter()
        self._notes = ModelNotes(self._api, self._model, self._window, self._counter)

    @property
    def name(self) -> str:
        """``anthropic``."""
        return "anthropic"

    @property
    def model(self) -> str:
        """Model that writes the summaries."""
        return self._model

    @property
    def window(self) -> int:
        """Maximum tokens of a request and its answer together."""
        return self._window

    def for_models(self, asked: str | None, answering: str | None) -> "AnthropicSummariser":
        """Return a summariser like this one for ``asked``, or else its own model, or else ``answering``."""
        own = own_name(answering)
        other = AnthropicSummariser.__new__(AnthropicSummariser)
        other.__dict__.update(self.__dict__)
        other._model = asked or self._configured or own or self._fallback_model or DEFAULT_MODEL
        other._fallback_model = own or self._fallback_model
        other._window = window_of(other._model, self._given_window)
        other._notes = ModelNotes(self._api, other._model, other._window, self._counter)
        return other

    @property
    def prompt_fingerprint(self) -> str:
        """Fingerprint of the prompt's wording; see ``prompt.prompt_fingerprint``."""
        return prompt_fingerprint(self._result_limit)

    def measure(self, request: SummaryRequest) -> int:
        """Return the tokens of the prompt as sent, plus the room for the answer."""
        prompt = build_prompt(request, self._result_limit)
        texts = self._counter.count_text(prompt.system) + self._counter.count_text(prompt.user)
        return texts + 2 * MESSAGE_FRAME + output_room(request.limit_tokens, self._window)

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Request a summary. Only a completed text is returned.

        Raises ``SummariserError`` with one of these reasons: authentication, permission, not_found,
        bad_request, too_large, truncated, refused, empty, bad_answer, rate_limited, overloaded,
        server_error, timeout, connection. Cancellation is not caught.
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
        return replace(draft, attempts=draft.attempts + 1)

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        """Ask the model for notes on these messages; see ``ModelNotes``."""
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
        answer = await self._ask(prompt, model, output_room(request.limit_tokens, self._window))
        text, topics = without_topics(_complete_text(answer))
        return SummaryDraft(
            text=text,
            complete=True,
            model=answer.model or model,
            prompt_fingerprint=self.prompt_fingerprint,
            stop_reason=answer.stop_reason,
            required=required_headings(text, sections_of(request)),
            topics=topics[:_MOST_TOPICS],
            given_in_part=given_in_part(request.messages, self._result_limit),
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
    """Return the text of a completed answer. Its quality is not judged here."""
    if answer.stop_reason not in ("end_turn", "stop_sequence"):
        raise error_for_stop(answer.stop_reason)
    text = answer.text()
    if not text:
        raise error_for("empty", "the model answered without a text")
    return text
