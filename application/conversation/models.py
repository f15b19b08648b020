"""Known models with their context windows and rules, in one table."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

COMPACTION_BETA = "compact-2026-09-04"
"""Beta of the Messages API for signed compaction blocks; each request with one must name it."""


class ModelRules(NamedTuple):
    """Rules of a model for rendering and budgets."""

    window: int
    """Context window in tokens."""
    signed_summaries: bool = False
    """True if it makes and reads signed compaction blocks (public table of ``compact-2026-09-04``)."""
    binds_thinking: bool = True
    """True if it refuses thinking after a different prefix than the one it was signed for.

    The newest models do; an unknown model is assumed to do so.
    """

    @property
    def images(self) -> int:
        """Most images and documents of a request, as the Messages API counts them."""
        return 600 if self.window > DEFAULT.window else 100


DEFAULT = ModelRules(window=200_000)
_LARGE_UNBOUND = ModelRules(window=1_000_000, signed_summaries=True, binds_thinking=False)

# The longest prefix applies. Windows as the vendors document them in late 2026. An unlisted model of
# Anthropic is treated as an older one: a window that is too small only compacts earlier.
_MODELS: dict[str, ModelRules] = {
    "claude-": ModelRules(window=200_000),
    "claude-3": ModelRules(window=200_000, binds_thinking=False),
    "claude-opus-4": ModelRules(window=200_000, binds_thinking=False),
    "claude-sonnet-4": ModelRules(window=200_000, binds_thinking=False),
    "claude-haiku-4": ModelRules(window=200_000, binds_thinking=False),
    "claude-opus-4-6": _LARGE_UNBOUND,
    "claude-opus-4-7": _LARGE_UNBOUND,
    "claude-opus-4-8": _LARGE_UNBOUND,
    "claude-opus-5": ModelRules(window=1_000_000, signed_summaries=True),
    "claude-sonnet-4-6": _LARGE_UNBOUND,
    "claude-sonnet-5": ModelRules(window=1_000_000, signed_summaries=True),
    "claude-haiku-5-5": ModelRules(window=1_000_000),
    "claude-fable-5": ModelRules(window=1_000_000, signed_summaries=True),
    "claude-mythos-5": ModelRules(window=1_000_000, signed_summaries=True),
    "gpt-4o": ModelRules(window=128_000),
    "gpt-4-turbo": ModelRules(window=128_000),
    "gpt-4.1": ModelRules(window=1_000_000),
    "gpt-5": ModelRules(window=272_000),
    "o1": ModelRules(window=200_000),
    "o3": ModelRules(window=200_000),
    "o4": ModelRules(window=200_000),
    "gemini-": ModelRules(window=1_000_000),
    "deepseek-": ModelRules(window=128_000),
    "qwen": ModelRules(window=128_000),
    "kimi-": ModelRules(window=256_000),
    "glm-": ModelRules(window=128_000),
}


_MOST_KNOWN = 64
"""Models whose rules are remembered. Each request asks for them several times."""


@lru_cache(_MOST_KNOWN)
def rules_for(model: str | None) -> ModelRules:
    """Return the rules of a model; for an unknown model, the strictest common ones."""
    known = longest_prefix(model, _MODELS)
    return DEFAULT if known is None else _MODELS[known]


def longest_prefix(model: str | None, prefixes: Iterable[str]) -> str | None:
    """Return the longest of ``prefixes`` with which a model's name begins at any provider, or None."""
    name = (model or "").rpartition("/")[2].lower()
    fitting = [prefix for prefix in prefixes if name and name.startswith(prefix.lower())]
    return max(fitting, key=len, default=None)


@lru_cache(_MOST_KNOWN)
def takes_signed_summaries(model: str | None) -> bool:
    """Return whether a request to this model may begin with a signed compaction block.

    Only the vendor's own API certainly accepts one; with a gateway's model name the text is sent.
    """
    gateway = (model or "").rpartition("/")[0].lower()
    return gateway in ("", "anthropic") and rules_for(model).signed_summaries


@lru_cache(_MOST_KNOWN)
def binds_thinking(model: str | None) -> bool:
    """Return whether this model accepts thinking only after the prefix it was signed for.

    The provider that serves the model does not matter.
    """
    name = (model or "").rpartition("/")[2].lower()
    return rules_for(name.rpartition("anthropic.")[2]).binds_thinking
