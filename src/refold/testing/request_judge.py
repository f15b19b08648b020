"""An independent judge of Messages API requests. It reports what the provider would reject.

A finding has the form ``rule: place: what is wrong``, so that tests can select findings by rule. The
judge uses no code of refold, so that it can test that code.
"""

from collections.abc import Callable, Iterator
from typing import Any

from refold.testing.request_rules import contents, limits, pairing, roles, signed
from refold.testing.request_rules.request import Json
from refold.testing.request_rules.sequences import prefix_violations, preserved_thinking_violations

__all__ = ["prefix_violations", "preserved_thinking_violations", "violations"]

_RULES: tuple[Callable[[Json], Iterator[str]], ...] = (
    contents.shapes,
    contents.no_messages,
    contents.empty_contents,
    contents.empty_system,
    contents.blank_texts,
    contents.errors_without_content,
    roles.role_names,
    roles.first_role,
    roles.alternation,
    roles.block_roles,
    roles.trailing_space,
    pairing.late_results,
    pairing.orphan_results,
    pairing.duplicate_results,
    pairing.repeated_call_ids,
    pairing.call_id_patterns,
    pairing.call_names,
    pairing.server_results,
    pairing.server_calls,
    signed.thinking_last,
    signed.unsigned_thinking,
    signed.thinking_leads_the_loop,
    signed.compaction_blocks,
    limits.too_many_cache_marks,
    limits.misplaced_cache_marks,
    limits.encoding,
    limits.too_many_messages,
    limits.too_large,
)


def violations(
    request: dict[str, Any],
    *,
    model: str = "claude-opus-5-5",
    allow_pending_at_end: bool = False,
) -> list[str]:
    """Return a finding for everything in a request that the provider or portability forbids.

    Args:
        request: ``messages``, and optionally ``model``, ``system``, ``tools``, ``thinking``.
        model: the model whose rules apply if the request names none. Unknown models are judged strictly.
        allow_pending_at_end: whether calls of the last assistant turn may lack results, if nothing but
            results follows. Use it for a context that is built while tools still run.
    """
    model = str(request.get("model") or model)
    found = [finding for rule in _RULES for finding in rule(request)]
    found += pairing.unanswered_calls(request, allow_pending_at_end=allow_pending_at_end)
    found += roles.prefill(request, model=model, allow_pending_at_end=allow_pending_at_end)
    found += roles.system_messages(request, model=model)
    return found
