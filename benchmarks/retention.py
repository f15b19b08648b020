"""What survives compaction word for word: facts planted in real histories, five and ten compactions.

    python benchmarks/retention.py [--files N] [--budgets 10,20,30] [--compactions 5,10] [--write]

Typed facts (``planted_facts.py``) go into recorded agent sessions at random places of their first 60 %,
in the words of the user and the model, in tool inputs and in tool results; then the session is played
with the embedded summariser, compacted so many times, and what the last context shows is searched for
the facts' words. The budget is the size of that context as a share of the whole history. The same is
done without the ledger and the index. Nothing that a fact carries tells the library that it was planted.

What the context shows no more is asked for, by a question that names what the fact is about
(``planted_questions.py``): it is recalled if its words stand in one of the first five hits.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from planted_facts import Fact, facts
from planting import History, planted
from retention_tables import HITS, Setting, Tally, markdown, recall_table, table
from rich.console import Console
from rich.table import Table

import refold
from refold.domain.messages import Message
from refold.domain.value import replace
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.infrastructure.transcripts.read_transcript import read_transcript

DATA = Path(
    os.environ.get("REFOLD_X_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
)
RESULTS = Path(__file__).with_name("results") / "retention.md"
FILES = ("claude-code-entire/*.jsonl.gz", "pi/*.jsonl.gz")
LEAST_TOKENS = 60_000
COUNTER = EstimatingTokenCounter()


def histories(limit: int) -> Iterator[tuple[str, tuple[Message, ...]]]:
    """The longest conversation of each recording, if it is long."""
    paths = [p for pattern in FILES for p in sorted(DATA.glob(pattern))]
    for path in paths[:limit]:
        longest = max(read_transcript(path).conversations, key=lambda c: len(c.messages))
        messages = tuple(recorded.message for recorded in longest.messages)
        if size(messages) >= LEAST_TOKENS:
            yield f"{path.parent.name}/{path.name}", messages


def size(messages: Sequence[Message]) -> int:
    """What the messages take, without the thinking that every compaction drops."""
    counts = [COUNTER.count_message(m) for m in messages]
    return sum(c.total - c.thinking for c in counts)


class Played(NamedTuple):
    """What came of a history."""

    context: refold.Context
    """The last one."""
    performed: int
    """Compactions."""
    recalled: list[bool | None]
    """Of each fact whether it was among the first hits; None where the context has it."""


def played(
    history: History, facts: Sequence[Fact], setting: Setting, policy: refold.CompactionPolicy
) -> Played:
    """Append the history in equal parts, compacting down to the budget after each, and ask for what the
    last context does not show.
    """
    target = size(history.messages) * setting.budget // 100
    step = (size(history.messages) - target) / setting.compactions
    due = target + step
    # The window in which a part's growth makes a compaction due, and the budget is what it aims at.
    window = int(due / policy.trigger_share)
    policy = replace(policy, target_share=target / due, keep_tokens=target // 2)
    with (
        tempfile.TemporaryDirectory() as folder,
        refold.open(str(Path(folder, "log.db")), window=window, policy=policy) as memory,
    ):
        conversation, performed = memory.conversation("history"), 0
        for part in parts(history.messages, target, setting.compactions):
            for index in part:
                conversation.append(history.messages[index].model_dump(), recorded=True)
                for text in history.pins.get(index, ()):
                    conversation.pin(text)
                if index in history.pinned_messages:
                    conversation.pin(index)
            performed += conversation.compact().outcome == "performed"
        context = conversation.context()
        text = shown(context)
        recalled = [
            None if fact.words in text else is_recalled(conversation, fact) for fact in facts
        ]
        return Played(context, performed, recalled)


def is_recalled(conversation: refold.ConversationMemory, fact: Fact) -> bool:
    """Whether the words of a fact stand in one of the first hits, asked as an agent's tool asks."""
    hits = conversation.recall(fact.question, limit=HITS, in_context="leave_out")
    return any(fact.words in hit.text for hit in hits)


def parts(messages: Sequence[Message], target: int, number: int) -> Iterator[range]:
    """As many ranges of positions: the first fills the budget as well, the others are equal."""
    left, begun, held = size(messages), 0, 0
    step = (left - target) / number
    due = target + step
    for index, message in enumerate(messages[:-1]):
        held += size([message])
        if number > 1 and held >= due and messages[index + 1].role == "assistant":
            yield range(begun, index + 1)
            left, begun, number, held = left - held, index + 1, number - 1, 0
            due = left / number
    yield range(begun, len(messages))


def shown(context: refold.Context) -> str:
    """Everything that the model would read."""
    return "\n".join(_strings([context.system, context.messages]))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def measure(
    settings: Sequence[Setting], files: int, each: int, seed: int, say: Callable[[str], None]
) -> Tally:
    """Play every history under every setting and count what is found."""
    tally = Tally()
    base = refold.CompactionPolicy(enough_freed_tokens=10**9, enough_freed_share=1.0)
    for name, messages in histories(files):
        rng = random.Random(f"{seed} {name}")
        said = facts(rng, each)
        history = planted(messages, said, rng, size)
        for setting in settings:
            policy = base if setting.ledger else replace(base, ledger_tokens=0, index_tokens=0)
            done = played(history, said, setting, policy)
            for fact, recalled in zip(said, done.recalled, strict=True):
                tally.note(fact, setting, recalled)
            share = done.context.tokens / size(history.messages)
            tally.sizes.setdefault(setting, []).append(share)
            tally.performed.setdefault(setting, []).append(done.performed)
            kind = "ledger" if setting.ledger else "without"
            lost = [recalled for recalled in done.recalled if recalled is not None]
            say(
                f"{name[:44]:44} {setting.title:7} {kind:7} {share:4.0%} "
                f"{len(said) - len(lost)}/{len(said)}, recalled {sum(lost)}/{len(lost)}"
            )
    return tally


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=99, help="how many recordings")
    parser.add_argument("--budgets", default="10,20,30", help="per cent of the history")
    parser.add_argument("--compactions", default="5,10")
    parser.add_argument("--each", type=int, default=2, help="facts of a type and language")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    settings = [
        Setting(int(n), int(b), ledger)
        for n in given.compactions.split(",")
        for b in given.budgets.split(",")
        for ledger in (True, False)
    ]
    console = Console()
    tally = measure(settings, given.files, given.each, given.seed, _tell)
    if not tally.found:
        raise SystemExit(f"no recordings: put them at {DATA}")
    kept, recalled = table(tally, settings), recall_table(tally, settings)
    if given.json:
        print(json.dumps({"kept": kept, "recalled": recalled}, ensure_ascii=False))
        return
    for rows in (kept, recalled):
        shown_table = Table(*rows[0])
        for row in rows[1:]:
            shown_table.add_row(*row)
        console.print(shown_table)
    if given.write:
        RESULTS.parent.mkdir(exist_ok=True)
        number = len(tally.sizes[settings[0]])
        RESULTS.write_text(markdown(kept, recalled, number, given.seed), "utf-8")


if __name__ == "__main__":
    main()
