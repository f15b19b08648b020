"""Checks and strategies for extensions of refold: summarisers, token counters, embedders, stores.

``check_summariser``, ``check_token_counter``, ``check_embedder`` and ``check_store`` call an
implementation like refold does, and raise ``CheckFailed`` with one finding for each broken rule.
``histories`` and ``ConversationMachine`` let Hypothesis search for conversations that break the
guarantees of refold, with your own policy, summariser and store. ``given`` tests deciders.

    from refold.testing import check_summariser

    def test_my_summariser():
        check_summariser(MySummariser())

The page docs/testing.md describes the findings of each check.

Modules are named by what they do: ``*_checks`` have the checks, ``sample_*`` their data, ``history_*``
generate conversations, ``request_*`` judge requests, and ``checked_*`` are what a check works on.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refold.testing.checked_store import Opening, Place
    from refold.testing.conversation_machine import ConversationMachine
    from refold.testing.embedder_checks import check_embedder
    from refold.testing.findings import CheckFailed, Finding, Report
    from refold.testing.given_when_then import given
    from refold.testing.history_strategies import histories
    from refold.testing.request_judge import violations
    from refold.testing.store_checks import check_store
    from refold.testing.summariser_checks import check_summariser, text_counter
    from refold.testing.token_counter_checks import check_token_counter

__all__ = [
    "CheckFailed",
    "ConversationMachine",
    "Finding",
    "Opening",
    "Place",
    "Report",
    "check_embedder",
    "check_store",
    "check_summariser",
    "check_token_counter",
    "given",
    "histories",
    "text_counter",
    "violations",
]

_PLACES = {
    "checked_store": "Opening Place",
    "conversation_machine": "ConversationMachine",
    "embedder_checks": "check_embedder",
    "findings": "CheckFailed Finding Report",
    "given_when_then": "given",
    "history_strategies": "histories",
    "request_judge": "violations",
    "store_checks": "check_store",
    "summariser_checks": "check_summariser text_counter",
    "token_counter_checks": "check_token_counter",
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = _PLACE_OF[name]
    try:
        value = getattr(import_module(f".{place}", __name__), name)
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        raise ImportError(
            f"refold.testing.{name} needs Hypothesis, which is not installed: "
            "pip install 'refold[testing]'",
            name="hypothesis",
        ) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
