"""The models that are known by name: their context windows and what they refuse. One table."""

from typing import NamedTuple


class ModelRules(NamedTuple):
    """What rendering and budgets need to know of a model."""

    window: int
    """The context window in tokens."""


DEFAULT = ModelRules(window=200_000)

# Longest prefix wins. Windows as the vendors document them in late 2026; a model of Anthropic that
# is not named here is taken for an older one, since too small a window only compacts earlier.
_MODELS: dict[str, ModelRules] = {
    "claude-": ModelRules(window=200_000),
    "claude-opus-4-6": ModelRules(window=1_000_000),
    "claude-opus-4-7": ModelRules(window=1_000_000),
    "claude-opus-4-8": ModelRules(window=1_000_000),
    "claude-opus-5": ModelRules(window=1_000_000),
    "claude-sonnet-4-6": ModelRules(window=1_000_000),
    "claude-sonnet-5": ModelRules(window=1_000_000),
    "claude-haiku-5-5": ModelRules(window=1_000_000),
    "claude-fable-5": ModelRules(window=1_000_000),
    "claude-mythos-5": ModelRules(window=1_000_000),
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


def rules_for(model: str | None) -> ModelRules:
    """The rules of a model; of an unknown one the strictest that are common."""
    name = (model or "").rpartition("/")[2].lower()
    known = [prefix for prefix in _MODELS if name.startswith(prefix)]
    return _MODELS[max(known, key=len)] if known else DEFAULT
