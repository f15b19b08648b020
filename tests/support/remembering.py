"""A conversation with memories on, on fakes: filler that is compacted, and facts that matter later."""

import dataclasses
from collections.abc import Sequence

from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import Context
from refold.application.rendering.request_blocks import MEMORIES_HEADING
from refold.application.runtime.core import Core, RecallParts
from refold.application.runtime.memory_settings import MemoriesSettings
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import Event
from refold.domain.notes import MemoriesChosen
from refold.domain.value import replace

from .fake_ports import core_of
from .recall_scenes import ListedIndex, TimedLog

FACT = "Remember that the staging postgres listens on port 5433."
QUESTION = "Which port does the staging postgres listen on?"
FILLER = "Tidying the garden shed, raking leaves and painting the fence white. " * 14


class Agent:
    """A window of 8,000 tokens: trigger at 5,600, limit 6,200, target 2,800."""

    def __init__(
        self,
        most: int = 5,
        tokens: int = 600,
        policy: CompactionPolicy | None = None,
        window: int = 8_000,
    ) -> None:
        self.log = TimedLog()
        self.index = ListedIndex(self.log)
        core = core_of(self.log, window=window, policy=policy)
        memories = MemoriesSettings(most=most, tokens=tokens)
        self.core: Core = dataclasses.replace(
            core,
            recall=RecallParts(index=self.index),
            settings=replace(core.settings, memories=memories, standing_recall=0),
        )
        self._runner = Runner()
        self.conversation = ConversationMemory(self.core, "t", self._runner)

    def says(self, *texts: str) -> None:
        """What the user says, each answered shortly."""
        for text in texts:
            self.conversation.append([_said("user", text), _said("assistant", "Noted.")])

    def asks(self, text: str = QUESTION) -> Context:
        """What the user asks, with the request that is sent then."""
        self.conversation.append(_said("user", text))
        return self.conversation.context()

    def grown(self) -> "Agent":
        """The fact, then so much else that the next request is compacted."""
        self.says(FACT, *[FILLER] * 24)
        return self

    @property
    def events(self) -> Sequence[Event]:
        return self.log.streams.get("t", [])

    @property
    def choices(self) -> list[MemoriesChosen]:
        return [event for event in self.events if isinstance(event, MemoriesChosen)]

    def close(self) -> None:
        self._runner.close()


def memories_in(context: Context) -> str:
    """The block in the system text; empty where there is none."""
    assert isinstance(context.system, str)
    _, heading, block = context.system.partition(f"\n\n{MEMORIES_HEADING}\n")
    return heading.strip() + "\n" + block if heading else ""


def _said(role: str, text: str) -> dict[str, object]:
    return {"role": role, "content": text}
