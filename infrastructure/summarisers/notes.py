"""Durable notes by a model of the Messages API: in several calls where its window asks for that."""

import asyncio
from collections.abc import Iterator, Sequence

from refold.application.errors import SummariserError
from refold.application.notes.taker import NotesDraft, NotesRequest
from refold.application.ports import SourceMessage, TokenCounter
from refold.domain.remembering import Note
from refold.infrastructure.summarisers.api_calls import Answer, MessagesApi, output_room, stopped
from refold.infrastructure.summarisers.api_failures import failed
from refold.infrastructure.summarisers.notes_prompt import (
    notes_fingerprint,
    notes_prompt,
    read_notes,
)
from refold.infrastructure.summarisers.prompt import Prompt
from refold.infrastructure.summarisers.quoting import Passage, cut, passages
from refold.infrastructure.tokens.estimator import MESSAGE_FRAME

MOST_CALLS = 4
"""Of one flush; what that leaves no room for is shown shorter, and then the newest of it alone."""
ANSWER_TOKENS = 3_000
_SLACK = 1.2
"""Sizes are estimates: they are multiplied by this before they are compared with a window."""
_RESULT = 1_500
"""Characters of a tool's result or input: what lasts was mostly said."""
_LENGTHS = (12_000, 3_000, 800)
"""Characters of one passage, tried one after the other until ``MOST_CALLS`` are enough."""

Portion = Sequence[Passage]


class ModelNotes:
    """Asks one model for notes. ``window``: of that model, in tokens."""

    def __init__(self, api: MessagesApi, model: str, window: int, counter: TokenCounter) -> None:
        self._api = api
        self._model = model
        self._window = window
        self._counter = counter

    async def take(self, request: NotesRequest) -> NotesDraft:
        """Ask, portion by portion.

        Raises ``SummariserError`` with a reason of ``AnthropicSummariser``; what other portions gave is
        lost then.
        """
        notes: list[Note] = []
        model, stop_reason, calls = self._model, None, 0
        for portion in await asyncio.to_thread(self._portions, request):
            calls += 1
            try:
                prompt = await asyncio.to_thread(notes_prompt, portion, request.most)
                answer = await self._ask(prompt)
                notes += _read(answer)
            except SummariserError as error:
                error.attempts = calls
                raise
            model, stop_reason = answer.model or model, answer.stop_reason
        return NotesDraft(
            notes=tuple(notes[: request.most]),
            model=model,
            prompt_fingerprint=notes_fingerprint(),
            stop_reason=stop_reason,
            attempts=calls,
        )

    def measure(self, prompt: Prompt) -> int:
        """The tokens of a prompt as it would be sent, and of the answer that it leaves room for."""
        texts = self._counter.count_text(prompt.system) + self._counter.count_text(prompt.user)
        return texts + 2 * MESSAGE_FRAME + output_room(ANSWER_TOKENS, self._window)

    def _portions(self, request: NotesRequest) -> Sequence[Portion]:
        room = int(self._window / _SLACK) - self.measure(notes_prompt((), request.most))
        for length in _LENGTHS:
            weighed = [(p, self._weight(p)) for p in _pieces(request.messages, length)]
            if any(weight > room for _, weight in weighed):
                continue
            portions = tuple(_packed(weighed, room))
            if len(portions) <= MOST_CALLS or length == _LENGTHS[-1]:
                return portions[-MOST_CALLS:]
        raise failed("too_large", f"a window of {self._window:,} tokens is too small for notes")

    def _weight(self, piece: Passage) -> int:
        return self._counter.count_text(f"[{'0' * 16} {piece.label}]\n{piece.text}\n")

    async def _ask(self, prompt: Prompt) -> Answer:
        return await self._api.answer(
            lambda client: client.messages.with_raw_response.create(
                model=self._model,
                max_tokens=output_room(ANSWER_TOKENS, self._window),
                system=prompt.system,
                messages=[{"role": "user", "content": prompt.user}],
                timeout=self._api.timeout,
            )
        )


def _packed(weighed: Sequence[tuple[Passage, int]], room: int) -> Iterator[Portion]:
    portion: list[Passage] = []
    left = room
    for piece, weight in weighed:
        if portion and weight > left:
            yield portion
            portion, left = [], room
        portion.append(piece)
        left -= weight
    if portion:
        yield portion


def _pieces(messages: Sequence[SourceMessage], length: int) -> Iterator[Passage]:
    for piece in passages(messages, min(_RESULT, length)):
        yield piece.replaced(text=cut(piece.text, length))


def _read(answer: Answer) -> Sequence[Note]:
    if answer.stop_reason not in ("end_turn", "stop_sequence"):
        raise stopped(answer.stop_reason)
    notes = read_notes(answer.text())
    if notes is None:
        raise failed("bad_answer", "the model wrote something else than notes")
    return notes
