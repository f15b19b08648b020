"""Bring a summariser, a token counter, an embedder and an observer: plain classes fit the protocols."""

from collections.abc import Sequence
from typing import assert_type

import refold


class FirstWords:
    """A summariser that also takes notes and has a window of its own."""

    name = "first-words"
    window = 8_000

    async def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
        """Quote the first words of each message."""
        positions = ", ".join(str(source.position) for source in request.messages)
        assert_type(request.messages[0], refold.SourceMessage)
        return refold.SummaryDraft(
            text=f"Messages {positions}. {request.previous or ''}",
            complete=True,
            model=self.name,
            prompt_fingerprint="1",
        )

    def measure(self, request: refold.SummaryRequest) -> int:
        """Count roughly."""
        return len(request.messages) * 100

    async def take_notes(self, request: refold.NotesRequest) -> refold.NotesDraft:
        """Note nothing."""
        return refold.NotesDraft(notes=(), model=self.name, prompt_fingerprint=f"{request.most}")


class ByCharacters:
    """A token counter."""

    def count_text(self, text: str) -> int:
        """Count four characters as a token."""
        return len(text) // 4 + 1

    def count_message(self, message: refold.Message) -> refold.TokenCount:
        """Count the text of a message."""
        return refold.TokenCount(total=self.count_text(str(message)))

    def count_tools(self, tools: tuple[dict[str, object], ...]) -> int:
        """Count the definitions."""
        return sum(self.count_text(str(tool)) for tool in tools)


class ByLength:
    """An embedder; a property fits as well as an attribute."""

    model = "length-1"

    @property
    def name(self) -> str:
        """The name in settings."""
        return "length"

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return [1.0, float(len(text))]


class Printing:
    """An observer."""

    def compaction_ended(self, result: refold.CompactionResult) -> None:
        """Print the outcome."""
        print(result.outcome)

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """Print the size."""
        print(thread_id, tokens, tokens_repeated)


def main() -> None:
    """Use all of them."""
    summariser: refold.Summariser = FirstWords()
    bounded: refold.BoundedSummariser = FirstWords()
    taker: refold.NoteTaker = FirstWords()
    counter: refold.TokenCounter = ByCharacters()
    embedder: refold.Embedder = ByLength()
    observer: refold.Observer = Printing()
    print(bounded.window, taker)
    with refold.open(
        "agent.db",
        summariser=summariser,
        counter=counter,
        embedder=embedder,
        observers=(observer,),
    ) as memory:
        print(memory.stats())
