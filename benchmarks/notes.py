"""How many of the decisions and preferences that people state are noted, by code, without a model.

    python benchmarks/notes.py [--files N] [--each N] [--seed N] [--write]

Two kinds of histories. Recorded agent sessions with planted statements (``planted_facts.py``: preferences,
decisions and prohibitions, most of whose phrasings the code was never tuned with), played with five
compactions; and chats in which people say what they decided or like in everyday words (``stated.py``). A
statement is noted if its words stand in one note. What is noted without having been stated is counted as
well: the fewer, the better.
"""

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from planted_facts import facts
from planting import planted
from retention import histories, parts, size
from stated import STATED, UNSEEN

import refold
from refold.domain.value import replace

RESULTS = Path(__file__).with_name("results") / "notes.md"
KINDS = ("preference", "decision", "prohibition")
COMPACTIONS = 5
SHARE = 20
"""Of a history, in per cent: what a compaction leaves of it."""
FILLER = "Thanks. Go on, and tell me when the next part is done. " * 4
GOAL = 95
CHATS, UNSEEN_CHATS = "chats", "chats, never seen"


class Asked(NamedTuple):
    """A statement, and how it was made."""

    where: str
    kind: str
    language: str
    words: str


def bare(text: str) -> str:
    """Letters and digits alone: marks of Markdown are no part of a note."""
    return "".join(filter(str.isalnum, text.casefold()))


def noted(memory: refold.Memory, asked: Sequence[Asked]) -> tuple[Counter[Asked], int]:
    """Each statement with 1 where it was noted; and how many notes hold none."""
    notes = [bare(row.text) for row in memory.notes()]
    found = Counter({one: int(any(bare(one.words) in n for n in notes)) for one in asked})
    other = sum(not any(bare(one.words) in note for one in asked) for note in notes)
    return found, other


def in_sessions(files: int, each: int, seed: int) -> Iterator[tuple[Counter[Asked], int]]:
    """Recorded sessions with planted statements."""
    for name, messages in histories(files):
        rng = random.Random(f"{seed} {name}")
        said = [fact for fact in facts(rng, each) if fact.type in KINDS]
        history = planted(messages, said, rng, size)
        target = size(history.messages) * SHARE // 100
        due = target + (size(history.messages) - target) / COMPACTIONS
        base = refold.CompactionPolicy(enough_freed_tokens=10**9, enough_freed_share=1.0)
        policy = replace(base, target_share=target / due, keep_tokens=target // 2)
        window = int(due / policy.trigger_share)
        with refold.open(":memory:", window=window, policy=policy, notes="ledger") as memory:
            conversation = memory.conversation("t")
            for part in parts(history.messages, target, COMPACTIONS):
                for index in part:
                    conversation.append(history.messages[index].model_dump(), recorded=True)
                conversation.compact()
            asked = [Asked("sessions", f.type, f.language, f.words) for f in said]
            yield noted(memory, asked)


def in_chats(
    where: str, stated: Mapping[tuple[str, str], Sequence[str]]
) -> Iterator[tuple[Counter[Asked], int]]:
    """One chat for each kind and language, a statement in every third turn."""
    for (kind, language), texts in stated.items():
        with refold.open(":memory:", window=8_000, notes="ledger") as memory:
            conversation, asked = memory.conversation("t"), list[Asked]()
            for number, text in enumerate(texts):
                words = text[text.index("⟦") + 1 : text.index("⟧")]
                asked.append(Asked(where, kind, language, words))
                told = text.replace("⟦", "").replace("⟧", "")
                for said in (told, FILLER, FILLER):
                    conversation.append({"role": "user", "content": said})
                    conversation.append({"role": "assistant", "content": f"Part {number} is done."})
                if number % 5 == 4:
                    conversation.compact()
            for _ in range(12):
                conversation.append({"role": "user", "content": FILLER})
                conversation.append({"role": "assistant", "content": FILLER})
            conversation.compact()
            yield noted(memory, asked)


def tables(found: Counter[Asked], others: dict[str, int]) -> str:
    """The figures as Markdown."""
    lines = ["| where | kind | language | stated | noted | per cent |", "|---|---|---|---|---|---|"]
    for where, kind, language in sorted({one[:3] for one in found}):
        lines.append(_row(found, where, kind, language))
    lines += [_row(found, where, "all", "") for where in sorted(others)]
    told = ", ".join(f"{number} in {where}" for where, number in sorted(others.items()))
    missed = [
        f"- {one.where}, {one.kind}: {one.words}"
        for one, hit in found.items()
        if not hit and one.where != UNSEEN_CHATS
    ]
    return "\n".join([*lines, "", f"Notes without a stated one in them: {told}.", "", *missed])


def _row(found: Counter[Asked], where: str, kind: str, language: str) -> str:
    of: list[Any] = [
        hit
        for one, hit in found.items()
        if one.where == where and kind in ("all", one.kind) and language in ("", one.language)
    ]
    share = 100 * sum(of) / max(1, len(of))
    return f"| {where} | {kind} | {language} | {len(of)} | {sum(of)} | {share:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=99, help="how many recordings")
    parser.add_argument("--each", type=int, default=4, help="statements of a kind and language")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    given = parser.parse_args()
    found, others = Counter[Asked](), dict[str, int]()
    for where, played in (
        (CHATS, in_chats(CHATS, STATED)),
        (UNSEEN_CHATS, in_chats(UNSEEN_CHATS, UNSEEN)),
        ("sessions", in_sessions(given.files, given.each, given.seed)),
    ):
        for hits, other in played:
            found.update(hits)
            others[where] = others.get(where, 0) + other
    told = tables(found, others)
    print(told)
    if given.write:
        head = (
            f"# Notes: how many stated decisions and preferences are noted (goal: {GOAL} %)\n\n"
            "Made by `python benchmarks/notes.py --write` "
            f"(seed {given.seed}, {COMPACTIONS} compactions), by code, without a model. How: see the "
            "script. Below the table stands what was missed.\n\n"
        )
        RESULTS.write_text(f"{head}{told}\n", "utf-8")


if __name__ == "__main__":
    main()
