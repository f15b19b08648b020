"""A conversation in a small window that is compacted again and again by code."""

from pathlib import Path

import refold


def opened(path: Path) -> refold.Memory:
    return refold.open(path, window=6_000, summariser="extractive", scrub_megabytes=0)


def talk(conversation: refold.ConversationMemory, first: str) -> refold.CompactionResult:
    """Say something and go on until it leaves the context."""
    said = [
        first,
        *(f"Look at part {n}: " + "it is long and says little. " * 20 for n in range(30)),
    ]
    for text in said:
        turn = [{"role": "user", "content": text}, {"role": "assistant", "content": "Done."}]
        conversation.append(turn, recorded=True)
    made = conversation.compact()
    assert made.outcome == "performed"
    return made
