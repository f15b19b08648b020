"""The pages of the inspector, asked without a browser."""

import pytest
from starlette.testclient import TestClient

import refold.inspector
from refold.application.api.memory import Memory


@pytest.fixture
def client(memory: Memory) -> TestClient:
    """Return a client that may read everything."""
    return TestClient(refold.inspector.app(memory, lambda _: True))


def test_the_list_leads_to_the_messages_of_a_conversation(
    memory: Memory, client: TestClient
) -> None:
    memory.conversation("a/b?c").append({"role": "user", "content": "Where is <b>Ada</b>?"})
    listed = client.get("/").text
    assert 'href="/conversation?id=a%2Fb%3Fc&amp;panel=timeline"' in listed
    page = client.get("/conversation?id=a%2Fb%3Fc").text
    assert "Where is &lt;b&gt;Ada&lt;/b&gt;?" in page


def test_a_conversation_that_does_not_exist_is_not_made(memory: Memory, client: TestClient) -> None:
    assert client.get("/conversation?id=nothing").status_code == 404
    assert not memory.conversations()
