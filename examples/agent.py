"""An agent loop with tools and memory: `python examples/agent.py` (needs ANTHROPIC_API_KEY)."""

import subprocess
from contextlib import suppress

import anthropic

import refold

MODEL = "claude-opus-5-5"
TOOLS = [
    {
        "name": "bash",
        "description": "Run a shell command and return its output.",
        "input_schema": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    }
]


def run(call: anthropic.types.ToolUseBlock) -> dict[str, object]:
    """Run one tool call; a failure is a result too."""
    done = subprocess.run(str(call.input["command"]), shell=True, capture_output=True, text=True)
    return {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": done.stdout + done.stderr,
        "is_error": done.returncode != 0,
    }


def main() -> None:
    client = anthropic.Anthropic()
    with refold.open("agent.db", model=MODEL) as memory, suppress(EOFError):
        conversation = memory.conversation("example")
        while question := input("> ").strip():
            conversation.append({"role": "user", "content": question})
            while True:
                request = conversation.context(system="You are a helpful engineer.", tools=TOOLS)
                reply = client.messages.create(
                    model=MODEL, max_tokens=4096, **request.for_anthropic()
                )
                conversation.append(reply)
                calls = [block for block in reply.content if block.type == "tool_use"]
                if not calls:
                    break
                conversation.append({"role": "user", "content": [run(call) for call in calls]})
            print("".join(block.text for block in reply.content if block.type == "text"))


if __name__ == "__main__":
    main()
