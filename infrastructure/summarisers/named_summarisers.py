"""The summarisers that have a name in settings and stand on the Messages API."""

import os
from pathlib import Path
from typing import Literal

from refold.application.ports.summariser import Summariser, TokenCounter
from refold.infrastructure.missing_keys import warn_of_missing_key

from .anthropic import AnthropicSummariser
from .api_calls import TIMEOUT
from .server_compaction import ServerCompactionSummariser


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


def warn_without_key(name: str) -> None:
    """Warn where a summariser of the Messages API was chosen and nothing says how to authenticate."""
    if any(os.environ.get(variable) for variable in _CREDENTIALS) or _has_profile():
        return
    warn_of_missing_key(
        "summariser", name, "ANTHROPIC_API_KEY", "the built-in summariser writes every summary"
    )


def _has_profile() -> bool:
    """Whether the SDK may find credentials in files of its own."""
    folder = os.environ.get("ANTHROPIC_CONFIG_DIR")
    places = (Path(folder) if folder else Path.home() / ".config" / "anthropic",)
    return any(place.exists() for place in places)


_CREDENTIALS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_PROFILE",
    "ANTHROPIC_FEDERATION_RULE_ID",
    "ANTHROPIC_IDENTITY_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN_FILE",
)
