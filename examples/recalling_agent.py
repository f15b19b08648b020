"""An agent that asks its own memory, without a network: `python examples/recalling_agent.py`.

The model is played by a script: it forgets the port, since that part of the talk was folded away, and
asks ``recall_memory``. With a real one, ``client.messages.create(…, **request)`` stands in its place.
"""

from collections.abc import Mapping
from typing import Any

import refold

SYSTEM = "You are a careful engineer."
EARLIER = 40
"""Turns before the question."""


def main() -> None:
    with refold.open(":memory:", window=8_000) as memory:
        conversation = memory.conversation("example")
        tools = conversation.tools()
        for n in range(EARLIER):
            conversation.append(
                {"role": "user", "content": f"The port of service s{n} is {5400 + n}. " * 8}
            )
            conversation.context(system=SYSTEM, tools=tools.definitions)
            conversation.append({"role": "assistant", "content": "Noted. " * 30})
        print(answer(conversation, tools, "Which port does service s3 have?"))


def answer(conversation: refold.ConversationMemory, tools: Any, question: str) -> str:
    """One turn: requests and tool calls, until the model answers in words."""
    conversation.append({"role": "user", "content": question})
    while True:
        request = conversation.context(system=SYSTEM, tools=tools.definitions)
        reply = model(request.for_anthropic())
        conversation.append(reply)
        results = tools.results_for(reply)
        if not results:
            return str(reply["content"][0]["text"])
        conversation.append({"role": "user", "content": results})


def model(request: Mapping[str, Any]) -> dict[str, Any]:
    """A model by script: it asks its memory, and reads the answer out."""
    last = request["messages"][-1]["content"]
    results = [b for b in last if isinstance(b, dict) and b["type"] == "tool_result"]
    if not results:
        asked = {"query": "port of service s3", "limit": 1}
        call = {"type": "tool_use", "id": "toolu_1", "name": "recall_memory", "input": asked}
        return {"role": "assistant", "content": [call]}
    print(results[0]["content"], end="\n\n")
    found = "5403" in str(results[0]["content"])
    text = "It is 5403, as you told me earlier." if found else "I do not know."
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


if __name__ == "__main__":
    main()
