"""Runs the summariser on the Messages API against a scripted server, without waiting."""

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from tenacity import RetryCallState

from refold.application.errors import SummariserError
from refold.application.ports.summariser import (
    SourceMessage,
    Summariser,
    SummaryDraft,
    SummaryRequest,
)
from refold.domain.messages import Message, Role
from refold.infrastructure.summarisers.anthropic import AnthropicSummariser
from refold.infrastructure.summarisers.named_summarisers import retrying
from tests.support.anthropic_server import Answer, AnthropicServer

KEY = "sk-ant-test-0123456789-secret"


def request_of(*said: str, **fields: Any) -> SummaryRequest:
    """The texts as messages of user and assistant in turn, from position 0."""
    roles: tuple[Role, Role] = ("user", "assistant")
    messages = tuple(
        SourceMessage(position=i, message=Message(role=roles[i % 2], content=text))
        for i, text in enumerate(said or ("Please fix src/app.py", "Done."))
    )
    return SummaryRequest(messages=messages, **fields)


def half_a_second(state: RetryCallState) -> float:
    del state
    return 0.5


class Naps:
    """Stands for sleeping: remembers how long, and takes no time."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def summarise(
    server: AnthropicServer,
    request: SummaryRequest | None = None,
    *,
    key: str = KEY,
    naps: Naps | None = None,
    tries: int = 3,
    made: Callable[..., Summariser] = AnthropicSummariser,
    **settings: Any,
) -> SummaryDraft:
    """One summary, with a client of its own that is closed afterwards; ``made`` makes the summariser."""

    async def run() -> SummaryDraft:
        async with anthropic.AsyncAnthropic(api_key=key, base_url=server.base_url) as client:
            summariser = made(client=client, **settings)
            again = retrying(summariser, tries, backoff=half_a_second, sleep=naps or Naps())
            return await again.summarise(request or request_of())

    return asyncio.run(run())


def failure(*answers: Answer, **settings: Any) -> tuple[SummariserError, AnthropicServer]:
    """The error that these answers end in, and the server with what was sent to it."""
    with AnthropicServer(answers) as server, pytest.raises(SummariserError) as caught:
        summarise(server, **settings)
    return caught.value, server
