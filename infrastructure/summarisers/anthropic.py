"""A summariser that asks a model through the Anthropic Messages API."""

import asyncio
from typing import TYPE_CHECKING

from refold.application.conversation.models import rules_for
from refold.application.errors import SummariserError
from refold.application.ports.note_taker import NotesDraft, NotesRequest
from refold.application.ports.summariser import SummaryDraft, SummaryRequest, TokenCounter
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.value import replace
from refold.infrastructure.tokens.estimator import MESSAGE_FRAME, EstimatingTokenCounter

from .api_calls import (
    TIMEOUT,
    Answer,
    MessagesApi,
    failed,
    output_room,
    own_name,
    stopped,
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
"""The newest small model: window 1,000,000 tokens, output up to 128,000 (public model table)."""

_MOST_TOPICS = 30
"""Names that are read of an answer: half of these were asked for."""

logger = plain_logger(__name__)


class AnthropicSummariser:
    """Writes summaries with a model of the Anthropic Messages API.

    ``model``: may differ from the conversation's. Without it the model is asked that answers in the
    conversation (``context(model=…)``, ``open(model=…)``), or else ``DEFAULT_MODEL``. Where it cannot be
    used (unknown, not allowed, too small), the one that answers, or ``fallback_model``, is asked once
    instead (requirement D9). ``client``: yours to configure
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
        """The model that is asked."""
        return self._model

    @property
    def window(self) -> int:
        """What one request and its answer may have together, in tokens."""
        return self._window

    def for_models(self, asked: str | None, answering: str | None) -> "AnthropicSummariser":
        """Return a summariser like this one that asks ``asked``, else its own model, else ``answering``."""
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
        """Names the prompt's wording; see ``prompt.prompt_fingerprint``."""
        return prompt_fingerprint(self._result_limit)

    def measure(self, request: SummaryRequest) -> int:
        """The tokens of the prompt as it would be sent, and of the answer it leaves room for."""
        prompt = build_prompt(request, self._result_limit)
        texts = self._counter.count_text(prompt.system) + self._counter.count_text(prompt.user)
        return texts + 2 * MESSAGE_FRAME + output_room(request.limit_tokens, self._window)

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
        return replace(draft, attempts=draft.attempts + 1)

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
    """The text of an answer that ended by itself; whether it is a good one is not judged here."""
    if answer.stop_reason not in ("end_turn", "stop_sequence"):
        raise stopped(answer.stop_reason)
    text = answer.text()
    if not text:
        raise failed("empty", "the model answered without a text")
    return text
