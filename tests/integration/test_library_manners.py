"""What a user of the library meets at once: reprs, version, warnings, settings of recall, quiet logs."""

# pyright: basic

import copy
import logging
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.recall.missing_vectors import to_embedder_error
from refold.application.runtime.plain_lines import strip_quotations
from refold.infrastructure.embedders.named_embedders import chosen_embedder
from refold.infrastructure.projection_store.row_checksums import FoldDamaged, show_values
from refold.infrastructure.settings.option_checks import MissingKeyWarning

SECRET = "my number is 4711"
REPLY = {"role": "assistant", "content": "ok", "id": "msg_1", "usage": {"output_tokens": 3}}


@pytest.mark.slow
def test_the_version_is_that_of_the_package() -> None:
    assert refold.__version__ == version("refold")
    command = [sys.executable, "-m", "refold", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert version("refold") in done.stdout


def test_reprs_are_short() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": SECRET * 1_000})
        for one in (memory, conversation, conversation.context(), conversation.messages()[0]):
            assert len(repr(one)) < 400


@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy])
def test_what_cannot_be_sent_to_a_process_says_what_to_do(
    tmp_path: Path, copied: Callable[[object], object]
) -> None:
    from refold.adapters.anthropic_memory_tool import MemoryTool

    with refold.open(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        follower = memory.follow("f", lambda *_: None, into=tmp_path / "f.db")
        for one in (memory, conversation, conversation.tools(), follower, MemoryTool(memory)):
            with pytest.raises(TypeError, match=r"pass the path .* call refold\.open there"):
                copied(one)


def test_a_reply_of_the_api_is_stored_once_with_its_usage() -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "x"})
        assert [conversation.append(REPLY).messages[0].new for _ in range(2)] == [True, False]
        assert conversation.messages()[1].message.extra == {"usage": {"output_tokens": 3}}
        assert len(conversation.messages()) == 2
        again = [conversation.append(REPLY, recorded=True).messages[0].new for _ in range(2)]
        assert again == [True, True]  # History is taken as it is.


def test_a_missing_key_of_a_chosen_summariser_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path / "none"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.warns(MissingKeyWarning, match="ANTHROPIC_API_KEY"):
        refold.open(":memory:", summariser="anthropic").close()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refold.open(":memory:", summariser="anthropic").close()


@pytest.mark.slow
def test_a_missing_key_of_the_embedder_is_told_at_once_where_its_place_needs_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("httpx2")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for url in (None, "https://api.openai.com/v1/"):
        with pytest.warns(MissingKeyWarning, match="OPENAI_API_KEY"):
            assert chosen_embedder("openai", model="m", url=url)
    with pytest.warns(MissingKeyWarning, match="embedder='openai'"):
        refold.open(":memory:", embedder="openai").close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refold.open(":memory:", embedder="openai", embedder_key="k").close()
        assert chosen_embedder("openai", model="m", url="http://127.0.0.1:8000/v1")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")
        assert chosen_embedder("openai", model="m")
        monkeypatch.delenv("OPENAI_BASE_URL")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        assert chosen_embedder("openai")


def test_hits_and_least_score_of_recall_are_settings() -> None:
    with refold.open(":memory:", window=8_000, recall_hits=1) as memory:
        conversation = memory.conversation("t")
        for n in range(4):
            conversation.append({"role": "user", "content": f"postgres port number {n}"})
        assert len(conversation.recall("postgres port")) == 1
        assert len(conversation.recall("postgres port", limit=3)) == 3
    with refold.open(":memory:", recall_mode="vector") as memory:
        assert memory.conversation("t").recall("x").mode == "vector"
        assert memory.conversation("t").recall("x", mode="keyword").mode == "keyword"
    with pytest.raises(refold.InvalidSetting, match="recall_hits"):
        refold.open(":memory:", recall_hits=0)


def test_an_empty_address_or_key_of_the_embedder_is_that_of_the_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k1")

    def made(url: str | None, key: str | None) -> tuple[str, Sequence[str]]:
        embedder: Any = chosen_embedder("openai", model="m", url=url, key=key)
        return embedder._url, embedder._secrets

    assert made("", "") == ("http://127.0.0.1:9/v1/embeddings", ("k1",))
    assert made(None, "k2") == ("http://127.0.0.1:9/v1/embeddings", ("k2",))
    # The key of the models goes to no other place.
    assert made("http://127.0.0.1:8/v1", None) == ("http://127.0.0.1:8/v1/embeddings", ())


def test_logs_do_not_quote(caplog: pytest.LogCaptureFixture) -> None:
    assert SECRET not in show_values(["t", 5, SECRET])
    assert SECRET not in strip_quotations(FoldDamaged(f"conversation {SECRET!r} has 5 messages"))

    class Broken(Exception):
        pass

    with caplog.at_level(logging.WARNING, "refold"):
        for _ in range(5):
            to_embedder_error(Broken(SECRET))
    assert [r.getMessage() for r in caplog.records] == ["making vectors failed: Broken"]
