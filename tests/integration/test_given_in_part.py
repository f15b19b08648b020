"""A tool result that a model was given in part only: the event, the prompt and explain say how much."""

from pathlib import Path
from typing import Any

import pytest

import refold
from tests.support import anthropic_server as api
from tests.support.anthropic_server import AnthropicServer
from tests.support.summarising import KEY


def test_how_much_of_a_cut_result_was_given_is_told_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    output = "".join(f"line {n} of the log\n" for n in range(6_000))
    with AnthropicServer([api.ok()]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        with refold.open(tmp_path / "a.db", summariser="anthropic", notes="off") as memory:
            conversation = memory.conversation("t")
            conversation.append({"role": "user", "content": "Read the log"})
            call: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
            conversation.append({"role": "assistant", "content": [call]})
            result = {"type": "tool_result", "tool_use_id": "t1", "content": output}
            conversation.append({"role": "user", "content": [result]})
            for n in range(5):
                conversation.append({"role": "assistant", "content": f"So it is {n}"})
                conversation.append({"role": "user", "content": f"And {n}?"})
            assert conversation.compact().outcome == "performed"
            summary = conversation.context().summary
            assert summary is not None
            [part] = summary.given_in_part
            assert (part.position, part.given, part.characters) == (2, 19_940, len(output))
            told = f"19,940 of {len(output):,} characters"
            assert f"message 2 ({told})" in server.requests[0].body["messages"][0]["content"]
            fate = conversation.explain(2, 3)[0]
            assert (fate.fate, told.replace(" of ", " of its ") in fate.why) == ("summarised", True)
            assert "characters" not in conversation.explain(0, 1)[0].why
            assert memory.verify().ok
