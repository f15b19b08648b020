"""LangChain's middleware as memories for the exam; needs the package ``langchain``, and calls no model.

    cd benchmarks
    refold exam DATA... --memory exam_langchain:summarization --memory exam_langchain:tool_clearing

``summarization`` is ``SummarizationMiddleware`` with the summariser of refold that uses code only, so that the
memories differ in everything but the writer. ``tool_clearing`` is the edit of ``ContextEditingMiddleware`` that
clears old tool results.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from refold.application.conversation.transcripts import RecordedMessage
from refold.application.ports.summariser import SourceMessage, SummaryRequest
from refold.domain.messages import Message
from refold.infrastructure.summarisers.extractive.summariser import ExtractiveSummariser
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter

TRIGGER, KEEP, SUMMARY = 0.9, 0.35, 0.1
"""Shares of the budget: where a summary is due, what is kept then, and the length of the summary. refold's own
are close to these.
"""
_COUNTER = EstimatingTokenCounter()
_INTRODUCTION = "Here is a summary of the conversation to date:"


def summarization(budget: int) -> "LangChainMemory":
    """Return the memory that summarises."""
    middleware: Any = import_module("langchain.agents.middleware").SummarizationMiddleware(
        _no_model(),
        trigger=("tokens", int(TRIGGER * budget)),
        keep=("tokens", int(KEEP * budget)),
        token_counter=_tokens,
        trim_tokens_to_summarize=None,
        summarizer=lambda messages: _summary(messages, int(SUMMARY * budget)),
    )

    def prepare(messages: list[Any]) -> list[Any]:
        update = middleware.before_model({"messages": messages}, None)
        return messages if update is None else update["messages"][1:]  # After the removal of all.

    return LangChainMemory(prepare, keeps=True)


def tool_clearing(budget: int) -> "LangChainMemory":
    """Return the memory that clears old tool results and nothing else."""
    edit: Any = import_module("langchain.agents.middleware").ClearToolUsesEdit(
        trigger=int(TRIGGER * budget), keep=3
    )

    def prepare(messages: list[Any]) -> list[Any]:
        edited = [one.model_copy(deep=True) for one in messages]
        edit.apply(edited, count_tokens=_tokens)
        return edited

    return LangChainMemory(prepare, keeps=False)


class LangChainMemory:
    """A list of LangChain messages that a middleware prepares for each request."""

    def __init__(self, prepare: Any, *, keeps: bool) -> None:
        """``keeps``: what the middleware returns replaces the messages, as in the state of an agent."""
        self._prepare = prepare
        self._keeps = keeps
        self._messages: list[Any] = []

    def append(self, messages: Sequence[RecordedMessage]) -> None:
        """Take the next messages."""
        for recorded in messages:
            self._messages += _to_langchain(recorded.message)

    def context(self) -> Mapping[str, Any]:
        """Return the request that would be sent now."""
        shown = self._prepare(list(self._messages))
        if self._keeps:
            self._messages = shown
        return {"messages": [_as_dict(one) for one in shown]}

    def close(self) -> None:
        """Do nothing; there is nothing to release."""


def _to_langchain(message: Message) -> list[Any]:
    kinds: Any = import_module("langchain_core.messages")
    texts = [str(b.get("text", "")) for b in message.blocks() if b.get("type") == "text"]
    if message.role == "assistant":
        calls = [
            {"name": str(b.get("name")), "args": dict(b.get("input") or {}), "id": str(b.get("id"))}
            for b in message.blocks()
            if b.get("type") == "tool_use"
        ]
        return [kinds.AIMessage("\n".join(texts), tool_calls=calls)]
    results = [
        kinds.ToolMessage(_text(b.get("content")), tool_call_id=str(b.get("tool_use_id")))
        for b in message.blocks()
        if b.get("type") == "tool_result"
    ]
    return [*results, *([kinds.HumanMessage("\n".join(texts))] if texts else [])]


def _text(content: object) -> str:
    if isinstance(content, list | tuple):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _as_dict(message: Any) -> dict[str, Any]:
    text = {"type": "text", "text": str(message.content)}
    if message.type == "ai":
        calls = [
            {"type": "tool_use", "id": c["id"], "name": c["name"], "input": c["args"]}
            for c in message.tool_calls
        ]
        return {"role": "assistant", "content": [*([text] if text["text"] else []), *calls]}
    if message.type == "tool":
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id}
        return {"role": "user", "content": [{**result, "content": text["text"]}]}
    return {"role": "user", "content": [text]}


def _as_message(message: Any) -> Message:
    given = _as_dict(message)
    return Message(role=given["role"], content=tuple(given["content"]))


def _tokens(messages: Sequence[Any]) -> int:
    return sum(_COUNTER.count_message(_as_message(one)).total for one in messages)


def _summary(messages: Sequence[Any], limit: int) -> str:
    """Summarise by code. A summary at the beginning is continued."""
    first = str(messages[0].content)
    continues = first.startswith(_INTRODUCTION)
    covered = enumerate(map(_as_message, messages[1:] if continues else messages))
    request = SummaryRequest(
        messages=tuple(SourceMessage(position=n, message=one) for n, one in covered),
        previous=first.removeprefix(_INTRODUCTION).strip() if continues else None,
        target_tokens=limit,
        limit_tokens=int(1.2 * limit),
    )
    return ExtractiveSummariser(_COUNTER).extract(request)


def _no_model() -> Any:
    """Return a chat model that is never called."""
    return import_module("langchain_core.language_models.fake_chat_models").FakeListChatModel(
        responses=["unused"]
    )
