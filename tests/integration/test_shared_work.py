"""A model and code share the work: the model gets ledger and index, and what it got stands in the request."""

import re
from pathlib import Path

import pytest

import refold
from refold.application.ports.summariser import SummaryDraft, SummaryRequest
from refold.application.rendering.index_text import INDEX_HEADINGS
from tests.support.fake_summarisers import GoodSummariser

_VALUES = re.compile(r"src/part\d+/file\d+\.py|make step-\d+|retry_limit_\d+")


class Watched(GoodSummariser):
    """Keeps the requests."""

    def __init__(self, text: str) -> None:
        self.asked: list[SummaryRequest] = []
        self._text = text

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        self.asked.append(request)
        draft = await super().summarise(request)
        return draft.model_copy(update={"text": f"{draft.text} {self._text}"})


def work(conversation: refold.ConversationMemory, rounds: int) -> None:
    for n in range(rounds):
        path, command = f"src/part{n % 7}/file{n}.py", f"make step-{n}"
        said = f"Look at {path} for retry_limit_{n}. " + "Tell me what you find. " * 10
        conversation.append({"role": "user", "content": said}, author="person")
        call = {"type": "tool_use", "id": f"c{n}", "name": "bash", "input": {"command": command}}
        conversation.append({"role": "assistant", "content": [call]})
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": "fine " * 60}
        conversation.append({"role": "user", "content": [result]})
        conversation.append({"role": "assistant", "content": "It is as expected. " * 10})
        conversation.context()


@pytest.mark.parametrize("text", ["", "We chose the first way because it is simple. " * 30])
def test_what_the_model_was_given_as_kept_is_shown(tmp_path: Path, text: str) -> None:
    watched = Watched(text)
    with refold.open(
        tmp_path / "a.db", window=8_000, telemetry=False, summariser=watched
    ) as memory:
        work(memory.conversation("t"), 60)
        context = memory.conversation("t").context()
        assert context.summary is not None
        given = set(_VALUES.findall(watched.asked[-1].ledger))
        shown = set(_VALUES.findall("\n".join(map(str, [*context.memory, *context.messages]))))
    assert any(heading in watched.asked[-1].ledger for heading in INDEX_HEADINGS)
    assert len(given) > 20
    assert given <= shown


def test_without_an_index_the_model_is_promised_none(tmp_path: Path) -> None:
    watched = Watched("")
    policy = refold.CompactionPolicy(index_share=0)
    with refold.open(
        tmp_path / "a.db", window=8_000, telemetry=False, summariser=watched, policy=policy
    ) as memory:
        work(memory.conversation("t"), 40)
    assert watched.asked
    assert not any(h in one.ledger for one in watched.asked for h in INDEX_HEADINGS)
