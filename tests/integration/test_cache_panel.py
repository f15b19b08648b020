"""The panel of cache and cost, asked without a browser, and its figures against rendered requests."""

import re
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from starlette.testclient import TestClient

import refold.inspector
from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.conversation.transcripts import RecordedConversation, RecordedMessage
from refold.application.inspection.cache_report import CacheReport
from refold.application.lab.playing import Player, RepeatedPrefix, token_measure
from refold.domain.messages import Message
from refold.infrastructure.bootstrap import open_core
from refold.infrastructure.cli.inspect_command import open_trial
from refold.infrastructure.inspector.access import HeadersForAll, ServiceAccess
from refold.infrastructure.inspector.cache_panel import REASONS
from refold.infrastructure.inspector.policy_trials import PolicyTrials
from refold.infrastructure.inspector.site import pages_of
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.inspector import Access
from tests.support.command_line import talk
from tests.support.real_data import files, needs_data

HTMX = {"hx-request": "true"}
SECONDS = 60
USAGE = {
    "input_tokens": 11,
    "cache_read_input_tokens": 1_000_000,
    "cache_creation_input_tokens": 200_000,
    "output_tokens": 3_000,
}


def client_of(memory: Memory, trials: PolicyTrials, access: Access) -> TestClient:
    pages = pages_of(memory, trials)
    return TestClient(HeadersForAll(ServiceAccess(pages, lambda _: access)))


@pytest.fixture
def trials() -> Iterator[PolicyTrials]:
    with closing(PolicyTrials(open_trial)) as made:
        yield made


@pytest.fixture
def client(memory: Memory, trials: PolicyTrials) -> TestClient:
    """Return a client that may read everything."""
    return client_of(memory, trials, Access())


def fill(memory: Memory) -> None:
    """A conversation that is compacted several times."""
    conversation = memory.conversation("t")
    for number in range(60):
        conversation.append({"role": "user", "content": f"question {number} " + "word " * 60})
        conversation.context()
        conversation.append({"role": "assistant", "content": "answer " * 60})
    assert conversation.row().compactions > 1  # type: ignore[union-attr]


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_the_panel_shows_the_share_the_decisions_and_the_cost(
    memory: Memory, client: TestClient
) -> None:
    fill(memory)
    report = memory.conversation("t").cache_report()
    page = client.get("/conversation?id=t&panel=cache").text
    shown = words(page)
    assert f"{100 * report.kept_share:.1f} % of {report.tokens:,} tokens in 60 requests" in shown
    assert f"because {report.breaks} decisions changed something" in shown
    for one in report.totals:
        assert f"{one.kind} {REASONS[one.kind]} {one.count} {one.written_again:,}" in shown
    kept = [one for one in report.newest_requests if one.kept]
    assert page.count('<rect class="kept"') == len(kept) > 50
    assert "No reply stated its tokens" in shown
    assert "style=" not in page.partition("</head>")[2]
    assert "<script" not in page.partition("</head>")[2]


def test_tokens_that_replies_stated_are_priced_and_not_called_estimated(
    memory: Memory, client: TestClient
) -> None:
    said: dict[str, Any] = {"role": "assistant", "content": "hello", "model": "claude-opus-5-5"}
    conversation = memory.conversation("t")
    conversation.append([{"role": "user", "content": "hi"}, said | {"usage": USAGE}])
    shown = words(client.get("/conversation?id=t&panel=cache").text)
    # 1,000,000 × 0.2 + 200,000 × 5 + 3,000 × 20 + 11 × 4, each for a million.
    assert "1.26 USD for 1 reply" in shown
    assert "stated by replies 1 11 1,000,000 200,000 3,000 1.26" in shown
    assert "estimated</span>" not in client.get("/conversation?id=t&panel=cache").text
    conversation.append([{"role": "user", "content": "and?"}, said])
    shown = words(client.get("/conversation?id=t&panel=cache").text)
    assert "1 of 2 replies stated their tokens; the others are estimated." in shown


def test_a_conversation_without_replies_has_a_panel(memory: Memory, client: TestClient) -> None:
    memory.conversation("t").append({"role": "user", "content": "hi"})
    shown = words(client.get("/conversation?id=t&panel=cache").text)
    assert "The model has not replied yet" in shown
    assert "Cost" not in shown.partition("The model has not replied")[2]


