"""Other agents of a thread that answer the same messages at the same time."""

from collections.abc import Sequence
from typing import Any

import pytest

import refold
from refold.application.api.following import FollowingMemory

ANSWER = "The answer of the other one."


def answer_in_between(patch: pytest.MonkeyPatch, memory: refold.Memory) -> None:
    """Have another agent answer the next list, once it is followed and before its request is made."""
    follow = FollowingMemory.follow

    def follow_and_answer(
        lists: FollowingMemory, thread_id: str, messages: Sequence[object], **missing: Any
    ) -> str:
        patch.setattr(FollowingMemory, "follow", follow)
        name = lists.follow(thread_id, messages, **missing)
        answer = {"role": "assistant", "content": ANSWER}
        assert FollowingMemory(memory).follow(thread_id, [*messages, answer]) == name
        return name

    patch.setattr(FollowingMemory, "follow", follow_and_answer)
