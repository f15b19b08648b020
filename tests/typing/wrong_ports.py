"""Classes that look like a summariser, a token counter or an embedder, and do not fit."""

from collections.abc import Sequence

import refold


class Blocking:
    """A summariser that is not asynchronous."""

    name = "blocking"

    def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
        """Return what must be awaited."""
        raise NotImplementedError


class Nameless:
    """A summariser without a name."""

    async def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
        """Return a draft."""
        raise NotImplementedError


class PlainText:
    """A summariser that returns text."""

    name = "text"

    async def summarise(self, request: refold.SummaryRequest) -> str:
        """Return text in place of a draft."""
        return request.previous or ""


class NumbersOnly:
    """A token counter that returns a number for a message."""

    def count_text(self, text: str) -> int:
        """Count a text."""
        return len(text)

    def count_message(self, message: refold.Message) -> int:
        """Return a number in place of a count."""
        return 1

    def count_tools(self, tools: tuple[dict[str, object], ...]) -> int:
        """Count tools."""
        return len(tools)


class OneByOne:
    """An embedder that takes one text at a time."""

    name = "one"
    model = "one-1"

    def embed_documents(self, texts: str) -> Sequence[float]:
        """Take one text."""
        return [float(len(texts))]

    def embed_query(self, text: str) -> Sequence[float]:
        """Take one question."""
        return [float(len(text))]


def fits() -> None:
    """None of them does."""
    refold.open("agent.db", summariser=Blocking())  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", summariser=Nameless())  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", summariser=PlainText())  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", counter=NumbersOnly())  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", embedder=OneByOne())  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", summariser=7)  # error: mypy[arg-type] pyright[reportArgumentType]


def drafts() -> None:
    """A draft says whether it is complete, in its own fields."""
    refold.SummaryDraft(text="a", model="m", prompt_fingerprint="1")  # error: mypy[call-arg] pyright[reportCallIssue]
    refold.SummaryDraft(text=7, complete=True, model="m", prompt_fingerprint="1")  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.TokenCount(totl=1)  # error: mypy[call-arg] pyright[reportCallIssue]
