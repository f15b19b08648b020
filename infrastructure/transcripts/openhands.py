"""Convert event streams of OpenHands, of both versions, to Anthropic shape."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from refold.application.conversation.transcripts import RecordedSummary
from refold.domain.messages import Author, Block, Role

from .conversation_draft import (
    ConversationDraft,
    author_of,
    joined,
    reading_of,
    result_block,
    tool_use,
)
from .openai import convert_content
from .openhands_parts import (
    ending_of,
    is_failure,
    knowledge_of,
    metadata_of,
    model_of,
    parts_of,
    screen_of,
    seen_of,
    thoughts_of,
    tools_of_events,
)
from .transcript_source import (
    Content,
    Reading,
    Source,
    arguments_of,
    as_blocks,
    as_list,
    as_object,
    moment,
    not_a_message,
    objects_in,
    text_or_none,
    usable_id,
)

_KINDS = (
    "MessageEvent",
    "SystemPromptEvent",
    "ActionEvent",
    "ObservationEvent",
    "ConversationStateUpdateEvent",
)
_LISTS = ("history", "events", "items")
_NAMES = ("instance_id", "conversation_id", "session_id", "sid", "id")
_OF_PROGRAM = {
    "change_agent_state": "state of the agent",
    "agent_state_changed": "state of the agent",
    "null": "state of the agent",
    "recall": "search of the program",
    "condensation_request": "wish for a summary",
    "ConversationStateUpdateEvent": "state of the agent",
    "CondensationRequest": "wish for a summary",
    "CondensationSummaryEvent": "summary by the recording tool; the original is before it",
    "PauseEvent": "pause",
    "LLMCompletionLogEvent": "log of a request",
    "TokenEvent": "tokens of a request",
    "ConversationErrorEvent": "error of the program",
}
_NOT_ARGUMENTS = frozenset(
    {"thought", "action", "id", "timestamp", "source", "message", "cause", "keep_prompt"}
    | {"is_confirmed", "confirmation_state", "action_risk", "security_risk", "kernel_init_code"}
)
"""Fields of an action of the first version that the model did not write."""


class _Stream(NamedTuple):
    """The events of one conversation, and the object around them."""

    events: list[tuple[int, Any]]
    """Each with its line or index."""
    envelope: dict[str, Any]
    name: str | None


def fits(source: Source) -> bool:
    """Return whether the file has a list of events."""
    return any(
        _is_event(as_object(event) or {})
        for stream in source.once(_find_streams)
        for _, event in stream.events[:20]
    )


def _is_event(event: dict[str, Any]) -> bool:
    kind = event.get("kind")
    if isinstance(kind, str):
        return kind in _KINDS and "source" in event
    if "role" in event or ("action" in event and "observation" in event):
        return False  # A message of another agent, with what it did.
    if isinstance(event.get("action"), str):
        is_flat = event.keys() & {"is_confirmed", "wait_for_response", "thought"}
        return as_object(event.get("args")) is not None or bool(is_flat)
    return isinstance(event.get("observation"), str) and "content" in event


def _find_streams(source: Source) -> list[_Stream]:
    return list(_streams_in(source))


def _streams_in(source: Source) -> Iterator[_Stream]:
    if source.is_document:
        listed = as_list(source.document)
        given = [(place, value) for place, value in enumerate(listed or [source.document])]
    else:
        given = [(record.line, record.value) for record in source.records]
    inside = [
        (place, whole, found)
        for place, whole in (given if source.has_field(*_LISTS) else ())
        if (found := _events_in(whole)) is not None
    ]
    if not inside:
        yield _Stream(list(_flat(given)), {}, None)
        return
    for place, whole, events in inside:
        envelope = as_object(whole) or {}
        name = next((i for key in _NAMES if (i := usable_id(envelope.get(key))) is not None), None)
        is_only = source.is_document and len(given) == 1
        placed = list(enumerate(events)) if is_only else [(place, event) for event in events]
        yield _Stream(list(_flat(placed)), envelope, name or (None if is_only else str(place)))


def _events_in(value: Any) -> list[Any] | None:
    envelope = as_object(value) or {}
    return next((found for key in _LISTS if (found := as_list(envelope.get(key)))), None)


def _flat(events: list[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """Yield events. The oldest files have pairs of an action and its observation."""
    for place, value in events:
        pair = as_list(value)
        if pair is None:
            yield place, value
        else:
            yield from ((place, one) for one in pair)


def read(source: Source) -> Reading:
    """Read one conversation for each list of events."""
    return reading_of(_draft(source.stem, stream) for stream in source.once(_find_streams))


def _draft(stem: str, stream: _Stream) -> ConversationDraft:
    reader = _Reader(stem, *([] if stream.name is None else [stream.name]))
    for place, value in stream.events:
        event = as_object(value)
        if event is None:
            reader.draft.skipped.append(not_a_message(place, "an event that is no object"))
        else:
            reader.take(place, event)
    reader.draft.label = _label(stream.envelope)
    return reader.draft


def _label(envelope: dict[str, Any]) -> str | None:
    issue = as_object(envelope.get("issue")) or {}
    return text_or_none(issue.get("title")) or text_or_none(envelope.get("title"))


class _Reader:
    """Reads events in order."""

    def __init__(self, *name: str) -> None:
        self.draft = ConversationDraft(*name)
        self._answer: str | None = None
        """Response of the model that the newest call is part of."""
        self._answer_at = 0
        """Index of its message."""
        self._open: list[str] = []
        """Calls without a result, for results that name none."""
        self._actions: dict[str, str] = {}
        """Call of each action, by the id of its event."""

    def take(self, place: int, event: dict[str, Any]) -> None:
        """Add one event."""
        kind = text_or_none(event.get("kind"))
        if kind is not None:
            self._take_new(place, kind, event)
        elif isinstance(event.get("action"), str):
            self._take_action(place, str(event["action"]), event)
        elif isinstance(event.get("observation"), str):
            self._take_observation(place, str(event["observation"]), event)
        else:
            self.draft.skip(place, "record of another type")

    # The second version.

    def _take_new(self, place: int, kind: str, event: dict[str, Any]) -> None:
        match kind:
            case "SystemPromptEvent":
                self.draft.tools = tools_of_events(event.get("tools"))
                prompt = as_object(event.get("system_prompt")) or {}
                more = as_object(event.get("dynamic_context")) or {}
                text = joined(str(one.get("text") or "") for one in (prompt, more))
                self._append(place, event, "system", text)
            case "MessageEvent":
                self._take_message(place, event)
            case "ActionEvent":
                self._take_call(place, event)
            case "ObservationEvent":
                seen = as_object(event.get("observation")) or {}
                content = (*parts_of(seen.get("content")), *parts_of(event.get("extended_content")))
                if not content:
                    content = parts_of(seen.get("output") or seen.get("error") or seen.get("text"))
                content = (*content, *screen_of(seen))
                self._result(place, event, content, is_error=seen.get("is_error") is True)
            case "AgentErrorEvent":
                self._result(place, event, str(event.get("error") or ""), is_error=True)
            case "UserRejectObservation":
                reason = f"Action rejected: {event.get('rejection_reason') or ''}"
                self._result(place, event, reason, is_error=True)
            case "Condensation":
                self._take_summary(place, event, event.get("summary"))
            case _:
                self._skip(place, kind)

    def _take_message(self, place: int, event: dict[str, Any]) -> None:
        said = as_object(event.get("llm_message")) or {}
        content = parts_of(said.get("content"))
        if said.get("role") == "assistant" or event.get("source") == "agent":
            thoughts = thoughts_of(said) or thoughts_of(event)
            self._append(place, event, "assistant", (*thoughts, *content))
            return
        author = author_of(content) if event.get("source") == "user" else "program"
        # What skills add is the program's, but it belongs to the same message.
        self._append(
            place, event, "user", (*content, *parts_of(event.get("extended_content"))), author
        )

    def _take_call(self, place: int, event: dict[str, Any]) -> None:
        call = as_object(event.get("tool_call")) or {}
        function = as_object(call.get("function")) or call
        given = usable_id(event.get("tool_call_id")) or usable_id(call.get("id")) or f"call_{place}"
        name = (
            text_or_none(event.get("tool_name")) or text_or_none(function.get("name")) or "unknown"
        )
        arguments = function.get("arguments")
        if arguments is None:
            own = as_object(event.get("action")) or {}
            arguments = {key: value for key, value in own.items() if key != "kind"}
        spoken = (*thoughts_of(event), *parts_of(event.get("thought")))
        self._call(
            place, event, usable_id(event.get("llm_response_id")), given, name, arguments, spoken
        )

    # The first version.

    def _take_action(self, place: int, action: str, event: dict[str, Any]) -> None:
        args = as_object(event.get("args")) or event
        match action:
            case "system":
                self.draft.tools = tools_of_events(args.get("tools"))
                self._append(place, event, "system", str(args.get("content") or ""))
            case "message" if not metadata_of(event):
                self._take_words(place, event, args)
            case "condensation":
                self._take_summary(place, event, args.get("summary"))
            case _ if action in _OF_PROGRAM:
                self._skip(place, action)
            case _:
                self._take_old_call(place, action, event, args)

    def _take_words(self, place: int, event: dict[str, Any], args: dict[str, Any]) -> None:
        urls = as_list(args.get("image_urls")) or as_list(args.get("images_urls")) or []
        pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        text = str(args.get("content") or "")
        content: Content = text
        if pictures:
            content = (*as_blocks(text), *parts_of(pictures))
        source = event.get("source") or ("agent" if self.draft.messages else "user")
        if source == "agent":
            self._append(place, event, "assistant", content)
        else:
            self._append(place, event, "user", content, author_of(content))

    def _take_old_call(
        self, place: int, action: str, event: dict[str, Any], args: dict[str, Any]
    ) -> None:
        metadata = metadata_of(event)
        response = as_object(metadata.get("model_response")) or {}
        choices = objects_in(response.get("choices"))
        answer = (as_object(choices[0].get("message")) if choices else None) or {}
        given = usable_id(metadata.get("tool_call_id"))
        thought = text_or_none(args.get("thought")) or ""
        spoken = convert_content(answer.get("content") or thought) or ""
        blocks = (*thoughts_of(answer), *as_blocks(spoken))
        if action == "finish":  # The last words of a turn. It has no result.
            self._append(place, event, "assistant", (*blocks, *ending_of(blocks, event, args)))
            return
        calls = objects_in(answer.get("tool_calls"))
        functions = [call.get("function") for call in calls if call.get("id") == given]
        function = (as_object(functions[0]) if functions else None) or {}
        name = text_or_none(metadata.get("function_name")) or action
        arguments = function.get("arguments")
        if arguments is None:
            arguments = {key: one for key, one in args.items() if key not in _NOT_ARGUMENTS}
        answer_id = usable_id(response.get("id"))
        made = given or f"call_{usable_id(event.get('id')) or place}"
        self._call(place, event, answer_id, made, name, arguments, blocks)

    def _take_observation(self, place: int, kind: str, event: dict[str, Any]) -> None:
        extras = as_object(event.get("extras")) or {}
        content = seen_of(event, extras)
        is_answer = bool(metadata_of(event)) or usable_id(event.get("cause")) in self._actions
        if kind == "recall":
            words = joined([str(event.get("content") or ""), *knowledge_of(extras)])
            self._append(place, event, "user", words, "program")
        elif is_answer or (kind not in _OF_PROGRAM and self._open and "id" not in event):
            self._result(place, event, content, is_error=is_failure(kind, event, extras))
        elif kind in _OF_PROGRAM:
            self._skip(place, kind)
        else:
            self._append(place, event, "user", content, "program")

    # Both versions.

    def _call(
        self,
        place: int,
        event: dict[str, Any],
        answer: str | None,
        given: str,
        name: str,
        arguments: Any,
        spoken: tuple[Block, ...],
    ) -> None:
        """Add a call. Those of one answer of the model become one message."""
        call_id = self.draft.call_id(given)
        self._open.append(call_id)
        if (event_id := usable_id(event.get("id"))) is not None:
            self._actions[event_id] = call_id
        block = tool_use(call_id, name, arguments_of(arguments))
        # Each call of an answer repeats its words.
        is_known = answer is not None and answer == self._answer
        if is_known and self._answer_at == len(self.draft.messages) - 1:
            self.draft.extend([block])
            return
        self._answer, self._answer_at = answer, len(self.draft.messages)
        self._append(place, event, "assistant", (block,) if is_known else (*spoken, block))

    def _result(
        self, place: int, event: dict[str, Any], content: Content, *, is_error: bool
    ) -> None:
        given = usable_id(event.get("tool_call_id")) or usable_id(
            metadata_of(event).get("tool_call_id")
        )
        of_action = self._actions.get(
            usable_id(event.get("action_id")) or usable_id(event.get("cause")) or ""
        )
        if given is not None:
            call_id = self.draft.answered(given)
        else:
            call_id = of_action or (self._open[0] if self._open else "unknown")
        self._open = [one for one in self._open if one != call_id]
        self._append(place, event, "user", (result_block(call_id, content, is_error=is_error),))

    def _append(
        self,
        place: int,
        event: dict[str, Any],
        role: Role,
        content: Content,
        author: Author | None = None,
    ) -> None:
        given = usable_id(event.get("id"))
        self.draft.append(
            place,
            role,
            content,
            given_id=given,
            at=moment(event.get("timestamp")),
            author=author,
            model=model_of(event),
        )

    def _take_summary(self, place: int, event: dict[str, Any], text: Any) -> None:
        if self.draft.messages and (found := text_or_none(text)) is not None:
            self.draft.summaries.append(
                RecordedSummary(
                    position=len(self.draft.messages),
                    text=found,
                    key=usable_id(event.get("id")),
                    at=moment(event.get("timestamp")),
                )
            )
        self._skip(place, "CondensationSummaryEvent")

    def _skip(self, place: int, kind: str) -> None:
        self.draft.skip(place, _OF_PROGRAM.get(kind, "record of another type"), kind)
