"""Sixty turns of one LangChain agent, with LangChain's summariser and with refold's memory.

    python benchmarks/adapters_compared.py --write

The agent thinks and calls tools. A local server refuses what the Messages API refuses. Both memories get the same
questions, tool results, budget and writer of summaries (refold's, by code: no model is called). LangChain's
middleware summarises at 90 % of the budget and keeps 35 %, as refold does about.
"""

import json
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import refold  # noqa: E402
from refold.adapters.langchain import MemoryMiddleware  # noqa: E402
from refold.adapters.langchain_messages import to_message, without_thinking  # noqa: E402
from refold.application.ports.summariser import SourceMessage, SummaryRequest  # noqa: E402
from refold.domain.messages import Message  # noqa: E402
from refold.infrastructure.summarisers.extractive.summariser import (  # noqa: E402
    ExtractiveSummariser,
)
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter  # noqa: E402
from tests.support.strict_server import StrictServer  # noqa: E402

TURNS, WINDOW = 60, 12_000
TRIGGER, KEEP, SUMMARY = 0.9, 0.35, 0.1
MODELS: dict[str, dict[str, Any]] = {
    "claude-opus-4-8": {"type": "enabled", "budget_tokens": 1_024},
    "claude-opus-5-5": {"type": "adaptive"},
}
RESULT = ROOT / "benchmarks" / "results" / "adapters_compared.md"
HEAD = """# The same agent with LangChain's summariser and with refold

Made by `python benchmarks/adapters_compared.py --write`: {turns} turns of one agent of LangChain that thinks and calls
a tool twice a turn, in a window of {window:,} tokens (budget {budget:,}), against a local server that refuses what the
Messages API refuses. {said} facts are said once by the user and {found} once by the tool, all in the first 35 turns.
Both memories get the same questions, tool results, budget and writer of summaries (refold's, by code). LangChain's
middleware is due at {trigger:.0%} of the budget and keeps {keep:.0%}, with a summary of {summary:.0%}. A turn whose
request was refused ends, and the next question follows. No model is called: a summary that a model writes may have
more of the facts or fewer. Facts are looked for, word for word, in the last request that was answered; an agent whose
requests are refused never gets beyond the facts it had heard by then.

| model | memory | requests | refused | turns answered | compactions | last answer | user's facts | tool's facts |
|---|---|---|---|---|---|---|---|---|"""
INTRODUCTION = "Here is a summary of the conversation to date:"
SAID = {
    0: "Never restart the billing service during business hours.",
    3: "The staging server listens on port 6390.",
    6: "Please also write a short upgrade note for the importer.",
    9: "Put all reports into /srv/reports/quarterly.",
    12: "The release is called Heron.",
    15: "We must stay on PostgreSQL 14.",
    18: "Use the table invoices_2031 for the totals.",
    21: "Don't touch anything under legacy/tax.",
    24: "The customer's account number is 88-1207-3341.",
    27: "I prefer tabs in the Makefiles.",
    30: "The certificate expires on 2031-05-17.",
    33: "The review is done by Marit Solheim.",
}
"""What the user says once, by turn."""
FOUND = {
    turn: f"wrote dist/part-{turn}-{turn * 7919 % 99991:05d}.tar.gz" for turn in (1, 8, 16, 25, 34)
}
"""What a tool says once, by turn."""


@dataclass
class Played:
    """What happened in one run."""

    sent: int = 0
    refused: int = 0
    answered: int = 0
    """Turns that ended with an answer."""
    compactions: int = 0
    first: tuple[int, str] | None = None
    """Turn of the first refusal, and what the server said."""
    last: str = ""
    """The last request that was answered."""
    last_turn: int = 0
    recall: Callable[[str], str] | None = None
    """The tool with which the agent asks its memory, if it has one."""
    recalled: int = 0
    """Facts of the tool that it finds at the end."""


class Watched(StrictServer):
    """Counts all requests."""

    sent = 0

    def _answer(self, body: Any) -> Any:
        self.sent += 1
        return super()._answer(body)


def play(model: str, make: Callable[[Any, Path, Played], Any]) -> Played:
    """Play all turns with one memory."""
    played, turn = Played(), 0

    def run(command: str) -> str:
        """Run a command."""
        said = FOUND.get(turn, "")
        return f"{command} went well. " * 20 + said + f" {command} is done." * 20

    langchain: Any = import_module("langchain.agents")
    chat: Any = import_module("langchain_anthropic").ChatAnthropic
    saver: Any = import_module("langgraph.checkpoint.memory").InMemorySaver()
    with Watched() as server, TemporaryDirectory() as folder:
        made = chat(model=model, api_key="key", base_url=server.base_url, max_tokens=2_000,
                    thinking=MODELS[model], max_retries=0)  # fmt: skip
        agent = langchain.create_agent(
            made, tools=[run], system_prompt="You help.", checkpointer=saver,
            middleware=[make(made, Path(folder), played)],
        )  # fmt: skip
        for turn in range(TURNS):
            question = f"Question {turn}: please build part {turn}. {SAID.get(turn, '')}"
            given = {"messages": [{"role": "user", "content": question}]}
            before = len(server.refused)
            try:
                agent.invoke(given, {"configurable": {"thread_id": "t"}})
                played.answered, played.last_turn = played.answered + 1, turn
            except Exception:
                if len(server.refused) == before:
                    raise
                played.refused += 1
                played.first = played.first or (turn, server.refused[before])
        if played.recall:
            asked = (
                (played.recall(f"dist part-{turn} tar.gz"), fact) for turn, fact in FOUND.items()
            )
            played.recalled = sum(fact.split()[1] in answer for answer, fact in asked)
        last = server.bodies[-1]
        played.sent = server.sent
        played.last = json.dumps([last.get("system"), last["messages"]], ensure_ascii=False)
    return played


