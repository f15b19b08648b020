"""The summarisers that have a name in settings and stand on the Messages API."""

from typing import Literal

from refold.application.ports import Summariser, TokenCounter
from refold.infrastructure.summarisers.anthropic import AnthropicSummariser
from refold.infrastructure.summarisers.api_calls import TIMEOUT
from refold.infrastructure.summarisers.server_compaction import ServerCompactionSummariser


def anthropic_summariser(
    name: Literal["anthropic", "anthropic-server"],
    counter: TokenCounter,
    *,
    model: str | None = None,
    answering: str | None = None,
    timeout: float = TIMEOUT,
) -> Summariser:
    """The summariser of this name; ``retrying`` makes it try again.

    ``model``: the one that is asked for summaries. ``answering``: the conversation's own: it is asked
    where no other is named, or the other cannot be used (requirement D9).
    """
    made: AnthropicSummariser | ServerCompactionSummariser
    if name == "anthropic":
        made = AnthropicSummariser(model=model, timeout=timeout, counter=counter)
    else:
        made = ServerCompactionSummariser(model=model, timeout=timeout, counter=counter)
    return made.for_models(None, answering)
