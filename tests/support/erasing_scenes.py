"""Conversations with a secret in a log, and a search for it in every file."""

import json
from collections.abc import Sequence
from pathlib import Path

import refold
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.ports.summariser import SummaryDraft, SummaryRequest
from refold.testing.request_judge import violations

from .fake_summarisers import source_text

SECRET = "Geheimnis-4711 käse 密码"
PATH = "/srv/geheim/xyz4711.txt"
FORMS = tuple(
    form.encode()
    for text in (SECRET, PATH, "Geheimnis-4711", "xyz4711")
    for form in (text, json.dumps(text)[1:-1])
)


class Quoting:
    """Repeats the beginning of everything that it is given."""

    name = "quoting"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        said = " ".join(line[:60] for line in source_text(request).splitlines())
        text = f"{request.previous or ''} {said}"[: 2 * request.limit_tokens]
        return SummaryDraft(text=text, complete=True, model="quoting", prompt_fingerprint="q")


class Failing(Quoting):
    """Fails with what it was given in its words."""

    name = "failing"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        raise RuntimeError(f"cannot work with {source_text(request)}")


def opened(folder: Path, **options: object) -> Memory:
    given: dict[str, object] = {
        "window": 3_000,
        "summariser": Quoting(),
        "scrub_megabytes": 0,
        **options,
    }
    return refold.open(folder / "a.db", **given)  # type: ignore[arg-type]


def holding(folder: Path) -> dict[str, int]:
    """The files that hold the secret in any form, with how often."""
    found = {p.name: sum(map(p.read_bytes().count, FORMS)) for p in folder.iterdir()}
    return {name: count for name, count in found.items() if count}


def talk(conversation: ConversationMemory, turns: int, secret_at: Sequence[int] = ()) -> None:
    """Turns of two messages; the user's of some say the secret, which is at twice their number."""
    for turn in range(turns):
        said = f"{SECRET}: never touch {PATH}" if turn in secret_at else f"look at file_{turn}.py"
        conversation.append(
            [
                {"role": "user", "content": f"Please {said}. " + "word " * 40},
                {"role": "assistant", "content": f"It is done, turn {turn}. " + "blah " * 40},
            ]
        )
        conversation.context()


def is_sound(memory: Memory, conversation: ConversationMemory) -> None:
    found = memory.verify()
    assert found.ok, found.damage
    for version in range(1, conversation.version + 1):
        request = conversation.context(at=version).for_anthropic()
        assert violations(request, allow_pending_at_end=True) == []
