"""Keys and clients: where they come from, and that a key is never shown."""

import asyncio
import subprocess
import sys

import anthropic
import pytest

from refold.application.errors import SummariserError
from refold.infrastructure.summarisers.anthropic import DEFAULT_MODEL, AnthropicSummariser
from tests.support import anthropic_server as api
from tests.support.anthropic_server import AnthropicServer
from tests.support.summarising import KEY, failure, request_of


def test_a_key_that_a_server_echoes_is_not_in_the_error() -> None:
    error, _ = failure(api.error(401, "authentication_error", f"bad key {KEY}!"))
    assert KEY not in str(error)
    assert "bad key [redacted]!" in str(error)
    assert error.__cause__ is None


@pytest.mark.parametrize("key", [KEY + "\n", KEY + "\u2026"])
def test_a_key_that_cannot_be_sent_is_reported_without_it(key: str) -> None:
    error, server = failure(api.ok(), key=key)
    assert error.reason == "authentication"
    assert KEY not in str(error)
    assert server.requests == []


def test_without_a_key_the_error_says_how_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_credentials(monkeypatch)
    with pytest.raises(SummariserError) as caught:
        asyncio.run(AnthropicSummariser().summarise(request_of()))
    assert caught.value.reason == "authentication"
    assert "ANTHROPIC_API_KEY" in str(caught.value)
    assert "client=" in str(caught.value)


def test_a_client_is_made_from_the_environment_for_each_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_credentials(monkeypatch)
    with AnthropicServer() as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        summariser = AnthropicSummariser()
        drafts = [asyncio.run(summariser.summarise(request_of())) for _ in range(2)]
    assert all(draft.complete for draft in drafts)
    assert [r.body["model"] for r in server.requests] == [DEFAULT_MODEL] * 2


IMPORT_SPY = """
import asyncio, sys, threading
from refold.application.errors import SummariserError
from refold.infrastructure.summarisers.anthropic import AnthropicSummariser
from refold.application.ports.summariser import SummaryRequest

in_main_thread = []

class Spy:
    def find_spec(self, name, path=None, target=None):
        if name == "anthropic":
            in_main_thread.append(threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Spy())
try:
    asyncio.run(AnthropicSummariser().summarise(SummaryRequest(messages=())))
except SummariserError:
    pass
assert in_main_thread == [False], in_main_thread
"""


def test_the_slow_import_of_the_sdk_does_not_hold_up_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_credentials(monkeypatch)
    subprocess.run([sys.executable, "-c", IMPORT_SPY], check=True, timeout=60)


def test_a_given_client_stays_open_and_keeps_its_own_retries() -> None:
    async def run(base_url: str) -> tuple[int, bool]:
        async with anthropic.AsyncAnthropic(api_key=KEY, base_url=base_url) as client:
            await AnthropicSummariser(client=client).summarise(request_of())
            return client.max_retries, client.is_closed()

    with AnthropicServer() as server:
        assert asyncio.run(run(server.base_url)) == (2, False)


def forget_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "AUTH_TOKEN", "PROFILE", "BASE_URL", "IDENTITY_TOKEN"):
        monkeypatch.delenv(f"ANTHROPIC_{name}", raising=False)
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", "/nonexistent")