def wait_for_trial(client: TestClient, address: str) -> str:
    end = time.monotonic() + SECONDS
    while "every 1s" in (part := client.get(address, headers=HTMX).text):
        assert time.monotonic() < end
        time.sleep(0.05)
    return part


def test_a_trial_of_policies_runs_in_the_background_and_changes_nothing(
    memory: Memory, client: TestClient
) -> None:
    fill(memory)
    before = memory.conversation("t").version
    page = client.get("/conversation?id=t&panel=cache").text
    (found,) = re.findall(r'<button hx-get="(/policies[^"]*)"', page)
    address = found.replace("&amp;", "&")
    # A browser that fetches addresses in advance does not start it.
    assert "<button" in client.get(address).text
    assert client.post(address, headers=HTMX).status_code == 405
    client.get(address, headers=HTMX)
    part = words(wait_for_trial(client, address.partition("&start")[0]))
    for policy in ("as now", "compact earlier", "never compact"):
        assert policy in part
    assert part in words(client.get("/conversation?id=t&panel=cache").text)
    assert memory.conversation("t").version == before


def test_the_trial_of_another_owner_cannot_be_asked_for(
    memory: Memory, trials: PolicyTrials
) -> None:
    memory.conversation("t", owner="ada").append(talk(1, "hi")[0])
    client = client_of(memory, trials, Access(owner="bob"))
    assert client.get("/policies?id=t&start=1", headers=HTMX).status_code == 404
    assert not trials.is_busy


def test_a_service_offers_no_trial(memory: Memory) -> None:
    conversation = memory.conversation("t")
    conversation.append(
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]
    )
    client = TestClient(refold.inspector.app(memory, lambda _: True))
    page = client.get("/conversation?id=t&panel=cache").text
    assert "Cost so far" in page
    assert "<button" not in page.partition('id="panel"')[2]
    assert client.get("/policies?id=t&start=1", headers=HTMX).status_code == 404


@pytest.mark.parametrize("at", ["0", "-1", "99999"])
def test_a_version_that_does_not_exist_starts_no_trial(
    memory: Memory, client: TestClient, at: str
) -> None:
    memory.conversation("t").append({"role": "user", "content": "hi"})
    answer = client.get(f"/policies?id=t&start=1&at={at}", headers=HTMX)
    assert answer.status_code in (400, 404)


def played(recorded: RecordedConversation, window: int) -> tuple[CacheReport, float]:
    """Return the report of a played conversation, and the share that its rendered requests repeat."""
    reports, sizes = list[CacheReport](), list[tuple[int, int]]()
    prefix = RepeatedPrefix(token_measure(EstimatingTokenCounter()))

    def compare(index: int, context: Context) -> None:
        del index
        sizes.append(prefix.compare(context))

    Player(
        lambda: Memory(open_core(":memory:", window=window, background=False, telemetry=False)),
        recorded,
        on_request=compare,
        on_end=lambda conversation: reports.append(conversation.cache_report()),
    ).play()
    (report,) = reports
    assert report.requests == len(sizes)
    return report, sum(one for _, one in sizes) / sum(size for size, _ in sizes)


def test_the_share_is_nearly_that_of_rendered_requests() -> None:
    def messages() -> Iterator[RecordedMessage]:
        for index, one in enumerate(talk(120, "Some words of the long talk about sheds. " * 6)):
            yield RecordedMessage(message=Message.model_validate(one), key=str(index))

    report, share = played(RecordedConversation(thread_id="t", messages=tuple(messages())), 8_000)
    assert report.breaks > 5
    assert report.kept_share == pytest.approx(share, abs=0.01)


@needs_data
@pytest.mark.parametrize("path", files("claude-code-entire/83a0bb2f3f73*.gz"), ids=lambda p: p.name)
def test_the_share_is_nearly_that_of_rendered_requests_of_a_real_session(path: Any) -> None:
    recorded = max(refold.read_transcript(path).conversations, key=lambda one: len(one.messages))
    report, share = played(recorded, 60_000)
    assert report.kept_share == pytest.approx(share, abs=0.01)
