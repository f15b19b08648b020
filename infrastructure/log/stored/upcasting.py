"""Upcasters: how stored fields of an older shape become those of the next one."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

Json = dict[str, Any]
Upcaster = Callable[[Json], Json]
"""Turns the fields of shape n of an event into those of shape n + 1."""

# What holds for a compaction of shape 1 where shape 2 says more. Written out, not taken from the
# defaults of today: those may change, and what happened then must not.
POLICY_2: Mapping[str, Any] = MappingProxyType(
    {
        "keep_tokens": 0,
        "keep_turns": 0,
        "whole_turn_share": 0.5,
        "summary_tier": 0.1,
        "condensed_tier": 0.35,
        "whole_tier": 0.55,
        "whole_last": 10,
        "offload_tokens": 1000,
        "enough_freed_tokens": 15000,
        "enough_freed_share": 0.1,
        "condensed_characters": 200,
        "summary_tries": 3,
        "repairs": 1,
        "most_calls": 24,
        "split_share": 0.5,
        "split_slack": 1.2,
        "split_prefix_share": 0.4,
        "split_prefix_least": 0.15,
        "chunk_share": 0.4,
        "chunk_least": 0.15,
        "chunk_large": 0.1,
        "chunk_slack": 1.2,
        "oversized_share": 0.5,
        "rebuild_after": 5,
        "rebuild_over_tokens": 1000,
        "leaf_tokens": 1000,
        "ledger_share": 0.1,
        "ledger_tokens": 6000,
        "failures_kept": 8,
        "failure_characters": 240,
        "breaker_after": 3,
    }
)


def _with_policy(fields: Json) -> Json:
    policy = {k: v for k, v in fields["policy"].items() if k != "summary_share"}
    return {**fields, "policy": {**POLICY_2, **policy}}


def _requested(fields: Json) -> Json:
    return {**_with_policy(fields), "split_at": None, "rebuilds": False, "owner": None}


def _performed(fields: Json) -> Json:
    return {
        **_with_policy(fields),
        "split_at": None,
        "text_tokens": 0,
        "target_tokens": None,
        "effective": True,
        "generation": 0,
        "ledger": [],
        "ledger_shown": 0,
        "leaf": None,
        "omitted": [],
        "block": None,
        "model_calls": 1,
    }


def _failed(fields: Json) -> Json:
    return {**fields, "model_calls": 0}


# The same for shape 3.
POLICY_3: Mapping[str, Any] = MappingProxyType(
    {"archive_over": None, "archive_buffer": 20, "topics_kept": 0, "topics_shown": 0}
)


def _with_policy_3(fields: Json) -> Json:
    return {**fields, "policy": {**POLICY_3, **fields["policy"]}}


def _performed_3(fields: Json) -> Json:
    return {**_with_policy_3(fields), "topics": [], "topics_shown": 0}


# The same for shape 4.
POLICY_4: Mapping[str, Any] = MappingProxyType(
    {"rebuild_over_share": 1.5, "first_summary_after": None}
)


def _with_policy_4(fields: Json) -> Json:
    return {**fields, "policy": {**POLICY_4, **fields["policy"]}}


def _performed_4(fields: Json) -> Json:
    return {
        **_with_policy_4(fields),
        "given_in_part": [],
        "topics_ask": True,
        "ledger": [{**line, "under": [], "cut": 0, "author": None} for line in fields["ledger"]],
    }


def _appended(fields: Json) -> Json:
    return fields  # Shape 2 may name the author, further fields and unknown blocks of the message.


def _flushed(fields: Json) -> Json:
    return {**fields, "taken_at": None}


def _chosen(fields: Json) -> Json:
    own = {"thread_id": None, "kind": "message", "start": 0, "stop": 0}
    memories = [{**memory, **own} for memory in fields["memories"]]
    return {**fields, "memories": memories, "rewritten": []}


UPCASTERS: Mapping[tuple[str, int], Upcaster] = MappingProxyType(
    {
        ("message_appended", 1): _appended,
        ("compaction_requested", 1): _requested,
        ("compaction_requested", 2): _with_policy_3,
        ("compaction_requested", 3): _with_policy_4,
        ("compaction_performed", 1): _performed,
        ("compaction_performed", 2): _performed_3,
        ("compaction_performed", 3): _performed_4,
        ("compaction_failed", 1): _failed,
        ("notes_flushed", 1): _flushed,
        ("memories_chosen", 1): _chosen,
    }
)