def budget() -> int:
    """Return the tokens that refold lets a request have in this window."""
    with TemporaryDirectory() as folder, opened(Path(folder)) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "Hello."})
        return conversation.context(system="You help.").budget.limit


def opened(folder: Path) -> refold.Memory:
    """Open a memory whose summaries are written by code."""
    return refold.open(folder / "agent.db", window=WINDOW, telemetry=False)


def with_refold(model: Any, folder: Path, played: Played) -> Any:
    """Return refold's middleware."""
    del model
    memory = opened(folder)

    def recall(query: str) -> str:
        tools = memory.conversation("t").tools()
        return next(t for t in tools if t.name == "recall_memory").call({"query": query}).text

    played.recall = recall

    class Counting(MemoryMiddleware):
        def after_agent(self, state: Any, runtime: Any) -> Any:
            played.compactions = len(memory.conversation("t").summaries())
            return super().after_agent(state, runtime)

    return Counting(memory)


def with_langchain(model: Any, folder: Path, played: Played) -> Any:
    """Return LangChain's middleware, with the same writer."""
    del folder
    counter, limit = EstimatingTokenCounter(), budget()

    def message(one: Any) -> Message:
        given = to_message(without_thinking(one))
        return Message(role=given["role"], content=given["content"])

    def tokens(messages: Any) -> int:
        # Thinking counts where a request has it.
        return sum(counter.count_message(Message(**to_message(one))).total for one in messages)

    def summary(messages: Any) -> str:
        played.compactions += 1
        first = str(messages[0].content)
        continues = first.startswith(INTRODUCTION)
        covered = enumerate(map(message, messages[1:] if continues else messages))
        target = int(SUMMARY * limit)
        request = SummaryRequest(
            messages=tuple(SourceMessage(position=n, message=one) for n, one in covered),
            previous=first.removeprefix(INTRODUCTION).strip() if continues else None,
            target_tokens=target,
            limit_tokens=int(1.2 * target),
        )
        return ExtractiveSummariser(counter).extract(request)

    made: Any = import_module("langchain.agents.middleware").SummarizationMiddleware
    return made(
        model,
        trigger=("tokens", int(TRIGGER * limit)),
        keep=("tokens", int(KEEP * limit)),
        token_counter=tokens,
        trim_tokens_to_summarize=None,
        summarizer=summary,
    )


MEMORIES = {
    "LangChain: SummarizationMiddleware": with_langchain,
    "refold: MemoryMiddleware": with_refold,
}


def table(results: dict[tuple[str, str], Played]) -> str:
    """Return the page with the results."""
    lines = [
        HEAD.format(
            turns=TURNS, window=WINDOW, budget=budget(), said=len(SAID), found=len(FOUND),
            trigger=TRIGGER, keep=KEEP, summary=SUMMARY,
        )
    ]  # fmt: skip
    for (model, name), one in results.items():
        said = sum(fact in one.last for fact in SAID.values())
        found = sum(fact in one.last for fact in FOUND.values())
        lines.append(
            f"| {model} | {name} | {one.sent} | {one.refused} | {one.answered} of {TURNS} | {one.compactions} "
            f"| {one.last_turn + 1} | {said} of {len(SAID)} | {found} of {len(FOUND)} |"
        )
    for (model, _), one in results.items():
        if one.recall:
            lines += [
                "",
                f"{model}: `recall_memory` finds {one.recalled} of {len(FOUND)} facts of the tool.",
            ]
    lines += ["", "## First refusals", ""]
    firsts = [(k, one.first) for k, one in results.items() if one.first]
    for (model, name), (turn, text) in firsts:
        lines += [f"- {model}, {name}, turn {turn + 1}: `{text}`"]
    return "\n".join(lines if firsts else [*lines, "None."]) + "\n"


def main() -> None:
    """Play everything, print the page, and write it with ``--write``."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    results: dict[tuple[str, str], Played] = {}
    for model in MODELS:
        for name, make in MEMORIES.items():
            results[model, name] = play(model, make)
            print(model, name, results[model, name].sent, results[model, name].refused, flush=True)
    page = table(results)
    print(page)
    if "--write" in sys.argv:
        RESULT.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
