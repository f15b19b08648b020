"""The summarisers that have a name in settings and stand on the Messages API."""

from typing import Literal

from refold.application.models import takes_signed_summaries
from refold.application.ports import Summariser, TokenCounter
from refold.infrastructure.summarisers import anthropic, server_compaction
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
    where the other cannot be used (requirement D9), and compacts on the server if nothing else is said.
    """
    own = answering.rpartition("/")[2] if answering and _is_of_anthropic(answering) else None
    if name == "anthropic":
        return AnthropicSummariser(
            model=model or anthropic.DEFAULT_MODEL,
            fallback_model=own,
            timeout=timeout,
            counter=counter,
        )
    compacts = own if takes_signed_summaries(own) else None
    return ServerCompactionSummariser(
        model=model or compacts or server_compaction.DEFAULT_MODEL, timeout=timeout, counter=counter
    )


def _is_of_anthropic(model: str) -> bool:
    return model.rpartition("/")[2].lower().startswith("claude-")
